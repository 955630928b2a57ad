//! A real mail server of a test's own: aiosmtpd on a free port, gone with the test process.

use serde_json::Value;
use xtask::process::{Process, tied};

use super::wait::{SOON, eventually};

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct MailServer {
    port: u16,
    log: tempfile::NamedTempFile,
    _process: Process,
}

impl MailServer {
    /// Starts one that takes mail only after this login; an empty user takes any.
    pub async fn start(user: &str, password: &str) -> Self {
        let python = tokio::task::spawn_blocking(xtask::clients::python).await.expect("no panic");
        let mut command = tied("python3");
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/mail_server.py"))
            .env("PYTHONPATH", python.expect("the clients of tests/clients/requirements.txt"))
            .env("PYTHONWARNINGS", "ignore")
            .env("MAIL_USER", user)
            .env("MAIL_PASSWORD", password);
        let log = tempfile::NamedTempFile::new().unwrap();
        let process = Process::start("mail", command, log.path()).expect("`python3` runs");
        let port = eventually("the mail server listens", SOON, || async {
            let text = std::fs::read_to_string(log.path()).unwrap();
            text.lines().find_map(|line| line.parse().ok()).ok_or(text)
        })
        .await;
        Self { port, log, _process: process }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn told(&self, what: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log.path()).unwrap();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line.get(what).is_some()).collect()
    }

    /// The mails that it took: `sender`, `recipients`, `head` and `body` as they came.
    pub fn mails(&self) -> Vec<Value> {
        self.told("recipients")
    }

    /// The logins that were tried: `login`, `good`, `mechanism`.
    pub fn logins(&self) -> Vec<Value> {
        self.told("login")
    }
}
