//! What an upgrade makes of a Site's applications (LIFE-06).
//!
//! Owns the rewriting of images in the spec. Must not write the Site: the Hub does, in bulk or one at a time.

use super::application::{Builtin, Catalog, Image};
use super::site::{Application, SiteSpec};

/// The applications of a spec with every image of the platform rewritten to the catalog's.
///
/// Custom images are kept. The list is the only record of a Site's version, so the essential applications that
/// the spec leaves out are written too: without a difference in the spec an upgrade would change nothing. The
/// order stays; what is added follows in container order.
#[must_use]
pub fn upgraded(spec: &SiteSpec, catalog: &Catalog) -> Vec<Application> {
    let listed = &spec.configuration.applications;
    let missing = Builtin::ALL
        .into_iter()
        .filter(|builtin| builtin.essential() && !listed.iter().any(|application| application.name == builtin.name()))
        .map(|builtin| Application { name: builtin.name().to_owned(), ..Application::default() });
    listed.iter().cloned().chain(missing).map(|application| rewritten(application, catalog)).collect()
}

fn rewritten(mut application: Application, catalog: &Catalog) -> Application {
    let Some(builtin) = Builtin::from_name(&application.name) else { return application };
    if let Some(Image::Platform(_)) = catalog.image(builtin, application.image.as_deref()) {
        application.image = catalog.configured(builtin).map(str::to_owned);
    }
    application
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applications(list: serde_json::Value) -> Vec<Application> {
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn life_06_built_in_images_are_rewritten_and_custom_ones_kept() {
        let configured = Builtin::ALL.into_iter().filter(|builtin| *builtin != Builtin::Custom);
        let catalog = Catalog::new(
            configured.map(|builtin| (builtin, format!("r.example.org/{}:2.0", builtin.name()))),
            &["old/.*".to_owned()],
        )
        .unwrap();
        let mut spec = SiteSpec::default();
        spec.configuration.applications = applications(json!([
            {"name": "site-custom", "image": "mine:7", "env": [1]},
            {"name": "site-webdav", "image": "r.example.org/site-webdav:1.0", "x": 1},
            {"name": "site-api", "image": "old/site-api:9"},
            {"name": "site-proxy", "image": "my-nginx:3"},
            {"name": "site-s3"},
            {"name": "other", "image": "o:1"},
        ]));
        let expected = applications(json!([
            {"name": "site-custom", "image": "mine:7", "env": [1]},
            {"name": "site-webdav", "image": "r.example.org/site-webdav:2.0", "x": 1},
            {"name": "site-api", "image": "r.example.org/site-api:2.0"},
            {"name": "site-proxy", "image": "my-nginx:3"},
            {"name": "site-s3", "image": "r.example.org/site-s3:2.0"},
            {"name": "other", "image": "o:1"},
            {"name": "site-initializer", "image": "r.example.org/site-initializer:2.0"},
            {"name": "site-oauth2", "image": "r.example.org/site-oauth2:2.0"},
        ]));
        let upgraded = upgraded(&spec, &catalog);
        assert_eq!(upgraded, expected);
        spec.configuration.applications.clone_from(&upgraded);
        assert_eq!(super::upgraded(&spec, &catalog), upgraded, "an upgrade to the same version changes nothing");
    }
}
