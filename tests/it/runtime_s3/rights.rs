//! Which key opens what.

use super::World;
use crate::support::s3::{Key, boto, endpoint};
use crate::support::site::{PREFIX, Start};
use crate::support::{MASTER, SOON, eventually};

#[tokio::test]
async fn a_key_opens_what_its_token_does() {
    let world = World::start().await;
    world.site.must_put("folder/file.txt", b"content").await;
    let reader = Key::made(&world.site, "read", None).await.0;
    let writer = Key::made(&world.site, "read-write", None).await.0;
    let revoked = Key::made(&world.site, "read-write", None).await.0;
    assert_eq!(world.site.delete(&format!("tokens/{}", revoked.id)).await.status, 200);
    let expired = Key::made(&world.site, "read-write", Some(1)).await.0;
    eventually("it expires", SOON, || async {
        world.site.get(&format!("tokens/{}", expired.id)).await.json()["token"]["state"] == "expired"
    })
    .await;
    let other = World::start().await;
    let foreign = Key::made(&other.site, "read-write", None).await.0;
    let unknown = "InvalidAccessKeyId InvalidAccessKeyId InvalidAccessKeyId InvalidAccessKeyId";
    let wrong = "SignatureDoesNotMatch SignatureDoesNotMatch SignatureDoesNotMatch SignatureDoesNotMatch";
    for (key, expected) in [
        (Key::master(), "yes yes yes yes"),
        (writer.clone(), "yes yes yes yes"),
        (reader.clone(), "yes yes AccessDenied AccessDenied"),
        (revoked, unknown),
        (expired, unknown),
        (foreign, unknown),
        (Key { id: "master".to_owned(), secret: writer.secret.clone() }, wrong),
        (Key { id: writer.id.clone(), secret: reader.secret.clone() }, wrong),
        (Key { id: writer.id.clone(), secret: MASTER.to_owned() }, wrong),
    ] {
        let id = key.id.clone();
        boto("rights", &endpoint(&world.s3), &key, &[("S3_EXPECTED", expected)]).await;
        let log = world.s3.log.lock().unwrap().clone();
        assert!(!log.contains(&key.secret), "{id}: a secret is written down");
    }
    let log = world.s3.log.lock().unwrap().clone();
    assert!(log.contains(&format!("access token {}", writer.id)), "who wrote is: {log}");
}

/// A reader sees neither the uploads of others nor a way to change something.
#[tokio::test]
async fn a_read_only_key_changes_nothing_at_all() {
    let world = World::start().await;
    world.site.must_put("file.txt", b"content").await;
    let reader = Key::made(&world.site, "read", None).await.0;
    let begun = Key::master().send(&world.site, &world.s3, "POST", "/content/up", &[("uploads", "")], b"").await;
    assert_eq!(begun.status, 200, "{}", begun.text());
    let id = begun.text().split("<UploadId>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    for (method, path, query) in [
        ("PUT", "file.txt", vec![]),
        ("PUT", "folder/", vec![]),
        ("DELETE", "file.txt", vec![]),
        ("POST", "", vec![("delete", "")]),
        ("POST", "new", vec![("uploads", "")]),
        ("PUT", "up", vec![("uploadId", id.as_str()), ("partNumber", "1")]),
        ("POST", "up", vec![("uploadId", id.as_str())]),
        ("DELETE", "up", vec![("uploadId", id.as_str())]),
        ("GET", "up", vec![("uploadId", id.as_str())]),
        ("GET", "", vec![("uploads", "")]),
        ("PUT", "file.txt", vec![("acl", "")]),
        ("PUT", "file.txt", vec![("tagging", "")]),
    ] {
        let path = format!("/content/{path}");
        let answer = reader.send(&world.site, &world.s3, method, &path, &query, b"").await;
        assert_eq!(answer.status, 403, "{method} {path} {query:?}: {}", answer.text());
        assert!(answer.text().contains("the access token is read-only"), "{}", answer.text());
    }
    assert_eq!(world.site.names("files/?recursive=true").await, ["file.txt"]);
}

/// Without a signature a public site shows its content, as its other addresses do, and nothing else.
#[tokio::test]
async fn anybody_reads_a_public_site() {
    for site_type in ["public", "private"] {
        let world = World::of(Start { site_type, ..Start::default() }).await;
        world.site.must_put("a/file.txt", b"content").await;
        let public = site_type == "public";
        for (method, path, open) in [
            ("GET", "/content/a/file.txt", true),
            ("HEAD", "/content/a/file.txt", true),
            ("GET", "/content?list-type=2", true),
            ("GET", "/content", true),
            ("GET", "/", true),
            ("PUT", "/content/a/new.txt", false),
            ("DELETE", "/content/a/file.txt", false),
            ("POST", "/content?delete", false),
            ("POST", "/content/a?uploads", false),
            ("GET", "/content?uploads", false),
            ("GET", "/content?acl", false),
        ] {
            let target = format!("{PREFIX}/s/s3{path}");
            // Cookies and tokens count for nothing here.
            let answer = world.site.at(&world.s3, method, &target).session("ana").send().await;
            let expected = if public && open { 200 } else { 403 };
            assert_eq!(answer.status, expected, "{site_type} {method} {path}: {}", answer.text());
        }
        let chosen = format!("{PREFIX}/s/s3/content/a/file.txt?response-content-type=text/html");
        let chosen = world.site.at(&world.s3, "GET", &chosen).send().await;
        assert_eq!(chosen.status, if public { 400 } else { 403 }, "{}", chosen.text());
        for credential in [format!("Bearer {MASTER}"), "Basic dGVhbTp0aGU=".to_owned(), "AWS a:b".to_owned()] {
            let call = world.site.at(&world.s3, "GET", &format!("{PREFIX}/s/s3/content/a/file.txt"));
            let answer = call.header(&format!("Authorization: {credential}")).send().await;
            assert_eq!(answer.status, 400, "{credential}: {}", answer.text());
        }
        assert_eq!(world.site.get("files/a/file.txt").await.text(), "content");
    }
}

/// A header that means something must be signed, whoever added it.
#[tokio::test]
async fn what_nobody_signed_does_not_count() {
    let world = World::start().await;
    world.site.must_put("secret.txt", b"secret").await;
    let target = format!("{PREFIX}/s/s3/content/copy.txt");
    let lines = Key::master().sign("PUT", &target, &[], &[]);
    let mut call = world.site.at(&world.s3, "PUT", &target);
    for line in &lines {
        call = call.header(line);
    }
    let answer = call.header("x-amz-copy-source: content/secret.txt").send().await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.text().contains("x-amz-copy-source must be signed"), "{}", answer.text());
    // Signed it is a copy.
    let mut call = world.site.at(&world.s3, "PUT", &target);
    for line in Key::master().sign("PUT", &target, &[], &[("x-amz-copy-source", "content/secret.txt")]) {
        call = call.header(&line);
    }
    assert_eq!(call.send().await.status, 200);
    assert_eq!(world.site.get("files/copy.txt").await.text(), "secret");
    // A signature for one path opens no other, nor another method.
    for (method, path) in [("PUT", "other.txt"), ("DELETE", "copy.txt")] {
        let mut call = world.site.at(&world.s3, method, &format!("{PREFIX}/s/s3/content/{path}"));
        for line in &lines {
            call = call.header(line);
        }
        let answer = call.send().await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
        assert!(answer.text().contains("SignatureDoesNotMatch"), "{}", answer.text());
    }
}
