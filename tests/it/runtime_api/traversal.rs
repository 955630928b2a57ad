//! No path leads out of the content, however it is spelled, and none reaches the site's state.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::support::{MASTER, RunningSite, traversal};

#[test]
fn no_path_leads_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let site = runtime.block_on(RunningSite::private());
    runtime.block_on(traversal::bait(&site));
    let before = traversal::outside(&site);
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    runner
        .run(&(traversal::paths(), traversal::paths()), |(path, target)| {
            let read = runtime.block_on(site.get(&format!("files/{path}")));
            prop_assert!(!read.text().contains("outside of the content"), "{path}");
            prop_assert!(!read.text().contains("root:") && !read.text().contains("\"hash\""), "{path}");
            prop_assert!(read.status < 500, "{path}: {}", read.text());
            let body = json!({"target": target}).to_string();
            let link = site.api("PUT", &format!("symlinks/{path}")).token(MASTER).body(body.as_bytes());
            let write = site.api("PUT", &format!("files/{path}")).token(MASTER).body(b"w");
            for call in [link, write, site.api("DELETE", &format!("files/{path}")).token(MASTER)] {
                let answer = runtime.block_on(call.send());
                prop_assert!(answer.status < 500, "{path} {target}: {}", answer.text());
            }
            prop_assert_eq!(&traversal::outside(&site), &before, "{} {}", path, target);
            Ok(())
        })
        .unwrap();
    assert_eq!(runtime.block_on(site.get("tokens")).json()["tokens"].as_array().unwrap().len(), 1);
}

/// Somebody renames folders and swaps them for links out while requests run.
#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_folder_leads_nowhere() {
    let site = RunningSite::private().await;
    let volume = site.content("").parent().unwrap().to_owned();
    std::fs::create_dir(volume.join("outside")).unwrap();
    std::fs::write(volume.join("outside/file"), "outside").unwrap();
    site.must_put("folder/file", b"inside").await;
    let (here, there) = (site.content("folder"), site.content("other"));
    std::os::unix::fs::symlink(volume.join("outside"), &there).unwrap();
    let swapping = tokio::task::spawn_blocking(move || {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
        while std::time::Instant::now() < end {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(rustix::fs::CWD, &here, rustix::fs::CWD, &there, flags).unwrap();
        }
    });
    let mut seen = [0, 0];
    while !swapping.is_finished() {
        let read = site.get("files/folder/file").await;
        assert!(read.status == 404 || read.text() == "inside", "{}", read.text());
        seen[usize::from(read.status == 404)] += 1;
        let write = site.put("folder/new", b"new").await;
        assert!([200, 404, 409].contains(&write.status), "{}", write.text());
        site.delete("files/folder/new").await;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "both were seen: {seen:?}");
    swapping.await.unwrap();
    assert_eq!(std::fs::read_dir(volume.join("outside")).unwrap().count(), 1, "nothing was written out there");
    assert_eq!(std::fs::read(volume.join("outside/file")).unwrap(), b"outside");
}
