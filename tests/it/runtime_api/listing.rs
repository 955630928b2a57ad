//! Listings, as the version selector and public readers ask for them.

use crate::support::{RunningSite, SiteClient};

const SELECTOR: &str = "?list=true&limit=64000&type=d";

#[tokio::test]
async fn client_01_version_selector_of_a_named_path() {
    let site = RunningSite::public().await;
    named_path(&site).await;
}

/// What a version selector asks of a folder.
pub async fn named_path(site: &SiteClient) {
    for path in ["1.0.0/index.html", "develop/index.html", "pull-requests/PR-1/index.html", "index.html"] {
        site.must_put(&format!("proj/{path}"), b"x").await;
    }
    assert_eq!(site.names(&format!("files/proj{SELECTOR}")).await, ["1.0.0", "develop", "pull-requests"]);
    site.must_put("proj/versions.json", b"[]").await;
    let versions = site.api("GET", "pub/files/proj/versions.json").send().await;
    assert_eq!((versions.status, versions.text().as_str()), (200, "[]"));
    assert_eq!(versions.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(site.read("proj/versions.json").await.text(), "[]");
}

#[tokio::test]
async fn client_02_version_selector_of_the_empty_path() {
    let site = RunningSite::private().await;
    empty_path(&site).await;
}

/// The same of the root, by an empty path.
pub async fn empty_path(site: &SiteClient) {
    site.must_put("develop/index.html", b"x").await;
    for path in ["files/", "files", "files//", "/files/"] {
        assert_eq!(site.names(&format!("{path}{SELECTOR}")).await, ["develop"], "{path}");
    }
    site.must_put("/versions.json", b"[1]").await;
    assert_eq!(site.read("versions.json").await.text(), "[1]");
    assert_eq!(site.get("files//versions.json").await.text(), "[1]");
    let root = site.put("", b"x").await;
    assert_eq!((root.status, root.json()["status"].as_str()), (400, Some("error")));
}

#[tokio::test]
async fn client_08_three_thousand_entries_are_not_cut() {
    let site = RunningSite::private().await;
    three_thousand_entries(&site).await;
}

/// A folder with 3,000 folders.
pub async fn three_thousand_entries(site: &SiteClient) {
    for number in 0..3000 {
        site.make_folder(&format!("d{number}"));
    }
    let answer = site.get(&format!("files/{SELECTOR}")).await;
    assert_eq!(answer.json()["files"].as_array().unwrap().len(), 3000);
    assert_eq!(answer.json()["truncated"], false);
    let cut = site.get("files/?list=true&limit=10").await.json();
    assert_eq!((cut["files"].as_array().unwrap().len(), &cut["truncated"]), (10, &true.into()));
    assert_eq!(cut["files"][1]["path"], "d1", "the first ones by name");
    assert_eq!(site.get("files/?limit=99999999999").await.status, 200, "more than there can be is no error");
    for wrong in ["limit=-1", "limit=many", "list=perhaps", "type=x"] {
        let answer = site.get(&format!("files/?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.json()["message"].as_str().unwrap().contains(wrong.split('=').next().unwrap()), "{wrong}");
    }
}

#[tokio::test]
async fn client_16_public_listing() {
    let site = RunningSite::public().await;
    public_listing(&site).await;
    let site = RunningSite::private().await;
    private_listing(&site).await;
    let viewer = site.api("GET", "pub/files/tables").session("cleo").send().await;
    assert_eq!(viewer.json()["files"][0]["path"], "secret-name.csv");
}

/// Anybody reads the content of a public site by the API, and changes nothing.
pub async fn public_listing(site: &SiteClient) {
    site.must_put("tables/a.csv", b"1,2").await;
    let listing = site.api("GET", "pub/files/tables").send().await;
    assert_eq!((listing.status, &listing.json()["files"][0]["path"]), (200, &"a.csv".into()));
    assert_eq!(site.api("GET", "pub/files/tables/a.csv").send().await.text(), "1,2");
    for method in ["PUT", "DELETE", "POST"] {
        let answer = site.api(method, "pub/files/tables/a.csv").send().await;
        assert_eq!((answer.status, answer.json()["status"].as_str()), (405, Some("error")), "{method}");
    }
    assert_eq!(site.api("GET", "files/tables").send().await.status, 401, "the other one needs a credential");
}

/// The same addresses of a private site say nothing.
pub async fn private_listing(site: &SiteClient) {
    site.must_put("tables/secret-name.csv", b"1,2").await;
    for path in ["pub/files/tables", "pub/files/tables/secret-name.csv", "pub/files", "pub/files/none"] {
        let answer = site.api("GET", path).send().await;
        assert_eq!(answer.status, 401, "{path}: whether it is there is private too");
        assert!(!answer.text().contains("secret-name"), "{}", answer.text());
    }
}

#[tokio::test]
async fn client_22_spellings_of_one_place() {
    let site = RunningSite::private().await;
    spellings(&site).await;
}

/// All spellings of one place.
pub async fn spellings(site: &SiteClient) {
    site.must_put("a/b/c.txt", b"x").await;
    for path in [".", "", "/", "//"] {
        assert_eq!(site.names(&format!("files/{path}")).await, ["a"], "{path:?}");
    }
    for path in ["a/b", "a/b/", "/a/b", "a//b", "a%2Fb", "%2Fa%2Fb%2F"] {
        assert_eq!(site.names(&format!("files/{path}")).await, ["c.txt"], "{path:?}");
    }
    for prefix in ["/team/plans/s/api/v1", "//team//plans/s/api/v2", "/%74eam/plans/s/api/v2/"] {
        let answer = site.raw("GET", &format!("{prefix}/files/a/b")).token(crate::support::MASTER).send().await;
        assert_eq!(answer.status, 200, "{prefix}: {}", answer.text());
    }
    for other in ["/other/plans/s/api/v2/files", "/s/api/v2/files", "/team/plans/s/api/v3/files", "/team/plans/x"] {
        let answer = site.raw("GET", other).token(crate::support::MASTER).send().await;
        assert_eq!(answer.status, 404, "{other}");
        // What is no site's is the edge's, and what is no API's is a page's.
        if site.behind_edge() && !other.starts_with("/team/plans/s/") {
            continue;
        }
        assert!(answer.json()["message"].as_str().unwrap().contains("not found"));
    }
}

#[tokio::test]
async fn a_listing_says_what_is_there() {
    let site = RunningSite::private().await;
    site.must_put("d/e/f.bin", b"12345").await;
    site.must_put("d/.keep", b"").await;
    assert_eq!(site.names("files/d?recursive=true").await, [".keep", "e", "e/f.bin"]);
    assert_eq!(site.names("files/?recursive=true&type=f").await, ["d/.keep", "d/e/f.bin"]);
    let entry = site.get("files/d/e").await.json()["files"][0].clone();
    assert_eq!((&entry["type"], &entry["size"]), (&"file".into(), &5.into()));
    assert!(entry["modified"].as_str().unwrap().ends_with('Z'));
    for missing in ["files/none", "files/d/.keep/x", "files/d/.keep?list=true"] {
        let answer = site.get(missing).await;
        assert_eq!(answer.status, 404, "{missing}");
        assert!(answer.json()["message"].as_str().unwrap().contains("not found") || missing.contains(".keep"));
    }
    assert!(!site.get("files/?recursive=true").await.text().contains(".sites"), "the state is not content");
}
