//! Policies of NGINX Gateway Fabric: uploads of any size, long silences, no buffered answers.
//!
//! It has no policy that switches the buffering of *requests* off: uploads pass through its disk, unless the
//! platform adds a snippet for its Gateway.

use kube::core::DynamicObject;
use serde_json::json;

use super::policy::{PolicyKind, target};
use crate::render::context::Context;
use crate::render::error::RenderError;

const CLIENT_SETTINGS: PolicyKind = PolicyKind {
    group: "gateway.nginx.org",
    version: "v1alpha1",
    kind: "ClientSettingsPolicy",
    plural: "clientsettingspolicies",
};
const PROXY_SETTINGS: PolicyKind = PolicyKind {
    group: "gateway.nginx.org",
    version: "v1alpha1",
    kind: "ProxySettingsPolicy",
    plural: "proxysettingspolicies",
};

/// Kinds of this provider.
pub const KINDS: [PolicyKind; 2] = [CLIENT_SETTINGS, PROXY_SETTINGS];

/// `ClientSettingsPolicy/<id>` and `ProxySettingsPolicy/<id>`.
pub fn policies(context: &Context<'_>, route: &str) -> Result<Vec<DynamicObject>, RenderError> {
    let timeout = nginx_time(&context.settings.routing.gateway.request_timeout)?;
    Ok(vec![
        CLIENT_SETTINGS.object(
            context,
            context.id,
            &json!({ "targetRef": target(route), "body": { "maxSize": "0", "timeout": timeout } }),
        ),
        PROXY_SETTINGS.object(
            context,
            context.id,
            &json!({
                "targetRefs": [target(route)],
                "buffering": { "disable": true },
                "timeout": { "connect": "10s", "read": timeout, "send": timeout },
            }),
        ),
    ])
}

/// A Gateway API duration of one part is an nginx time; of several it is not.
fn nginx_time(duration: &str) -> Result<&str, RenderError> {
    let digits = duration.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &duration[digits.len()..];
    let valid = (1..=4).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && ["ms", "s", "m", "h"].contains(&unit);
    if valid {
        return Ok(duration);
    }
    Err(RenderError::setting(
        "routing.gateway.request_timeout",
        format!("{duration:?}: NGINX Gateway Fabric wants up to four digits and one unit (ms, s, m, h), such as 600s"),
    ))
}
