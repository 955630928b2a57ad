//! Static content of a private Site: asked for at site-api, sent to the login, never shown.

use super::world::World;

const HTML: &str = "Accept: text/html,*/*";

#[tokio::test]
async fn a_stranger_gets_the_login_or_a_status() {
    let world = World::start("shared", |_| {}).await;
    world.write("page.html", b"private words");

    let browser = world.request("GET", "/team/plans/page.html?a=1", &[HTML]).await;
    assert_eq!(browser.status, 302);
    assert_eq!(browser.header("location"), "/team/plans/oauth2/start?rd=%2Fteam%2Fplans%2Fpage.html?a=1&m=GET");
    let program = world.get("/team/plans/page.html").await;
    assert_eq!(program.status, 401);
    assert_eq!(program.json()["message"], "authentication required");
    assert_eq!(program.header("www-authenticate"), "Bearer realm=\"sites\"");
    let with_token = world.request("GET", "/team/plans/page.html", &[HTML, "Authorization: Bearer bad"]).await;
    assert_eq!(with_token.status, 401);
    assert_eq!(world.request("POST", "/team/plans/page.html", &[HTML]).await.status, 401);
    let evil = world.request("GET", "/team/plans/page.html", &[HTML, "Cookie: evil=1"]).await;
    assert_eq!((evil.status, evil.header("location").as_str()), (401, ""), "never to another origin");
    for path in ["/team/plans/", "/team/plans/none", "/team/plans/page.html/"] {
        assert_eq!(world.get(path).await.status, 401, "{path}: what exists is private too");
    }
}

#[tokio::test]
async fn a_viewer_reads_and_somebody_else_does_not() {
    let world = World::start("shared", |_| {}).await;
    world.write("page.html", b"private words");
    for header in ["Cookie: viewer=1", "Authorization: Bearer good"] {
        let viewer = world.request("GET", "/team/plans/page.html", &[header]).await;
        assert_eq!((viewer.status, viewer.text().as_str()), (200, "private words"));
        assert_eq!(viewer.header("cache-control"), "private");
    }
    let part = world.request("GET", "/team/plans/page.html", &["Cookie: viewer=1", "Range: bytes=0-6"]).await;
    assert_eq!((part.status, part.text().as_str()), (206, "private"));
    let stranger = world.request("GET", "/team/plans/page.html", &["Cookie: stranger=1"]).await;
    assert_eq!((stranger.status, stranger.json()["message"].as_str()), (403, Some("forbidden")));
    let page = world.request("GET", "/team/plans/page.html", &["Cookie: stranger=1", HTML]).await;
    assert_eq!(page.status, 403);
    assert!(page.text().contains("You may not see this page"), "{}", page.text());
    let broken = world.request("GET", "/team/plans/page.html", &["Cookie: broken=1"]).await;
    assert_eq!((broken.status, broken.header("retry-after").as_str()), (503, "5"));
    assert!(broken.text().contains("Temporarily unavailable"));
}

#[tokio::test]
async fn nobody_can_answer_for_the_api() {
    let world = World::start("shared", |_| {}).await;
    world.write("page.html", b"private words");
    let forged = [
        "X-Original-URI: /public",
        "X-Original-Method: HEAD",
        "X-Auth-Request-User: ana",
        "X-Sites-Access: admin",
        "X-Sites-Login: /x",
        "X-Forwarded-User: ana",
    ];
    assert_eq!(world.request("GET", "/team/plans/page.html", &forged).await.status, 401);
    // An upgrade or a range must not reach the question itself.
    let upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Cookie: viewer=1", "Range: bytes=0-1"];
    assert_eq!(world.request("GET", "/team/plans/page.html", &upgrade).await.status, 206);
}

#[tokio::test]
async fn the_sites_own_missing_page_is_private_too() {
    let world = World::start("shared", |site| {
        site.spec.configuration.settings.error_handling = Some(sites::domain::site::ErrorHandling {
            directory_listing: Some(false),
            not_found_page: Some("/404.html".to_owned()),
            ..Default::default()
        });
    })
    .await;
    world.write("404.html", b"private page");
    world.write("dir/a.txt", b"a");
    for path in ["/team/plans/none", "/team/plans/dir/"] {
        let viewer = world.request("GET", path, &["Cookie: viewer=1"]).await;
        assert_eq!((viewer.status, viewer.text().as_str()), (404, "private page"), "{path}");
    }
    for path in ["/team/plans/none", "/team/plans/.sites/x", "/other", "/team/plans/oauth2/auth", "/_no_listing"] {
        let stranger = world.request("GET", path, &[HTML]).await;
        assert!(!stranger.text().contains("private page"), "{path}: {} {}", stranger.status, stranger.text());
    }
}
