//! One running `sites runtime api`: a real process on loopback, a volume in a temporary folder, a stand-in for the login.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::http::Answer;
use super::identity::{self, Questions};

/// The master token.
pub const MASTER: &str = "the-master-token-of-the-tests";
/// The volume, below a test's folder: so deep that a server that lets `..` pass still destroys nothing outside.
pub const DATA: &str = "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/data";
/// Path of the site.
pub const PREFIX: &str = "/team/plans";

pub struct RunningSite {
    folder: TempDir,
    identity: u16,
    pub port: u16,
    pub questions: Questions,
    pub log: Arc<Mutex<String>>,
    // Dropped with the site, and killed by the kernel if the test process dies first.
    pub process: Child,
}

/// One more server of a site.
pub struct Role {
    pub port: u16,
    pub log: Arc<Mutex<String>>,
    pub process: Child,
}

/// How it starts.
pub struct Start<'a> {
    pub site_type: &'a str,
    /// Makes the volume's content.
    pub prepare: &'a dyn Fn(&Path),
    /// Variables beside the usual ones; an empty value takes one away.
    pub env: &'a [(&'a str, &'a str)],
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self { site_type: "private", prepare: &|_| {}, env: &[] }
    }
}

impl RunningSite {
    /// A private site without content.
    pub async fn private() -> Self {
        Self::start(Start::default()).await
    }

    /// A public site without content.
    pub async fn public() -> Self {
        Self::start(Start { site_type: "public", ..Start::default() }).await
    }

    pub async fn start(start: Start<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (identity, questions) = identity::start().await;
        std::fs::create_dir_all(folder.path().join(DATA)).unwrap();
        (start.prepare)(&folder.path().join(DATA));
        let Role { port, log, process } = serve("api", folder.path(), identity, &start).await;
        Self { folder, identity, port, questions, log, process }
    }

    /// Starts another server on the same volume.
    pub async fn role(&self, role: &str) -> Role {
        serve(role, self.folder.path(), self.identity, &Start::default()).await
    }

    /// The same for a site of a type.
    pub async fn role_as(&self, role: &str, site_type: &str) -> Role {
        serve(role, self.folder.path(), self.identity, &Start { site_type, ..Start::default() }).await
    }

    /// Starts another server on an empty volume of its own of so many MiB, or says why that cannot be here. Only it
    /// sees the volume, which goes with it.
    pub async fn role_on_small_volume(&self, role: &str, size: u32) -> Result<Role, &'static str> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount a volume");
        }
        let inner = command(role, self.folder.path(), self.identity, &Start::default());
        let inner = inner.as_std();
        let mut outer = Command::new("unshare");
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mount = format!("mount -t tmpfs -o size={size}m tmpfs \"$SITE_CONTENT_DIR\" && exec \"$@\"");
        outer.args(["--mount", "--propagation", "private", "--", "sh", "-c", &mount, "sh"]);
        outer.arg(inner.get_program()).args(inner.get_args());
        Ok(launch(outer).await)
    }

    /// A request to any path of another server.
    pub fn at(&self, role: &Role, method: &str, path: &str) -> Call {
        Call { port: role.port, ..self.raw(method, path) }
    }

    /// Path of a content file.
    pub fn content(&self, path: &str) -> PathBuf {
        self.folder.path().join(DATA).join(path)
    }

    /// The access file, to be changed.
    pub fn access_file(&self) -> PathBuf {
        self.folder.path().join("access.json")
    }

    /// Address of an endpoint, for clients that are other programs.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{PREFIX}/s/api/v2/{path}", self.port)
    }

    /// A request to an endpoint of the API.
    pub fn api(&self, method: &str, path: &str) -> Call {
        self.raw(method, &format!("{PREFIX}/s/api/v2/{path}"))
    }

    /// A request to any path.
    pub fn raw(&self, method: &str, path: &str) -> Call {
        let line = format!("{method} {path} HTTP/1.1\r\nHost: sites.example.org\r\nConnection: close\r\n");
        Call { port: self.port, head: line, body: Vec::new() }
    }

    /// A GET with the master token.
    pub async fn get(&self, path: &str) -> Answer {
        self.api("GET", path).token(MASTER).send().await
    }

    /// Writes a file with the master token.
    pub async fn put(&self, path: &str, bytes: &[u8]) -> Answer {
        self.api("PUT", &format!("files/{path}")).token(MASTER).body(bytes).send().await
    }

    /// The same, and it must go well.
    pub async fn must_put(&self, path: &str, bytes: &[u8]) {
        let answer = self.put(path, bytes).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }

    /// Deletes with the master token.
    pub async fn delete(&self, path: &str) -> Answer {
        self.api("DELETE", path).token(MASTER).send().await
    }

    /// Makes a link with the master token.
    pub async fn link(&self, path: &str, target: &str) -> Answer {
        let body = json!({"target": target}).to_string();
        self.api("PUT", &format!("symlinks/{path}")).token(MASTER).body(body.as_bytes()).send().await
    }

    /// Posts JSON with the master token.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.api("POST", path).token(MASTER).body(body.to_string().as_bytes()).send().await
    }

    /// The names in a folder.
    pub async fn names(&self, query: &str) -> Vec<String> {
        let answer = self.get(query).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let files = answer.json()["files"].clone();
        files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    }

    /// A new access token: its id and text.
    pub async fn token(&self, privilege: &str, duration: Option<i64>) -> (String, String) {
        let body = json!({"label": "test", "privilege": privilege, "duration": duration});
        let answer = self.post("tokens", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&answer.json()["token"]["id"]), text(&answer.json()["value"]))
    }
}

/// Starts a server and waits until it says where it listens.
async fn serve(role: &str, folder: &Path, identity: u16, start: &Start<'_>) -> Role {
    launch(command(role, folder, identity, start)).await
}

async fn launch(mut command: Command) -> Role {
    let mut process =
        command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("setpriv: apt-get install util-linux");
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let log = Arc::new(Mutex::new(String::new()));
    let mut port = None;
    while port.is_none() {
        let reading = tokio::time::timeout(Duration::from_secs(60), lines.next_line());
        let line = reading.await.expect("a start within a minute").unwrap();
        let line = line.expect("the site does not start; its message is above");
        let value: Value = serde_json::from_str(&line).unwrap();
        port = value["address"].as_str().map(|address| address.rsplit(':').next().unwrap().parse().unwrap());
    }
    let kept = log.clone();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            kept.lock().unwrap().push_str(&(line + "\n"));
        }
    });
    Role { port: port.unwrap(), log, process }
}

/// `sites runtime <role>` as the operator would start it. It must not outlive the test.
pub fn command(role: &str, folder: &Path, identity: u16, start: &Start<'_>) -> Command {
    let access = json!({
        "owner": "ana", "type": start.site_type,
        "administrator_users": ["ben"], "administrator_groups": ["ops"],
        "view_users": ["cleo"], "view_groups": ["staff"],
    });
    std::fs::write(folder.join("access.json"), access.to_string()).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_sites"), "runtime", role]).env_clear();
    let path = |name: &str| folder.join(name).display().to_string();
    for (name, value) in [
        ("SITE_ID", "plans".to_owned()),
        ("SITE_PREFIX", PREFIX.to_owned()),
        ("SITE_PUBLIC_URL", format!("https://sites.example.org{PREFIX}/")),
        ("SITE_QUOTA_GI", "1".to_owned()),
        ("SITE_CONTENT_DIR", path(DATA)),
        ("SITE_ACCESS_FILE", path("access.json")),
        ("SITE_IDENTITY_URL", format!("http://127.0.0.1:{identity}{PREFIX}/oauth2/auth")),
        ("SITE_COOKIE_NAME", "__Secure-sites-plans".to_owned()),
        ("SITE_API_LISTEN", "127.0.0.1:0".to_owned()),
        ("SITE_ADMIN_LISTEN", "127.0.0.1:0".to_owned()),
        ("SITE_WEBDAV_LISTEN", "127.0.0.1:0".to_owned()),
        ("SITE_S3_LISTEN", "127.0.0.1:0".to_owned()),
        ("MASTER_TOKEN", MASTER.to_owned()),
        ("SIGNING_KEY", "a signing key of the tests, long enough".to_owned()),
        ("SESSION_URL_KEY", "a session key of the tests, long enough".to_owned()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
    ] {
        command.env(name, value);
    }
    for (name, value) in start.env {
        if value.is_empty() {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    command
}

/// One request.
pub struct Call {
    port: u16,
    head: String,
    body: Vec<u8>,
}

impl Call {
    #[must_use]
    pub fn header(mut self, line: &str) -> Self {
        self.head += line;
        self.head += "\r\n";
        self
    }

    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.header(&format!("Authorization: Bearer {token}"))
    }

    #[must_use]
    pub fn session(self, person: &str) -> Self {
        self.header(&format!("Cookie: other=1; __Secure-sites-plans={person}"))
    }

    #[must_use]
    pub fn body(mut self, bytes: &[u8]) -> Self {
        bytes.clone_into(&mut self.body);
        self
    }

    pub async fn send(self) -> Answer {
        self.try_send().await.expect("an answer")
    }

    /// `None` when the connection ends without one.
    pub async fn try_send(mut self) -> Option<Answer> {
        if !self.body.is_empty() || !self.head.starts_with("GET") {
            self = {
                let length = self.body.len();
                self.header(&format!("Content-Length: {length}"))
            };
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        let mut bytes = self.head.into_bytes();
        bytes.extend(b"\r\n");
        stream.write_all(&bytes).await.ok()?;
        // A server that has answered may close before it has read all.
        let _ = stream.write_all(&self.body).await;
        let mut answer = Vec::new();
        let reading = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer));
        let _ = reading.await.expect("an answer within a minute");
        Answer::parse(&answer)
    }
}
