//! The containers: order, commands, mounts.
//!
//! Every container, the custom one included, gets the Secret and the environment of the Site: a custom image is
//! trusted with its own Site's token. An image that is not the platform's runs with its own command.

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, SecretEnvSource, SecurityContext,
    VolumeMount,
};

use super::{CONFIG, CONTENT, CUSTOM_TMP_VOLUME, NGINX_TMP_VOLUME, oauth2, probes, resources};
use crate::render::applications::{ADMIN, API, CUSTOM, INITIALIZER, MIRROR, OAUTH2, PROXY, S3, WEBDAV};
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::render::layout::{CONFIG_DIR, CONTENT_DIR, CUSTOM_PORT, FRONT_PORT, NGINX_TMP, PROBE_PORT};
use crate::render::placeholder as names;

/// Order of the containers. oauth2-proxy first, as on the replaced platform.
const ORDER: [&str; 8] = [OAUTH2, PROXY, API, ADMIN, WEBDAV, S3, CUSTOM, MIRROR];

/// The container that runs before the others.
pub fn init(context: &Context<'_>) -> Result<Vec<Container>, RenderError> {
    Ok(container(context, INITIALIZER)?.into_iter().collect())
}

/// The containers that keep running.
pub fn running(context: &Context<'_>) -> Result<Vec<Container>, RenderError> {
    let mut containers = Vec::new();
    for name in ORDER {
        containers.extend(container(context, name)?);
    }
    Ok(containers)
}

fn container(context: &Context<'_>, name: &str) -> Result<Option<Container>, RenderError> {
    let Some(choice) = context.applications.get(name) else { return Ok(None) };
    let probes = match name {
        OAUTH2 => probes::behind("/idpz"),
        PROXY => probes::front(),
        API => probes::behind("/readyz"),
        ADMIN | WEBDAV | S3 => probes::behind(&probe_path(name)),
        CUSTOM => probes::custom(),
        _ => probes::Probes::default(),
    };
    Ok(Some(Container {
        name: name.to_owned(),
        image: Some(choice.image.clone()),
        image_pull_policy: Some(context.settings.site.image_pull_policy.clone()),
        command: choice.ours.then(|| command(name)).flatten(),
        env: (name == OAUTH2).then(|| oauth2::environment(context)),
        env_from: Some(environment_sources(context, name)),
        ports: ports(name),
        volume_mounts: Some(mounts(name)).filter(|mounts| !mounts.is_empty()),
        resources: Some(if name == CUSTOM { resources::custom(context)? } else { resources::built_in(name) }),
        security_context: Some(hardened()),
        startup_probe: probes.startup,
        readiness_probe: probes.readiness,
        liveness_probe: probes.liveness,
        ..Container::default()
    }))
}

/// Path on nginx's probe port that asks an optional application of ours.
#[must_use]
pub fn probe_path(name: &str) -> String {
    format!("/readyz/{name}")
}

fn command(name: &str) -> Option<Vec<String>> {
    let config = format!("{CONFIG_DIR}/nginx.conf");
    let words: &[&str] = match name {
        PROXY => &["nginx", "-e", "/dev/stderr", "-c", &config, "-g", "daemon off;"],
        API => &["sites", "runtime", "api"],
        ADMIN => &["sites", "runtime", "admin"],
        WEBDAV => &["sites", "runtime", "webdav"],
        S3 => &["sites", "runtime", "s3"],
        INITIALIZER => &["sites", "runtime", "init"],
        MIRROR => &["sites", "runtime", "mirror"],
        // oauth2-proxy's image starts it.
        _ => return None,
    };
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

fn environment_sources(context: &Context<'_>, name: &str) -> Vec<EnvFromSource> {
    let secret = |name: String| EnvFromSource {
        secret_ref: Some(SecretEnvSource { name, ..SecretEnvSource::default() }),
        ..EnvFromSource::default()
    };
    let mut sources = vec![
        secret(context.id.to_owned()),
        EnvFromSource {
            config_map_ref: Some(ConfigMapEnvSource { name: context.id.to_owned(), ..ConfigMapEnvSource::default() }),
            ..EnvFromSource::default()
        },
    ];
    if name == OAUTH2 {
        sources.push(secret(names::oauth2(context.id)));
    }
    sources
}

fn ports(name: &str) -> Option<Vec<ContainerPort>> {
    let port = |name: &str, number| ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    match name {
        PROXY => Some(vec![port("http", FRONT_PORT), port("probe", PROBE_PORT)]),
        CUSTOM => Some(vec![port("custom", CUSTOM_PORT)]),
        _ => None,
    }
}

fn mounts(name: &str) -> Vec<VolumeMount> {
    let mount = |volume: &str, path: &str| VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    };
    let read_only = |volume: &str, path: &str| VolumeMount { read_only: Some(true), ..mount(volume, path) };
    match name {
        OAUTH2 => Vec::new(),
        // nginx serves the content and must never be able to change it.
        PROXY => {
            vec![read_only(CONFIG, CONFIG_DIR), mount(NGINX_TMP_VOLUME, NGINX_TMP), read_only(CONTENT, CONTENT_DIR)]
        }
        CUSTOM => vec![mount(CONTENT, CONTENT_DIR), mount(CUSTOM_TMP_VOLUME, "/tmp")],
        _ => vec![read_only(CONFIG, CONFIG_DIR), mount(CONTENT, CONTENT_DIR)],
    }
}

/// User, group and seccomp profile are the pod's.
fn hardened() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), ..Capabilities::default() }),
        ..SecurityContext::default()
    }
}
