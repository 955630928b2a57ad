//! The containers: order, commands, mounts.
//!
//! Every container, the custom one included, gets the Secret and the environment of the Site: a custom image is
//! trusted with its own Site's token. An image that is not the platform's runs with its own command.

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapEnvSource, Container, ContainerPort, EnvFromSource, SecretEnvSource, SecurityContext,
    VolumeMount,
};

use super::{CONFIG, CONTENT, CUSTOM_TMP_VOLUME, NGINX_TMP_VOLUME, oauth2, probes, resources};
use crate::domain::application::{Builtin, Image, PROBE_PORT};
use crate::domain::names;
use crate::render::context::Context;
use crate::render::error::RenderError;
use crate::render::layout::{CONFIG_DIR, CONTENT_DIR, NGINX_TMP, port};

/// The containers that run before the others.
pub fn init(context: &Context<'_>) -> Result<Vec<Container>, RenderError> {
    some(context, Builtin::init)
}

/// The containers that keep running.
pub fn running(context: &Context<'_>) -> Result<Vec<Container>, RenderError> {
    some(context, |builtin| !builtin.init())
}

fn some(context: &Context<'_>, wanted: impl Fn(Builtin) -> bool) -> Result<Vec<Container>, RenderError> {
    let mut containers = Vec::new();
    for builtin in context.applications.all().filter(|builtin| wanted(*builtin)) {
        if let Some(image) = context.applications.image(builtin) {
            containers.push(container(context, builtin, image)?);
        }
    }
    Ok(containers)
}

fn container(context: &Context<'_>, builtin: Builtin, image: &Image) -> Result<Container, RenderError> {
    let probes = match builtin {
        Builtin::Oauth2 => probes::behind("/idpz"),
        Builtin::Proxy => probes::front(),
        Builtin::Api => probes::behind("/readyz"),
        Builtin::Admin | Builtin::Webdav | Builtin::S3 => probes::behind(&probes::path(builtin)),
        Builtin::Custom => probes::custom(),
        Builtin::Initializer | Builtin::Mirror => probes::Probes::default(),
    };
    let resources = if builtin == Builtin::Custom { resources::custom(context)? } else { resources::built_in(builtin) };
    Ok(Container {
        name: builtin.name().to_owned(),
        image: Some(image.reference().to_owned()),
        image_pull_policy: Some(context.settings.site.image_pull_policy.clone()),
        command: matches!(image, Image::Platform(_)).then(|| command(builtin)).flatten(),
        env: (builtin == Builtin::Oauth2).then(|| oauth2::environment(context)),
        env_from: Some(environment_sources(context, builtin)),
        ports: ports(builtin),
        volume_mounts: Some(mounts(builtin)).filter(|mounts| !mounts.is_empty()),
        resources: Some(resources),
        security_context: Some(hardened()),
        startup_probe: probes.startup,
        readiness_probe: probes.readiness,
        liveness_probe: probes.liveness,
        ..Container::default()
    })
}

fn command(builtin: Builtin) -> Option<Vec<String>> {
    let config = format!("{CONFIG_DIR}/nginx.conf");
    let words: &[&str] = match builtin {
        Builtin::Proxy => &["nginx", "-e", "/dev/stderr", "-c", &config, "-g", "daemon off;"],
        Builtin::Api => &["sites", "runtime", "api"],
        Builtin::Admin => &["sites", "runtime", "admin"],
        Builtin::Webdav => &["sites", "runtime", "webdav"],
        Builtin::S3 => &["sites", "runtime", "s3"],
        Builtin::Initializer => &["sites", "runtime", "init"],
        Builtin::Mirror => &["sites", "runtime", "mirror"],
        // Their images start them.
        Builtin::Oauth2 | Builtin::Custom => return None,
    };
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

fn environment_sources(context: &Context<'_>, builtin: Builtin) -> Vec<EnvFromSource> {
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
    if builtin == Builtin::Oauth2 {
        sources.push(secret(names::oauth2(context.id)));
    }
    sources
}

fn ports(builtin: Builtin) -> Option<Vec<ContainerPort>> {
    let named = |name: &str, number| ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    match builtin {
        Builtin::Proxy => Some(vec![named("http", port(builtin)), named("probe", PROBE_PORT.into())]),
        Builtin::Custom => Some(vec![named("custom", port(builtin))]),
        _ => None,
    }
}

fn mounts(builtin: Builtin) -> Vec<VolumeMount> {
    let mount = |volume: &str, path: &str| VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    };
    let read_only = |volume: &str, path: &str| VolumeMount { read_only: Some(true), ..mount(volume, path) };
    match builtin {
        Builtin::Oauth2 => Vec::new(),
        // nginx serves the content and must never be able to change it.
        Builtin::Proxy => {
            vec![read_only(CONFIG, CONFIG_DIR), mount(NGINX_TMP_VOLUME, NGINX_TMP), read_only(CONTENT, CONTENT_DIR)]
        }
        Builtin::Custom => vec![mount(CONTENT, CONTENT_DIR), mount(CUSTOM_TMP_VOLUME, "/tmp")],
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
