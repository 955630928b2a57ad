//! What cannot be rendered says so, and names the field.

use super::{observed, settings, site};
use crate::domain::site::{ResourceLimits, Site};
use crate::render::{Observed, Reattach, RenderError, render};

fn error(change: impl FnOnce(&mut Site)) -> RenderError {
    let mut site = site("dashboard");
    change(&mut site);
    render(&site, &settings(), &observed()).unwrap_err()
}

#[test]
fn a_missing_host_waits() {
    for host in [None, Some(String::new())] {
        let mut settings = settings();
        settings.routing.host = host;
        assert_eq!(render(&site("minimal"), &settings, &observed()), Err(RenderError::HostMissing));
    }
    let mut settings = settings();
    for host in ["https://a.org", "a.org/x", "A.org", "a..org", "a.org:443", "a;b", "a b"] {
        settings.routing.host = Some(host.to_owned());
        assert!(matches!(render(&site("docs"), &settings, &observed()), Err(RenderError::Setting { .. })), "{host}");
    }
}

#[test]
fn a_site_that_was_never_stored_owns_nothing() {
    assert_eq!(error(|site| site.metadata.uid = None), RenderError::UidMissing);
}

/// B12, the last line of defence.
#[test]
fn b12_an_id_that_cannot_run_is_refused() {
    for id in ["a".repeat(53), String::new(), "1a".to_owned(), "A".to_owned(), "a-".to_owned(), "a_b".to_owned()] {
        let error = error(|site| site.spec.id.clone_from(&id));
        assert!(error.to_string().starts_with("spec.id: use 1 to 52"), "{id}: {error}");
    }
    let mut site = site("dashboard");
    site.spec.id = "a".repeat(52);
    render(&site, &settings(), &observed()).unwrap();
}

/// B04 (a): long access lists work; (b): what cannot be stored is refused before it is sent.
#[test]
fn b04_too_large_names_the_object_and_what_to_shorten() {
    let people = |number: usize| (0..number).map(|one| format!("somebody-{one:06}@example.org")).collect::<Vec<_>>();
    let mut site = site("shared");
    site.spec.configuration.share.view_users = people(10_000);
    let desired = render(&site, &settings(), &observed()).unwrap();
    let longest = desired.environment.data.unwrap().values().map(String::len).max().unwrap();
    assert!(longest < 1024, "no variable grows with the Site");

    site.spec.configuration.share.view_users = people(40_000);
    let error = render(&site, &settings(), &observed()).unwrap_err();
    assert!(
        matches!(&error, RenderError::TooLarge { object, bytes, limit } if object == "ConfigMap/team-files" && bytes > limit)
    );
    assert!(error.to_string().contains("spec.configuration.share"), "{error}");
}

#[test]
fn quantities_and_images_are_checked() {
    for (cpu, memory) in [(Some("0"), None), (None, Some("lots")), (Some("-1"), None), (None, Some("1 Gi"))] {
        let error = error(|site| {
            site.spec.configuration.settings.resource_limits =
                Some(ResourceLimits { cpu: cpu.map(str::to_owned), memory: memory.map(str::to_owned) });
        });
        assert!(error.to_string().starts_with("spec.configuration.settings.resource_limits."), "{error}");
    }
    let error = error(|site| site.spec.configuration.applications[0].image = Some("a b".to_owned()));
    assert!(error.to_string().starts_with("spec.configuration.applications[site-custom].image"), "{error}");
}

/// The API server would store another text than ours, and the object would never equal its rendering.
#[test]
fn quantities_are_rendered_as_they_are_stored() {
    let mut site = site("dashboard");
    site.spec.configuration.quota = Some(2048);
    site.spec.configuration.settings.resource_limits =
        Some(ResourceLimits { cpu: Some("0.5".to_owned()), memory: Some("1024Mi".to_owned()) });
    let desired = render(&site, &settings(), &observed()).unwrap();
    assert_eq!(desired.claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0, "2Ti");
    let spec = desired.stateful_set.spec.unwrap().template.spec.unwrap();
    let custom = spec.containers.iter().find(|container| container.name == "site-custom").unwrap();
    let limits = custom.resources.as_ref().unwrap().limits.as_ref().unwrap();
    assert_eq!((limits["cpu"].0.as_str(), limits["memory"].0.as_str()), ("500m", "1Gi"));
}

#[test]
fn a_retained_volume_is_asked_for_as_it_is() {
    let volume = |capacity: &str, class: Option<&str>| Observed {
        volume: Some(Reattach {
            volume_name: "pv-7".to_owned(),
            storage_class: class.map(str::to_owned),
            access_modes: vec!["ReadWriteMany".to_owned()],
            volume_mode: Some("Filesystem".to_owned()),
            capacity: capacity.to_owned(),
        }),
        ..observed()
    };
    for (capacity, expected) in [("20Gi", "10Gi"), ("5Gi", "5Gi"), ("10737418240", "10Gi"), ("9G", "9G")] {
        let spec = render(&site("docs"), &settings(), &volume(capacity, Some("old"))).unwrap().claim.spec.unwrap();
        assert_eq!(spec.resources.unwrap().requests.unwrap()["storage"].0, expected);
        assert_eq!(spec.storage_class_name.as_deref(), Some("old"));
        assert_eq!(spec.volume_name.as_deref(), Some("pv-7"));
        assert_eq!(spec.access_modes.unwrap(), ["ReadWriteMany"]);
    }
    let spec = render(&site("docs"), &settings(), &volume("20Gi", None)).unwrap().claim.spec.unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some(""), "the default class must not be added");
    assert!(render(&site("docs"), &settings(), &volume("much", None)).is_err());
}
