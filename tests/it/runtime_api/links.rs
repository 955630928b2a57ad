//! Links: what they mean, that they stay inside, and that nothing is destroyed through them.

use std::os::unix::fs::symlink;

use crate::support::{MASTER, RunningSite, SiteClient};

async fn site() -> RunningSite {
    let site = RunningSite::private().await;
    fill(&site).await;
    site
}

async fn fill(site: &SiteClient) {
    for path in ["fdb/develop/index.html", "fdb/1.0/index.html", "develop/index.html"] {
        site.must_put(path, path.as_bytes()).await;
    }
}

#[tokio::test]
async fn client_12_targets_are_relative_to_the_sites_root() {
    let site = RunningSite::private().await;
    link_targets(&site).await;
}

/// Targets are relative to the root of the site, and stay inside.
pub async fn link_targets(site: &SiteClient) {
    fill(site).await;
    for (link, target) in [("fdb/latest", "fdb/develop"), ("/latest", "/develop"), ("a/b/c", "develop/")] {
        let answer = site.link(link, target).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let read = site.get(&format!("files/{link}/index.html")).await;
        assert_eq!(read.text(), format!("{}/index.html", target.trim_matches('/')));
        let told = site.get(&format!("symlinks/{link}")).await.json();
        assert_eq!(told["target"], target.trim_matches('/'));
    }
    // As nginx sees it, which has the volume at another place.
    assert_eq!(std::fs::read_link(site.content("fdb/latest")).unwrap().to_str(), Some("develop"));
    for target in ["../../etc", "/../etc", "a/../../b", ".", "", "/etc/passwd", "/data/develop", ".sites", "none"] {
        let answer = site.link("bad", target).await;
        assert!([400, 404].contains(&answer.status), "{target:?}: {}", answer.text());
        assert!(std::fs::symlink_metadata(site.content("bad")).is_err(), "{target:?}");
    }
}

#[tokio::test]
async fn client_13_pointing_a_link_elsewhere() {
    let site = RunningSite::private().await;
    pointing_elsewhere(&site).await;
}

/// A link is pointed elsewhere only by force; what is no link stays.
pub async fn pointing_elsewhere(site: &SiteClient) {
    fill(site).await;
    assert_eq!(site.link("fdb/latest", "fdb/develop").await.status, 200);
    let again = site.link("fdb/latest", "fdb/1.0").await;
    assert_eq!(again.status, 409, "{}", again.text());
    assert_eq!(site.get("files/fdb/latest/index.html").await.text(), "fdb/develop/index.html");
    assert_eq!(site.link("fdb/latest?force=true", "fdb/1.0").await.status, 200);
    assert_eq!(site.get("files/fdb/latest/index.html").await.text(), "fdb/1.0/index.html");
    assert_eq!(
        site.names("files/fdb?recursive=true").await,
        ["1.0", "1.0/index.html", "develop", "develop/index.html", "latest"]
    );
    for real in ["fdb/develop?force=true", "fdb/develop/index.html?force=true"] {
        let answer = site.link(real, "fdb/1.0").await;
        assert_eq!(answer.status, 409, "{real}: a folder or file is never replaced: {}", answer.text());
    }
    assert_eq!(site.get("files/fdb/develop/index.html").await.text(), "fdb/develop/index.html");
    for (link, target) in [("fdb/latest?force=true", "fdb/latest"), ("fdb/develop/up", "fdb"), ("new", "new")] {
        assert!([400, 404].contains(&site.link(link, target).await.status), "{link} {target}");
    }
    assert_eq!(site.link("chain", "fdb/latest").await.status, 200);
    assert_eq!(site.link("fdb/latest?force=true", "chain").await.status, 400, "a ring");
    assert_eq!(site.get("files/chain/index.html").await.text(), "fdb/1.0/index.html");
}

#[tokio::test]
async fn a_list_is_no_object_of_fields() {
    let site = site().await;
    for (body, status) in [(&b"[\"fdb/develop\"]"[..], 400), (b" {\"target\": \"fdb/develop\"}", 200)] {
        let answer = site.api("PUT", "symlinks/fdb/latest").token(MASTER).body(body).send().await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

#[tokio::test]
async fn client_14_links_are_folders_in_listings() {
    let site = RunningSite::private().await;
    links_in_listings(&site).await;
}

/// Links to folders are folders in listings.
pub async fn links_in_listings(site: &SiteClient) {
    fill(site).await;
    assert_eq!(site.link("fdb/latest", "fdb/develop").await.status, 200);
    assert_eq!(site.names("files/fdb?list=true&limit=64000&type=d").await, ["1.0", "develop", "latest"]);
    assert_eq!(site.names("files/fdb/latest?list=true&limit=64000").await, ["index.html"]);
    let entries = site.get("files/fdb?type=d").await.json();
    assert_eq!(entries["files"][2]["target"], "fdb/develop");
    assert_eq!(site.delete("files/fdb/latest").await.status, 200);
    assert_eq!(site.names("files/fdb?recursive=true&type=f").await, ["1.0/index.html", "develop/index.html"]);
    assert_eq!(site.delete("symlinks/fdb/develop").await.status, 404, "no link, no deletion");
}

#[tokio::test]
async fn writing_over_a_link_leaves_its_target() {
    let site = site().await;
    assert_eq!(site.link("current.html", "fdb/1.0/index.html").await.status, 200);
    site.must_put("current.html", b"new").await;
    assert_eq!(site.get("files/fdb/1.0/index.html").await.text(), "fdb/1.0/index.html");
    assert_eq!(site.link("fdb/latest", "fdb/develop").await.status, 200);
    site.must_put("fdb/latest/more.html", b"more").await;
    assert_eq!(site.get("files/fdb/develop/more.html").await.text(), "more", "a folder is written through its link");
    assert_eq!(site.put("fdb/latest", b"x").await.status, 409);
}

/// Links that somebody else made on the volume.
#[tokio::test]
async fn links_out_of_the_site_lead_nowhere() {
    let site = site().await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let volume = site.content("").parent().unwrap().to_owned();
    std::fs::write(volume.join("beside"), "secret").unwrap();
    symlink(outside.path(), site.content("abs")).unwrap();
    symlink("../../beside", site.content("fdb/up")).unwrap();
    symlink("../../../../../../../../etc", site.content("fdb/etc")).unwrap();
    symlink(".sites", site.content("state")).unwrap();
    symlink("loop", site.content("loop")).unwrap();
    for path in ["abs/secret", "fdb/up", "fdb/etc/passwd", "state/usage", "state", "loop", "abs"] {
        let answer = site.get(&format!("files/{path}")).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        let inside = site.put(&format!("{path}/x"), b"x").await;
        assert!([404, 409].contains(&inside.status), "{path}: {}", inside.text());
    }
    let entries = site.get("files/").await.json();
    let broken: Vec<_> = entries["files"].as_array().unwrap().iter().filter(|e| e["type"] == "broken").collect();
    assert_eq!(broken.len(), 3, "{entries}");
    assert!(std::fs::read_dir(outside.path()).unwrap().count() == 1);
    for link in ["abs", "state", "loop", "fdb/etc"] {
        assert_eq!(site.delete(&format!("files/{link}")).await.status, 200);
    }
    assert!(site.content(".sites/usage").exists() && outside.path().join("secret").exists());
    let both = site.api("GET", "files/fdb/up").token(MASTER).header("Range: bytes=0-").send().await;
    assert_eq!(both.status, 404);
}
