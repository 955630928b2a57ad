//! Gateway mode: the `HTTPRoute` of a Site.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::policy::{HTTP_ROUTE, policies};
use super::{other_hub_host, route_host};
use crate::render::context::{Context, host_name};
use crate::render::error::RenderError;
use crate::render::layout::{FRONT_PORT, GONE_PATH};
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
        "hostnames": [route_host(context)],
        "rules": [rule(context)?],
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

fn rule(context: &Context<'_>) -> Result<Value, RenderError> {
    let matches = json!([{ "path": { "type": "PathPrefix", "value": context.prefix } }]);
    if !context.site.enabled() {
        return Ok(json!({ "matches": matches, "filters": [gone(context)?] }));
    }
    let mut rule = json!({
        "matches": matches,
        "backendRefs": [{ "group": "", "kind": "Service", "name": context.id, "port": FRONT_PORT, "weight": 1 }],
    });
    let gateway = &context.settings.routing.gateway;
    // The providers' own policies tell a long transfer from a silent one; the plain API cannot.
    if gateway.provider == GatewayProvider::None {
        rule["timeouts"] = json!({ "request": gateway.request_timeout });
    }
    Ok(rule)
}

fn gone(context: &Context<'_>) -> Result<Value, RenderError> {
    let mut redirect = json!({
        "statusCode": 302,
        "path": { "type": "ReplaceFullPath", "replaceFullPath": GONE_PATH },
    });
    if let Some(host) = other_hub_host(context) {
        redirect["scheme"] = json!("https");
        redirect["hostname"] = json!(host_name(host));
        if let Some((_, port)) = host.split_once(':') {
            let port: u16 =
                port.parse().map_err(|_| RenderError::setting("routing.hub_host", "the port is not a number"))?;
            redirect["port"] = json!(port);
        }
    }
    Ok(json!({ "type": "RequestRedirect", "requestRedirect": redirect }))
}
