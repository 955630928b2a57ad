//! The seam between Gateway API routes and the policies of a controller.
//!
//! A new provider is one file with one function and one line in each `match` here. The kinds are listed so that
//! discovery, watches, permissions and deletion in the operator are generic.
//!
//! | provider | objects per Site, all named `<id>` | calls of a new Site |
//! |---|---|---|
//! | none | – | 8 objects |
//! | NGINX Gateway Fabric | `ClientSettingsPolicy`, `ProxySettingsPolicy` | 10 objects |
//! | Envoy Gateway | `BackendTrafficPolicy` | 9 objects |

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

use super::{envoy_gateway, nginx_gateway_fabric};
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::settings::types::GatewayProvider;

/// One kind of object, as the API server addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyKind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in addresses and permissions.
    pub plural: &'static str,
}

/// The Gateway API route itself.
pub const HTTP_ROUTE: PolicyKind =
    PolicyKind { group: "gateway.networking.k8s.io", version: "v1", kind: "HTTPRoute", plural: "httproutes" };

impl PolicyKind {
    /// As the client wants it.
    #[must_use]
    pub fn api_resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(self.group, self.version, self.kind), self.plural)
    }

    /// An object of this kind that belongs to the Site.
    pub(super) fn object(&self, context: &Context<'_>, name: &str, spec: &Value) -> DynamicObject {
        let mut object = DynamicObject::new(name, &self.api_resource()).data(serde_json::json!({ "spec": spec }));
        object.metadata = context.metadata(name);
        object
    }
}

/// Kinds of policy objects that a provider has.
#[must_use]
pub const fn policy_kinds(provider: GatewayProvider) -> &'static [PolicyKind] {
    match provider {
        GatewayProvider::None => &[],
        GatewayProvider::NginxGatewayFabric => &nginx_gateway_fabric::KINDS,
        GatewayProvider::EnvoyGateway => &envoy_gateway::KINDS,
    }
}

/// The policies of one Site's route.
pub(super) fn policies(context: &Context<'_>, route: &str) -> Result<Vec<DynamicObject>, RenderError> {
    match context.settings.routing.gateway.provider {
        GatewayProvider::None => Ok(Vec::new()),
        GatewayProvider::NginxGatewayFabric => nginx_gateway_fabric::policies(context, route),
        GatewayProvider::EnvoyGateway => Ok(envoy_gateway::policies(context, route)),
    }
}

/// How a policy names the route that it belongs to.
pub(super) fn target(route: &str) -> Value {
    serde_json::json!({ "group": HTTP_ROUTE.group, "kind": HTTP_ROUTE.kind, "name": route })
}
