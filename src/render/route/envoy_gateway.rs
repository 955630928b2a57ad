//! Policies of Envoy Gateway: a request may take as long as its bytes flow.
//!
//! Envoy's request timeout would cut a long download, its stream idle timeout (5 minutes) a long silence: the first
//! is switched off, the second is the setting. Envoy buffers and limits no bodies. That it keeps `%2F` in paths is a
//! `ClientTrafficPolicy` of the Gateway, which is the chart's.

use kube::core::DynamicObject;
use serde_json::json;

use super::policy::{PolicyKind, target};
use crate::render::context::Context;

const BACKEND_TRAFFIC: PolicyKind = PolicyKind {
    group: "gateway.envoyproxy.io",
    version: "v1alpha1",
    kind: "BackendTrafficPolicy",
    plural: "backendtrafficpolicies",
};

/// Kinds of this provider.
pub const KINDS: [PolicyKind; 1] = [BACKEND_TRAFFIC];

/// `BackendTrafficPolicy/<id>`.
#[must_use]
pub fn policies(context: &Context<'_>, route: &str) -> Vec<DynamicObject> {
    let silence = &context.settings.routing.gateway.request_timeout;
    vec![BACKEND_TRAFFIC.object(
        context,
        context.id,
        &json!({
            "targetRefs": [target(route)],
            "timeout": {
                "tcp": { "connectTimeout": "10s" },
                "http": { "requestTimeout": "0s", "streamIdleTimeout": silence },
            },
        }),
    )]
}
