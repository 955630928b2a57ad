//! Stand-ins for `domain::labels`, `domain::names` and `Settings::image` until those rooms exist here.

use std::collections::BTreeMap;

use crate::domain::site::Site;
use crate::settings::Settings;

pub const APP: &str = "sites.ecmwf.int/app";
pub const ID: &str = "sites.ecmwf.int/id";

pub fn site_labels(site: &Site) -> BTreeMap<String, String> {
    let configuration = &site.spec.configuration;
    [
        (APP, "site"),
        (ID, &site.spec.id),
        ("sites.ecmwf.int/space", configuration.space.as_deref().unwrap_or_default()),
        ("sites.ecmwf.int/name", site.spec.name.as_deref().unwrap_or_default()),
        ("sites.ecmwf.int/owner", &site.spec.owner),
        ("app.kubernetes.io/managed-by", "sites-operator"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

pub fn oauth2(id: &str) -> String {
    format!("{id}-oauth2")
}

pub fn files(id: &str) -> String {
    format!("{id}-files")
}

pub fn route(space: &str, name: &str) -> String {
    format!("{space}-{name}").to_lowercase().replace(['_', '.'], "-")
}

pub fn image(settings: &Settings, application: &str) -> Option<String> {
    let site = &settings.site;
    let image = site.images.get(application).cloned().or_else(|| match application {
        "site-custom" => None,
        "site-oauth2" => Some("oauth2-proxy:v7".to_owned()),
        "site-proxy" => Some("nginx:1".to_owned()),
        _ => Some("sites".to_owned()),
    })?;
    let tagged = image.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    Some(if tagged { image } else { format!("{image}:{}", site.version) })
}
