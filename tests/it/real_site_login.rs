//! A private Site as its visitors meet it, over the edge, with a real provider: content is put there by a program,
//! people log in through the Hub's one callback, are let in or not, and a Site that is archived says so.

use http::header::{ACCEPT, AUTHORIZATION};
use http::{Method, Request};
use hyper::body::Bytes;
use serde_json::{Value, json};
use xtask::cluster::node::{OPENID_HOST, SITES_HOST};

use crate::support::visitor::Visitor;
use crate::support::{LONG, Lab, World, eventually};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Opens a page until it is as wanted: routes and pods follow an edit after a while.
async fn opened(visitor: &Visitor, address: &str, status: u16, text: &str) {
    eventually(&format!("{address} shows {text:?}"), LONG, || async {
        let seen = visitor.open(address).await?;
        if seen.status == status && seen.text.contains(text) { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
}

#[tokio::test]
async fn real_site_private_pages_are_for_those_they_are_shared_with() {
    let Some(lab) = Lab::node("real_site_private_pages").await else { return };
    let world = World::on_node(lab, "login").await;
    let _operator = world.start_operator().await;
    let _hub = world.start_hub().await;
    let share = json!({"view_users": ["alice@example.test"]});
    let configuration =
        json!({"space": world.namespace, "applications": [], "share": share, "tokens": {"master": TOKEN}});
    world.site("page", json!({"type": "private", "configuration": configuration})).await;
    world.pod_is_ready("page").await;
    let (edge, path) = (lab.edge(), format!("/{}/page/", world.namespace));
    let address = format!("https://{SITES_HOST}{path}");

    // A program puts a page there; without its token it is told so in JSON, and is sent nowhere.
    let upload = |token: Option<&str>| {
        let mut request = Request::builder().method(Method::PUT).uri(format!("{path}s/api/v2/files/plan.html"));
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.header(ACCEPT, "application/json").body(Bytes::from_static(b"<h1>The plan</h1>")).unwrap()
    };
    eventually("the page is uploaded", LONG, || async {
        let answer = edge.send(SITES_HOST, upload(Some(TOKEN))).await?;
        if answer.status() == 200 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    let refused = edge.send(SITES_HOST, upload(None)).await.unwrap();
    let told: Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!((refused.status().as_u16(), &told["status"]), (401, &json!("error")));
    let program = edge.get(SITES_HOST, &format!("{path}plan.html")).await.unwrap();
    assert_eq!(program.status(), 401, "no login page for a program");

    // People come to the provider, and back through the Hub's callback to the very page.
    let plan = format!("{address}plan.html?a=b%20c");
    let alice = Visitor::at(edge.clone());
    let seen = alice.log_in(&plan, "alice").await.unwrap();
    assert_eq!((seen.status, seen.address.as_str()), (200, plan.as_str()), "{}", seen.text);
    assert!(seen.text.contains("The plan"));
    let bob = Visitor::at(edge.clone());
    let seen = bob.log_in(&plan, "bob").await.unwrap();
    assert_eq!(seen.status, 403, "{seen:?}");
    let nobody = Visitor::at(edge.clone()).open(&plan).await.unwrap();
    assert!(nobody.address.starts_with(&format!("https://{OPENID_HOST}/")), "{nobody:?}");

    // Shared with a group of his, he is let in; who is off the list is out.
    world
        .edit_site(
            "page",
            json!({"spec": {"configuration": {"share": {"view_users": [], "view_groups": ["weather"]}}}}),
        )
        .await;
    opened(&bob, &plan, 200, "The plan").await;
    opened(&alice, &plan, 403, "").await;

    // Archived, its address leads to the Hub's page; its content is there again afterwards.
    world.edit_site("page", json!({"spec": {"configuration": {"enabled": false}}})).await;
    opened(&bob, &plan, 410, "This site is archived").await;
    world.edit_site("page", json!({"spec": {"configuration": {"enabled": true}}})).await;
    opened(&bob, &plan, 200, "The plan").await;
    world.end().await;
}
