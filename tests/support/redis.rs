//! A Redis server of a test's own: Debian's `redis-server`, nothing on disk, gone with the test process.

use std::fmt::Write as _;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use xtask::process::{Process, free_port, tied};

use super::wait::{SOON, eventually};

/// A running server; dropping it kills it.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    process: Option<Process>,
    dir: tempfile::TempDir,
}

impl Redis {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let port = free_port().unwrap();
        let mut redis = Self { port, process: None, dir: tempfile::tempdir().unwrap() };
        redis.resume().await;
        redis
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// What it answers to a command whose answer is short: its first line without the mark, or the text of a string;
    /// none for nothing.
    pub async fn command(&self, words: &[&str]) -> Option<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            let _ = write!(request, "${}\r\n{word}\r\n", word.len());
        }
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("Redis is up");
        let mut stream = BufReader::new(stream);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let (mark, rest) = line.trim_end().split_at(1);
        match (mark, rest) {
            ("$", "-1") => None,
            ("$", length) => {
                let mut text = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut text).await.unwrap();
                Some(String::from_utf8(text).unwrap())
            }
            ("-", error) => panic!("{words:?}: {error}"),
            (_, value) => Some(value.to_owned()),
        }
    }

    /// Kills it; what it held is lost.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on the same port.
    pub async fn resume(&mut self) {
        let mut command = tied("redis-server");
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(self.dir.path());
        let log = self.dir.path().join("redis.log");
        let started = Process::start("redis", command, &log).expect("`redis-server` runs (`cargo xtask setup`)");
        self.process = Some(started);
        let port = self.port;
        eventually("Redis answers", SOON, || async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
            stream.write_all(b"PING\r\n").await.ok()?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).await.ok()?;
            (&answer == b"+PONG").then_some(())
        })
        .await;
    }
}
