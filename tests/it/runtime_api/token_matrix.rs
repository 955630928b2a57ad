//! Who may do what: one table.

use serde_json::json;

use crate::support::{MASTER, RunningSite, SOON, SiteClient, eventually};

/// Who, the line of the header that says so, and what they get: list, get, public get, put, delete, link, tokens.
type Row = (&'static str, String, [u16; 7]);

#[tokio::test]
async fn client_21_token_matrix() {
    let site = RunningSite::private().await;
    let other = RunningSite::private().await;
    let secrets = token_matrix(&site, &other).await;
    let session = |who: &str| format!("Cookie: __Secure-sites-plans={who}");
    let rows: [Row; 8] = [
        ("owner", session("ana"), [200; 7]),
        ("administrator by group", session("zoe+x+ops"), [200; 7]),
        ("administrator by token of the provider", bearer("eyben"), [200; 7]),
        ("viewer", session("cleo"), [200, 200, 200, 403, 403, 403, 403]),
        ("viewer by group", session("zoe+staff"), [200, 200, 200, 403, 403, 403, 403]),
        ("somebody", session("zoe+op+staffs"), [403; 7]),
        ("a session that is none", session("nobody"), [401; 7]),
        ("the login is broken", session("broken"), [503; 7]),
    ];
    check(&site, &rows).await;
    let log = site.log.lock().unwrap().clone();
    assert!(!secrets.iter().any(|secret| log.contains(secret)), "a token is written down");
    assert!(log.contains("file written"), "{log}");
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// What each kind of token opens, of this site and of another; gives the tokens.
pub async fn token_matrix(site: &SiteClient, other: &SiteClient) -> Vec<String> {
    site.must_put("folder/file.txt", b"content").await;
    let (_, writer) = site.token("read-write", None).await;
    let (_, reader) = site.token("read", Some(3600)).await;
    let (revoked_id, revoked) = site.token("read-write", None).await;
    assert_eq!(site.delete(&format!("tokens/{revoked_id}")).await.status, 200);
    let (expired_id, expired) = site.token("read-write", Some(1)).await;
    eventually("it expires", SOON, || async {
        site.get(&format!("tokens/{expired_id}")).await.json()["token"]["state"] == "expired"
    })
    .await;
    let (_, foreign) = other.token("read-write", None).await;
    let basic = |token: &str| {
        use base64::Engine;
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("team:{token}"));
        format!("Authorization: Basic {pair}")
    };
    let rows: [Row; 11] = [
        ("master", bearer(MASTER), [200; 7]),
        ("master as password", basic(MASTER), [200; 7]),
        ("read-write", bearer(&writer), [200, 200, 200, 200, 200, 200, 403]),
        ("read-write as password", basic(&writer), [200, 200, 200, 200, 200, 200, 403]),
        ("read", bearer(&reader), [200, 200, 200, 403, 403, 403, 403]),
        ("expired", bearer(&expired), [403; 7]),
        ("revoked", bearer(&revoked), [403; 7]),
        ("other site's", bearer(&foreign), [401; 7]),
        ("unknown", bearer("0000"), [401; 7]),
        ("almost the master's", bearer(&MASTER[1..]), [401; 7]),
        ("none", "Accept: */*".to_owned(), [401; 7]),
    ];
    check(site, &rows).await;
    let stored = std::fs::read_to_string(site.content(".sites/tokens.json")).unwrap();
    let secrets = vec![MASTER.to_owned(), writer, reader, revoked, expired];
    assert!(!secrets.iter().any(|secret| stored.contains(secret)), "a token is written down");
    secrets
}

async fn check(site: &SiteClient, rows: &[Row]) {
    for (who, header, expected) in rows {
        let link = json!({"target": "folder/file.txt"}).to_string();
        let calls = [
            site.api("GET", "files/folder?list=true"),
            site.api("GET", "files/folder/file.txt"),
            site.api("GET", "pub/files/folder/file.txt"),
            site.api("PUT", "files/new.txt").body(b"new"),
            site.api("DELETE", "files/new.txt"),
            site.api("PUT", "symlinks/link?force=true").body(link.as_bytes()),
            site.api("GET", "tokens"),
        ];
        let mut found = [0; 7];
        for (at, call) in calls.into_iter().enumerate() {
            let answer = call.header(header).send().await;
            found[at] = answer.status;
            assert_eq!(answer.header("location"), "", "{who}: never to a login");
            let failed = answer.text().starts_with("{\"status\":\"error\",\"message\":");
            assert_eq!(failed, answer.status != 200, "{who}: {}", answer.text());
        }
        assert_eq!(found, *expected, "{who}: list, get, public get, put, delete, link, tokens");
    }
}

#[tokio::test]
async fn tokens_have_a_history_and_limits() {
    let site = RunningSite::private().await;
    let (id, text) = site.token("read", Some(60)).await;
    assert_eq!(text.len(), 64);
    let listed = site.get("tokens").await.json();
    assert_eq!((&listed["tokens"][0]["id"], &listed["tokens"][0]["state"]), (&json!(id), &json!("active")));
    assert!(!listed.to_string().contains(&text));
    assert_eq!(site.delete(&format!("tokens/{id}")).await.status, 200);
    assert_eq!(site.delete(&format!("tokens/{id}")).await.status, 404);
    let history = site.get("tokens/history").await.json()["history"].clone();
    let events: Vec<_> = history.as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["revoked", "created"]);
    assert_eq!((&history[0]["by"], &history[0]["token_id"]), (&json!("master token"), &json!(id)));
    for wrong in [
        json!({"label": "", "privilege": "read"}),
        json!({"label": "a\nb", "privilege": "read"}),
        json!({"label": "x", "privilege": "all"}),
        json!({"label": "x", "privilege": "read", "duration": 0}),
        json!({"privilege": "read"}),
    ] {
        let answer = site.post("tokens", &wrong).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text());
    }
    for _ in 0..200 {
        site.token("read", None).await;
    }
    let more = site.post("tokens", &json!({"label": "x", "privilege": "read"})).await;
    assert_eq!(more.status, 409, "{}", more.text());
}

/// A state file that nobody can read must not open the site, nor be overwritten.
#[tokio::test]
async fn a_broken_token_file_closes_the_site_to_tokens() {
    let site = RunningSite::private().await;
    let (_, token) = site.token("read", None).await;
    std::fs::write(site.content(".sites/tokens.json"), "{broken").unwrap();
    assert_eq!(site.api("GET", "files/").token(&token).send().await.status, 503);
    assert_eq!(site.get("files/").await.status, 200, "the master token is not in it");
    assert_eq!(site.post("tokens", &json!({"label": "x", "privilege": "read"})).await.status, 500);
    assert_eq!(std::fs::read_to_string(site.content(".sites/tokens.json")).unwrap(), "{broken");
}
