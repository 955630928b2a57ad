//! The desired objects as the apply step handles them: in the order they are written, all of one form.

use std::hash::{DefaultHasher, Hash, Hasher};

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::facts::TEMPLATE_DIGEST;
use crate::cluster::Kind;
use crate::domain::child::{ChildKey, ChildKind};
use crate::domain::labels::RESTARTED_AT;
use crate::render::route::HTTP_ROUTE;
use crate::render::{Desired, PolicyKind, Route};
use crate::settings::types::GatewayProvider;

/// One rendered object.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Kind and name.
    pub key: ChildKey,
    /// How the API server addresses it.
    pub kind: Kind,
    /// The object as it is compared.
    pub body: Value,
    /// The same as it is sent.
    pub text: Bytes,
    /// Hash of the object without its restart time; stable within a process only.
    pub hash: u64,
}

/// All objects of a Site in the order of LIFE-01: Secrets, ConfigMaps, claim, `StatefulSet`, Service, route.
#[derive(Clone, Debug)]
pub struct Objects {
    /// Everything before the claim.
    pub before_claim: Vec<Rendered>,
    /// The claim.
    pub claim: Rendered,
    /// The pods.
    pub stateful_set: Rendered,
    /// The Service.
    pub service: Rendered,
    /// The route and its policies; empty without a public path.
    pub route: Vec<Rendered>,
}

/// An object could not be turned into JSON: a defect.
#[derive(Debug, thiserror::Error)]
#[error("{0}: cannot be written as JSON: {1}")]
pub struct EncodeError(&'static str, #[source] serde_json::Error);

impl Objects {
    /// From the render. A kind that is added to [`Desired`] does not compile until it is written here.
    pub fn of(desired: Desired) -> Result<Self, EncodeError> {
        let Desired { secret, oauth2_secret, environment, files, claim, stateful_set, service, route } = desired;
        let route = match route {
            None => Vec::new(),
            Some(Route::Ingress(ingress)) => vec![rendered(ChildKind::Ingress, &ingress)?],
            Some(Route::Http(http)) => std::iter::once(&http.route)
                .chain(&http.policies)
                .map(|object| {
                    let (group, kind) = object.types.as_ref().map_or(("", ""), |types| {
                        (types.api_version.split_once('/').map_or("", |(group, _)| group), types.kind.as_str())
                    });
                    rendered(ChildKind::from_group_kind(group, kind), object)
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Self {
            before_claim: vec![
                rendered(ChildKind::Secret, &secret)?,
                rendered(ChildKind::Secret, &oauth2_secret)?,
                rendered(ChildKind::ConfigMap, &environment)?,
                rendered(ChildKind::ConfigMap, &files)?,
            ],
            claim: rendered(ChildKind::PersistentVolumeClaim, &claim)?,
            stateful_set: rendered(ChildKind::StatefulSet, &stateful_set)?,
            service: rendered(ChildKind::Service, &service)?,
            route,
        })
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = &Rendered> {
        self.before_claim.iter().chain([&self.claim, &self.stateful_set, &self.service]).chain(&self.route)
    }

    /// The object of this key.
    #[must_use]
    pub fn get(&self, key: &ChildKey) -> Option<&Rendered> {
        self.all().find(|rendered| rendered.key == *key)
    }
}

fn rendered<K: Serialize>(kind: ChildKind, object: &K) -> Result<Rendered, EncodeError> {
    let mut body = serde_json::to_value(object).map_err(|error| EncodeError("render", error))?;
    let api = api_kind(&kind);
    body["apiVersion"] = Value::String(api.api_version());
    body["kind"] = Value::String(api.kind.to_string());
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    // The restart time says when, not what: it counts for neither hash.
    let restarted_at = (kind == ChildKind::StatefulSet).then(|| {
        let restarted_at = take_restart_time(&mut body);
        body["metadata"]["annotations"][TEMPLATE_DIGEST] = Value::String(hash_of(&body["spec"]["template"]));
        restarted_at
    });
    let mut text = body.to_string();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    if let Some(Some(restarted_at)) = restarted_at {
        body["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT] = restarted_at;
        text = body.to_string();
    }
    Ok(Rendered { key: ChildKey::new(kind, name), kind: api, hash: hasher.finish(), body, text: text.into() })
}

fn take_restart_time(set: &mut Value) -> Option<Value> {
    set.pointer_mut("/spec/template/metadata/annotations")?.as_object_mut()?.remove(RESTARTED_AT)
}

fn hash_of(value: &Value) -> String {
    crate::domain::labels::hex(value.to_string().as_bytes())[..16].to_owned()
}

/// How the API server addresses a kind of child.
#[must_use]
pub fn api_kind(kind: &ChildKind) -> Kind {
    match kind {
        ChildKind::Secret => Kind::new("", "v1", "Secret", "secrets", true),
        ChildKind::ConfigMap => Kind::new("", "v1", "ConfigMap", "configmaps", true),
        ChildKind::PersistentVolumeClaim => {
            Kind::new("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true)
        }
        ChildKind::StatefulSet => Kind::new("apps", "v1", "StatefulSet", "statefulsets", true),
        ChildKind::Service => Kind::new("", "v1", "Service", "services", true),
        ChildKind::Ingress => Kind::new("networking.k8s.io", "v1", "Ingress", "ingresses", true),
        ChildKind::HttpRoute => policy_kind(&HTTP_ROUTE),
        ChildKind::Policy { group, kind } => every_policy_kind()
            .find(|policy| policy.group == group && policy.kind == kind)
            .map_or_else(|| unknown_kind(group, kind), |policy| policy_kind(&policy)),
    }
}

/// A policy that no provider of this release has: addressed by the usual rule for plurals.
fn unknown_kind(group: &str, kind: &str) -> Kind {
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    Kind {
        group: group.to_owned().into(),
        version: "v1alpha1".into(),
        kind: kind.to_owned().into(),
        plural: plural.to_lowercase().into(),
        namespaced: true,
    }
}

/// The kinds of the policies of every provider.
pub fn every_policy_kind() -> impl Iterator<Item = PolicyKind> {
    [GatewayProvider::NginxGatewayFabric, GatewayProvider::EnvoyGateway]
        .into_iter()
        .flat_map(|provider| crate::render::policy_kinds(provider).iter().copied())
}

/// A policy kind as the client wants it.
#[must_use]
pub const fn policy_kind(policy: &PolicyKind) -> Kind {
    Kind::new(policy.group, policy.version, policy.kind, policy.plural, true)
}
