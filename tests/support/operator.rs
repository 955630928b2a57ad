//! One running `sites operator`: a real process, its log lines, its admin port, and what a test may do to it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use xtask::process::{Signal, signal, start, tied};

use super::wait::{SOON, eventually};

/// The log line that says where the admin port is.
const ADMIN_LINE: &str = "admin endpoint listening";

/// How long a graceful stop may take.
const STOP_PATIENCE: Duration = Duration::from_secs(40);

/// How to start an operator, where it differs from the world's usual.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Another kubeconfig, such as the fault proxy's.
    pub kubeconfig: Option<PathBuf>,
    /// Written over the world's settings as a merge patch.
    pub settings: Value,
    /// More environment variables.
    pub environment: Vec<(String, String)>,
    /// Return at once instead of waiting for readiness (a standby with a lost server, a start that must fail).
    pub do_not_wait: bool,
}

/// A running operator. Dropping it kills it; if the test is failing then, its log is printed.
#[derive(Debug)]
pub struct Operator {
    name: String,
    shared: Arc<Shared>,
}

/// The process and its output; the world keeps it too, to end what a test forgot.
#[derive(Debug)]
pub(super) struct Shared {
    pid: u32,
    child: Mutex<Child>,
    lines: Mutex<Vec<Value>>,
}

impl Shared {
    pub(super) fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }

    fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().unwrap().try_wait().expect("a process that can be waited for")
    }
}

impl Operator {
    pub(super) fn spawn(
        name: &str,
        namespace: &str,
        kubeconfig: &Path,
        settings: &Path,
        environment: &[(String, String)],
    ) -> Self {
        let mut command = tied(env!("CARGO_BIN_EXE_sites"));
        command
            .args(["operator", "--namespace", namespace, "--config"])
            .arg(settings)
            .env("KUBECONFIG", kubeconfig)
            .envs(environment.iter().map(|(key, value)| (key, value)));
        Self::run(name, command)
    }

    /// Any operator on the engine, as a command that ends with this process.
    pub fn run(name: &str, mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(command).expect("the operator starts");
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let shared = Arc::new(Shared { pid: child.id(), child: Mutex::new(child), lines: Mutex::new(Vec::new()) });
        collect(stdout, &shared);
        collect(stderr, &shared);
        Self { name: name.into(), shared }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Waits until it says that it is ready.
    pub async fn wait_ready(&self) {
        eventually("the operator is ready", SOON, || async {
            if let Some(status) = self.shared.ended() {
                panic!("the operator ended ({status}):\n{}", self.log_text());
            }
            match self.request("/readyz").await {
                Ok((200, _)) => Ok(()),
                Ok((code, body)) => Err(format!("/readyz says {code} {body}")),
                Err(reason) => Err(reason),
            }
        })
        .await;
    }

    /// Every line it has written: JSON as it is, anything else as `{"text": …}`.
    pub fn logs(&self) -> Vec<Value> {
        self.shared.lines.lock().unwrap().clone()
    }

    /// The lines whose message contains `text`.
    pub fn logs_with(&self, text: &str) -> Vec<Value> {
        let mut lines = self.logs();
        lines.retain(|line| field(line, "message").and_then(Value::as_str).is_some_and(|told| told.contains(text)));
        lines
    }

    /// Everything it has written, for messages.
    pub fn log_text(&self) -> String {
        self.logs().iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }

    /// What tells its user agent from those of other operators: the instance id that its log names, else what all
    /// operators share. For [`super::Calls::by_agent`].
    pub fn agent(&self) -> String {
        let lines = self.logs();
        let told = |name: &str| lines.iter().find_map(|line| field(line, name)?.as_str().map(str::to_owned));
        told("user_agent").or_else(|| told("instance")).unwrap_or_else(|| "sites".into())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.shared.ended()
    }

    /// Asks it to stop and waits; it must end well.
    pub async fn stop(self) -> Vec<Value> {
        signal(self.shared.pid, Signal::TERM).unwrap();
        let status = self.wait_end().await;
        assert!(status.success(), "the operator ended badly ({status}):\n{}", self.log_text());
        self.logs()
    }

    /// Waits until it ends by itself.
    pub async fn wait_end(&self) -> ExitStatus {
        eventually("the operator ends", STOP_PATIENCE, || async { self.shared.ended() }).await
    }

    /// Kills it without warning.
    pub fn kill(self) {
        self.shared.kill();
    }

    /// Stops it in its tracks: it keeps its connections and does nothing.
    pub fn pause(&self) {
        signal(self.shared.pid, Signal::STOP).unwrap();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        signal(self.shared.pid, Signal::CONT).unwrap();
    }

    /// A JSON answer of its admin port, such as `/debug/sites/ID`.
    pub async fn get(&self, path: &str) -> Value {
        let (code, body) = self.request(path).await.unwrap_or_else(|reason| panic!("{path}: {reason}"));
        assert_eq!(code, 200, "{path} says {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }

    /// Its metrics in Prometheus' text form.
    pub async fn metrics(&self) -> String {
        let (code, body) = self.request("/metrics").await.expect("metrics");
        assert_eq!(code, 200, "/metrics says {body}");
        body
    }

    /// The sum of a metric over the series whose labels contain each of `labels` (such as `class="change"`).
    pub async fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = self.metrics().await;
        let series = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
            let (names, value) = rest.rsplit_once(' ')?;
            labels.iter().all(|label| names.contains(label)).then(|| value.parse::<f64>().ok())?
        });
        series.sum()
    }

    /// Status code and body of a path of the admin port.
    pub async fn request(&self, path: &str) -> Result<(u16, String), String> {
        let lines = self.logs_with(ADMIN_LINE);
        let address = lines.last().and_then(|line| field(line, "address")?.as_str());
        let address = address.ok_or_else(|| format!("no log line {ADMIN_LINE:?} yet"))?;
        let exchange = async {
            let mut stream = tokio::net::TcpStream::connect(address).await?;
            // HTTP/1.0: one answer, not chunked, then the end.
            stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        let answer = tokio::time::timeout(Duration::from_secs(5), exchange).await;
        let answer = answer.map_err(|_| "no answer in 5 s")?.map_err(|error| error.to_string())?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("not HTTP")?;
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status code")?;
        Ok((code, body.to_owned()))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of operator {} ---\n{}\n--- end ---", self.name, self.log_text());
        }
        self.shared.kill();
    }
}

/// A field of a log line, wherever the formatter put it.
pub fn field<'a>(line: &'a Value, name: &str) -> Option<&'a Value> {
    line.get(name).or_else(|| line.get("fields")?.get(name))
}

fn collect(stream: impl Read + Send + 'static, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let value = serde_json::from_str(&line).unwrap_or_else(|_| json!({"text": line}));
            shared.lines.lock().unwrap().push(value);
        }
    });
}
