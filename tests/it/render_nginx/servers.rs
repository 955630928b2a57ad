//! The site's own servers and oauth2-proxy behind nginx, and the probes.

use super::world::World;

const FORGED: [&str; 12] = [
    "X-Auth-Request-User: ana",
    "X-Auth-Request-Email: ana@example.org",
    "X-Auth-Request-Groups: admins",
    "X-Auth-Request-Preferred-Username: ana",
    "X-Auth-Request-Redirect: https://evil.example.org/",
    "X-Forwarded-User: ana",
    "X-Forwarded-Email: ana@example.org",
    "X-Forwarded-Groups: admins",
    "X-Forwarded-Access-Token: token",
    "X-Sites-Identity: ana",
    "Remote-User: ana",
    "X_Forwarded_User: ana",
];

#[tokio::test]
async fn each_server_gets_the_bytes_and_no_forged_identity() {
    let world = World::start("docs", |_| {}).await;
    for (path, server) in [
        ("/docs/fdb/s/api/v2/files//a%2Fb%20c?x=%2f", "api"),
        ("/docs/fdb/s/api", "api"),
        ("/docs/fdb/s/admin/", "admin"),
        ("/docs/fdb/s/dav/d%c3%bc/", "dav"),
        ("/docs/fdb/s/dav", "dav"),
        ("/docs/fdb/oauth2/userinfo", "oauth2"),
        ("/docs/fdb/oauth2/start?rd=/docs/fdb/x", "oauth2"),
    ] {
        let mut headers = FORGED.to_vec();
        headers.extend(["Cookie: __Secure-sites-docs-fdb=session", "Authorization: Basic x"]);
        let asked = world.request("GET", path, &headers).await.json();
        assert_eq!((asked["server"].as_str(), asked["target"].as_str()), (Some(server), Some(path)));
        let received = asked["headers"].as_object().unwrap();
        for forged in FORGED {
            let name = forged.split(':').next().unwrap().to_ascii_lowercase();
            assert!(!received.contains_key(&name), "{server} was told {forged}");
        }
        assert_eq!(received["host"][0], "sites.example.org");
        assert_eq!(received["authorization"][0], "Basic x");
        assert_eq!(received["cookie"][0], "__Secure-sites-docs-fdb=session");
    }
    let put = world.put("/docs/fdb/s/api/v2/files/x", "body of a file").await.json();
    assert_eq!((put["method"].as_str(), put["body"].as_str()), (Some("PUT"), Some("body of a file")));
    world.forbid_buffering();
    let big = "x".repeat(20 << 20);
    for path in ["/docs/fdb/s/api/v2/files/x", "/docs/fdb/s/dav/x"] {
        assert_eq!(world.put(path, &big).await.json()["bytes"], big.len());
    }
}

#[tokio::test]
async fn what_is_not_on_is_not_there() {
    let world = World::start("docs", |_| {}).await;
    for path in ["/docs/fdb/s/s3/bucket", "/docs/fdb/s/", "/docs/fdb/s", "/docs/fdb/s/other/", "/docs/fdb/s/apix"] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.json()["status"].as_str()), (404, Some("error")), "{path}");
    }
    assert_eq!(world.get("/docs/fdb/oauth2/auth").await.status, 404, "the identity service is not for visitors");
    let start = world.get("/docs/fdb/oauth2/start").await;
    assert_eq!((start.status, start.header("location").as_str()), (302, "/docs/fdb/oauth2/start?rd=/docs/fdb/"));
    let out = world.get("/docs/fdb/oauth2/sign_out").await;
    assert_eq!((out.status, out.header("location").as_str()), (302, "/docs/fdb/oauth2/sign_out?rd=/docs/fdb/"));

    let s3 = World::start("data", |_| {}).await;
    let asked = s3.request("GET", "/repository/Climate_Pulse.v2/s/s3/b/k%2Fl", &["Cookie: x=1"]).await.json();
    assert_eq!(asked["server"], "s3");
    assert_eq!(asked["target"], "/repository/Climate_Pulse.v2/s/s3/b/k%2Fl");
    assert!(asked["headers"].get("cookie").is_none(), "S3 knows signatures only");
}

#[tokio::test]
async fn probes_ask_the_servers_and_nothing_else_is_there() {
    let world = World::start("docs", |_| {}).await;
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/idpz", 200),
        ("/readyz/site-admin", 200),
        ("/readyz/site-webdav", 200),
        ("/readyz/site-s3", 404),
        ("/docs/fdb/", 404),
        ("/", 404),
    ] {
        assert_eq!(world.probe(path).await, status, "{path}");
    }
    for path in ["/healthz", "/readyz", "/idpz"] {
        assert_eq!(world.get(path).await.status, 404, "{path} is not public");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_said_to_be_so_in_the_callers_language() {
    let world = World::start_without("docs", &["api", "oauth2", "dav"], |_| {}).await;
    world.write("index.html", b"hello");
    for path in ["/docs/fdb/s/api/v2/files/", "/docs/fdb/s/dav/x"] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.header("retry-after").as_str()), (503, "5"), "{path}");
        assert_eq!(answer.json()["message"], "temporarily unavailable");
    }
    let login = world.get("/docs/fdb/oauth2/start?rd=/docs/fdb/").await;
    assert_eq!(login.status, 503);
    assert!(login.text().contains("Temporarily unavailable"));
    assert_eq!(world.get("/docs/fdb/").await.text(), "hello", "a public page needs none of them");
    assert_eq!(world.probe("/healthz").await, 200);
    for path in ["/readyz", "/idpz", "/readyz/site-webdav"] {
        assert!(world.probe(path).await >= 500, "{path}");
    }
    assert_eq!(world.probe("/readyz/site-admin").await, 200, "only the broken one is unready");

    let private = World::start_without("shared", &["api"], |_| {}).await;
    private.write("index.html", b"private words");
    let answer = private.request("GET", "/team/plans/", &["Cookie: viewer=1"]).await;
    assert_eq!(answer.status, 503, "nobody decides, so nobody reads");
    assert!(!answer.text().contains("private words"));
}
