//! B19: whatever a login is told to return to, a browser stays at the Hub.

use http::Method;
use reqwest::Url;

use crate::support::{HUB, OpenId, World};

#[tokio::test(flavor = "multi_thread")]
async fn b19_every_target_stays_at_the_hub() {
    let world = World::new("b19-redirect").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let browser = hub.browser(openid);
    let seen = browser.log_in(&format!("{HUB}/hub/login/?next=/hub/sites/a/b%3Fx=1%23y"), "alice").await.unwrap();
    assert_eq!(seen.address, format!("{HUB}/hub/sites/a/b?x=1#y"), "a page of ours still works");
    let default = format!("{HUB}/hub/");
    for next in [
        "//evil.test",
        "///evil.test",
        "/\\evil.test",
        "/%5cevil.test",
        "%2f%2fevil.test",
        "https:evil.test",
        "https://evil.test/hub/",
        "/\t/evil.test",
        "/hub/../..//evil.test",
        "/hub/..\\..\\\\evil.test",
        "/hub//evil.test",
        "javascript:alert(1)",
        "/hub/login/?next=/hub/",
        "/docs/fdb/",
    ] {
        // As it is, and encoded once more.
        let once: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let twice: String = form_urlencoded::byte_serialize(once.as_bytes()).collect();
        for sent in [once, twice] {
            // The provider knows her: every step is a redirect, and each must be where it may be.
            let mut at = format!("{HUB}/hub/login/?next={sent}");
            let landed = loop {
                let answer = browser.request(&Method::GET, &at, &[], "").await.unwrap();
                let Some(location) = answer.headers().get("location") else { break at };
                let from_callback = at.starts_with(&format!("{HUB}/hub/callback/"));
                let resolved = Url::parse(&at).unwrap().join(location.to_str().unwrap()).unwrap();
                at = resolved.to_string();
                if from_callback {
                    break at;
                }
                let host = resolved.host_str().unwrap();
                assert!(host == "sites.example.test" || host == "127.0.0.1", "{next:?} leads to {at}");
            };
            assert_eq!(landed, default, "{next:?} as {sent}");
        }
    }
    world.end().await;
}
