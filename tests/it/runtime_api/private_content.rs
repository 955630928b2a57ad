//! What nginx asks before it serves private content.

use crate::support::http::Answer;
use crate::support::{MASTER, RunningSite};

async fn ask(site: &RunningSite, target: &str, header: &str) -> Answer {
    let call = site.raw("GET", "/_auth/private").header(&format!("X-Original-URI: {target}"));
    call.header("X-Original-Method: GET").header(header).send().await
}

#[tokio::test]
async fn nginx_gets_one_of_three_answers() {
    let site = RunningSite::private().await;
    let (_, reader) = site.token("read", None).await;
    let page = "/team/plans/a/page.html?x=1";
    for (header, status) in [
        ("Cookie: __Secure-sites-plans=cleo".to_owned(), 204),
        ("Cookie: __Secure-sites-plans=zoe".to_owned(), 403),
        ("Cookie: __Secure-sites-plans=nobody".to_owned(), 401),
        (format!("Authorization: Bearer {MASTER}"), 204),
        (format!("Authorization: Bearer {reader}"), 204),
        ("Authorization: Bearer bad".to_owned(), 401),
        ("Authorization: Bearer eycleo".to_owned(), 204),
        ("Authorization: Bearer x\r\nAuthorization: Bearer y".to_owned(), 403),
        ("X-Auth-Request-User: ana".to_owned(), 401),
    ] {
        let answer = ask(&site, page, &header).await;
        assert_eq!(answer.status, status, "{header}");
        assert_eq!(answer.header("x-sites-login").is_empty(), status != 401, "{header}");
    }
    let login = ask(&site, page, "Accept: text/html").await.header("x-sites-login");
    assert_eq!(login, "/team/plans/oauth2/start?rd=%2Fteam%2Fplans%2Fa%2Fpage.html%3Fx%3D1");
    for target in ["//evil.example.org/", "https://evil.example.org/", "/\\evil.example.org", ""] {
        let login = ask(&site, target, "Accept: text/html").await.header("x-sites-login");
        assert!(login.starts_with("/team/plans/oauth2/start?rd=%2F") && !login.contains("//"), "{target}: {login}");
        assert!(!login.contains("rd=%2F%2F"), "{target}: {login}");
    }
}

#[tokio::test]
async fn a_public_site_is_open_and_nobody_is_asked() {
    let site = RunningSite::public().await;
    let answer = ask(&site, "/team/plans/page.html", "Cookie: __Secure-sites-plans=zoe").await;
    assert_eq!(answer.status, 204);
    assert!(site.questions.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nobody_outside_reaches_the_question() {
    let site = RunningSite::private().await;
    // What nginx passes on begins with the site's path.
    for path in ["/team/plans/_auth/private", "/team/plans/s/api/v2/_auth/private", "/team/plans/s/api/v2/healthz"] {
        assert_eq!(site.raw("GET", path).send().await.status, 404, "{path}");
    }
}
