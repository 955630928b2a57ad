//! Golden files: what each sample Site renders to, and what a mode changes.

use serde_json::{Value, json};

use super::{MODES, SITES, file, objects, observed, settings, site};
use crate::render::{policy_kinds, render};

fn golden(name: &str, text: &str) {
    let mut options = insta::Settings::clone_current();
    options.set_snapshot_path("../../../tests/render/golden");
    options.set_prepend_module_to_snapshot(false);
    options.set_omit_expression(true);
    options.bind(|| insta::assert_snapshot!(name.to_owned(), text));
}

fn yaml(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(|object| serde_saphyr::to_string(object).unwrap()).collect();
    documents.join("---\n")
}

#[test]
fn objects_of_every_sample_site() {
    for (name, _) in SITES {
        let desired = render(&site(name), &settings(), &observed()).unwrap();
        let mut objects = objects(&desired);
        // Files that are the same for every Site, or that have a golden file of their own.
        for object in &mut objects {
            let data = object.get_mut("data").and_then(Value::as_object_mut);
            for (key, text) in data.into_iter().flatten() {
                if key.contains(['.']) && key != "access.json" {
                    *text = json!(format!("[{key}]"));
                }
            }
        }
        golden(&format!("{name}.yaml"), &yaml(&objects));
        golden(&format!("{name}.nginx.conf"), &file(&desired, "nginx.conf"));
    }
}

#[test]
fn routes_of_every_mode() {
    for (mode, routing, provider) in MODES {
        for hub_host in [None, Some("hub.example.org".to_owned())] {
            for name in ["docs", "archived"] {
                let mut settings = settings();
                settings.routing.mode = routing;
                settings.routing.gateway.provider = provider;
                settings.routing.hub_host.clone_from(&hub_host);
                let desired = render(&site(name), &settings, &observed()).unwrap();
                let suffix = if hub_host.is_some() { ".hub-host" } else { "" };
                golden(&format!("route.{mode}.{name}{suffix}.yaml"), &yaml(&objects(&desired)[7..]));
            }
        }
    }
}

#[test]
fn policies_are_of_the_kinds_that_the_provider_lists() {
    for (_, routing, provider) in MODES {
        let mut settings = settings();
        settings.routing.mode = routing;
        settings.routing.gateway.provider = provider;
        let desired = render(&site("docs"), &settings, &observed()).unwrap();
        let rendered: Vec<(String, String)> = objects(&desired)
            .iter()
            .skip(8)
            .map(|policy| {
                (policy["apiVersion"].as_str().unwrap().to_owned(), policy["kind"].as_str().unwrap().to_owned())
            })
            .collect();
        let listed: Vec<(String, String)> = policy_kinds(provider)
            .iter()
            .map(|kind| (format!("{}/{}", kind.group, kind.version), kind.kind.to_owned()))
            .collect();
        assert_eq!(rendered, listed);
    }
}

#[test]
fn error_pages() {
    let mut settings = settings();
    settings.site.brand = "Rain & <Shine> {{ id }}".to_owned();
    let desired = render(&site("docs"), &settings, &observed()).unwrap();
    for page in ["403.html", "404.html", "50x.html"] {
        golden(page, &file(&desired, page));
    }
}

/// ARC-04, and what every object must have to be found and collected.
#[test]
fn every_object_carries_the_labels_and_one_owner() {
    for (_, routing, provider) in MODES {
        let mut settings = settings();
        settings.routing.mode = routing;
        settings.routing.gateway.provider = provider;
        for (name, _) in SITES {
            let site = site(name);
            for object in objects(&render(&site, &settings, &observed()).unwrap()) {
                let metadata = &object["metadata"];
                assert_eq!(metadata["namespace"], "sites");
                assert_eq!(metadata["labels"], json!(crate::domain::labels::site_labels(&site)));
                assert_eq!(
                    metadata["ownerReferences"],
                    json!([{
                        "apiVersion": "sites.ecmwf.int/v1",
                        "kind": "Site",
                        "name": site.spec.id,
                        "uid": site.metadata.uid,
                        "controller": true,
                        "blockOwnerDeletion": true,
                    }])
                );
            }
        }
    }
}
