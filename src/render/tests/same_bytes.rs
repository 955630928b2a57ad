//! B09: equal inputs give equal bytes, whatever the order of the applications.

use serde_json::json;

use super::{objects, render, site};
use crate::domain::site::{Application, Site};

fn busy() -> Site {
    let mut site = site("data");
    let configuration = &mut site.spec.configuration;
    configuration.applications = [
        ("site-custom", Some("images.example.org/app:1")),
        ("site-s3", None),
        ("site-webdav", None),
        ("site-admin", Some("images.example.org/sites:1.0")),
        ("site-mirror", None),
        ("site-api", Some("old.example.org/site-api:9")),
        ("site-proxy", None),
        ("unknown", Some("images.example.org/unknown:1")),
    ]
    .map(|(name, image)| Application {
        name: name.to_owned(),
        image: image.map(str::to_owned),
        ..Application::default()
    })
    .into();
    configuration.headers = (0..10).map(|number| (format!("X-Header-{number}"), format!("value {number}"))).collect();
    site
}

#[test]
fn b09_a_hundred_renderings_are_byte_identical() {
    let mut site = busy();
    let bytes = |site: &Site| serde_json::to_vec(&objects(&render(site).unwrap())).unwrap();
    let first = bytes(&site);
    for round in 0..100 {
        let applications = &mut site.spec.configuration.applications;
        let length = applications.len();
        applications.rotate_left(round % length);
        applications.swap(round % length, (round * 7 + 3) % length);
        assert_eq!(bytes(&site), first, "round {round}");
    }
}

#[test]
fn b09_only_the_stamp_differs_when_only_the_stamp_differs() {
    let site = busy();
    let settings = super::settings();
    let mut observed = super::observed();
    let before = objects(&crate::render::render(&site, &settings, &observed).unwrap());
    observed.restart.restarted_at = "2027-01-01T00:00:00Z".to_owned();
    let after = objects(&crate::render::render(&site, &settings, &observed).unwrap());
    let differing: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).map(|(a, _)| a["kind"].clone()).collect();
    assert_eq!(differing, [json!("StatefulSet")]);
}

#[test]
fn containers_have_one_order_and_only_ours_have_our_command() {
    let desired = render(&busy()).unwrap();
    let spec = desired.stateful_set.spec.unwrap().template.spec.unwrap();
    let names: Vec<&str> = spec.containers.iter().map(|container| container.name.as_str()).collect();
    let order =
        ["site-oauth2", "site-proxy", "site-api", "site-admin", "site-webdav", "site-s3", "site-custom", "site-mirror"];
    assert_eq!(names, order);
    let api = &spec.containers[2];
    assert_eq!(api.image.as_deref(), Some("images.example.org/sites:1.2.3"), "a legacy image is replaced");
    assert_eq!(api.command.as_deref().unwrap(), ["sites", "runtime", "api"]);
    assert_eq!(
        spec.containers[3].image.as_deref(),
        Some("images.example.org/sites:1.0"),
        "an older one of ours is kept"
    );

    let mut foreign = busy();
    foreign.spec.configuration.applications.push(Application {
        name: "site-s3".to_owned(),
        image: Some("images.example.org/other-s3:1".to_owned()),
        ..Application::default()
    });
    foreign.spec.configuration.applications.remove(1);
    let spec = render(&foreign).unwrap().stateful_set.spec.unwrap().template.spec.unwrap();
    assert_eq!(spec.containers[5].image.as_deref(), Some("images.example.org/other-s3:1"));
    assert_eq!(spec.containers[5].command, None, "a custom image runs as it was built");
}
