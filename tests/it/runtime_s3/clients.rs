//! Other people's clients: boto3, rclone, curl.

use std::path::Path;

use super::World;
use crate::support::s3::{Key, boto, endpoint, rclone, text};
use crate::support::site::{PREFIX, Start};
use crate::support::{MASTER, SOON, eventually};

async fn scene(name: &str) {
    let world = World::start().await;
    boto(name, &endpoint(&world.s3), &Key::master(), &[]).await;
    let log = world.s3.log.lock().unwrap().clone();
    assert!(!log.contains(MASTER) && !log.contains("\"level\":\"ERROR\""), "{log}");
}

#[tokio::test]
async fn boto3_reads_and_writes_objects() {
    scene("objects").await;
}

#[tokio::test]
async fn boto3_makes_folders() {
    scene("folders").await;
}

#[tokio::test]
async fn boto3_copies() {
    scene("copies").await;
}

#[tokio::test]
async fn boto3_is_told_of_wrong_bytes() {
    scene("checksums").await;
}

#[tokio::test]
async fn boto3_makes_presigned_urls() {
    scene("presigned").await;
}

#[tokio::test]
async fn boto3_is_refused_in_words_of_s3() {
    scene("refusals").await;
}

#[tokio::test]
async fn boto3_lists_three_thousand_keys() {
    let prepare = |data: &Path| {
        for folder in 0..30 {
            let folder = data.join(format!("tree/folder-{folder:02}"));
            std::fs::create_dir_all(&folder).unwrap();
            for file in 0..100 {
                std::fs::write(folder.join(format!("file-{file:03}")), "x").unwrap();
            }
        }
        std::fs::create_dir(data.join("tree-two")).unwrap();
        for file in ["tree.txt", "tree-two/x", "a b+c.txt", "ü.txt"] {
            std::fs::write(data.join(file), "x").unwrap();
        }
        // Neither can be asked for.
        std::os::unix::fs::symlink("nowhere", data.join("broken")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", data.join("outside")).unwrap();
    };
    let world = World::of(Start { prepare: &prepare, ..Start::default() }).await;
    boto("listing", &endpoint(&world.s3), &Key::master(), &[]).await;
}

#[tokio::test]
async fn boto3_uploads_in_parts() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twenty.bin");
    std::fs::write(&file, vec![7; 20 << 20]).unwrap();
    let more = [("S3_FILE", file.to_str().unwrap())];
    boto("multipart", &endpoint(&world.s3), &Key::master(), &more).await;
    assert_eq!(std::fs::read_dir(world.site.content(".sites/parts")).unwrap().count(), 0, "no part is left");
    let sizes = (10 << 20) + 7 + 9 + (20 << 20);
    assert_eq!(world.used().await, sizes, "what was ended and what was put together is counted once");
}

#[tokio::test]
async fn boto3_meets_the_quota() {
    const FREE: u64 = (1 << 20) + 1000;
    let prepare = |data: &Path| {
        std::fs::File::create(data.join("big.bin")).unwrap().set_len((1 << 30) - FREE).unwrap();
    };
    let world = World::of(Start { prepare: &prepare, ..Start::default() }).await;
    boto("quota", &endpoint(&world.s3), &Key::master(), &[]).await;
    assert_eq!(world.used().await, (1 << 30) - FREE + (1 << 20));
    assert_eq!(std::fs::read_dir(world.site.content(".sites/tmp")).unwrap().count(), 0);
}

/// A folder goes there and back, and a second run has nothing to do.
#[tokio::test]
async fn rclone_syncs() {
    let world = World::start().await;
    let key = Key::made(&world.site, "read-write", None).await.0;
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    for (path, text) in [("a.txt", "a"), ("deep/er/b ü+#.txt", "b"), ("deep/c'(1)!.txt", "c"), ("empty.txt", "")] {
        let path = here.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::write(here.join("big.bin"), vec![3; 12 << 20]).unwrap();
    let endpoint = endpoint(&world.s3);
    let run = async |arguments: &[&str]| {
        let parts = [("RCLONE_S3_UPLOAD_CUTOFF", "5Mi"), ("RCLONE_S3_CHUNK_SIZE", "5Mi")];
        let output = rclone(&endpoint, &key, folder.path(), &parts, arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout) + &text(&output.stderr)
    };
    run(&["sync", "here", "site:content/copy"]).await;
    assert_eq!(std::fs::read(world.site.content("copy/deep/er/b ü+#.txt")).unwrap(), b"b");
    assert_eq!(std::fs::metadata(world.site.content("copy/big.bin")).unwrap().len(), 12 << 20);
    let again = run(&["sync", "here", "site:content/copy", "-v"]).await;
    assert!(again.contains("There was nothing to transfer"), "{again}");
    run(&["check", "here", "site:content/copy"]).await;
    let sums = run(&["md5sum", "site:content/copy/a.txt"]).await;
    assert!(sums.starts_with("0cc175b9c0f1b6a831c399e269772661"), "{sums}");
    run(&["copy", "site:content/copy", "back"]).await;
    run(&["check", "here", "back"]).await;
    run(&["moveto", "site:content/copy/a.txt", "site:content/copy/moved.txt"]).await;
    assert_eq!(std::fs::read(world.site.content("copy/moved.txt")).unwrap(), b"a");
    std::fs::remove_file(here.join("deep/er/b ü+#.txt")).unwrap();
    run(&["sync", "here", "site:content/copy"]).await;
    assert!(!world.site.content("copy/deep/er").exists(), "the folder that this left empty is gone");
    run(&["purge", "site:content/copy"]).await;
    assert_eq!(world.site.names("files/?recursive=true").await, Vec::<String>::new());
    assert_eq!(world.used().await, 0);
}

/// What other servers wrote has an entity tag that is no MD5, so that no client takes it for one.
#[tokio::test]
async fn a_file_of_another_server_has_no_false_md5() {
    let world = World::start().await;
    world.site.must_put("a.txt", b"a").await;
    let head = world.ask("HEAD", "a.txt", b"").await;
    let tag = head.header("etag");
    assert!(tag.contains('-') && tag.len() != 34, "{tag}");
    assert_eq!(world.ask("PUT", "a.txt", b"a").await.status, 200);
    let tag = world.ask("HEAD", "a.txt", b"").await.header("etag");
    assert_eq!(tag, "\"0cc175b9c0f1b6a831c399e269772661\"");
    // Changed in place by an application, of the same size.
    eventually("the change has a time of its own", SOON, || async {
        std::fs::write(world.site.content("a.txt"), b"b").unwrap();
        world.ask("HEAD", "a.txt", b"").await.header("etag") != tag
    })
    .await;
}

#[tokio::test]
async fn curl_signs_as_well() {
    let world = World::start().await;
    world.site.must_put("a%20b/%C3%BC.txt", b"content").await;
    let key = Key::made(&world.site, "read", None).await.0;
    let user = format!("{}:{}", key.id, key.secret);
    let ask = async |user: &str, path: &str| {
        let url = format!("{}/content/{path}", endpoint(&world.s3));
        let mut curl = tokio::process::Command::new("curl");
        curl.args(["-sS", "--aws-sigv4", "aws:amz:eu-west-1:s3", "--user", user, "-w", "\n%{http_code}", &url]);
        // This release of curl does not add it by itself.
        let output = curl.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]).output().await.expect("curl");
        text(&output.stdout)
    };
    assert_eq!(ask(&user, "a%20b/%C3%BC.txt").await, "content\n200");
    let refused = ask(&format!("{}:other", key.id), "a%20b/%C3%BC.txt").await;
    assert!(refused.contains("<Code>SignatureDoesNotMatch</Code>") && refused.ends_with("\n403"), "{refused}");
}

/// What nginx and the kubelet see.
#[tokio::test]
async fn the_door_says_what_it_is() {
    let world = World::start().await;
    assert_eq!(world.site.at(&world.s3, "GET", "/healthz").send().await.status, 200);
    for path in ["/", "/other/site/s/s3/content/", "/team/plans/s/dav/", &format!("{PREFIX}/s/s3x/content")] {
        let answer = world.site.at(&world.s3, "GET", path).send().await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    let answer = world.ask("GET", "", b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("cache-control"), "private, no-cache");
    // The fixed part in another spelling: signed as it is sent.
    let spelled = Key::master().sign("GET", "//team/%70lans/s/s3//content", &[], &[]);
    let mut call = world.site.at(&world.s3, "GET", "//team/%70lans/s/s3//content");
    for line in spelled {
        call = call.header(&line);
    }
    let answer = call.send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}
