//! Who may do what: one table.

use serde_json::json;

use crate::support::s3::Key;
use crate::support::{MASTER, RunningSite, SOON, eventually};

/// Who, the header that they send, what they are answered, their S3 key, what they are answered by S3.
type Row = (&'static str, String, [u16; 9], Option<Key>, [u16; 2]);

#[tokio::test]
async fn client_21_token_matrix() {
    let site = RunningSite::private().await;
    let (dav, s3) = (site.role("webdav").await, site.role("s3").await);
    site.must_put("folder/file.txt", b"content").await;
    let (writer_key, writer) = Key::made(&site, "read-write", None).await;
    let (reader_key, reader) = Key::made(&site, "read", Some(3600)).await;
    let (revoked_key, revoked) = Key::made(&site, "read-write", None).await;
    assert_eq!(site.delete(&format!("tokens/{}", revoked_key.id)).await.status, 200);
    let (expired_key, expired) = Key::made(&site, "read-write", Some(1)).await;
    eventually("it expires", SOON, || async {
        site.get(&format!("tokens/{}", expired_key.id)).await.json()["token"]["state"] == "expired"
    })
    .await;
    let other = RunningSite::private().await;
    let (foreign_key, foreign) = Key::made(&other, "read-write", None).await;

    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let basic = |token: &str| {
        use base64::Engine;
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("team:{token}"));
        format!("Authorization: Basic {pair}")
    };
    let session = |who: &str| format!("Cookie: __Secure-sites-plans={who}");
    let wrong_key = |id: &str| Key { id: id.to_owned(), secret: MASTER[1..].to_owned() };
    let writing = [200, 200, 200, 200, 200, 200, 403, 200, 200];
    let reading = [200, 200, 200, 403, 403, 403, 403, 200, 403];
    // list, get, public get, put, delete, link, tokens, DAV get, DAV put; S3 get, S3 put. S3 knows keys only: without
    // one it is asked with the same header, and whoever it does not know gets 403.
    let rows: [Row; 19] = [
        ("master", bearer(MASTER), [200; 9], Some(Key::master()), [200; 2]),
        ("master as password", basic(MASTER), [200; 9], None, [400; 2]),
        ("read-write", bearer(&writer), writing, Some(writer_key.clone()), [200; 2]),
        ("read-write as password", basic(&writer), writing, None, [400; 2]),
        ("read", bearer(&reader), reading, Some(reader_key.clone()), [200, 403]),
        ("expired", bearer(&expired), [403; 9], Some(expired_key.clone()), [403; 2]),
        ("revoked", bearer(&revoked), [403; 9], Some(revoked_key.clone()), [403; 2]),
        ("other site's", bearer(&foreign), [401; 9], Some(foreign_key), [403; 2]),
        ("unknown", bearer("0000"), [401; 9], Some(wrong_key("0000")), [403; 2]),
        ("almost the master's", bearer(&MASTER[1..]), [401; 9], Some(wrong_key("master")), [403; 2]),
        ("none", "Accept: */*".to_owned(), [401; 9], None, [403; 2]),
        ("owner", session("ana"), [200; 9], None, [403; 2]),
        ("administrator by group", session("zoe+x+ops"), [200; 9], None, [403; 2]),
        ("administrator by token of the provider", bearer("eyben"), [200; 9], None, [400; 2]),
        ("viewer", session("cleo"), reading, None, [403; 2]),
        ("viewer by group", session("zoe+staff"), reading, None, [403; 2]),
        ("somebody", session("zoe+op+staffs"), [403; 9], None, [403; 2]),
        ("a session that is none", session("nobody"), [401; 9], None, [403; 2]),
        ("the login is broken", session("broken"), [503; 9], None, [403; 2]),
    ];
    for (who, header, expected, key, expected_s3) in rows {
        let link = json!({"target": "folder/file.txt"}).to_string();
        let calls = [
            site.api("GET", "files/folder?list=true"),
            site.api("GET", "files/folder/file.txt"),
            site.api("GET", "pub/files/folder/file.txt"),
            site.api("PUT", "files/new.txt").body(b"new"),
            site.api("DELETE", "files/new.txt"),
            site.api("PUT", "symlinks/link?force=true").body(link.as_bytes()),
            site.api("GET", "tokens"),
            site.at(&dav, "GET", "/team/plans/s/dav/folder/file.txt"),
            site.at(&dav, "PUT", "/team/plans/s/dav/by-dav.txt").body(b"new"),
        ];
        let mut found = [0; 9];
        for (at, call) in calls.into_iter().enumerate() {
            let answer = call.header(&header).send().await;
            found[at] = if (200..300).contains(&answer.status) { 200 } else { answer.status };
            assert_eq!(answer.header("location"), "", "{who}: never to a login");
            let failed = answer.text().starts_with("{\"status\":\"error\",\"message\":");
            assert_eq!(failed, answer.status != 200 && at < 7, "{who}: {}", answer.text());
        }
        assert_eq!(found, expected, "{who}: list, get, public get, put, delete, link, tokens, DAV get, DAV put");
        let mut found = [0; 2];
        for (at, (method, path)) in
            [("GET", "/content/folder/file.txt"), ("PUT", "/content/by-s3.txt")].iter().enumerate()
        {
            let answer = match &key {
                Some(key) => key.send(&site, &s3, method, path, &[], b"").await,
                None => site.at(&s3, method, &format!("/team/plans/s/s3{path}")).header(&header).send().await,
            };
            found[at] = answer.status;
            assert_eq!(answer.status == 200, !answer.text().contains("<Error>"), "{who}: {}", answer.text());
        }
        assert_eq!(found, expected_s3, "{who}: S3 get, S3 put");
    }
    let log = [&site.log, &dav.log, &s3.log].map(|log| log.lock().unwrap().clone()).concat();
    let stored = std::fs::read_to_string(site.content(".sites/tokens.json")).unwrap();
    let keys = [&writer_key, &reader_key, &revoked_key, &expired_key].map(|key| key.secret.as_str());
    for secret in [MASTER, &writer, &reader, &revoked, &expired].into_iter().chain(keys) {
        assert!(!log.contains(secret) && !stored.contains(secret), "a token is written down");
    }
    assert!(log.contains("file written"), "{log}");
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
