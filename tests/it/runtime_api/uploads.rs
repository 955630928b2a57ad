//! Uploads, as the publishing workflows send them.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::curl::form;
use crate::support::{MASTER, RunningSite, SiteClient};

#[tokio::test]
async fn client_03_create_returns_200() {
    let site = RunningSite::private().await;
    create_returns_200(&site).await;
}

/// A new file and a replaced one are answered alike.
pub async fn create_returns_200(site: &SiteClient) {
    for (text, created) in [("one", true), ("two", false)] {
        let answer = site.put("a/b.txt", text.as_bytes()).await;
        assert_eq!((answer.status, &answer.json()["created"]), (200, &created.into()));
        assert_eq!(answer.json()["status"], "OK");
        assert_eq!(site.get("files/a/b.txt").await.text(), text);
    }
}

#[tokio::test]
async fn client_06_every_outcome_is_json() {
    let site = RunningSite::private().await;
    every_outcome_is_json(&site).await;
}

/// Whatever happens to a program, it is told in JSON.
pub async fn every_outcome_is_json(site: &SiteClient) {
    site.must_put("file", b"x").await;
    site.must_put("folder/x", b"x").await;
    let (_, reader) = site.token("read", None).await;
    let wrong_form = "Content-Type: multipart/form-data; boundary=b";
    // The edge refuses a NUL itself, without a word.
    let control = if site.behind_edge() { "files/%01" } else { "files/%00" };
    for (call, status) in [
        (site.api("PUT", "files/x").body(b"1"), 401),
        (site.api("PUT", "files/x").token("unknown").body(b"1"), 401),
        (site.api("PUT", "files/x").header("Authorization: Nonsense").body(b"1"), 401),
        (site.api("PUT", "files/x").token(&reader).body(b"1"), 403),
        (site.api("PUT", control).token(MASTER).body(b"1"), 400),
        (site.api("PUT", "files/file/x").token(MASTER).body(b"1"), 409),
        (site.api("PUT", "files/folder").token(MASTER).body(b"1"), 409),
        (site.api("PUT", "files/x").token(MASTER).header(wrong_form).body(b"1"), 400),
        (site.api("PUT", "files/x?backup_if_present=maybe").token(MASTER).body(b"1"), 400),
        (site.api("PUT", "symlinks/x").token(MASTER).body(b"no json"), 400),
        (site.api("PUT", "symlinks/x").token(MASTER).body(&vec![b' '; 70_000]), 413),
        (site.api("POST", "files/x").token(MASTER).body(b"1"), 405),
        (site.api("GET", "nothing").token(MASTER), 404),
        (site.api("GET", "files/none").token(MASTER), 404),
        (site.api("GET", "files/file").token(MASTER).header("Range: bytes=7-"), 416),
        (site.api("GET", "tokens/none").token(MASTER), 404),
        // Two of them: the edge leaves one, which is wrong.
        (
            site.api("GET", "tokens").token("x").header(&format!("Authorization: Bearer {MASTER}")),
            if site.behind_edge() { 401 } else { 400 },
        ),
    ] {
        let answer = call.send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.json()["status"], "error");
        assert!(answer.json()["message"].as_str().unwrap().len() > 5, "{}", answer.text());
        assert!(answer.header("content-type").starts_with("application/json"));
        assert_eq!(answer.header("www-authenticate").is_empty(), status != 401);
        assert_eq!(answer.header("location"), "", "nobody is redirected");
    }
    assert_eq!(site.names("files/").await, ["file", "folder"], "nothing came of them");
}

#[tokio::test]
async fn a_refusal_waits_for_a_small_body() {
    let site = RunningSite::private().await;
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
    let head = "PUT /team/plans/s/api/v2/files/x HTTP/1.1\r\nHost: sites.example.org\r\nContent-Length: 4\r\n\r\n";
    // Whoever is answered before the body has come is cut off: the next request finds no connection.
    for _ in 0..3 {
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        stream.write_all(b"body").await.unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]);
        assert!(answer.starts_with("HTTP/1.1 401 ") && !answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn client_07_backups_are_made_when_asked_for() {
    let site = RunningSite::private().await;
    backups(&site).await;
}

/// Backups are made when they are asked for.
pub async fn backups(site: &SiteClient) {
    for (query, names) in [("", 1), ("?backup_if_present=false", 1), ("?backup_if_present=true", 2)] {
        site.must_put(&format!("a.txt{query}"), query.as_bytes()).await;
        assert_eq!(site.names("files/").await.len(), names, "{query:?}");
    }
    let answer = site.put("a.txt?backup_if_present=true", b"last").await.json();
    let backup = answer["backup"].as_str().unwrap();
    assert!(backup.starts_with("a.txt.backup-2"), "{backup}");
    assert_eq!(site.get(&format!("files/{backup}")).await.text(), "?backup_if_present=true");
    assert_eq!(site.names("files/").await.len(), 3, "two backups of one second have two names");
    assert_eq!(site.put("new.txt?backup_if_present=true", b"x").await.json()["backup"], serde_json::Value::Null);
}

#[tokio::test]
async fn client_17_a_folder_by_its_placeholder() {
    let site = RunningSite::private().await;
    placeholder(&site).await;
}

/// An empty file makes its folder.
pub async fn placeholder(site: &SiteClient) {
    site.must_put("data/2026/.keep", b"").await;
    assert_eq!(site.names("files/data?type=d").await, ["2026"]);
    let keep = site.get("files/data/2026/.keep").await;
    assert_eq!((keep.status, keep.body.len(), keep.header("content-length").as_str()), (200, 0, "0"));
    // The same in a form, as the SDK sends it.
    let (kind, body) = form("file", ".keep", b"");
    let answer = site.api("PUT", "files/data/2027/.keep").token(MASTER).header(&kind).body(&body).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(site.read("data/2027/.keep").await.body, b"");
}

#[tokio::test]
async fn a_form_with_no_or_two_files_is_refused() {
    let site = RunningSite::private().await;
    let (kind, mut body) = form("file", "a", b"1");
    let put = |body: &[u8]| site.api("PUT", "files/a").token(MASTER).header(&kind).body(body).send();
    let two = [body.strip_suffix(b"--\r\n").unwrap(), b"\r\n", body.as_slice()].concat();
    assert_eq!(put(&two).await.status, 400);
    body.truncate(body.len() - 10);
    assert_eq!(put(&body).await.status, 400, "one that breaks off");
    let (kind, body) = form("other", "", b"1");
    let none = site.api("PUT", "files/a").token(MASTER).header(&kind).body(&body).send().await;
    assert_eq!(none.status, 400, "{}", none.text());
    assert_eq!(site.get("files/").await.json()["files"], serde_json::json!([]));
}

#[tokio::test]
async fn conditions_hold_against_another_writer() {
    let site = RunningSite::private().await;
    let put = |condition: String, text: &'static str| {
        site.api("PUT", "files/a").token(MASTER).header(&condition).body(text.as_bytes()).send()
    };
    assert_eq!(put("If-None-Match: *".to_owned(), "one").await.status, 200);
    assert_eq!(put("If-None-Match: *".to_owned(), "two").await.status, 412);
    let seen = site.get("files/a").await.header("etag");
    assert_eq!(put(format!("If-Match: {seen}"), "three").await.status, 200);
    assert_eq!(put(format!("If-Match: {seen}"), "four").await.status, 412);
    assert_eq!(site.get("files/a").await.text(), "three");
}

#[tokio::test]
async fn ranges_and_versions() {
    let site = RunningSite::private().await;
    site.must_put("a.bin", b"0123456789").await;
    let get = |header: String| site.api("GET", "files/a.bin").token(MASTER).header(&header).send();
    let part = get("Range: bytes=2-4".to_owned()).await;
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    assert_eq!(get("Range: bytes=-1".to_owned()).await.text(), "9");
    let whole = get("Accept: */*".to_owned()).await;
    assert_eq!((whole.header("accept-ranges").as_str(), whole.header("content-length").as_str()), ("bytes", "10"));
    let same = get(format!("If-None-Match: {}", whole.header("etag"))).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(get(format!("If-Modified-Since: {}", whole.header("last-modified"))).await.status, 304);
    let head = site.api("HEAD", "files/a.bin").token(MASTER).send().await;
    assert_eq!((head.status, head.header("content-length").as_str(), head.body.len()), (200, "10", 0));
    site.must_put("a.bin", b"abcdefghij").await;
    let resumed = site.api("GET", "files/a.bin").token(MASTER).header("Range: bytes=5-");
    let resumed = resumed.header(&format!("If-Range: {}", whole.header("etag"))).send().await;
    assert_eq!((resumed.status, resumed.text().as_str()), (200, "abcdefghij"), "never two halves of two versions");
}
