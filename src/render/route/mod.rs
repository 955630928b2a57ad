//! The way in from outside, in the routing mode of the platform.
//!
//! Owns the choice of the mode and the list of kinds. A Site without space and name has no route.
//! The whole path `/<space>/<name>/…` reaches the pod in every mode; an archived Site's route leads to the Hub.

pub mod envoy_gateway;
pub mod http_route;
pub mod ingress;
pub mod nginx_gateway_fabric;
pub mod policy;

use k8s_openapi::api::networking::v1::Ingress;

pub use http_route::HttpRoutes;
pub use policy::{HTTP_ROUTE, PolicyKind, policy_kinds};

use super::context::Context;
use super::error::RenderError;
use super::layout::GONE_PATH;
use crate::domain::names;
use crate::settings::types::RoutingMode;

/// The route of one Site.
#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    /// A minion of NGINX's mergeable Ingress.
    Ingress(Box<Ingress>),
    /// A Gateway API route, with the policies of its controller.
    Http(Box<HttpRoutes>),
}

/// The route, unless the Site has no public path.
pub fn route(context: &Context<'_>) -> Result<Option<Route>, RenderError> {
    let Some((space, name)) = context.public_path else { return Ok(None) };
    let object_name = context.observed.route_name.clone().unwrap_or_else(|| names::route(space, name));
    Ok(Some(match context.settings.routing.mode {
        RoutingMode::Ingress => Route::Ingress(Box::new(ingress::ingress(context, &object_name)?)),
        RoutingMode::Gateway => Route::Http(Box::new(http_route::routes(context, &object_name)?)),
    }))
}

/// Host of the Hub's "gone" page when it is not the sites' own.
fn other_hub_host<'a>(context: &Context<'a>) -> Option<&'a str> {
    (context.hub_host != context.host).then_some(context.hub_host)
}

/// Where an archived Site leads.
fn gone_address(context: &Context<'_>) -> String {
    other_hub_host(context).map_or_else(|| GONE_PATH.to_owned(), |host| format!("https://{host}{GONE_PATH}"))
}
