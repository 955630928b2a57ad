//! Whether the objects of a Site will have a size that the API server takes (B04).
//!
//! The operator refuses the same Site, but later, and where its author does not look: here the answer names the field.
//! Must not know any limit: the renderer does.

use super::super::error::ApiError;
use crate::domain::site::Site;
use crate::render::{Observed, RenderError, render};
use crate::settings::Settings;

/// 400 for a Site whose objects would be too large. One that was too large `before` may still be edited.
pub fn fits(before: Option<&Site>, after: &Site, settings: &Settings) -> Result<(), ApiError> {
    match excess(after, settings) {
        Some((bytes, limit)) if before.is_none_or(|before| excess(before, settings).is_none()) => {
            let message = format!("an object of the site would have {bytes} bytes, the limit is {limit}: shorten this");
            Err(ApiError::field(largest(after), message))
        }
        _ => Ok(()),
    }
}

/// Size of what is too large, and the limit.
fn excess(site: &Site, settings: &Settings) -> Option<(usize, usize)> {
    let mut site = site.clone();
    // A new Site has none; the renderer asks for one of a usual size.
    site.metadata.uid.get_or_insert_with(|| "00000000-0000-0000-0000-000000000000".to_owned());
    match render(&site, settings, &Observed::default()) {
        Err(RenderError::TooLarge { bytes, limit, .. }) => Some((bytes, limit)),
        // Other errors have their own rules, or are no matter of this Site.
        _ => None,
    }
}

/// The field of the form that takes the most.
pub fn largest(site: &Site) -> &'static str {
    let configuration = &site.spec.configuration;
    let share = &configuration.share;
    let list = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    [
        ("description", configuration.description.as_ref().map_or(0, String::len)),
        ("headers", configuration.headers.iter().map(|(name, value)| name.len() + value.len()).sum()),
        ("share.administrator_users", list(&share.administrator_users)),
        ("share.administrator_groups", list(&share.administrator_groups)),
        ("share.view_users", list(&share.view_users)),
        ("share.view_groups", list(&share.view_groups)),
    ]
    .into_iter()
    .max_by_key(|(_, bytes)| *bytes)
    .map_or("share", |(field, _)| field)
}
