//! Which containers a Site's pod has, in which image, and whether that image is ours.
//!
//! Owns the choice only; what a container looks like is in [`super::pod`].
//! Names that are not built in render nothing: they are kept in the Site for the platform version that knows them.
//! `site-custom` without an image is off: the Site's own files are served instead.

use std::collections::BTreeMap;

use regex::Regex;

use super::error::RenderError;
use super::placeholder as images;
use crate::domain::site::Site;
use crate::settings::Settings;

/// oauth2-proxy: who is it?
pub const OAUTH2: &str = "site-oauth2";
/// nginx: the front door.
pub const PROXY: &str = "site-proxy";
/// The site API; also decides who may read.
pub const API: &str = "site-api";
/// Prepares the volume before the others start.
pub const INITIALIZER: &str = "site-initializer";
/// The file browser.
pub const ADMIN: &str = "site-admin";
/// WebDAV.
pub const WEBDAV: &str = "site-webdav";
/// S3.
pub const S3: &str = "site-s3";
/// The Site's own application, in the place of static files.
pub const CUSTOM: &str = "site-custom";
/// Copies the content of the site that is being migrated.
pub const MIRROR: &str = "site-mirror";

/// Always present.
const ESSENTIAL: [&str; 4] = [OAUTH2, PROXY, API, INITIALIZER];
/// Present when the Site lists them.
const OPTIONAL: [&str; 5] = [ADMIN, WEBDAV, S3, CUSTOM, MIRROR];

/// The image of one application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The image to run.
    pub image: String,
    /// Whether it is the platform's own, so that our command fits. Another image runs as it was built.
    pub ours: bool,
}

/// The applications of one Site, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applications(BTreeMap<&'static str, Choice>);

impl Applications {
    /// Chooses the applications and their images.
    pub fn new(site: &Site, settings: &Settings) -> Result<Self, RenderError> {
        let asked: BTreeMap<&str, Option<&str>> = site
            .spec
            .configuration
            .applications
            .iter()
            .map(|application| {
                (application.name.as_str(), application.image.as_deref().filter(|text| !text.is_empty()))
            })
            .collect();
        let mut chosen = BTreeMap::new();
        for name in ESSENTIAL.into_iter().chain(OPTIONAL) {
            let on =
                ESSENTIAL.contains(&name) || asked.contains_key(name) || (name == MIRROR && settings.migration.enabled);
            if !on {
                continue;
            }
            if let Some(choice) = choice(name, asked.get(name).copied().flatten(), settings)? {
                chosen.insert(name, choice);
            }
        }
        Ok(Self(chosen))
    }

    /// Whether an application runs.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Image of an application that runs.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Choice> {
        self.0.get(name)
    }

    /// Names of all applications that run, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

fn choice(name: &str, asked: Option<&str>, settings: &Settings) -> Result<Option<Choice>, RenderError> {
    let ours = images::image(settings, name);
    let Some(asked) = asked else {
        return Ok(ours.map(|image| Choice { image, ours: true }));
    };
    if asked.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(RenderError::field(
            format!("spec.configuration.applications[{name}].image"),
            "an image must not contain spaces or control characters",
        ));
    }
    let Some(ours) = ours else {
        return Ok(Some(Choice { image: asked.to_owned(), ours: false }));
    };
    if repository(asked) == repository(&ours) {
        return Ok(Some(Choice { image: asked.to_owned(), ours: true }));
    }
    if is_legacy(asked, settings)? {
        return Ok(Some(Choice { image: ours, ours: true }));
    }
    Ok(Some(Choice { image: asked.to_owned(), ours: false }))
}

/// Whether an image is one of the replaced platform's.
fn is_legacy(image: &str, settings: &Settings) -> Result<bool, RenderError> {
    for pattern in &settings.site.legacy_image_patterns {
        let whole = Regex::new(&format!("^(?:{pattern})$"))
            .map_err(|error| RenderError::setting("site.legacy_image_patterns", format!("{pattern:?}: {error}")))?;
        if whole.is_match(image) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An image without tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(repository, _)| repository);
    match image.rsplit_once(':') {
        // A colon before the last slash is a registry's port.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}
