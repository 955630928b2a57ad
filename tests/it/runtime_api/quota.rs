//! The quota holds against many writers, and what is freed can be used at once.

use std::path::Path;

use futures::future::join_all;

use crate::support::site::Start;
use crate::support::{MASTER, RunningSite, SOON, SiteClient, eventually};

const MIB: usize = 1 << 20;

/// A site of 1 GiB in which so many bytes are left.
async fn nearly_full(left: u64) -> RunningSite {
    let prepare = move |data: &Path| {
        // Full of holes: it counts, and takes no space.
        std::fs::File::create(data.join("big.bin")).unwrap().set_len((1 << 30) - left).unwrap();
    };
    RunningSite::start(Start { prepare: &prepare, ..Start::default() }).await
}

#[tokio::test]
async fn writers_cannot_overrun_the_quota_together() {
    let site = nearly_full(3 * MIB as u64 + 1000).await;
    let body = vec![b'x'; MIB];
    let names: Vec<String> = (0..16).map(|number| format!("f{number}")).collect();
    let answers = join_all(names.iter().map(|name| site.put(name, &body))).await;
    let written = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(written, 3, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(refused.status, 507, "{}", refused.text());
        assert!(refused.json()["message"].as_str().unwrap().contains("quota"));
    }
    assert_eq!(site.get("usage").await.json()["free"], 1000);
    // The same without a length, and in a form.
    let chunked = format!("{:x}\r\n{}\r\n0\r\n\r\n", 2000, "y".repeat(2000));
    let (kind, form) = super::curl::form("file", "f", &[b'z'; 2000]);
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
    let head = format!(
        "PUT /team/plans/s/api/v2/files/c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {MASTER}\r\n\
         Transfer-Encoding: chunked\r\n\r\n{chunked}"
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut bytes).await.unwrap();
    assert_eq!(crate::support::http::Answer::parse(&bytes).unwrap().status, 507);
    let answer = site.api("PUT", "files/c").token(MASTER).header(&kind).body(&form).send().await;
    assert_eq!(answer.status, 507, "{}", answer.text());
    assert_eq!(site.get("usage").await.json()["free"], 1000, "what was refused is given back");
    site.must_put("last", &[b'l'; 1000]).await;
    assert_eq!(std::fs::read_dir(site.content(".sites/tmp")).unwrap().count(), 0);
}

/// The recipe of a dashboard: fill, delete, upload again.
#[tokio::test]
async fn client_09_freed_space_is_usable_at_once() {
    let site = nearly_full(MIB as u64).await;
    freed_space(&site).await;
}

/// Leaves so many bytes of 1 GiB: a neighbour fills it, and the site counts anew before it refuses something.
pub async fn fill_up(site: &SiteClient, left: u64) {
    site.make_sparse("big.bin", (1 << 30) - left);
    let length = format!("Content-Length: {}", 2_u64 << 30);
    let refused = site.api("PUT", "files/too-much").token(MASTER).header(&length).send_as_it_is().await.unwrap();
    assert_eq!(refused.status, 507, "{}", refused.text());
}

/// What is deleted from a site in which 1 MiB is left can be written again.
pub async fn freed_space(site: &SiteClient) {
    for round in 0..3 {
        site.must_put("tree/a/one", &vec![b'1'; MIB / 2]).await;
        site.must_put("tree/two", &vec![b'2'; MIB / 2]).await;
        assert_eq!(site.put("more", b"x").await.status, 507, "round {round}: full");
        assert_eq!(site.put("tree/two", b"small").await.status, 507, "the new file is written before the old one goes");
        assert_eq!(site.get("files/tree/two").await.body.len(), MIB / 2, "and nothing is lost");
        assert_eq!(site.delete("files/tree").await.status, 200);
    }
}

/// A custom application writes and deletes beside us.
#[tokio::test]
async fn what_others_delete_is_found_before_anything_is_refused() {
    let site = nearly_full(10).await;
    std::fs::remove_file(site.content("big.bin")).unwrap();
    site.must_put("a", &vec![b'x'; MIB]).await;
    assert_eq!(site.get("usage").await.json()["used"], MIB);
    assert_eq!(site.put("b", b"x").await.json()["status"], "OK");
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let site = RunningSite::private().await;
    site.must_put("a", b"old").await;
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
    let head = format!(
        "PUT /team/plans/s/api/v2/files/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {MASTER}\r\n\
         Content-Length: 1000000\r\n\r\nbegin"
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
    eventually("it is reserved", SOON, || async { site.get("usage").await.json()["used"] == 1_000_003 }).await;
    drop(stream);
    eventually("it is given back", SOON, || async { site.get("usage").await.json()["used"] == 3 }).await;
    assert_eq!(site.get("files/a").await.text(), "old");
    assert_eq!(std::fs::read_dir(site.content(".sites/tmp")).unwrap().count(), 0);
}
