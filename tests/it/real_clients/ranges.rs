//! Files as build tools and data libraries fetch them: no redirect, parts, and what is resumed.

use std::fmt::Write as _;

use super::{curl, on_private, on_public, run};
use crate::support::SiteClient;
use crate::support::http::Answer;

/// Bytes that tell where they are from: each is its offset, in a way.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|offset| u8::try_from((offset * 7 + offset / 251) % 256).unwrap()).collect()
}

#[test]
fn real_client_27_a_file_is_not_redirected() {
    on_public("real_client_27", async |site| {
        site.must_put("test-data/there.grib", &bytes(5000)).await;
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("data").display().to_string();
        for (path, code, status) in [("test-data/there.grib", 0, "200"), ("test-data/none.grib", 22, "404")] {
            let url = site.page_url(path);
            // As a build tool looks whether a file is there: the exit status is all that it reads.
            let head = curl(site, &["--head", "--fail", "-o", "/dev/null", "-w", "%{http_code}", &url]).await;
            assert_eq!((head.code, head.text().as_str()), (code, status), "{path}: {}", head.err);
            let get = curl(site, &["--fail", "-o", &file, "-w", "%{http_code} %{num_redirects}", &url]).await;
            assert_eq!((get.code, get.text()), (code, format!("{status} 0")), "{path}: {}", get.err);
        }
        assert_eq!(std::fs::read(&file).unwrap(), bytes(5000));
    });
    on_private("real_client_27", async |site| {
        site.must_put("test-data/there.grib", b"data").await;
        for path in ["test-data/there.grib", "test-data/none.grib"] {
            let head =
                curl(site, &["--head", "--fail", "-o", "/dev/null", "-w", "%{http_code}", &site.page_url(path)]).await;
            assert_eq!((head.code, head.text().as_str()), (22, "401"), "{path} does not look as if it was there");
        }
    });
}

#[test]
fn real_client_28_wget_goes_on_where_it_stopped() {
    on_public("real_client_28", async |site| {
        let whole = bytes(300_000);
        site.must_put("model.ckpt", &whole).await;
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("model.ckpt");
        let wget = async || {
            let mut command = site.program("wget");
            // The second one has it all already, and is told so by a 416.
            command.args(["--continue", "--server-response", "--tries=1", "--directory-prefix"]).arg(here.path());
            run(command.arg(site.page_url("model.ckpt")), "").await
        };
        std::fs::write(&file, &whole[..100_000]).unwrap();
        for status in ["206 ", "416 "] {
            let said = wget().await;
            assert_eq!(said.code, 0, "{}", said.err);
            assert!(said.err.contains(&format!("HTTP/1.1 {status}")), "{status}: {}", said.err);
            assert!(std::fs::read(&file).unwrap() == whole, "the file is whole");
        }
    });
}

/// Asks for ranges with one more line of header, which may be empty.
async fn part(site: &SiteClient, ranges: &str, line: &str) -> Answer {
    let mut call = site.raw("GET", &format!("{}/test.grib", site.prefix)).header(&format!("Range: bytes={ranges}"));
    if !line.is_empty() {
        call = call.header(line);
    }
    call.send().await
}

/// The payload of `multipart/byteranges`, one after the other, with the range that each part says it is.
fn parts(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let kind = answer.header("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect(&kind).to_owned();
    let mut rest = answer.body.as_slice();
    let mut found = Vec::new();
    let find = |text: &[u8], wanted: &[u8]| text.windows(wanted.len()).position(|window| window == wanted);
    let delimiter = format!("\r\n--{boundary}");
    while let Some(at) = find(rest, delimiter.as_bytes()) {
        rest = &rest[at + delimiter.len()..];
        let Some(end) = find(rest, b"\r\n\r\n").filter(|_| !rest.starts_with(b"--")) else { break };
        let head = String::from_utf8_lossy(&rest[..end]).to_lowercase();
        rest = &rest[end + 4..];
        let range = head.lines().find_map(|line| line.strip_prefix("content-range: bytes ")).expect(&head).to_owned();
        found.push((range, rest[..find(rest, delimiter.as_bytes()).unwrap()].to_vec()));
    }
    found
}

#[test]
fn real_client_28_many_ranges_in_one_request() {
    on_public("real_client_28", async |site| {
        let whole = bytes(100_000);
        site.must_put("test.grib", &whole).await;
        let head = site.raw("HEAD", &format!("{}/test.grib", site.prefix)).send().await;
        assert_eq!((head.status, head.header("accept-ranges").as_str()), (200, "bytes"));
        assert_eq!(head.header("content-length"), "100000");

        // As asked for, and with neighbours put together before.
        for (ranges, told) in [
            ("0-9,50-59,60-69", vec!["0-9/100000", "50-59/100000", "60-69/100000"]),
            ("0-9,50-69", vec!["0-9/100000", "50-69/100000"]),
        ] {
            let answer = part(site, ranges, "").await;
            assert_eq!(answer.status, 206, "{ranges}");
            let parts = parts(&answer);
            assert_eq!(parts.iter().map(|(range, _)| range.as_str()).collect::<Vec<_>>(), told);
            let payload = parts.into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<u8>>();
            assert_eq!(payload, [&whole[..10], &whole[50..70]].concat(), "30 bytes, in order");
            // The same by curl, as it is.
            let same = curl(site, &["--range", ranges, &site.page_url("test.grib")]).await;
            assert_eq!(same.out.len(), answer.body.len(), "{}", same.err);
        }

        // A header as long as data libraries make it.
        let (mut ranges, mut expected) = (String::new(), Vec::<u8>::new());
        for start in (0..).step_by(20) {
            let next = format!("{}{start}-{}", if start == 0 { "" } else { "," }, start + 9);
            if "bytes=".len() + ranges.len() + next.len() > 4000 {
                break;
            }
            ranges.write_str(&next).unwrap();
            expected.extend(&whole[start..start + 10]);
        }
        assert!(ranges.len() > 3980 && expected.len() > 3000, "{} characters", ranges.len());
        let answer = part(site, &ranges, "").await;
        assert_eq!(answer.status, 206, "{}", answer.text());
        assert_eq!(parts(&answer).into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<u8>>(), expected);
        assert_eq!(part(site, "100000-", "").await.status, 416);
        assert_eq!(part(site, "-10", "").await.body, whole[99_990..]);
    });
}

#[test]
fn real_client_28_a_part_of_the_version_that_was_begun() {
    on_public("real_client_28", async |site| {
        site.must_put("test.grib", &[b'a'; 1000]).await;
        let head = site.raw("HEAD", &format!("{}/test.grib", site.prefix)).send().await;
        let conditions = ["etag", "last-modified"].map(|name| format!("If-Range: {}", head.header(name)));
        for condition in &conditions {
            let answer = part(site, "500-", condition).await;
            assert_eq!((answer.status, answer.body.len()), (206, 500), "{condition}");
        }
        // A later version, with a later time by seconds: dates know no less.
        site.must_put("test.grib", &[b'b'; 1000]).await;
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::open(site.content("test.grib")).unwrap().set_modified(later).unwrap();
        for condition in conditions.iter().map(String::as_str).chain(["If-Range: \"another\""]) {
            let answer = part(site, "500-", condition).await;
            assert_eq!(
                (answer.status, answer.body.len()),
                (200, 1000),
                "{condition}: never two halves of two versions"
            );
        }
    });
}
