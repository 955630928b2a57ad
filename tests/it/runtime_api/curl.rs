//! The calls that real clients make with curl, by curl.

use std::process::Output;

use crate::support::{MASTER, RunningSite, SiteClient};

/// One form part: its header line and the body.
pub fn form(name: &str, file_name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    let file_name = if file_name.is_empty() { String::new() } else { format!("; filename=\"{file_name}\"") };
    let mut body = format!("--bnd\r\nContent-Disposition: form-data; name=\"{name}\"{file_name}\r\n\r\n").into_bytes();
    body.extend(bytes);
    body.extend(b"\r\n--bnd--\r\n");
    ("Content-Type: multipart/form-data; boundary=bnd".to_owned(), body)
}

/// Runs curl with the master token; its answer with the status on a line of its own.
async fn curl(site: &SiteClient, arguments: &[&str]) -> String {
    let bearer = format!("Authorization: Bearer {MASTER}");
    let Output { stdout, stderr, status } = site
        .program("curl")
        .args(["--silent", "--show-error", "--path-as-is", "--max-time", "60", "-w", "\n%{http_code}", "-H", &bearer])
        .args(arguments)
        .output()
        .await
        .expect("curl: apt-get install curl");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[tokio::test]
async fn client_04_the_forms_file_name_is_ignored() {
    let site = RunningSite::public().await;
    file_name_of_a_form(&site).await;
}

/// The name and the type in a form mean nothing.
pub async fn file_name_of_a_form(site: &SiteClient) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("local.bin");
    std::fs::write(&file, b"{}").unwrap();
    let part = format!("file=@{};filename=file;type=image/png", file.display());
    let answer = curl(site, &["-X", "PUT", "-F", &part, &site.url("files/versions.json")]).await;
    assert!(answer.ends_with("\n200"), "{answer}");
    // By hand, as Python's requests does it: without a type for the part.
    let (kind, body) = form("file", "file", b"{}");
    let answer = site.api("PUT", "files/versions.json").token(MASTER).header(&kind).body(&body).send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(site.names("files/?recursive=true").await, ["versions.json"]);
    let read = site.api("GET", "pub/files/versions.json").send().await;
    assert_eq!((read.text().as_str(), read.header("content-type").as_str()), ("{}", "application/json; charset=utf-8"));
}

#[tokio::test]
async fn client_05_encoded_path_upload() {
    let site = RunningSite::private().await;
    encoded_path(&site).await;
}

/// A path that is encoded as a whole is decoded once.
pub async fn encoded_path(site: &SiteClient) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a b.html");
    std::fs::write(&file, b"<p>").unwrap();
    let part = format!("file=@{};type=text/html", file.display());
    let put = |path: &str| {
        let url = site.url(&format!("files/{path}?backup_if_present=false"));
        let part = part.clone();
        // Over HTTP/2 the edge ends the stream of an upload that nginx refuses by its path alone, and curl 7.88 then
        // tells of the stream instead of the answer.
        let always = ["--http1.1", "-X", "PUT", "-H", "accept: application/json", "-F"];
        async move { curl(site, &[always.as_slice(), &[&part, &url]].concat()).await }
    };
    let answer = put("%2Freports%2F2025%2Fa%20b.html").await;
    let json: serde_json::Value = serde_json::from_str(answer.strip_suffix("\n200").expect(&answer)).unwrap();
    assert_eq!(json["status"], "OK");
    assert_eq!(site.names("files/reports?recursive=true").await, ["2025", "2025/a b.html"]);
    // The edge resolves dot segments that are spelled out before a site sees them.
    let spelled: &[&str] = if site.behind_edge() { &[] } else { &["../x", "a/%2e/b"] };
    for path in ["%2e%2e%2f", "%2F..%2Fx", "..%2fx", "a%2F%2E%2E%2Fx"].iter().chain(spelled) {
        let answer = put(path).await;
        let json: serde_json::Value = serde_json::from_str(answer.strip_suffix("\n400").expect(&answer)).unwrap();
        assert!(json["message"].as_str().unwrap().contains("the path"), "{path}: {answer}");
    }
    assert_eq!(site.names("files/").await, ["reports"]);
}

#[tokio::test]
async fn client_11_a_link_in_a_form_that_is_json() {
    let site = RunningSite::private().await;
    link_in_a_form(&site).await;
}

/// A link is made by JSON that says that it is a form.
pub async fn link_in_a_form(site: &SiteClient) {
    site.must_put("fdb/develop/index.html", b"x").await;
    let url = site.url("symlinks/fdb/latest?force=true");
    // curl sets Content-Type: application/x-www-form-urlencoded.
    let answer =
        curl(site, &["-X", "PUT", "-H", "Accept: application/json", "-d", "{\"target\": \"fdb/develop\"}", &url]).await;
    assert!(answer.ends_with("\n200"), "{answer}");
    assert_eq!(site.get("files/fdb/latest/index.html").await.text(), "x");
}
