//! The `Site` resource: its Rust types, as the custom resource definition describes them.
//!
//! Owns the shape only. Rules on values live in [`super::rules`], what counts as a change in
//! [`super::change`], labels and names in [`super::labels`] and [`super::names`].
//! Field names are `snake_case` on the wire, as the platform that this one replaces writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// What a person asked for.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "sites.ecmwf.int",
    version = "v1",
    kind = "Site",
    plural = "sites",
    singular = "site",
    namespaced,
    status = "SiteStatus"
)]
#[serde(remote = "Self")]
pub struct SiteSpec {
    /// Identity of the Site for its whole life, equal to `metadata.name`; also the name of its objects.
    pub id: String,
    /// User id, e-mail address or subject of the person who owns the Site. Any text.
    pub owner: String,
    /// Who may read the Site without logging in.
    #[serde(rename = "type")]
    pub site_type: SiteType,
    /// Second segment of the public path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Everything else that a person can set.
    #[serde(default, deserialize_with = "absent_or")]
    pub configuration: Configuration,
    /// Fields of other platform versions: kept, counted as nothing.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// Who may read a Site.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SiteType {
    /// Only the people and groups it is shared with.
    #[default]
    Private,
    /// Everybody.
    Public,
}

/// `spec.configuration`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Configuration {
    /// First segment of the public path. Without it (or without a name) the Site has no route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// `false` archives the Site: no pods, the route answers with the Hub's "gone" page. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Containers of the Site's pod, keyed by name; order has no meaning.
    #[serde(default, deserialize_with = "absent_or", skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<Application>,
    /// Response headers that the Site adds.
    #[serde(default, deserialize_with = "absent_or", skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Size of the content volume, in Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<u32>,
    /// Day (UTC) after which the Site is outdated, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_date: Option<String>,
    /// Day (UTC) of creation, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_date: Option<String>,
    /// People and groups with access.
    #[serde(default, deserialize_with = "absent_or")]
    pub share: Share,
    /// Technical settings.
    #[serde(default, deserialize_with = "absent_or")]
    pub settings: SiteSettings,
    /// Credentials whose home is this resource.
    #[serde(default, deserialize_with = "absent_or")]
    pub tokens: Tokens,
    /// Free text; never causes work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Audit; never causes work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_by: Option<String>,
    /// Audit; never causes work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    /// Audit; never causes work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_date: Option<String>,
    /// Fields of other platform versions: kept, counted as nothing.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// One container of the Site's pod that the Site chose.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Application {
    /// A built-in name (`site-webdav`, …) or `site-custom`.
    pub name: String,
    /// Image; absent means the platform's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Anything else an older platform wrote here. Counts as a change when it changes.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// People and groups with access to a Site. Membership is exact, never by substring.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct Share {
    /// May change content and settings.
    #[serde(default, deserialize_with = "absent_or", skip_serializing_if = "Vec::is_empty")]
    pub administrator_users: Vec<String>,
    /// Groups whose members may change content and settings.
    #[serde(default, deserialize_with = "absent_or", skip_serializing_if = "Vec::is_empty")]
    pub administrator_groups: Vec<String>,
    /// May read.
    #[serde(default, deserialize_with = "absent_or", skip_serializing_if = "Vec::is_empty")]
    pub view_users: Vec<String>,
    /// Groups whose members may read.
    #[serde(default, deserialize_with = "absent_or", skip_serializing_if = "Vec::is_empty")]
    pub view_groups: Vec<String>,
}

/// `spec.configuration.settings`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct SiteSettings {
    /// Limits of the custom application's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_limits: Option<ResourceLimits>,
    /// Error pages and behaviour on errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_handling: Option<ErrorHandling>,
    /// Watched by the platform team: higher pod priority, part of the health report.
    /// Takes effect at the next qualifying change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitored: Option<bool>,
    /// Fields of other platform versions: kept, counted as nothing.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// Kubernetes quantities.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct ResourceLimits {
    /// CPU, such as `500m`.
    #[serde(default, deserialize_with = "quantity", skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory, such as `512Mi`.
    #[serde(default, deserialize_with = "quantity", skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

/// How the Site answers when something is missing or broken.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ErrorHandling {
    /// List a folder without `index.html` (default true); otherwise it answers 404.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_listing: Option<bool>,
    /// Content path of the Site's own 404 page, such as `/404.html`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_found_page: Option<String>,
    /// Anything else an older platform wrote here. Counts as a change when it changes.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// `spec.configuration.tokens`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct Tokens {
    /// The master token; this resource is its home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<Secret>,
}

/// A text that is never printed.
#[derive(Serialize, Deserialize, Clone, Default, PartialEq, Eq, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself: for the Secret object and for comparison, never for a log or a message.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

// A field that cannot be read (of the replaced platform, of a later release) counts as absent: the operator can
// write it anew, and a Site must not stop for what nobody asked for.
/// What the operator reports. Written by the operator alone, as one merge patch.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct SiteStatus {
    /// The pods' state in one word.
    #[serde(default, deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// True only when the phase is Running and the pod's conditions are fine.
    #[serde(default, deserialize_with = "readable")]
    pub all_steps_started: bool,
    /// What keeps the pods from running, one entry a container.
    #[serde(default, deserialize_with = "readable")]
    pub container_problems: Vec<ContainerProblem>,
    /// Generation of the Site that this status speaks of.
    #[serde(
        default,
        deserialize_with = "readable",
        rename = "observedGeneration",
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_generation: Option<i64>,
    /// `Ready`, and `RouteConflict`, `Degraded`, `VolumeLabelled` when they say something.
    #[serde(default, deserialize_with = "readable", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What has been rendered and written; absent until the first pass has ended well.
    // Shared: the operator's memory of a Site holds the same record.
    #[serde(default, deserialize_with = "readable", skip_serializing_if = "Option::is_none")]
    pub handled: Option<Arc<Handled>>,
}

/// The pods' state in one word.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum Phase {
    /// Every step has started.
    Running,
    /// Not yet, or not any more: see the problems.
    #[default]
    Pending,
    /// Archived.
    Disabled,
    /// The pod has failed.
    Failed,
    /// The pod has ended.
    Succeeded,
    /// The node does not answer.
    Unknown,
}

/// Why a container (or the pod as a whole) does not run.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct ContainerProblem {
    /// Container name; the pod's name for a problem of kind `scheduling`.
    pub name: String,
    /// `waiting`, `terminated`, `running` (not ready) or `scheduling`.
    pub kind: String,
    /// One word, such as `CrashLoopBackOff` or `NotReady`.
    pub reason: String,
    /// The node's or scheduler's own text, cut at 120 characters; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The durable record of the last pass that ended well.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Handled {
    /// `v1:<sha256>` over the triggering properties that were rendered.
    pub digest: String,
    /// The upgrade request that was served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade_request: Option<String>,
    /// The template's restart time, to re-create a missing `StatefulSet` with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<String>,
    /// `"<Kind>/<name>"` to what was last known to equal its render.
    #[serde(default)]
    pub children: BTreeMap<String, Child>,
    /// Public path of the route that was written or taken over: who holds a path survives a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When the pass ended, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// One child object as it was last known to equal its render.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct Child {
    /// `metadata.generation`, or the resourceVersion of kinds without one.
    pub version: String,
    /// Written by us, or taken over as it was.
    pub state: ChildState,
}

/// How a child came to be what it is.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChildState {
    /// Equals our render.
    #[default]
    Applied,
    /// Taken over from an older platform; not compared before the next qualifying change.
    Adopted,
}

impl Serialize for SiteSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The derived function of the same name: `remote = "Self"` makes it an inherent one.
        Self::serialize(self, serializer)
    }
}

/// Decodes with the path of the field in the error:
/// `spec.configuration.quota: invalid type: string "ten", expected u32`. A value under `tokens`, or of a field
/// whose name looks like a secret, is not repeated.
impl<'de> Deserialize<'de> for SiteSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut track = serde_path_to_error::Track::new();
        let decoded = Self::deserialize(serde_path_to_error::Deserializer::new(deserializer, &mut track));
        decoded.map_err(|error| serde::de::Error::custom(undecodable(&track.path(), &error)))
    }
}

fn undecodable(path: &serde_path_to_error::Path, error: &impl fmt::Display) -> String {
    use serde_path_to_error::Segment;
    let secret = path.iter().any(|segment| match segment {
        Segment::Map { key } => super::mask::secret_name(key),
        _ => false,
    });
    let place = match path.to_string() {
        root if root == "." => "spec".to_owned(),
        path => format!("spec.{path}"),
    };
    if secret {
        format!("{place}: not of the expected type (the value may be secret and is not shown)")
    } else {
        format!("{place}: {error}")
    }
}

/// `null` is the same as absent: the replaced platform wrote both.
fn absent_or<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// What cannot be read is absent.
fn readable<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// A quantity written as a number (`cpu: 1`) means its text.
fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Number(serde_json::Number),
    }
    let form = Option::<Form>::deserialize(deserializer)
        .map_err(|_| serde::de::Error::custom("expected a Kubernetes quantity such as \"500m\" or \"512Mi\""))?;
    Ok(form.map(|form| match form {
        Form::Text(text) => text,
        Form::Number(number) => number.to_string(),
    }))
}

impl Site {
    /// Whether pods should run. Absent means yes.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.spec.configuration.enabled.unwrap_or(true)
    }

    /// Space and name, when both are set: the two segments of the public path.
    #[must_use]
    pub fn public_path(&self) -> Option<(&str, &str)> {
        let space = self.spec.configuration.space.as_deref().filter(|text| !text.is_empty())?;
        let name = self.spec.name.as_deref().filter(|text| !text.is_empty())?;
        Some((space, name))
    }

    /// Whether the platform team watches this Site.
    #[must_use]
    pub fn monitored(&self) -> bool {
        self.spec.configuration.settings.monitored.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decoded(spec: &Value) -> Result<Site, String> {
        serde_json::from_value(json!({
            "apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": spec
        }))
        .map_err(|error| error.to_string())
    }

    #[test]
    fn errors_name_the_path() {
        let spec =
            |configuration: Value| json!({"id": "a", "owner": "o", "type": "public", "configuration": configuration});
        for (spec, expected) in [
            (spec(json!({"quota": "ten"})), "spec.configuration.quota: invalid type: string \"ten\", expected u32"),
            (spec(json!({"applications": [{"name": 1}]})), "spec.configuration.applications[0].name: invalid type"),
            (spec(json!({"share": {"view_users": "ana"}})), "spec.configuration.share.view_users: invalid type"),
            (
                spec(json!({"settings": {"resource_limits": {"cpu": {}}}})),
                "spec.configuration.settings.resource_limits.cpu: expected a Kubernetes quantity",
            ),
            (json!({"id": "a", "owner": "o", "type": "secret"}), "spec.type: unknown variant `secret`"),
            (json!({"id": "a"}), "spec: missing field `owner`"),
            (json!("x"), "spec: invalid type"),
        ] {
            let error = decoded(&spec).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn errors_do_not_repeat_secrets() {
        for configuration in [
            json!({"tokens": "hunter2"}),
            json!({"tokens": {"master": ["hunter2"]}}),
            json!({"headers": {"Authorization": ["hunter2"]}}),
        ] {
            let error = decoded(&json!({"id": "a", "owner": "o", "type": "public", "configuration": configuration}))
                .unwrap_err();
            assert!(error.starts_with("spec.configuration.") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn nulls_and_numbers_of_the_replaced_platform_decode() {
        let site = decoded(&json!({"id": "a", "owner": "o", "type": "public", "name": null, "configuration": {
            "share": null, "headers": null, "applications": null, "tokens": null, "quota": null,
            "settings": {"resource_limits": {"cpu": 1, "memory": null}}, "twofa": {"on": true}
        }}))
        .unwrap();
        let limits = site.spec.configuration.settings.resource_limits.unwrap();
        assert_eq!((limits.cpu.as_deref(), limits.memory), (Some("1"), None));
        assert_eq!(site.spec.configuration.share, Share::default());
        assert_eq!(site.spec.configuration.other["twofa"], json!({"on": true}));
    }

    #[test]
    fn a_status_of_another_form_is_read_as_far_as_it_can_be() {
        let site: Site = serde_json::from_value(json!({
            "apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": "a"},
            "spec": {"id": "a", "owner": "o", "type": "public"},
            "status": {"phase": "Provisioning", "container_problems": "none", "all_steps_started": null,
                "observedGeneration": 3, "conditions": {}, "handled": {"digest": "v1:x"}, "on_create": {}},
        }))
        .unwrap();
        let handled = Handled { digest: "v1:x".to_owned(), ..Handled::default() };
        let expected =
            SiteStatus { observed_generation: Some(3), handled: Some(handled.into()), ..SiteStatus::default() };
        assert_eq!(site.status, Some(expected));
    }

    #[test]
    fn unknown_fields_survive_a_round_trip() {
        let spec = json!({"id": "a", "owner": "o", "type": "private", "edition": 3, "configuration": {
            "twofa": 1, "applications": [{"name": "site-custom", "image": "x", "env": []}],
            "settings": {"error_handling": {"x": 1}, "y": 2}, "share": {}, "tokens": {"master": "m"}
        }});
        assert_eq!(serde_json::to_value(&decoded(&spec).unwrap().spec).unwrap(), spec);
    }
}
