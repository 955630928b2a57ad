//! Which containers a Site's pod has, and in which image.
//!
//! Owns the join of a Site, the settings and the rules of `domain::application`; what a container looks like is in
//! [`super::pod`]. Names that are not built in render nothing: the Site keeps them for the platform version that
//! knows them. `site-custom` without an image is off: the Site's own files are served instead.

use std::collections::BTreeMap;

use super::error::RenderError;
use crate::domain::application::{Builtin, Catalog, Effective, Image, effective, same_repository};
use crate::domain::forms;
use crate::domain::site::Site;
use crate::settings::Settings;

/// The applications of one Site, in container order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applications(BTreeMap<Builtin, Image>);

impl Applications {
    /// Chooses the applications and their images.
    pub fn new(site: &Site, settings: &Settings) -> Result<Self, RenderError> {
        let effective = effective(site, settings.migration.enabled);
        let catalog = catalog(&effective, settings)?;
        let mut chosen = BTreeMap::new();
        for Effective { builtin, application } in effective {
            let asked = application.image.as_deref();
            if asked.is_some_and(|image| !image.is_empty() && !forms::image(image)) {
                return Err(RenderError::field(
                    format!("spec.configuration.applications[{}].image", builtin.name()),
                    "an image must be a reference such as registry.example.org/team/app:1.2, without spaces",
                ));
            }
            if let Some(image) = catalog.image(builtin, asked) {
                chosen.insert(builtin, image);
            }
        }
        Ok(Self(chosen))
    }

    /// Whether an application runs.
    #[must_use]
    pub fn has(&self, builtin: Builtin) -> bool {
        self.0.contains_key(&builtin)
    }

    /// Image of an application that runs.
    #[must_use]
    pub fn image(&self, builtin: Builtin) -> Option<&Image> {
        self.0.get(&builtin)
    }

    /// All that run, in container order.
    pub fn all(&self) -> impl Iterator<Item = Builtin> {
        self.0.keys().copied()
    }
}

/// The platform's images. The patterns of legacy images are compiled only for a Site that has a foreign image.
fn catalog(effective: &[Effective], settings: &Settings) -> Result<Catalog, RenderError> {
    let configured: Vec<(Builtin, String)> = Builtin::ALL
        .into_iter()
        .filter(|builtin| *builtin != Builtin::Custom)
        .map(|builtin| (builtin, settings.image(builtin.name())))
        .collect();
    let foreign = effective.iter().any(|Effective { builtin, application }| {
        let platform = configured.iter().find(|(candidate, _)| candidate == builtin);
        matches!((application.image.as_deref(), platform), (Some(image), Some((_, platform))) if !same_repository(image, platform))
    });
    let patterns = if foreign { settings.site.legacy_image_patterns.as_slice() } else { &[] };
    Catalog::new(configured, patterns).map_err(|error| {
        RenderError::setting("site.legacy_image_patterns", format!("not a regular expression: {error}"))
    })
}
