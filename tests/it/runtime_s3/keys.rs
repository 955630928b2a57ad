//! No key leads out of the content or into the site's state.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::World;
use crate::support::{s3::Key, traversal};

#[test]
fn no_key_leads_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::start());
    runtime.block_on(traversal::bait(&world.site));
    let paths = traversal::paths()
        // A request line has no broken escape that anybody could sign.
        .prop_filter("well-formed", |path| {
            percent_encoding::percent_decode_str(path).decode_utf8().is_ok()
                && path.split('%').skip(1).all(|rest| rest.len() > 1 && u8::from_str_radix(&rest[..2], 16).is_ok())
        });
    let before = traversal::outside(&world.site);
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let send = |method: &str, path: &str, query: &[(&str, &str)], body: &[u8]| {
        runtime.block_on(Key::master().send(&world.site, &world.s3, method, path, query, body))
    };
    let decided = runner.run(&(paths, any::<bool>()), |(path, trimmed)| {
        let path = if trimmed { path.trim_end_matches('/').to_owned() } else { path };
        let key = format!("/content/{path}");
        let read = send("GET", &key, &[], b"");
        let prefix = percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned();
        let listed = send("GET", "/content", &[("list-type", "2"), ("prefix", &prefix)], b"");
        for answer in [read, listed] {
            let text = answer.text();
            prop_assert!(!text.contains("outside of the content"), "{path}");
            prop_assert!(!text.contains("root:") && !text.contains("\"hash\""), "{path}");
            prop_assert!(!text.contains("tokens.json</Key>") && !text.contains("beside.txt</Key>"), "{path}: {text}");
            prop_assert!(answer.status < 500, "{path}: {text}");
            prop_assert!(!text.contains("SignatureDoesNotMatch"), "the test's own signature is right: {path}");
        }
        for (method, query) in [("PUT", vec![]), ("POST", vec![("uploads", "")]), ("DELETE", vec![])] {
            let answer = send(method, &key, &query, if method == "PUT" { b"w" } else { b"" });
            let offered = answer.status != 501 || path.trim_matches('/').is_empty();
            prop_assert!(answer.status < 502 && answer.status != 500 && offered, "{method} {path}: {}", answer.text());
        }
        prop_assert_eq!(&traversal::outside(&world.site), &before, "{}", path);
        Ok(())
    });
    decided.unwrap();
    assert_eq!(runtime.block_on(world.site.get("tokens")).json()["tokens"].as_array().unwrap().len(), 1);
}

/// A name is told as it is, whatever it means in XML.
#[tokio::test]
async fn names_are_no_markup() {
    let world = World::start().await;
    assert_eq!(world.ask("PUT", "a%26%3Cb%3E%22'.txt", b"x").await.status, 200);
    let listed = Key::master().send(&world.site, &world.s3, "GET", "/content", &[("prefix", "a&<")], b"").await.text();
    assert!(listed.contains("<Prefix>a&amp;&lt;</Prefix>"), "{listed}");
    assert!(listed.contains("<Key>a&amp;&lt;b&gt;"), "{listed}");
    let refused = world.ask("GET", "a/..%2F%3Cb%3E", b"").await;
    assert!(refused.status == 400 && !refused.text().contains("<b>"), "{}", refused.text());
}

/// Links as in the other servers: to a file it is a file, to a folder a folder that only those see who ask for it.
#[tokio::test]
async fn links_are_what_they_lead_to() {
    let world = World::start().await;
    world.site.must_put("real/file.txt", b"content").await;
    assert_eq!(world.site.link("link.txt", "real/file.txt").await.status, 200);
    assert_eq!(world.site.link("other", "real").await.status, 200);
    let list = async |query: &[(&str, &str)]| {
        Key::master().send(&world.site, &world.s3, "GET", "/content", query, b"").await.text()
    };
    let flat = list(&[("list-type", "2")]).await;
    assert!(flat.contains("<Key>link.txt</Key>") && flat.contains("<Key>real/file.txt</Key>"), "{flat}");
    assert!(!flat.contains("other"), "a linked folder is not gone down into: {flat}");
    let folders = list(&[("list-type", "2"), ("delimiter", "/")]).await;
    assert!(folders.contains("<Prefix>other/</Prefix>"), "{folders}");
    let below = list(&[("list-type", "2"), ("prefix", "other/")]).await;
    assert!(below.contains("<Key>other/file.txt</Key>"), "{below}");
    assert_eq!(world.ask("GET", "link.txt", b"").await.text(), "content");
    assert_eq!(world.ask("GET", "other/file.txt", b"").await.text(), "content");
    // Writing replaces the link; deleting removes it.
    assert_eq!(world.ask("PUT", "link.txt", b"own").await.status, 200);
    assert_eq!(world.site.get("files/real/file.txt").await.text(), "content");
    assert_eq!(world.ask("DELETE", "other", b"").await.status, 204);
    assert!(world.site.content("other").symlink_metadata().is_err());
    assert_eq!(world.site.get("files/real/file.txt").await.text(), "content");
}
