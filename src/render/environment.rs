//! The environment of every container of a Site's pod: the `ConfigMap` `<id>`.
//!
//! Owns the names of the variables; `runtime` reads them. Nothing secret, and nothing that grows with the Site:
//! access lists are a file (see [`super::files`]), because one variable ends at 128 KiB.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::context::Context;
use super::error::RenderError;
use super::files::check_size;
use super::layout::{ACCESS_FILE, CONFIG_DIR, CONTENT_DIR, port};
use crate::domain::application::Builtin;
use crate::domain::site::SiteType;

/// `<id>`: the environment.
pub fn config_map(context: &Context<'_>) -> Result<ConfigMap, RenderError> {
    let data = variables(context);
    check_size("ConfigMap", context.id, data.values().map(String::len).sum())?;
    Ok(ConfigMap { metadata: context.metadata(context.id), data: Some(data), ..ConfigMap::default() })
}

fn variables(context: &Context<'_>) -> BTreeMap<String, String> {
    let configuration = &context.site.spec.configuration;
    let (space, name) = context.public_path.unwrap_or_default();
    let loopback = |builtin| format!("127.0.0.1:{}", port(builtin));
    let applications: Vec<&str> = context.applications.all().map(Builtin::name).collect();
    [
        ("SITE_ID", context.id.to_owned()),
        ("SITE_SPACE", space.to_owned()),
        ("SITE_NAME", name.to_owned()),
        // No process can have a NUL in its environment; the access file has the exact text.
        ("SITE_OWNER", context.site.spec.owner.replace('\0', "")),
        ("SITE_TYPE", site_type(context.site.spec.site_type).to_owned()),
        ("SITE_PREFIX", context.prefix.clone()),
        ("SITE_PUBLIC_URL", context.public_url()),
        ("SITE_QUOTA_GI", context.quota().to_string()),
        ("SITE_RETENTION_DATE", configuration.retention_date.clone().unwrap_or_default()),
        ("SITE_APPLICATIONS", applications.join(",")),
        ("SITE_CONTENT_DIR", CONTENT_DIR.to_owned()),
        ("SITE_ACCESS_FILE", format!("{CONFIG_DIR}/{ACCESS_FILE}")),
        ("SITE_IDENTITY_URL", format!("http://{}{}/oauth2/auth", loopback(Builtin::Oauth2), context.prefix)),
        ("SITE_COOKIE_NAME", context.cookie_name()),
        ("SITE_API_LISTEN", loopback(Builtin::Api)),
        ("SITE_ADMIN_LISTEN", loopback(Builtin::Admin)),
        ("SITE_WEBDAV_LISTEN", loopback(Builtin::Webdav)),
        ("SITE_S3_LISTEN", loopback(Builtin::S3)),
        ("SITE_MIRROR_SOURCE", mirror_source(context)),
        ("HUB_URL", format!("https://{}/hub/", context.hub_host)),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// The word of the resource.
#[must_use]
pub const fn site_type(kind: SiteType) -> &'static str {
    match kind {
        SiteType::Private => "private",
        SiteType::Public => "public",
    }
}

fn mirror_source(context: &Context<'_>) -> String {
    if !context.applications.has(Builtin::Mirror) {
        return String::new();
    }
    let (space, name) = context.public_path.unwrap_or_default();
    let source = context.settings.migration.source.as_deref().unwrap_or_default();
    source.replace("{space}", space).replace("{name}", name)
}
