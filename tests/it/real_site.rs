//! A Site on a real node: its pod really becomes ready, and a visitor reaches it over the edge in both routing modes.

use http::header::LOCATION;
use hyper::body::Bytes;
use serde_json::json;
use xtask::cluster::node::{OPENID_HOST, SITES_HOST, contour::Contour};

use crate::support::{Edge, LONG, Lab, World, eventually};

/// Makes a Site in a space that no other test has, and waits until its pod is ready by the kubelet's own word.
async fn ready_site(world: &World, id: &str, kind: &str) -> String {
    let spec = json!({"type": kind, "configuration": {"space": world.namespace, "applications": []}});
    world.site(id, spec).await;
    world.pod_is_ready(id).await;
    world.wait_phase(id, "Running").await;
    format!("/{}/{id}/", world.namespace)
}

/// Waits until a path is answered as wanted.
async fn answered(edge: &Edge, path: &str, status: u16) -> http::Response<Bytes> {
    eventually(&format!("{path} is answered with {status}"), LONG, || async {
        let answer = edge.get(SITES_HOST, path).await?;
        if answer.status() == status { Ok(answer) } else { Err(answer.status().to_string()) }
    })
    .await
}

#[tokio::test]
async fn a_site_is_served_over_the_edge() {
    let Some(lab) = Lab::node("a_site_is_served_over_the_edge").await else { return };
    let world = World::on_node(lab, "site").await;
    let _operator = world.start_operator().await;
    let path = ready_site(&world, "page", "public").await;
    let edge = lab.edge();
    let page = answered(&edge, &path, 200).await;
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"), "{:?}", page.headers());

    // The login leads to the provider and back to the one address that it knows.
    let login = answered(&edge, &format!("{path}oauth2/start?rd={path}"), 302).await;
    let location = login.headers()[LOCATION].to_str().unwrap();
    assert!(location.starts_with(&format!("https://{OPENID_HOST}/auth?")), "{location}");
    assert!(location.contains("redirect_uri=https%3A%2F%2Fsites.localhost%2Foauth2%2Fcallback&"), "{location}");
    let provider =
        edge.get(OPENID_HOST, location.strip_prefix(&format!("https://{OPENID_HOST}")).unwrap()).await.unwrap();
    assert_eq!(provider.status(), 303, "the provider asks for a name: {:?}", provider.body());

    world.edit_site("page", json!({"spec": {"configuration": {"enabled": false}}})).await;
    let gone = answered(&edge, &path, 302).await;
    assert!(gone.headers()[LOCATION].to_str().unwrap().ends_with("/hub/error/page/410/"), "{:?}", gone.headers());
    world.end().await;
}

#[tokio::test]
async fn a_site_in_ingress_mode_is_routed_by_contour() {
    let Some(lab) = Lab::node("a_site_in_ingress_mode_is_routed_by_contour").await else { return };
    let mut world = World::on_node(lab, "ingress").await;
    world.settings["routing"]["mode"] = json!("ingress");
    let contour = lab.start_contour().await;
    let _operator = world.start_operator().await;
    let path = ready_site(&world, "page", "public").await;
    let status = eventually("Contour routes the Ingress", LONG, || async {
        match plain_status(&contour, &path).await {
            Ok(200) => Ok(200),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(status, 200);
    assert_eq!(plain_status(&contour, "/nobody/").await, Ok(404), "no other path leads anywhere");
    world.end().await;
}

/// The status of a path over plain HTTP; the edge's TLS is the master Ingress's, which is the chart's.
async fn plain_status(contour: &Contour, path: &str) -> Result<u16, String> {
    let answer = Edge::plain(contour.address(), SITES_HOST, path).await?;
    Ok(answer.status().as_u16())
}
