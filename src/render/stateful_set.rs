//! The `StatefulSet`: how many pods, and the stamp that restarts them.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::context::Context;
use super::error::RenderError;
use super::pod;

/// `<id>`: the pods.
pub fn stateful_set(context: &Context<'_>) -> Result<StatefulSet, RenderError> {
    Ok(StatefulSet {
        metadata: context.metadata(context.id),
        spec: Some(StatefulSetSpec {
            replicas: Some(if context.site.enabled() { context.settings.site.replicas } else { 0 }),
            service_name: Some(context.id.to_owned()),
            selector: LabelSelector { match_labels: Some(context.selector()), ..LabelSelector::default() },
            template: pod::template(context)?,
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    })
}
