//! Gateway mode: the `HTTPRoute` of a Site.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::other_hub_host;
use super::policy::{HTTP_ROUTE, policies};
use crate::domain::application::Builtin;
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::render::layout::{GONE_PATH, port};
use crate::settings::types::GatewayProvider;

/// A route and what its controller needs beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRoutes {
    /// `HTTPRoute`.
    pub route: DynamicObject,
    /// Policies of the provider, in the order of [`super::policy_kinds`].
    pub policies: Vec<DynamicObject>,
}

/// The route and its policies. An archived Site keeps its policies: nothing is deleted only to be made again.
pub fn routes(context: &Context<'_>, name: &str) -> Result<HttpRoutes, RenderError> {
    let spec = json!({
        "parentRefs": [parent(context)],
        "hostnames": [context.host],
        "rules": [rule(context)],
    });
    Ok(HttpRoutes { route: HTTP_ROUTE.object(context, name, &spec), policies: policies(context, name)? })
}

fn parent(context: &Context<'_>) -> Value {
    let gateway = &context.settings.routing.gateway;
    let mut parent = json!({ "group": HTTP_ROUTE.group, "kind": "Gateway", "name": gateway.name });
    if let Some(namespace) = &gateway.namespace {
        parent["namespace"] = json!(namespace);
    }
    if let Some(section) = &gateway.section_name {
        parent["sectionName"] = json!(section);
    }
    parent
}

fn rule(context: &Context<'_>) -> Value {
    let matches = json!([{ "path": { "type": "PathPrefix", "value": context.prefix } }]);
    if !context.site.enabled() {
        return json!({ "matches": matches, "filters": [gone(context)] });
    }
    let mut rule = json!({
        "matches": matches,
        "backendRefs": [{ "group": "", "kind": "Service", "name": context.id, "port": port(Builtin::Proxy), "weight": 1 }],
    });
    let gateway = &context.settings.routing.gateway;
    // The providers' own policies tell a long transfer from a silent one; the plain API cannot.
    if gateway.provider == GatewayProvider::None {
        rule["timeouts"] = json!({ "request": gateway.request_timeout });
    }
    rule
}

fn gone(context: &Context<'_>) -> Value {
    let mut redirect = json!({
        "statusCode": 302,
        "path": { "type": "ReplaceFullPath", "replaceFullPath": GONE_PATH },
    });
    if let Some(host) = other_hub_host(context) {
        redirect["scheme"] = json!("https");
        redirect["hostname"] = json!(host);
    }
    json!({ "type": "RequestRedirect", "requestRedirect": redirect })
}
