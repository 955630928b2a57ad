//! The file manager over the edge, with real people: through the provider, the Hub's one callback and back.

use xtask::cluster::node::SITES_HOST;

use super::on_private;
use crate::runtime_admin::tokens_and_deep_links;
use crate::support::{Visitor, with_pods};

#[test]
fn real_client_24_tokens_and_deep_links() {
    on_private("real_client_24", async |site| tokens_and_deep_links(site, site).await);
}

#[test]
fn real_client_24_people_come_to_the_very_page() {
    with_pods("real_client_24", async |pods| {
        let site = pods.private().await;
        let _hub = pods.world.start_hub().await;
        site.must_put("docs/a%20b/page.html", b"page").await;
        let address = format!("https://{SITES_HOST}{}/s/admin/files/docs/a%20b/?sort=name", site.prefix);
        // An administrator, by name.
        let alice = Visitor::at(pods.lab.edge());
        let seen = alice.log_in(&address, "alice").await.unwrap();
        assert_eq!((seen.status, seen.address.as_str()), (200, address.as_str()), "{}", seen.text);
        assert!(seen.text.contains("page.html") && seen.text.contains("alice"), "{}", seen.text);
        for page in ["s/admin/", "s/admin/files", "s/admin/files/docs/a%20b", "s/admin/tokens"] {
            let seen = alice.open(&site.page_url(page)).await.unwrap();
            assert_eq!(seen.status, 200, "{page}: {seen:?}");
        }
        // A reader and a stranger get in nowhere, though the reader reads the pages.
        for (name, reads) in [("bob", 200), ("dave", 403)] {
            let visitor = Visitor::at(pods.lab.edge());
            let seen = visitor.log_in(&address, name).await.unwrap();
            assert_eq!(seen.status, 403, "{name}: {seen:?}");
            assert!(!seen.text.contains("page.html"), "{}", seen.text);
            let page = visitor.open(&site.page_url("docs/a%20b/page.html")).await.unwrap();
            assert_eq!(page.status, reads, "{name}: {page:?}");
        }
    });
}
