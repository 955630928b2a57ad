//! Other people's clients against pods on the real node, over https through the edge: curl, wget, requests, rclone,
//! cadaver, litmus. The number in a name is the scenario's; those that a process of its own can play too are shared with
//! [`super::runtime_api`], [`super::runtime_webdav`] and [`super::runtime_admin`].

mod admin;
mod api;
mod big_files;
mod cli;
mod custom;
mod delivery;
mod folders;
mod ranges;
mod webdav;

use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::{SiteClient, with_pods};

/// Plays a scenario with the private Site.
fn on_private(test: &str, scenario: impl AsyncFnOnce(&SiteClient)) {
    with_pods(test, async move |pods| scenario(&*pods.private().await).await);
}

/// Plays a scenario with the public Site.
fn on_public(test: &str, scenario: impl AsyncFnOnce(&SiteClient)) {
    with_pods(test, async move |pods| scenario(&*pods.public().await).await);
}

/// What a program said.
struct Said {
    /// Its exit status.
    code: i32,
    /// Standard output.
    out: Vec<u8>,
    /// Standard error.
    err: String,
}

impl Said {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Its output, when it went well.
    #[track_caller]
    fn well(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.err, self.text());
        self.text()
    }
}

/// Runs a program to its end, with `input` on its standard input.
async fn run(command: &mut Command, input: &str) -> Said {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().unwrap();
    // A program that has ended does not read.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().await.unwrap();
    Said { code: status.code().unwrap_or(-1), out: stdout, err: String::from_utf8_lossy(&stderr).into_owned() }
}

/// Runs curl as a program would: quietly, with a limit, following nothing.
async fn curl(site: &SiteClient, arguments: &[&str]) -> Said {
    let mut command = site.program("curl");
    command.args(["--silent", "--show-error", "--path-as-is", "--max-time", "300"]).args(arguments);
    run(&mut command, "").await
}

/// Runs a script of `tests/clients` with the libraries that it needs.
async fn python(site: &SiteClient, script: &str, arguments: &[&str]) -> Said {
    let libraries = tokio::task::spawn_blocking(xtask::clients::python).await.unwrap().expect("the libraries (pip)");
    let mut command = site.program("python3");
    command.arg("-B").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/").to_owned() + script).args(arguments);
    run(command.env("PYTHONPATH", libraries), "").await
}
