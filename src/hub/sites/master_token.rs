//! The master token of a Site: the one credential whose home is the Site itself.

use serde_json::json;
use tracing::info;

use super::super::caller::Caller;
use super::super::error::ApiError;
use super::super::forms::site::Edit;
use super::super::state::Hub;
use super::super::trace::Trace;
use super::write::{fresh_token, patched};
use crate::domain::site::{Secret, Site};

/// The token, if the Site has one.
#[must_use]
pub fn of(site: &Site) -> Option<&str> {
    site.spec.configuration.tokens.master.as_ref().map(Secret::expose)
}

/// Writes a new token into the Site; `None` when the Site was archived meanwhile. The old one ends when the operator
/// has handed the new one on.
pub async fn regenerate(hub: &Hub, caller: &Caller, site: Site, trace: &Trace) -> Result<Option<String>, ApiError> {
    let token = fresh_token();
    let change = |site: &Site| {
        let patch = if site.enabled() {
            json!({"spec": {"configuration": {"tokens": {"master": token}}}})
        } else {
            serde_json::Value::Null
        };
        Ok(Edit { site: site.clone(), patch, audit: Vec::new(), reverted: false })
    };
    let edit = patched(hub, caller, site, None, trace, change).await?;
    if edit.patch.is_null() {
        return Ok(None);
    }
    let user = caller.person().map_or("", |person| person.user.as_str());
    info!(target: "sites::audit", user, site = edit.site.spec.id, deed = "master token regenerated", "site");
    Ok(Some(token))
}
