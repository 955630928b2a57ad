//! Live trees: readers see old or new, never a part.

use futures::stream::{self, StreamExt};

use crate::support::{MASTER, RunningSite, SiteClient};

/// A body that says itself whether it is whole: one letter, of a length that the letter gives.
fn body(letter: u8) -> Vec<u8> {
    vec![letter; 20_000 + usize::from(letter) * 100]
}

fn is_whole(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|letter| bytes == body(*letter))
}

#[tokio::test]
async fn client_19_a_docs_tree_is_uploaded_while_it_is_read() {
    let site = RunningSite::private().await;
    docs_tree(&site).await;
}

/// A tree is uploaded by many while many read it.
pub async fn docs_tree(site: &SiteClient) {
    let page = |number: usize| format!("docs/d{}/page{number}.html", number % 50);
    for number in 0..100 {
        site.must_put(&page(number), &body(b'a')).await;
    }
    let writing = stream::iter(0..2000usize).map(|number| {
        // Some twice, as a second run of the workflow does.
        let letter = b'a' + u8::try_from(number % 3).unwrap();
        async move { site.must_put(&page(number % 1600), &body(letter)).await }
    });
    let reading = stream::iter(0..1000usize).map(async |number| {
        let answer = site.read(&page(number % 100)).await;
        assert_eq!(answer.status, 200, "a page that is there stays there");
        assert!(is_whole(&answer.body), "{} bytes of {:?}", answer.body.len(), answer.body.first());
    });
    let writing = writing.buffer_unordered(16).collect::<Vec<()>>();
    let reading = reading.buffer_unordered(8).collect::<Vec<()>>();
    tokio::join!(writing, reading);
    assert_eq!(site.names("files/docs?recursive=true&type=f").await.len(), 1600);
    let used = site.get("usage").await.json()["used"].as_u64().unwrap();
    let sum: u64 = (0..1600usize).map(|number| std::fs::metadata(site.content(&page(number))).unwrap().len()).sum();
    assert_eq!(used, sum, "every byte was counted once");
}

#[tokio::test]
async fn two_writers_of_one_file_never_make_a_torn_read() {
    let site = RunningSite::private().await;
    site.must_put("one.bin", &body(b'a')).await;
    let write = |letter: u8| {
        let site = &site;
        async move {
            for _ in 0..150 {
                site.must_put("one.bin", &body(letter)).await;
            }
        }
    };
    let read = async {
        let mut tags = std::collections::HashMap::new();
        for _ in 0..300 {
            let answer = site.get("files/one.bin").await;
            assert!(is_whole(&answer.body), "{} bytes of {:?}", answer.body.len(), answer.body.first());
            let same = tags.insert(answer.header("etag"), answer.body.len()).is_none_or(|len| len == answer.body.len());
            assert!(same, "one entity tag for two versions");
            let part = site.api("GET", "files/one.bin").token(MASTER).header("Range: bytes=10000-20999").send().await;
            assert!(part.body.windows(2).all(|pair| pair[0] == pair[1]), "a part of two versions");
        }
    };
    tokio::join!(write(b'x'), write(b'b'), read);
    let used = site.get("usage").await.json()["used"].as_u64().unwrap();
    assert_eq!(used, std::fs::metadata(site.content("one.bin")).unwrap().len());
}
