//! The custom application: prefix, headers, cookies, access.

use serde_json::Value;
use sites::domain::site::SiteType;

use super::world::World;

const VIEWER: &str = "Cookie: viewer=1";

async fn board() -> World {
    World::start("dashboard", |site| {
        let headers = &mut site.spec.configuration.headers;
        headers.insert("Content-Security-Policy".to_owned(), "default-src 'self'".to_owned());
        headers.insert("X-Only-Ours".to_owned(), "1".to_owned());
    })
    .await
}

#[tokio::test]
async fn the_prefix_is_taken_off_and_nothing_else_changes() {
    let world = board().await;
    for (path, target) in [
        ("/user1/board/", "/"),
        ("/user1/board/builds", "/builds"),
        ("/user1/board/static/a%20b%2Fc?x=%2f&y=/user1/board/", "/static/a%20b%2Fc?x=%2f&y=/user1/board/"),
        ("/user1/board//a//b", "//a//b"),
        ("//user1//board/a", "/a"),
        ("/user1/%62oard/a", "/a"),
        ("/user1/board/%E2%82%AC", "/%E2%82%AC"),
    ] {
        let asked = world.request("GET", path, &[VIEWER]).await.json();
        assert_eq!((asked["server"].as_str(), asked["target"].as_str()), (Some("custom"), Some(target)), "{path}");
        assert_eq!(asked["headers"]["x-forwarded-prefix"][0], "/user1/board");
    }
    assert_eq!(world.request("GET", "/user1%2Fboard/x", &[VIEWER]).await.status, 400, "routing and bytes disagree");
    assert_eq!(world.get("/user1/board").await.header("location"), "/user1/board/");
    assert_eq!(world.request("GET", "/user1/board/s/api/x", &[VIEWER]).await.json()["server"], "api");
    assert_eq!(world.request("GET", "/user1/board/s/dav/x", &[VIEWER]).await.status, 404);
    assert_eq!(world.request("GET", "/user1/board/.sites/x", &[VIEWER]).await.status, 404);
    let missing = world.request("GET", "/user1/board/missing", &[VIEWER]).await;
    assert_eq!((missing.status, missing.json()["server"].as_str()), (404, Some("custom")), "its 404 is its own");
}

#[tokio::test]
async fn a_header_comes_once_and_the_applications_wins() {
    let world = board().await;
    let own = world.request("GET", "/user1/board/own", &[VIEWER]).await;
    assert_eq!(own.header("x-frame-options"), "DENY");
    assert_eq!(own.header("content-security-policy"), "app");
    assert_eq!(own.header("x-only-ours"), "1");
    assert_eq!(own.all("set-cookie"), ["a=1; Path=/user1/board/", "b=2; Path=/user1/board/deep"]);
    let other = world.request("GET", "/user1/board/other", &[VIEWER]).await;
    assert_eq!(other.header("x-frame-options"), "SAMEORIGIN");
    assert_eq!(other.header("content-security-policy"), "default-src 'self'");
    assert_eq!(other.header("cache-control"), "private");
    let moved = world.request("GET", "/user1/board/moved", &[VIEWER]).await;
    assert_eq!((moved.status, moved.header("location").as_str()), (302, "/elsewhere"), "not rewritten");
}

#[tokio::test]
async fn no_credential_of_the_platform_reaches_the_application() {
    let world = board().await;
    let cookies = "Cookie: a=1; __Secure-sites-dash=session; viewer=1; __Secure-sites-dash_csrf_1=x;__Secure-sites-dash_csrf_2=y; z=2";
    let headers = [cookies, "Authorization: Bearer good", "X-Forwarded-User: ana", "X-Auth-Request-Groups: admins"];
    let asked = world.request("GET", "/user1/board/", &headers).await.json();
    let received = &asked["headers"];
    let cookie = received["cookie"][0].as_str().unwrap();
    assert!(!cookie.contains("__Secure"), "{cookie}");
    for kept in ["a=1", "viewer=1", "z=2"] {
        assert!(cookie.contains(kept), "{cookie}");
    }
    for name in ["authorization", "x-forwarded-user", "x-auth-request-groups", "x-sites-login", "x-original-uri"] {
        assert_eq!(received[name], Value::Null, "{name}");
    }
    let many = "__Secure-sites-dash_csrf=x; ".repeat(12);
    let flood = world.request("GET", "/user1/board/", &[&format!("Cookie: {many}viewer=1")]).await.json();
    assert_eq!(flood["headers"]["cookie"], Value::Null, "all or nothing");
}

#[tokio::test]
async fn a_private_application_is_behind_the_access_rule_and_a_public_one_is_not() {
    let world = board().await;
    assert_eq!(world.get("/user1/board/").await.status, 401);
    assert_eq!(world.request("GET", "/user1/board/", &["Accept: text/html"]).await.status, 302);
    assert_eq!(world.request("GET", "/user1/board/", &["Cookie: stranger=1"]).await.status, 403);

    let public = World::start("dashboard", |site| site.spec.site_type = SiteType::Public).await;
    let asked = public.request("GET", "/user1/board/x", &["Authorization: Basic own"]).await.json();
    assert_eq!(asked["server"], "custom");
    assert_eq!(asked["headers"]["authorization"][0], "Basic own", "the application's own sign-in");
    let asked = public.request("GET", "/user1/board/x", &["Authorization: Bearer eyJhbGciOi"]).await.json();
    assert_eq!(asked["headers"]["authorization"], Value::Null, "a provider's token would open other sites");
}

#[tokio::test]
async fn a_web_socket_reaches_the_application_and_an_application_that_is_down_does_not_answer_for_us() {
    let world = board().await;
    let upgrade = [VIEWER, "Upgrade: websocket", "Sec-WebSocket-Key: x"];
    let asked = world.request("GET", "/user1/board/live", &upgrade).await.json();
    assert_eq!(asked["headers"]["upgrade"][0], "websocket");
    assert_eq!(asked["headers"]["connection"], serde_json::json!(["upgrade"]));

    let down = World::start_without("dashboard", &["custom"], |_| {}).await;
    let answer = down.request("GET", "/user1/board/", &[VIEWER]).await;
    assert_eq!((answer.status, answer.header("retry-after").as_str()), (503, "5"));
    assert!(answer.text().contains("Temporarily unavailable"));
    assert_eq!(down.get("/user1/board/s/api/x").await.json()["server"], "api");
}
