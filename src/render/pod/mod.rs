//! The pod template: hardened, with its containers in a fixed order.
//!
//! Accepted under the Pod Security level "restricted". Owns the pod as a whole; one container each is in
//! [`containers`], oauth2-proxy's flags in [`oauth2`], sizes in [`resources`], probes in [`probes`].

pub mod containers;
pub mod oauth2;
pub mod probes;
pub mod resources;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, LocalObjectReference, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::context::Context;
use super::error::RenderError;
use crate::domain::application::Builtin;
use crate::domain::labels::{OPERATOR_BOUND, RESTARTED_AT, STAMPED_FOR};
use crate::domain::names;

/// Volume of the content.
pub const CONTENT: &str = "content";
/// Volume of the rendered files.
pub const CONFIG: &str = "site-config";
/// Volume of nginx's pid file and temporary files.
pub const NGINX_TMP_VOLUME: &str = "nginx-tmp";
/// Volume of the custom application's `/tmp`, the only place beside the content where it can write.
pub const CUSTOM_TMP_VOLUME: &str = "custom-tmp";

/// The template of the Site's pods.
pub fn template(context: &Context<'_>) -> Result<PodTemplateSpec, RenderError> {
    Ok(PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(context.labels().clone()),
            annotations: Some(annotations(context)),
            ..ObjectMeta::default()
        }),
        spec: Some(spec(context)?),
    })
}

fn annotations(context: &Context<'_>) -> BTreeMap<String, String> {
    let restart = &context.observed.restart;
    BTreeMap::from([
        (OPERATOR_BOUND.to_owned(), "true".to_owned()),
        (RESTARTED_AT.to_owned(), restart.restarted_at.clone()),
        (STAMPED_FOR.to_owned(), restart.stamped_for.clone()),
    ])
}

fn spec(context: &Context<'_>) -> Result<PodSpec, RenderError> {
    let site = &context.settings.site;
    let secrets = &context.settings.kubernetes.image_pull_secrets;
    let priority = if context.site.monitored() { "medium-priority" } else { "low-priority" };
    Ok(PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        priority_class_name: Some(priority.to_owned()),
        termination_grace_period_seconds: Some(site.termination_grace_seconds),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(site.user_id),
            run_as_group: Some(site.user_id),
            fs_group: Some(site.user_id),
            fs_group_change_policy: Some("OnRootMismatch".to_owned()),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }),
            ..PodSecurityContext::default()
        }),
        image_pull_secrets: (!secrets.is_empty())
            .then(|| secrets.iter().map(|name| LocalObjectReference { name: name.clone() }).collect()),
        init_containers: Some(containers::init(context)?),
        containers: containers::running(context)?,
        volumes: Some(volumes(context)),
        ..PodSpec::default()
    })
}

fn volumes(context: &Context<'_>) -> Vec<Volume> {
    let mut volumes = vec![
        Volume {
            name: CONTENT.to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: context.id.to_owned(),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
            ..Volume::default()
        },
        Volume {
            name: CONFIG.to_owned(),
            config_map: Some(ConfigMapVolumeSource {
                name: names::files(context.id),
                ..ConfigMapVolumeSource::default()
            }),
            ..Volume::default()
        },
        scratch(NGINX_TMP_VOLUME),
    ];
    if context.applications.has(Builtin::Custom) {
        volumes.push(scratch(CUSTOM_TMP_VOLUME));
    }
    volumes
}

fn scratch(name: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            size_limit: Some(Quantity("1Gi".to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    }
}
