//! The files of a Site's pod: the `ConfigMap` `<id>-files`, mounted as a whole as the volume `site-config`.
//!
//! Mounted without a list of keys: a release may add a file, and pods of the previous release must still start.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::context::Context;
use super::environment::site_type;
use super::error::RenderError;
use super::layout::ACCESS_FILE;
use super::nginx;
use crate::domain::names;

/// Largest data of a `ConfigMap` or Secret: the API server's 1 MiB, less what names and metadata may take.
const SIZE_LIMIT: usize = (1 << 20) - (16 << 10);

/// `<id>-files`: nginx configuration, error pages, access lists.
pub fn config_map(context: &Context<'_>) -> Result<ConfigMap, RenderError> {
    let mut data: BTreeMap<String, String> = nginx::files(context)?;
    data.insert(ACCESS_FILE.to_owned(), access(context));
    let name = names::files(context.id);
    check_size("ConfigMap", &name, data.values().map(String::len).sum())?;
    Ok(ConfigMap { metadata: context.metadata(&name), data: Some(data), ..ConfigMap::default() })
}

/// Who may do what, for the site's own servers.
fn access(context: &Context<'_>) -> String {
    let share = &context.site.spec.configuration.share;
    let value = json!({
        "owner": context.site.spec.owner,
        "type": site_type(context.site.spec.site_type),
        "administrator_users": share.administrator_users,
        "administrator_groups": share.administrator_groups,
        "view_users": share.view_users,
        "view_groups": share.view_groups,
    });
    format!("{value}\n")
}

/// Refuses what the API server would refuse, with a message that says what to shorten.
pub fn check_size(kind: &str, name: &str, bytes: usize) -> Result<(), RenderError> {
    if bytes <= SIZE_LIMIT {
        return Ok(());
    }
    Err(RenderError::TooLarge { object: format!("{kind}/{name}"), bytes, limit: SIZE_LIMIT })
}
