//! What is written is whole, counted, and gone when it should be.

use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::World;
use crate::support::s3::{Key, hexadecimal};
use crate::support::site::PREFIX;
use crate::support::{SOON, eventually};

/// Two write the same key again and again; whoever reads gets one version as a whole, with its own tag.
#[tokio::test(flavor = "multi_thread")]
async fn two_writers_and_no_torn_read() {
    const SIZE: usize = 300_000;
    let world = World::start().await;
    assert_eq!(world.ask("PUT", "shared.bin", &vec![b'a'; SIZE]).await.status, 200);
    let tags: Vec<String> = [b'a', b'b']
        .map(|byte| {
            use md5::{Digest, Md5};
            format!("\"{}\"", hexadecimal(&Md5::digest(vec![byte; SIZE])))
        })
        .to_vec();
    let writing = async |byte: u8| {
        for _ in 0..40 {
            assert_eq!(world.ask("PUT", "shared.bin", &vec![byte; SIZE]).await.status, 200);
        }
    };
    let reading = async {
        let mut seen = [0, 0];
        for _ in 0..80 {
            let answer = world.ask("GET", "shared.bin", b"").await;
            assert_eq!((answer.status, answer.body.len()), (200, SIZE));
            let which = usize::from(answer.body[0] == b'b');
            assert!(answer.body.iter().all(|byte| *byte == answer.body[0]), "a torn read");
            assert_eq!(answer.header("etag"), tags[which], "the tag is the bytes' own");
            seen[which] += 1;
        }
        seen
    };
    let ((), (), seen) = tokio::join!(writing(b'a'), writing(b'b'), reading);
    assert!(seen.iter().sum::<i32>() == 80, "{seen:?}");
    assert_eq!(world.used().await, SIZE as u64);
    assert_eq!(std::fs::read_dir(world.site.content(".sites/tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_what_was() {
    let world = World::start().await;
    assert_eq!(world.ask("PUT", "a", b"old").await.status, 200);
    let target = format!("{PREFIX}/s/s3/content/a");
    let lines = Key::master().sign("PUT", &target, &[], &[]).join("\r\n");
    let head =
        format!("PUT {target} HTTP/1.1\r\nHost: sites.example.org\r\nContent-Length: 1000000\r\n{lines}\r\n\r\nbegin");
    let mut stream = TcpStream::connect(("127.0.0.1", world.s3.port)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    eventually("it is reserved", SOON, || async { world.used().await == 1_000_003 }).await;
    drop(stream);
    eventually("it is given back", SOON, || async { world.used().await == 3 }).await;
    assert_eq!(world.ask("GET", "a", b"").await.text(), "old");
}

/// Chunks that are signed one by one: one that was changed on the way is refused, and so is an end that comes early.
#[tokio::test]
async fn a_body_in_chunks_is_whole_or_refused() {
    let world = World::start().await;
    assert_eq!(world.ask("PUT", "a", b"old").await.status, 200);
    let target = format!("{PREFIX}/s/s3/content/a");
    // 8 bytes are promised, with a checksum behind them (CRC-32 of "12345678" is 0x9ae0daaf).
    for (body, status, code) in [
        ("8\r\n12345678\r\n0\r\nx-amz-checksum-crc32:muDarw==\r\n\r\n", 200, ""),
        ("8\r\n12345679\r\n0\r\nx-amz-checksum-crc32:muDarw==\r\n\r\n", 400, "BadDigest"),
        ("8\r\n12345678\r\n0\r\n\r\n", 400, "IncompleteBody"),
        ("4\r\n1234\r\n0\r\nx-amz-checksum-crc32:muDarw==\r\n\r\n", 400, "IncompleteBody"),
        ("8\r\n1234", 400, "IncompleteBody"),
        ("9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:muDarw==\r\n\r\n", 400, "IncompleteBody"),
    ] {
        let more = [
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "8"),
            ("x-amz-trailer", "x-amz-checksum-crc32"),
        ];
        let lines = Key::master().sign_as("STREAMING-UNSIGNED-PAYLOAD-TRAILER", "PUT", &target, &[], &more);
        let mut call = world.site.at(&world.s3, "PUT", &target);
        for line in &lines {
            call = call.header(line);
        }
        let answer = call.body(body.as_bytes()).send().await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert!(answer.text().contains(code), "{body}: {}", answer.text());
        let expected = if status == 200 { "12345678" } else { "old" };
        assert_eq!(world.ask("GET", "a", b"").await.text(), expected, "{body}");
        assert_eq!(world.ask("PUT", "a", b"old").await.status, 200);
    }
    assert_eq!(world.used().await, 3);
}

/// One chunk as large as the whole file, as some programs send it, is not collected in memory.
#[tokio::test]
async fn a_huge_chunk_is_not_held_in_memory() {
    const SIZE: usize = 128 << 20;
    let world = World::start().await;
    let target = format!("{PREFIX}/s/s3/content/huge");
    let length = SIZE.to_string();
    let more = [
        ("content-encoding", "aws-chunked"),
        ("x-amz-decoded-content-length", length.as_str()),
        ("x-amz-trailer", "x-amz-checksum-crc32"),
    ];
    let lines = Key::master().sign_as("STREAMING-UNSIGNED-PAYLOAD-TRAILER", "PUT", &target, &[], &more).join("\r\n");
    let (begin, end) = (format!("{SIZE:x}\r\n"), "\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
    let total = begin.len() + SIZE + end.len();
    let head = format!(
        "PUT {target} HTTP/1.1\r\nHost: sites.example.org\r\nConnection: close\r\nContent-Length: {total}\r\n{lines}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(("127.0.0.1", world.s3.port)).await.unwrap();
    stream.write_all((head + &begin).as_bytes()).await.unwrap();
    let block = vec![0; 1 << 20];
    for _ in 0..128 {
        stream.write_all(&block).await.unwrap();
    }
    stream.write_all(end.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    // The checksum is wrong on purpose: all of it was read and compared.
    assert!(answer.contains("BadDigest"), "{answer}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.s3.process.id().unwrap())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    let peak: u64 = peak.trim().parse().unwrap();
    assert!(peak < 100_000, "the peak is {peak} kB");
    assert_eq!(world.used().await, 0);
}

/// Parts that nobody adds to go after a day, and are counted until then.
#[tokio::test]
async fn parts_that_are_left_behind_go() {
    let world = World::start().await;
    let send = async |method: &str, query: &[(&str, &str)], body: &[u8]| {
        let answer = Key::master().send(&world.site, &world.s3, method, "/content/k", query, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text()
    };
    let begin = async || {
        let text = send("POST", &[("uploads", "")], b"").await;
        text.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap().to_owned()
    };
    let (old, young) = (begin().await, begin().await);
    let before = world.used().await;
    send("PUT", &[("uploadId", &old), ("partNumber", "1")], &[b'x'; 1000]).await;
    assert_eq!(world.used().await, before + 1000);
    let folder = std::fs::File::open(world.site.content(&format!(".sites/parts/{old}"))).unwrap();
    folder.set_modified(SystemTime::now() - Duration::from_secs(25 * 3600)).unwrap();
    // An application's file: it is counted when all is.
    std::fs::write(world.site.content("seven"), b"7 bytes").unwrap();
    // Cleaned and counted at each start of the Site API, and every few minutes.
    let _api = world.site.role("api").await;
    eventually("it goes", SOON, || async { !world.site.content(&format!(".sites/parts/{old}")).exists() }).await;
    let young = std::fs::metadata(world.site.content(&format!(".sites/parts/{young}/about.json"))).unwrap().len();
    eventually("it is given back, and the other one is counted", SOON, || async { world.used().await == young + 7 })
        .await;
}

/// A volume that is full, whatever the quota says: what is there stays, parts too, and what is deleted can be used.
#[tokio::test]
async fn a_full_volume_loses_nothing() {
    const MIB: usize = 1 << 20;
    let site = crate::support::RunningSite::private().await;
    let s3 = match site.role_on_small_volume("s3", 32).await {
        Ok(s3) => s3,
        Err(obstacle) => return eprintln!("a_full_volume_loses_nothing: skipped: {obstacle}"),
    };
    let ask = async |method: &str, path: &str, query: &[(&str, &str)], body: &[u8]| {
        Key::master().send(&site, &s3, method, &format!("/content/{path}"), query, body).await
    };
    assert_eq!(ask("PUT", "old", &[], &vec![b'o'; 4 * MIB]).await.status, 200);
    let begun = ask("POST", "parts", &[("uploads", "")], b"").await.text();
    let id = begun.split("<UploadId>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let mut chosen = String::new();
    for number in ["1", "2"] {
        let part = [("partNumber", number), ("uploadId", id.as_str())];
        let answer = ask("PUT", "parts", &part, &vec![b'p'; 8 * MIB]).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let tag = answer.header("etag");
        chosen += &["<Part><PartNumber>", number, "</PartNumber><ETag>", &tag, "</ETag></Part>"].concat();
    }
    let chosen = format!("<CompleteMultipartUpload>{chosen}</CompleteMultipartUpload>");
    let upload = [("uploadId", id.as_str())];
    let full = ask("POST", "parts", &upload, chosen.as_bytes()).await;
    assert_eq!(full.status, 507, "{}", full.text());
    assert!(full.text().contains("<Code>InsufficientStorage</Code>"), "{}", full.text());
    let listed = ask("GET", "parts", &upload, b"").await.text();
    assert_eq!(listed.matches("<Part>").count(), 2, "{listed}");
    let full = ask("PUT", "old", &[], &vec![b'n'; 6 * MIB]).await;
    assert_eq!(full.status, 507, "{}", full.text());
    assert_eq!(ask("GET", "old", &[], b"").await.body, vec![b'o'; 4 * MIB]);
    assert_eq!(ask("DELETE", "old", &[], b"").await.status, 204);
    assert_eq!(ask("PUT", "small", &[], &vec![b's'; 6 * MIB]).await.status, 200);
    assert_eq!(ask("DELETE", "parts", &upload, b"").await.status, 204);
    assert_eq!(ask("PUT", "new", &[], &vec![b'n'; 16 * MIB]).await.status, 200);
}
