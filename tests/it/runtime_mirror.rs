//! `sites runtime mirror`: copies a site over its API; stands aside for people, and deletes with care.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::site::{DATA, PREFIX, RunningSite, Start, command};

/// The copy of a site.
struct Copy {
    folder: TempDir,
    source: String,
}

impl Copy {
    fn of(port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(DATA)).unwrap();
        Self { folder, source: format!("http://127.0.0.1:{port}{PREFIX}") }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(DATA).join(path)
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// One cycle; its log.
    async fn cycle(&self, more: &[(&str, &str)]) -> Vec<Value> {
        let usual = [("SITE_MIRROR_SOURCE", self.source.as_str()), ("SITE_MIRROR_ONCE", "true")];
        let env = [&usual, more].concat();
        let start = Start { env: &env, ..Start::default() };
        let output = command("mirror", self.folder.path(), 1, &start).output().await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What one cycle did: copied, deleted, kept, failed.
    async fn counts(&self) -> [u64; 4] {
        let log = self.cycle(&[]).await;
        let end = log.iter().find(|line| line["message"] == "a cycle ended").unwrap_or_else(|| panic!("{log:?}"));
        ["copied", "deleted", "kept", "failed"].map(|name| end[name].as_u64().unwrap())
    }
}

#[tokio::test]
async fn mirror_copies_files_links_and_folders_and_then_only_what_changed() {
    let site = RunningSite::private().await;
    for (path, text) in
        [("index.html", "first"), ("a%20b/c%2B%23.txt", "odd"), ("fdb/develop/x.txt", "x"), ("empty/.keep", "")]
    {
        site.must_put(path, text.as_bytes()).await;
    }
    assert_eq!(site.link("fdb/latest", "fdb/develop").await.status, 200);
    let copy = Copy::of(site.port);
    assert_eq!(copy.counts().await, [4, 0, 0, 0]);
    assert_eq!((copy.text("a b/c+#.txt"), copy.text("empty/.keep")), ("odd".to_owned(), String::new()));
    assert_eq!(std::fs::read_link(copy.path("fdb/latest")).unwrap(), Path::new("develop"));
    assert_eq!(copy.counts().await, [0, 0, 0, 0], "nothing changed");
    site.must_put("index.html", b"second").await;
    std::fs::remove_file(copy.path("fdb/develop/x.txt")).unwrap();
    assert_eq!(copy.counts().await, [2, 0, 0, 0], "what changed there, and what was lost here");
    assert_eq!((copy.text("index.html"), copy.text("fdb/develop/x.txt")), ("second".to_owned(), "x".to_owned()));
}

#[tokio::test]
async fn mirror_leaves_alone_what_people_did_on_this_side() {
    let site = RunningSite::private().await;
    site.must_put("page.html", b"theirs").await;
    site.must_put("gone.html", b"theirs").await;
    let copy = Copy::of(site.port);
    std::fs::write(copy.path("own.html"), "own").unwrap();
    copy.counts().await;
    std::fs::write(copy.path("page.html"), "edited here").unwrap();
    std::fs::write(copy.path("gone.html"), "edited here").unwrap();
    site.must_put("page.html", b"newer").await;
    site.must_put("own.html", b"of the same name").await;
    assert_eq!(site.delete("files/gone.html").await.status, 200);
    assert_eq!(copy.counts().await, [0, 0, 2, 0]);
    assert_eq!((copy.text("page.html"), copy.text("own.html")), ("edited here".to_owned(), "own".to_owned()));
    assert_eq!(copy.text("gone.html"), "edited here");
}

#[tokio::test]
async fn mirror_deletes_what_vanished_but_never_much_at_once() {
    let site = RunningSite::private().await;
    for number in 0..20 {
        site.must_put(&format!("f/{number}.txt"), b"x").await;
    }
    let copy = Copy::of(site.port);
    assert_eq!(copy.counts().await, [20, 0, 0, 0]);
    assert_eq!(site.delete("files/f/0.txt").await.status, 200);
    assert_eq!(copy.counts().await, [0, 1, 0, 0]);
    assert!(!copy.path("f/0.txt").exists());
    for number in 1..10 {
        site.delete(&format!("files/f/{number}.txt")).await;
    }
    let log = copy.cycle(&[]).await;
    let told = log.iter().find(|line| line["level"] == "ERROR").unwrap_or_else(|| panic!("{log:?}"));
    assert_eq!((&told["gone"], &told["allowed"]), (&Value::from(9), &Value::from(2)));
    assert!(copy.path("f/1.txt").exists());
    copy.cycle(&[("SITE_MIRROR_MAX_DELETE_PERCENT", "50")]).await;
    assert!(!copy.path("f/1.txt").exists() && copy.path("f/10.txt").exists());
}

#[tokio::test]
async fn mirror_deletes_nothing_when_the_source_was_not_listed_completely() {
    let site = RunningSite::private().await;
    site.must_put("closed/a.txt", b"a").await;
    site.must_put("b.txt", b"b").await;
    let copy = Copy::of(site.port);
    copy.counts().await;
    site.delete("files/b.txt").await;
    let front = Cutter::start(site.port, "files/closed?", 0).await;
    let copy = Copy { source: format!("http://127.0.0.1:{}{PREFIX}", front.port), ..copy };
    let log = copy.cycle(&[]).await;
    assert!(log.iter().any(|line| line["reason"].as_str().is_some_and(|reason| reason.contains("closed"))), "{log:?}");
    assert!(copy.path("b.txt").exists() && copy.path("closed/a.txt").exists());
}

#[tokio::test]
async fn mirror_goes_on_where_a_download_broke_off() {
    let site = RunningSite::private().await;
    let big: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    site.must_put("big.bin", &big).await;
    let front = Cutter::start(site.port, "files/big.bin", 5_000_000).await;
    let copy = Copy::of(front.port);
    assert_eq!(copy.counts().await, [1, 0, 0, 0]);
    assert!(std::fs::read(copy.path("big.bin")).unwrap() == big, "byte by byte");
    let passed = front.bytes.load(Ordering::SeqCst);
    assert!(passed < big.len() + 1_000_000, "only the rest was asked for again: {passed} bytes");
    assert_eq!(std::fs::metadata(copy.path("big.bin")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[tokio::test]
async fn mirror_on_trial_writes_nothing() {
    let site = RunningSite::private().await;
    site.must_put("a.txt", b"a").await;
    let copy = Copy::of(site.port);
    let log = copy.cycle(&[("SITE_MIRROR_DRY_RUN", "true")]).await;
    assert!(log.iter().any(|line| line["message"] == "would be done" && line["path"] == "a.txt"), "{log:?}");
    assert!(!copy.path("a.txt").exists());
    assert_eq!(copy.counts().await, [1, 0, 0, 0]);
}

/// Stands before the source and cuts some connections: the first one that asks for a path after so many bytes of its
/// answer, or each of them when that is 0.
struct Cutter {
    port: u16,
    bytes: Arc<AtomicUsize>,
}

impl Cutter {
    async fn start(source: u16, path: &'static str, after: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (bytes, cuts) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let passed = bytes.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, source, path, after, passed.clone(), cuts.clone()));
            }
        });
        Self { port, bytes }
    }
}

async fn serve(
    mut client: TcpStream,
    source: u16,
    path: &str,
    after: usize,
    passed: Arc<AtomicUsize>,
    cuts: Arc<AtomicUsize>,
) -> Option<()> {
    // One request a connection, so that each can be told apart.
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut buffer = [0; 4096];
        let count = client.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        head.extend(&buffer[..count]);
    }
    let text = String::from_utf8(head).ok()?;
    let meant = text.lines().next()?.contains(path);
    let cut = meant && (cuts.fetch_add(1, Ordering::SeqCst) == 0 || after == 0);
    let mut server = TcpStream::connect(("127.0.0.1", source)).await.ok()?;
    server.write_all(text.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).await.ok()?;
    let (mut buffer, mut sent) = (vec![0; 64 << 10], 0);
    loop {
        let count = server.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        if cut && sent + count > after {
            return None;
        }
        client.write_all(&buffer[..count]).await.ok()?;
        sent += count;
        passed.fetch_add(count, Ordering::SeqCst);
    }
}
