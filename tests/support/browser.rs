//! Headless Chromium before the edge of a real node, driven through `tests/browser/driver.mjs`. People have a browser
//! of their own each, known by a name.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use xtask::process::tied;

use super::node::Edge;

const CHROMIUM: &str = "/usr/bin/chromium";

/// A running browser; it ends with this process, and when it is dropped.
pub struct Browser {
    // Killed when dropped; Chromium ends when its driver does.
    _process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Browser {
    /// Starts one.
    pub async fn start(edge: &Edge) -> Self {
        let driver = tokio::task::spawn_blocking(xtask::clients::browser).await.unwrap().expect("the driver is there");
        let provider = tokio::task::spawn_blocking(xtask::cluster::openid::provider).await.unwrap();
        let node = provider.expect("Node.js comes with the provider").node;
        let mut command = tokio::process::Command::from(tied(node));
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/driver.mjs"))
            .env("DRIVER", driver)
            .env("CHROMIUM", CHROMIUM)
            .env("EDGE", edge.address.ip().to_string())
            .env("CA", &edge.ca)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().expect("the driver starts");
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, orders, answers }
    }

    /// Lets `who` do something; a failure says what they see.
    pub async fn attempt(&mut self, who: &str, deed: &str, more: Value) -> Result<Value, String> {
        let mut order = more;
        order["who"] = who.into();
        order["deed"] = deed.into();
        self.orders.write_all(format!("{order}\n").as_bytes()).await.map_err(|error| error.to_string())?;
        let answer = self.answers.next_line().await.map_err(|error| error.to_string())?;
        let mut answer: Value = serde_json::from_str(&answer.ok_or("the browser has ended")?).unwrap();
        match answer["failed"].as_str() {
            Some(reason) => Err(format!("{who}, {order}: {reason}")),
            None => Ok(answer["ok"].take()),
        }
    }

    async fn must(&mut self, who: &str, deed: &str, more: Value) -> Value {
        self.attempt(who, deed, more).await.unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Somebody comes, with scripts or without.
    pub async fn person(&mut self, name: &str, scripts: bool) {
        self.must(name, "person", json!({"name": name, "scripts": scripts})).await;
    }

    /// Opens an address: `status`, `url` where it led, `headers`, `title`.
    pub async fn open(&mut self, who: &str, url: &str) -> Value {
        self.must(who, "open", json!({"url": url})).await
    }

    /// Clicks; `answer` is for the dialog that opens, if any.
    pub async fn click(&mut self, who: &str, at: &str, answer: Option<&str>) {
        let order = answer.map_or(json!({"at": at}), |answer| json!({"at": at, "answer": answer}));
        self.must(who, "click", order).await;
    }

    /// Writes into a field.
    pub async fn fill(&mut self, who: &str, at: &str, text: &str) {
        self.must(who, "fill", json!({"at": at, "text": text})).await;
    }

    /// What a field holds.
    pub async fn value(&mut self, who: &str, at: &str) -> String {
        self.must(who, "value", json!({"at": at})).await.as_str().unwrap_or_default().to_owned()
    }

    /// Chooses files in a field for them.
    pub async fn choose(&mut self, who: &str, at: &str, name: &str, text: &str) {
        self.must(who, "choose", json!({"at": at, "files": [{"name": name, "text": text}]})).await;
    }

    /// Drops files on the page; whether it showed that they may be.
    pub async fn drop_file(&mut self, who: &str, name: &str, text: &str) -> bool {
        self.must(who, "drop", json!({"files": [{"name": name, "text": text}]})).await == true
    }

    /// Waits until something with a text is shown, and gives all of its text.
    pub async fn see(&mut self, who: &str, at: &str, text: &str) -> String {
        self.must(who, "see", json!({"at": at, "text": text})).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until nothing like that is shown.
    pub async fn gone(&mut self, who: &str, at: &str, text: &str) {
        self.must(who, "gone", json!({"at": at, "text": text})).await;
    }

    /// Waits until the address begins so.
    pub async fn at(&mut self, who: &str, url: &str) {
        self.must(who, "where", json!({"url": url})).await;
    }

    /// Runs a script in the page, as the page's own would, and gives what it gives.
    pub async fn run(&mut self, who: &str, script: &str) -> Value {
        self.must(who, "run", json!({"script": script})).await
    }

    /// What went wrong in their pages since the last time: errors of the console, of scripts, and lost requests.
    pub async fn trouble(&mut self, who: &str) -> Vec<String> {
        serde_json::from_value(self.must(who, "trouble", json!({})).await).unwrap()
    }

    /// Fills in the provider's login page, where they must be; the password is the name.
    pub async fn log_in(&mut self, who: &str, name: &str) {
        self.fill(who, "input[name=name]", name).await;
        self.fill(who, "input[name=password]", name).await;
        self.click(who, "button", None).await;
    }

    /// Takes a picture, if `SITES_SCREENSHOTS` names a folder for them.
    pub async fn shot(&mut self, who: &str, name: &str) {
        let Some(folder) = std::env::var_os("SITES_SCREENSHOTS").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        self.must(who, "shot", json!({"path": path})).await;
        eprintln!("wrote {}", path.display());
    }
}
