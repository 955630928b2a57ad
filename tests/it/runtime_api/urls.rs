//! Signed and session URLs.

use serde_json::json;

use crate::support::{MASTER, RunningSite, SOON, SiteClient, eventually};

#[tokio::test]
async fn client_26_signed_url() {
    let site = RunningSite::private().await;
    signed_url(&site).await;
}

/// A signed address opens what it says, as long as it says.
pub async fn signed_url(site: &SiteClient) {
    site.must_put("reports/a%20b.pdf", b"report").await;
    let sign = |url: &'static str, method: &'static str, duration: i64| {
        let body = json!({"url": url, "method": method, "duration": duration});
        async move { site.post("signed-urls", &body).await }
    };
    let made = sign("s/api/v2/files/reports/a%20b.pdf", "GET", 3600).await.json();
    let url = made["url"].as_str().unwrap();
    let get = site.raw("GET", &site.local(url)).send().await;
    assert_eq!((get.status, get.text().as_str()), (200, "report"));
    assert_eq!(site.raw("HEAD", &site.local(url)).send().await.status, 200);
    assert_eq!(site.raw("PUT", &site.local(url)).body(b"x").send().await.status, 403, "one method");
    let verify =
        async |url: String| site.post("signed-urls/verify", &json!({"url": url})).await.json()["valid"].clone();
    assert_eq!(verify(url.to_owned()).await, true);
    for (from, to) in [("b.pdf", "c.pdf"), ("sites-expires=1", "sites-expires=2"), ("method=GET", "method=PUT")] {
        let changed = url.replace(from, to);
        assert_eq!(site.raw("GET", &site.local(&changed)).send().await.status, 403, "{changed}");
        assert_eq!(verify(changed).await, false);
    }
    let (last, rest) = (url.chars().last().unwrap(), &url[..url.len() - 1]);
    let changed = format!("{rest}{}", if last == 'A' { 'B' } else { 'A' });
    assert_eq!(site.raw("GET", &site.local(&changed)).send().await.status, 403, "one byte");

    let short = sign("s/api/v2/files/reports/a%20b.pdf", "GET", 1).await.json();
    let short = short["url"].as_str().unwrap().to_owned();
    eventually("it expires", SOON, || async { site.raw("GET", &site.local(&short)).send().await.status == 403 }).await;
    assert_eq!(verify(short).await, false);

    // Content that nginx serves.
    let page = sign("/reports/a%20b.pdf", "GET", 60).await.json()["url"].as_str().unwrap().to_owned();
    assert_eq!(site.page_status(&site.local(&page)).await, 200);
    assert_eq!(site.page_status(&site.local(&page).replace("a%20b", "c")).await, 403);
    // An upload by somebody without a token.
    let drop_box = sign("s/api/v2/files/incoming/x.bin", "PUT", 60).await.json()["url"].as_str().unwrap().to_owned();
    assert_eq!(site.raw("PUT", &site.local(&drop_box)).body(b"dropped").send().await.status, 200);
    assert_eq!(site.raw("GET", &site.local(&drop_box)).send().await.status, 403);
    assert_eq!(site.raw("DELETE", &site.local(&drop_box)).send().await.status, 403, "to write is not to delete");
    for (url, method, duration) in
        [("s/api/v2/tokens", "GET", 60), ("a", "PUT", 60), ("a", "GET", 0), ("//evil", "GET", 9), ("..", "GET", 9)]
    {
        assert_eq!(sign(url, method, duration).await.status, 400, "{url}");
    }
    let (_, writer) = site.token("read-write", None).await;
    let body = json!({"url": "a", "duration": 9}).to_string();
    let answer = site.api("POST", "signed-urls").token(&writer).body(body.as_bytes()).send().await;
    assert_eq!(answer.status, 403, "a token must not outlive itself in addresses");
}

#[tokio::test]
async fn a_session_url_opens_one_folder_to_one_browser() {
    let site = RunningSite::private().await;
    site.must_put("open/a.txt", b"open").await;
    site.must_put("closed/a.txt", b"closed").await;
    let made = site.post("session-urls", &json!({"path": "open", "duration": 600})).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let url = site.local(made.json()["url"].as_str().unwrap());
    let opened = site.raw("GET", &url).send().await;
    assert_eq!((opened.status, opened.header("location").as_str()), (303, "/team/plans/open/"));
    let cookie = opened.header("set-cookie");
    for part in ["Path=/team/plans/;", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let get = |path: &str| site.api("GET", path).header(&cookie).send();
    assert_eq!(get("files/open/a.txt").await.text(), "open");
    assert_eq!(get("pub/files/open").await.status, 200);
    for path in ["files/closed/a.txt", "files/", "pub/files/", "usage", "tokens"] {
        assert_eq!(get(path).await.status, 403, "{path}");
    }
    let put = site.api("PUT", "files/open/b").header(&cookie).body(b"x").send().await;
    assert_eq!(put.status, 403);
    let ask = |target: &str| {
        let target = format!("X-Original-URI: {target}");
        site.raw("GET", "/_auth/private").header(&target).header(&cookie).send()
    };
    assert_eq!(ask("/team/plans/open/a.txt").await.status, 204);
    assert_eq!(ask("/team/plans/closed/a.txt").await.status, 403);
    assert_eq!(ask("/team/plans/open/%2e%2e/closed/a.txt").await.status, 403);
    let both = site.api("GET", "files/closed/a.txt").header(&format!("{cookie}; __Secure-sites-plans=cleo"));
    assert_eq!(both.send().await.status, 200, "a viewer's own session is wider");
    assert_eq!(site.raw("GET", &(url + "x")).send().await.status, 403);
    assert_eq!(site.post("session-urls", &json!({"duration": 100_000_000})).await.status, 400);
}

#[tokio::test]
async fn whoami_says_what_a_credential_is_good_for() {
    let site = RunningSite::private().await;
    let (id, reader) = site.token("read", None).await;
    let who = site.api("GET", "whoami").token(&reader).send().await.json();
    assert_eq!((&who["caller"], &who["write"]), (&json!(format!("access token {id}")), &json!(false)));
    let who = site.api("GET", "whoami").token(MASTER).send().await.json();
    assert_eq!((&who["caller"], &who["administer"]), (&json!("master token"), &json!(true)));
}
