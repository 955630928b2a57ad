//! Stand-in for `Settings::image` until the room `settings` has it.

use crate::settings::Settings;

/// Full image of an application; none for `site-custom`.
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
