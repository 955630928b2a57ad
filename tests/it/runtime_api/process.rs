//! The process: what it needs to start, how it stops, what it survives.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::site::{DATA, Start, command};
use crate::support::{MASTER, RunningSite, SOON, eventually};

#[tokio::test]
async fn a_start_that_fails_names_the_variable() {
    for (name, value) in [
        ("SITE_ID", ""),
        ("SITE_CONTENT_DIR", ""),
        ("SITE_QUOTA_GI", "much"),
        ("SITE_IDENTITY_URL", "http://login.example.org/"),
        ("SITE_ACCESS_FILE", "/nonexistent/access.json"),
        ("SIGNING_KEY", "short"),
        ("SITE_API_LISTEN", "everywhere"),
        ("SITE_PUBLIC_URL", "https://sites.example.org/other/"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(DATA)).unwrap();
        let start = Start { env: &[(name, value)], ..Start::default() };
        let mut command = command("api", folder.path(), 1, &start);
        let running = command.kill_on_drop(true).output();
        let output = tokio::time::timeout(Duration::from_secs(60), running).await;
        let output = output.unwrap_or_else(|_| panic!("it starts with {name}={value}")).unwrap();
        // Before its log begins it says so on standard error, afterwards in the log.
        let error = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!output.status.success() && error.contains(name), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_stop_finishes_what_runs() {
    let mut site = RunningSite::private().await;
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
    let head = format!(
        "PUT /team/plans/s/api/v2/files/slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {MASTER}\r\n\
         Content-Length: 10\r\n\r\n12345"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    eventually("it has begun", SOON, || async { std::fs::read_dir(site.content(".sites/tmp")).unwrap().count() == 1 })
        .await;
    let id = i32::try_from(site.process.id().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), rustix::process::Signal::TERM).unwrap();
    eventually("nothing new is taken", SOON, || async { TcpStream::connect(("127.0.0.1", site.port)).await.is_err() })
        .await;
    stream.write_all(b"67890").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let status = tokio::time::timeout(Duration::from_secs(60), site.process.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(std::fs::read(site.content("slow")).unwrap(), b"1234567890");
}

/// What a killed process left is cleaned up, and counted right.
#[tokio::test]
async fn leftovers_of_a_killed_process_go() {
    let prepare = |data: &std::path::Path| {
        for folder in [".sites/tmp/old-copy", ".sites/trash/gone/deep"] {
            std::fs::create_dir_all(data.join(folder)).unwrap();
        }
        std::fs::write(data.join("page.html"), b"page").unwrap();
        std::fs::write(data.join(".sites/trash/gone/deep/file"), b"12345").unwrap();
        let old = std::time::SystemTime::now() - Duration::from_secs(3600);
        for left in [".sites/tmp/old-file", ".sites/tmp/old-copy/file"] {
            std::fs::write(data.join(left), b"1234567").unwrap();
        }
        for left in [".sites/tmp/old-file", ".sites/tmp/old-copy"] {
            std::fs::File::open(data.join(left)).unwrap().set_modified(old).unwrap();
        }
        std::fs::write(data.join(".sites/tmp/young"), b"of another process").unwrap();
    };
    let site = RunningSite::start(Start { prepare: &prepare, ..Start::default() }).await;
    eventually("they go", SOON, || async {
        let names = |folder| std::fs::read_dir(site.content(folder)).unwrap().count();
        (names(".sites/tmp"), names(".sites/trash")) == (1, 0)
    })
    .await;
    assert!(site.content(".sites/tmp/young").exists(), "it may be somebody's who is about to lock it");
    eventually("they are not counted", SOON, || async {
        let used = &site.get("usage").await.json()["used"];
        if *used == 4 + 18 { Ok(()) } else { Err(used.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn the_openapi_document_is_served_and_committed() {
    let site = RunningSite::public().await;
    let served = site.api("GET", "openapi.json").send().await;
    assert_eq!(served.status, 200);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi-site-api.json");
    let committed: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(served.json(), committed, "run `cargo xtask generated`");
    assert!(committed["paths"]["/files/{path}"]["put"]["responses"]["507"].is_object());
}
