//! Deleting: whole trees, the whole site, and previews that come and go.

use crate::support::{RunningSite, SiteClient};

#[tokio::test]
async fn client_09_a_folder_goes_with_all_that_is_in_it() {
    let site = RunningSite::private().await;
    folder_deletion(&site).await;
}

/// A folder goes with all that is in it, and nothing else.
pub async fn folder_deletion(site: &SiteClient) {
    site.must_put("keep/target.txt", b"stays").await;
    for path in ["v1/a/b/c/deep.txt", "v1/.hidden", "v1/index.html"] {
        site.must_put(path, b"12345").await;
    }
    assert_eq!(site.link("v1/a/out", "keep").await.status, 200);
    let answer = site.delete("files/v1").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!((&answer.json()["files"], &answer.json()["bytes"]), (&4.into(), &15.into()));
    assert_eq!(site.names("files/?recursive=true").await, ["keep", "keep/target.txt"]);
    let again = site.delete("files/v1").await;
    assert_eq!((again.status, again.json()["status"].as_str()), (404, Some("error")));
    assert_eq!(site.get("usage").await.json()["used"], 5, "only what was kept counts");
    assert_eq!(std::fs::read_dir(site.content(".sites/trash")).unwrap().count(), 0);
}

#[tokio::test]
async fn client_10_the_whole_site_is_emptied_and_goes_on() {
    let site = RunningSite::private().await;
    emptied_site(&site).await;
}

/// The whole site is emptied, and goes on.
pub async fn emptied_site(site: &SiteClient) {
    for root in ["files/", "files", "files//"] {
        site.must_put("a/b", b"x").await;
        site.must_put(".dot", b"x").await;
        assert_eq!(site.link("l", "a").await.status, 200);
        let answer = site.delete(root).await;
        assert_eq!(answer.status, 200, "{root}: {}", answer.text());
        assert_eq!(site.get("files/").await.json()["files"], serde_json::json!([]));
        assert_eq!(site.delete(root).await.status, 200, "an empty site is no error");
        assert_eq!(site.get("usage").await.json()["used"], 0);
    }
    let (_, token) = site.token("read-write", None).await;
    assert_eq!(site.delete("files/").await.status, 200);
    let answer = site.api("PUT", "files/next.html").token(&token).body(b"x").send().await;
    assert_eq!(answer.status, 200, "the tokens are no content");
}

#[tokio::test]
async fn client_20_a_preview_comes_and_goes() {
    let site = RunningSite::public().await;
    preview(&site).await;
}

/// A preview of a pull request comes and goes.
pub async fn preview(site: &SiteClient) {
    let page = "pull-requests/PR-7/index.html";
    for text in ["first", "second"] {
        site.must_put(page, text.as_bytes()).await;
        assert_eq!(site.api("GET", &format!("pub/files/{page}")).send().await.text(), text);
    }
    let folder = site.api("GET", "pub/files/pull-requests/PR-7").send().await;
    assert_eq!((folder.status, folder.header("location").as_str()), (200, ""));
    assert_eq!(site.delete("files/pull-requests/PR-7").await.status, 200);
    let gone = site.api("GET", &format!("pub/files/{page}")).send().await;
    assert_eq!(gone.status, 404);
    assert!(gone.json()["message"].as_str().unwrap().contains("not found"));
}

#[tokio::test]
async fn moving_and_copying() {
    let site = RunningSite::private().await;
    let transfer = |kind: &'static str, source: &str, destination: &str, overwrite: bool| {
        let body = serde_json::json!({"source": source, "destination": destination, "overwrite": overwrite});
        let site = &site;
        async move { site.post(kind, &body).await.status }
    };
    site.must_put("a/one.txt", b"one").await;
    site.must_put("two.txt", b"two!").await;
    assert_eq!(site.link("a/link", "a/one.txt").await.status, 200);
    assert_eq!(transfer("copy", "a", "deep/b", false).await, 200);
    assert_eq!(site.names("files/deep?recursive=true").await, ["b", "b/link", "b/one.txt"]);
    assert_eq!(site.get("files/deep/b/link").await.text(), "one");
    assert_eq!(site.get("usage").await.json()["used"], 3 + 4 + 3);
    assert_eq!(transfer("copy", "a", "deep/b", true).await, 409, "a folder is never replaced");
    assert_eq!(transfer("copy", "two.txt", "a/one.txt", false).await, 409);
    assert_eq!(transfer("copy", "two.txt", "a/one.txt", true).await, 200);
    assert_eq!(site.get("files/a/one.txt").await.text(), "two!");
    assert_eq!(site.get("usage").await.json()["used"], 4 + 4 + 3);
    assert_eq!(transfer("move", "a", "c/d", false).await, 200);
    assert_eq!(transfer("move", "a", "e", false).await, 404);
    assert_eq!(transfer("move", "c", "c/d/e", false).await, 400, "not into itself");
    assert_eq!(transfer("move", "two.txt", "c/d/one.txt", false).await, 409);
    assert_eq!(transfer("move", "two.txt", "c/d/one.txt", true).await, 200);
    assert_eq!(transfer("move", "c/d/link", "up", false).await, 200);
    assert_eq!(site.get("symlinks/up").await.json()["target"], "c/d/one.txt", "the same target as before");
    assert_eq!(transfer("move", "c", "", false).await, 400);
    assert_eq!(transfer("move", "", "x", false).await, 400);
    for bad in ["../x", ".sites/x"] {
        assert_eq!(transfer("move", "c", bad, false).await, 400);
        assert_eq!(transfer("copy", bad, "x", false).await, 400);
    }
    assert_eq!(site.get("usage").await.json()["used"], 4 + 3);
    let sum = site.get("checksums/deep/b/one.txt").await.json();
    assert_eq!(sum["checksum"], "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
}
