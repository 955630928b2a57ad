//! Requests and limits of every container.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::domain::application::Builtin;
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::render::quantity::Amount;

/// What a custom application asks for, unless its limits are lower.
const CUSTOM_CPU: &str = "10m";
const CUSTOM_MEMORY: &str = "64Mi";

/// Sizes of a built-in application. oauth2-proxy needs 24 MB idle and 33 MB at its peak, nginx 13 MB.
#[must_use]
pub fn built_in(builtin: Builtin) -> ResourceRequirements {
    let (requests, limits) = match builtin {
        Builtin::Oauth2 => (("5m", "32Mi"), ("500m", "96Mi")),
        Builtin::Proxy => (("5m", "16Mi"), ("1", "128Mi")),
        Builtin::Api => (("5m", "16Mi"), ("1", "256Mi")),
        Builtin::Admin | Builtin::Webdav | Builtin::S3 | Builtin::Mirror => (("5m", "16Mi"), ("500m", "256Mi")),
        Builtin::Initializer => (("5m", "16Mi"), ("500m", "128Mi")),
        Builtin::Custom => ((CUSTOM_CPU, CUSTOM_MEMORY), ("500m", "512Mi")),
    };
    requirements(requests, limits)
}

/// Sizes of the custom application: the Site's limits, else the platform's.
pub fn custom(context: &Context<'_>) -> Result<ResourceRequirements, RenderError> {
    let own = context.site.spec.configuration.settings.resource_limits.as_ref();
    let platform = &context.settings.site.custom_limits;
    let cpu = limit("cpu", own.and_then(|limits| limits.cpu.as_deref()), &platform.cpu)?;
    let memory = limit("memory", own.and_then(|limits| limits.memory.as_deref()), &platform.memory)?;
    // A request above the limit is refused by the API server.
    let request = |usual: &str, limit: Amount| Amount::parse(usual).unwrap_or(limit).min(limit).canonical();
    Ok(requirements(
        (&request(CUSTOM_CPU, cpu), &request(CUSTOM_MEMORY, memory)),
        (&cpu.canonical(), &memory.canonical()),
    ))
}

fn limit(name: &str, own: Option<&str>, platform: &str) -> Result<Amount, RenderError> {
    let rule = "give a quantity above zero, such as 500m for CPU or 512Mi for memory";
    Amount::parse(own.unwrap_or(platform)).filter(|amount| !amount.is_zero()).ok_or_else(|| match own {
        Some(_) => RenderError::field(format!("spec.configuration.settings.resource_limits.{name}"), rule),
        None => RenderError::setting(format!("site.custom_limits.{name}"), rule),
    })
}

fn requirements(requests: (&str, &str), limits: (&str, &str)) -> ResourceRequirements {
    let map = |(cpu, memory): (&str, &str)| {
        Some(BTreeMap::from([
            ("cpu".to_owned(), Quantity(cpu.to_owned())),
            ("memory".to_owned(), Quantity(memory.to_owned())),
        ]))
    };
    ResourceRequirements { requests: map(requests), limits: map(limits), ..ResourceRequirements::default() }
}
