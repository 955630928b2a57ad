//! The file manager's pages: who may open them, that deep links work, and that no name becomes markup.

use crate::support::http::Answer;
use crate::support::site::{PREFIX, Role};
use crate::support::{MASTER, RunningSite, SiteClient};

/// Path of the pages below a site's.
const ADMIN: &str = "/s/admin";
const HTML: &str = "Accept: text/html,*/*;q=0.8";

async fn start() -> (RunningSite, Role) {
    let site = RunningSite::private().await;
    let admin = site.role("admin").await;
    (site, admin)
}

/// Opens a page of the file manager as a browser does, with one more line of header.
async fn open(admin: &SiteClient, path: &str, header: &str) -> Answer {
    admin.raw("GET", &format!("{}{ADMIN}{path}", admin.prefix)).header(HTML).header(header).send().await
}

#[tokio::test]
async fn client_24_the_file_manager_is_for_administrators() {
    let (site, role) = start().await;
    let admin = site.client_of(&role);
    tokens_and_deep_links(&site, &admin).await;
    for (session, status) in [("ana", 200), ("zoe+ops", 200), ("cleo", 403)] {
        for path in ["/files/", "/files/docs/", "/tokens"] {
            let answer = open(&admin, path, &format!("Cookie: __Secure-sites-plans={session}")).await;
            assert_eq!(answer.status, status, "{session} {path}");
            assert!(status == 200 || !answer.text().contains("docs"), "{}", answer.text());
        }
    }
    // The login and links in mails come from another origin; a page that loads ours into itself does too.
    for (more, status) in [
        ("Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document", 200),
        ("Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe", 403),
        ("Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image", 403),
    ] {
        let header = format!("Cookie: __Secure-sites-plans=ana\r\nSec-Fetch-Site: cross-site\r\n{more}");
        assert_eq!(open(&admin, "/files/", &header).await.status, status, "{more}");
    }
    let page = open(&admin, "/files/docs/a%20b/", "Cookie: __Secure-sites-plans=ana").await.text();
    assert!(page.contains("user ana"), "{page}");
}

/// Who may open the file manager with a token or without, and that its addresses are below the site's path.
pub async fn tokens_and_deep_links(site: &SiteClient, admin: &SiteClient) {
    site.must_put("docs/a%20b/page.html", b"page").await;
    let (_, reader) = site.token("read", None).await;
    let (_, writer) = site.token("read-write", None).await;
    for (header, status) in [
        (format!("Authorization: Bearer {MASTER}"), 200),
        (format!("Authorization: Bearer {reader}"), 403),
        (format!("Authorization: Bearer {writer}"), 403),
        ("Authorization: Bearer unknown".to_owned(), 401),
        ("X-Auth-Request-User: ana".to_owned(), 302),
    ] {
        for path in ["/files/", "/files/docs/", "/tokens"] {
            let answer = open(admin, path, &header).await;
            assert_eq!(answer.status, status, "{header} {path}");
            assert!(status == 200 || !answer.text().contains("docs"), "{}", answer.text());
        }
    }
    let login = open(admin, "/files/docs/", "Cookie: a=b").await;
    assert_eq!(login.header("location"), "/team/plans/oauth2/start?rd=%2Fteam%2Fplans%2Fs%2Fadmin%2Ffiles%2Fdocs%2F");
    let token = format!("Authorization: Bearer {MASTER}");
    for (path, location) in
        [("", "/files/"), ("/", "/files/"), ("/files", "/files/"), ("/files/docs/a%20b", "/files/docs/a%20b/")]
    {
        let answer = open(admin, path, &token).await;
        let location = format!("{}{ADMIN}{location}", admin.prefix);
        assert_eq!((answer.status, answer.header("location")), (302, location), "{path}");
    }
    let page = open(admin, "/files/docs/a%20b/", &token).await.text().replace("&#x2f;", "/");
    for part in [
        "href=\"/team/plans/docs/a%20b/page.html\"",
        "href=\"/team/plans/s/admin/files/docs/\"",
        "data-api=\"/team/plans/s/api/v2\"",
        "4 B of 1.0 GiB used",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (path, status) in [("/files/none/", 404), ("/files/%2e%2e/", 400), ("/files/.sites/", 400), ("/other", 404)] {
        // The edge resolves dot segments before a site sees them.
        let status = if admin.behind_edge() && path.contains("%2e") { 302 } else { status };
        assert_eq!(open(admin, path, &token).await.status, status, "{path}");
    }
    let post = admin.raw("POST", &format!("{}{ADMIN}/files/", admin.prefix)).header(&token).body(b"x").send().await;
    assert_eq!(post.status, 405, "the pages change nothing");
}

#[tokio::test]
async fn no_name_becomes_markup() {
    let (site, admin) = start().await;
    let name = "<img src=x onerror=alert(1)>\"'&{{ 7*191 }}";
    std::fs::write(site.content(name), "x").unwrap();
    std::fs::create_dir(site.content("#?%&")).unwrap();
    let page = site.at(&admin, "GET", &format!("{PREFIX}{ADMIN}/files/")).token(MASTER).send().await;
    assert!(!page.text().contains("<img") && !page.text().contains("1337"), "{}", page.text());
    assert!(page.text().replace("&#x2f;", "/").contains("/files/%23%3F%25%26/"), "{}", page.text());
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), "no-store");
    let label = "</td><script>alert(1)</script>";
    site.post("tokens", &serde_json::json!({"label": label, "privilege": "read"})).await;
    let tokens = site.at(&admin, "GET", &format!("{PREFIX}{ADMIN}/tokens")).token(MASTER).send().await;
    assert!(!tokens.text().contains("<script>") && tokens.text().contains("&lt;script&gt;"), "{}", tokens.text());
    for (asset, kind) in [("admin.js", "text/javascript"), ("admin.css", "text/css"), ("icon.svg", "image/svg+xml")] {
        let answer = site.at(&admin, "GET", &format!("{PREFIX}{ADMIN}/{asset}")).send().await;
        assert!(answer.status == 200 && answer.header("content-type").starts_with(kind), "{asset}");
    }
    assert!(!page.text().contains(" onclick") && !page.text().contains("style="), "nothing inline");
}
