//! Identity and headers: what is asked of the login service, and what no header can do.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{MASTER, RunningSite, SOON, eventually};

#[tokio::test]
async fn the_login_is_asked_only_for_what_is_its_own() {
    let site = RunningSite::private().await;
    let (_, token) = site.token("read", None).await;
    for call in [
        site.api("GET", "files/").token(MASTER),
        site.api("GET", "files/").token(&token).session("ana"),
        site.api("GET", "files/").token("opaque-and-unknown").session("ana"),
        site.api("GET", "files/").header("Cookie: __Secure-sites-other=ana; __Secure-sites-plans_csrf=ana"),
        site.api("GET", "files/"),
        site.raw("GET", "/healthz"),
        site.api("GET", "health"),
    ] {
        call.send().await;
    }
    assert_eq!(site.questions.lock().unwrap().as_slice(), [], "nothing of it was the login's");
    for _ in 0..5 {
        assert_eq!(site.api("GET", "files/").session("ana").send().await.status, 200);
    }
    let extra = "Cookie: a=b; __Secure-sites-plans_0=x; __Secure-sites-other=secret";
    site.api("GET", "files/").header(extra).header("X-Auth-Request-User: ana").send().await;
    let questions = site.questions.lock().unwrap().clone();
    assert_eq!(questions[0], ("__Secure-sites-plans=ana".to_owned(), String::new()), "no other cookie is told");
    assert_eq!(questions.last().unwrap().0, "__Secure-sites-plans_0=x");
    assert!(questions.len() < 6, "answers are remembered: {questions:?}");
}

#[tokio::test]
async fn who_is_taken_off_the_list_is_out() {
    let site = RunningSite::private().await;
    assert_eq!(site.api("GET", "files/").session("cleo").send().await.status, 200);
    std::fs::write(site.access_file(), "{\"owner\": \"ana\", \"type\": \"private\"}").unwrap();
    eventually("the new rules", SOON, || async {
        site.api("GET", "files/").session("cleo").send().await.status == 403
    })
    .await;
    std::fs::write(site.access_file(), "{broken").unwrap();
    assert_eq!(site.api("GET", "files/").session("cleo").send().await.status, 403, "the last good rules count");
    assert_eq!(site.api("GET", "files/").session("ana").send().await.status, 200);
}

#[tokio::test]
async fn a_foreign_page_cannot_write_with_a_visitors_session() {
    let site = RunningSite::private().await;
    for (header, status) in [
        ("Origin: https://evil.example.org", 403),
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Origin: null", 403),
        ("Origin: https://sites.example.org", 200),
        ("Sec-Fetch-Site: same-origin", 200),
    ] {
        let put = || site.api("PUT", "files/a").body(b"x").header(header);
        assert_eq!(put().session("ana").send().await.status, status, "{header}");
        assert_eq!(put().token(MASTER).send().await.status, 200, "{header}: a token was given on purpose");
        assert_eq!(site.api("GET", "files/a").session("ana").header(header).send().await.status, 200, "{header}");
    }
}

/// What proxies say who somebody is with.
const IDENTITY_HEADERS: [&str; 16] = [
    "X-Auth-Request-User",
    "X-Auth-Request-Email",
    "X-Auth-Request-Groups",
    "X-Auth-Request-Preferred-Username",
    "X-Forwarded-User",
    "X-Forwarded-Email",
    "X-Forwarded-Groups",
    "X-Forwarded-Preferred-Username",
    "X-Remote-User",
    "X-Remote-Groups",
    "Remote-User",
    "Remote-Email",
    "Remote-Groups",
    "X-Sites-Identity",
    "X-Sites-Access",
    "X-User",
];

/// Whatever headers a stranger sends, a private site stays closed and the answer's header is ours.
#[test]
fn no_header_opens_a_private_site() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let site = runtime.block_on(RunningSite::private());
    runtime.block_on(site.must_put("secret.txt", b"secret"));
    for name in IDENTITY_HEADERS {
        for value in ["ana", "ana@example.org", "ops", "ben"] {
            let call = site.api("GET", "files/secret.txt").header(&format!("{name}: {value}"));
            assert_eq!(runtime.block_on(call.send()).status, 401, "{name}: {value}");
        }
    }
    let names = prop::sample::select(vec![
        "X-Auth-Request-User",
        "X-Auth-Request-Email",
        "X-Auth-Request-Groups",
        "X-Auth-Request-Preferred-Username",
        "X-Forwarded-User",
        "X-Forwarded-Email",
        "X-Forwarded-Groups",
        "X-Forwarded-For",
        "X-Forwarded-Prefix",
        "X-Sites-Identity",
        "X-Sites-Access",
        "X-Sites-Login",
        "X-Original-URI",
        "X-Original-Method",
        "X-Remote-User",
        "Remote-User",
        "X-Real-IP",
        "Forwarded",
        "X-HTTP-Method-Override",
        "Cookie",
        "Authorization",
        "X-Custom",
    ]);
    let values = prop_oneof![
        prop::sample::select(vec![
            "ana",
            "ops",
            "admin",
            "public",
            "/team/plans/?sites-signature=x",
            "GET",
            "127.0.0.1",
            "for=127.0.0.1",
            "__Secure-sites-ana=ana",
            "__Secure-sites.ticket-plans=e30.x",
            "Bearer",
            "Bearer null",
            "Basic Og==",
            "Basic dGVhbTo=",
            "AWS4-HMAC-SHA256 Credential=master/x",
            "Bearer undefined",
            "Negotiate x",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,60}",
    ];
    let headers = prop::collection::vec((names, values), 0..6);
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    runner
        .run(&headers, |headers| {
            for path in ["files/secret.txt", "pub/files/secret.txt", "tokens", "whoami"] {
                let mut call = site.api("GET", path);
                for (name, value) in &headers {
                    call = call.header(&format!("{name}: {}", value.trim()));
                }
                let answer = runtime.block_on(call.send());
                prop_assert!([400, 401, 403].contains(&answer.status), "{}: {:?}", answer.status, headers);
                prop_assert!(!answer.text().contains("secret"), "{:?}", headers);
            }
            Ok(())
        })
        .unwrap();
}

/// A path or option of a client never becomes a line of the answer's header.
#[tokio::test]
async fn a_clients_text_makes_no_header() {
    let site = RunningSite::private().await;
    for path in [
        "files/a%0d%0aSet-Cookie:%20x=1",
        "files/a%0aX:%20y",
        "session?ticket=a%0d%0aSet-Cookie:%20x=1",
        "signed-urls?x=%0d%0aX:%20y",
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let answer = site.api(method, path).token(MASTER).send().await;
            assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
            assert_eq!((answer.header("set-cookie").as_str(), answer.header("x").as_str()), ("", ""), "{path}");
        }
    }
}
