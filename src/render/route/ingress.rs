//! Ingress mode: a minion of NGINX Ingress Controller's mergeable Ingress. The master and its TLS are the chart's.
//!
//! Annotations are pasted into a configuration that all sites share, so every text in them is checked here:
//! one bad character would stop the reload for everybody. The controller must allow snippets.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec,
    ServiceBackendPort,
};

use super::gone_address;
use crate::domain::application::Builtin;
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::render::layout::port;

/// The minion of this Site.
pub fn ingress(context: &Context<'_>, name: &str) -> Result<Ingress, RenderError> {
    let mut metadata = context.metadata(name);
    metadata.annotations = Some(annotations(context)?);
    Ok(Ingress {
        metadata,
        spec: Some(IngressSpec {
            ingress_class_name: Some(context.settings.routing.ingress.class.clone()),
            rules: Some(vec![IngressRule { host: Some(context.host.to_owned()), http: Some(paths(context)) }]),
            ..IngressSpec::default()
        }),
        ..Ingress::default()
    })
}

fn paths(context: &Context<'_>) -> HTTPIngressRuleValue {
    HTTPIngressRuleValue {
        paths: vec![HTTPIngressPath {
            path: Some(context.prefix.clone()),
            path_type: "Prefix".to_owned(),
            backend: IngressBackend {
                service: Some(IngressServiceBackend {
                    name: context.id.to_owned(),
                    port: Some(ServiceBackendPort {
                        number: Some(port(Builtin::Proxy)),
                        ..ServiceBackendPort::default()
                    }),
                }),
                ..IngressBackend::default()
            },
        }],
    }
}

fn annotations(context: &Context<'_>) -> Result<BTreeMap<String, String>, RenderError> {
    let timeout = &context.settings.routing.ingress.proxy_timeout;
    let snippet = if context.site.enabled() {
        // An upload must not be kept on the controller's disk; there is no annotation of its own for it.
        "proxy_request_buffering off;".to_owned()
    } else {
        format!("return 302 {};", gone_address(context))
    };
    [
        ("mergeable-ingress-type", "minion".to_owned()),
        ("client-max-body-size", "0".to_owned()),
        ("proxy-buffering", "False".to_owned()),
        ("proxy-read-timeout", timeout.clone()),
        ("proxy-send-timeout", timeout.clone()),
        ("websocket-services", context.id.to_owned()),
        ("location-snippets", snippet),
    ]
    .into_iter()
    .map(|(key, value)| Ok((format!("nginx.org/{key}"), checked(key, value)?)))
    .collect()
}

/// No variable, no quote, no brace, no second line; a semicolon only at the end of a snippet of ours.
fn checked(key: &str, value: String) -> Result<String, RenderError> {
    let body = if key == "location-snippets" { value.strip_suffix(';').unwrap_or(&value) } else { &value };
    if body.chars().any(|c| c.is_control() || "$\"'`{}\\#;".contains(c)) {
        return Err(RenderError::setting(
            "routing.ingress",
            format!(
                "the annotation nginx.org/{key} must not contain quotes, braces, '$', '#', ';' or control characters"
            ),
        ));
    }
    Ok(value)
}
