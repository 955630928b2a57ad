//! Requests and limits of every container.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::domain::application::Builtin;
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::render::quantity::{smaller, thousandths};

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
    let cpu = match own.and_then(|limits| limits.cpu.as_deref()) {
        Some(cpu) => checked("cpu", cpu)?,
        None => platform.cpu.as_str(),
    };
    let memory = match own.and_then(|limits| limits.memory.as_deref()) {
        Some(memory) => checked("memory", memory)?,
        None => platform.memory.as_str(),
    };
    // A request above the limit is refused by the API server.
    Ok(requirements((smaller(CUSTOM_CPU, cpu), smaller(CUSTOM_MEMORY, memory)), (cpu, memory)))
}

fn checked<'a>(name: &str, quantity: &'a str) -> Result<&'a str, RenderError> {
    if thousandths(quantity).is_some_and(|value| value > 0) {
        return Ok(quantity);
    }
    Err(RenderError::field(
        format!("spec.configuration.settings.resource_limits.{name}"),
        "give a quantity above zero, such as 500m for CPU or 512Mi for memory",
    ))
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
