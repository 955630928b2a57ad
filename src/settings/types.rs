//! The typed platform configuration: every key, its default and its meaning.
//!
//! Owns the shape and the defaults. Loading, environment overrides and messages are in
//! [`super::load`], consistency rules in [`super::check`]. Durations are texts such as `300s` or `5m`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

pub use super::bulk::Bulk;
use super::duration::Period;
use super::notifications::{Jobs, Notifications};

/// The whole file.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The operator's own behaviour.
    #[serde(default)]
    pub operator: Operator,
    /// The Hub's own behaviour.
    #[serde(default)]
    pub hub: Hub,
    /// The cluster that the platform runs on.
    #[serde(default)]
    pub kubernetes: Kubernetes,
    /// How sites are reached from outside.
    pub routing: Routing,
    /// What a Site is made of.
    #[serde(default)]
    pub site: SiteDefaults,
    /// Sessions.
    pub session: Session,
    /// The OpenID provider.
    pub oidc: Oidc,
    /// The shared cache; without it nothing is cached.
    #[serde(default)]
    pub redis: Option<Redis>,
    /// The content mirror of a migration.
    #[serde(default)]
    pub migration: Migration,
    /// How people are told of requests; without it requests are off.
    #[serde(default)]
    pub notifications: Option<Notifications>,
    /// What is done for the platform team.
    #[serde(default)]
    pub jobs: Jobs,
}

/// `operator`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Operator {
    /// Sites worked on at the same time. Default 5.
    pub worker_limit: usize,
    /// Attempts of a failing update before it waits for the next change or resync. Default 5.
    pub retries: u32,
    /// Longest wait between two attempts. Default 300 s.
    pub max_backoff: Period,
    /// Time between two resyncs of a Site (a comparison in memory). 0 switches them off. Default 300 s.
    pub resync_period: Period,
    /// Shortest time between two status writes of one Site. Default 1 s.
    pub status_min_interval: Period,
    /// Attempts of a status write on conflicts. Default 5.
    pub max_retries: u32,
    /// Wait after a route conflict or a missing public host. Default 60 s.
    pub route_conflict_delay: Period,
    /// Wait after a failed deletion of the other mode's route. Default 30 s.
    pub other_mode_delay: Period,
    /// When the bound volume is labelled.
    pub volume_label: VolumeLabel,
    /// Address of `/healthz`, `/readyz`, `/metrics` and `/debug`. Default `0.0.0.0:8081`.
    pub admin_address: SocketAddr,
    /// Leadership.
    pub lease: Lease,
    /// Time that passes in flight get to finish on stop. Default 20 s.
    pub grace_period: Period,
    /// Longest time a single API call may take. Default 30 s.
    pub call_timeout: Period,
    /// Time after which the API server ends a watch, which then goes on with a new request; one that is silent for
    /// 5 s longer counts as dead. From 1 s to 290 s. Default 290 s.
    pub watch_timeout: Period,
    /// Most API calls a second, bursts of as many allowed. Default 1000.
    pub calls_per_second: u32,
    /// Level of the log lines of libraries. Default `INFO`.
    pub dependency_log_level: String,
    /// Level of our own log lines. Default `INFO`.
    pub log_level: String,
    /// How log lines look: one JSON object a line, or text for a person at a terminal. Default `json`.
    pub log_format: LogFormat,
}

impl Default for Operator {
    fn default() -> Self {
        Self {
            worker_limit: 5,
            retries: 5,
            max_backoff: Period::seconds(300),
            resync_period: Period::seconds(300),
            status_min_interval: Period::seconds(1),
            max_retries: 5,
            route_conflict_delay: Period::seconds(60),
            other_mode_delay: Period::seconds(30),
            volume_label: VolumeLabel::default(),
            admin_address: SocketAddr::from(([0, 0, 0, 0], 8081)),
            lease: Lease::default(),
            grace_period: Period::seconds(20),
            call_timeout: Period::seconds(30),
            watch_timeout: Period::seconds(290),
            calls_per_second: 5000,
            dependency_log_level: "INFO".to_owned(),
            log_level: "INFO".to_owned(),
            log_format: LogFormat::Json,
        }
    }
}

/// How log lines look.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For a person at a terminal.
    Text,
}

/// `operator.volume_label`: after a create, a random moment between two bounds lets the claim bind and
/// spreads the load; after an update a fixed time.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct VolumeLabel {
    /// Earliest after a create. Default 20 s.
    pub create_min: Period,
    /// Latest after a create. Default 40 s.
    pub create_max: Period,
    /// After an update. Default 5 s.
    pub update: Period,
}

impl Default for VolumeLabel {
    fn default() -> Self {
        Self { create_min: Period::seconds(20), create_max: Period::seconds(40), update: Period::seconds(5) }
    }
}

/// `operator.lease`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Lease {
    /// Only the replica that holds the Lease writes. Default true.
    pub enabled: bool,
    /// Name of the Lease. Default `sites-operator`.
    pub name: String,
    /// Namespace of the Lease. Default: the one that is watched.
    pub namespace: Option<String>,
    /// Validity after a renewal. Default 15 s.
    pub duration: Period,
    /// Time between two renewals. Default 5 s.
    pub renew_period: Period,
}

impl Default for Lease {
    fn default() -> Self {
        Self {
            enabled: true,
            name: "sites-operator".to_owned(),
            namespace: None,
            duration: Period::seconds(15),
            renew_period: Period::seconds(5),
        }
    }
}

/// `hub`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Hub {
    /// Address that the Hub answers on. Default `0.0.0.0:8080`.
    pub address: SocketAddr,
    /// Level of the log lines of libraries. Default `INFO`.
    pub dependency_log_level: String,
    /// Level of our own log lines. Default `INFO`.
    pub log_level: String,
    /// How log lines look. Default `json`.
    pub log_format: LogFormat,
    /// Who administers the platform.
    pub platform_administrators: People,
    /// Audience of the access tokens of programs. Default: `oidc.client_id`.
    pub audience: Option<String>,
    /// Time until a browser has to log in again, at most 12 h. Default 12 h.
    pub session_lifetime: Period,
    /// How long a login counts as fresh: where Hub and sites share a host, a browser's session needs a fresh one for
    /// master tokens, deletion and bulk actions. Default 15 min.
    pub fresh_login: Period,
    /// Most requests a second of one caller (a person, else an address); twice as many at once. Default 50.
    pub requests_per_second: u32,
    /// Longest time until an answer begins. Default 30 s.
    pub request_timeout: Period,
    /// Largest body of a request, in bytes. Default 1 MiB.
    pub body_limit: usize,
    /// Proxies in front of the Hub that each add the address they were asked from to `X-Forwarded-For`. With 0 that
    /// header is not believed: everybody behind a proxy is one address. Default 0.
    pub trusted_proxies: usize,
    /// Bulk runs.
    pub bulk: Bulk,
    /// Where a Site's pods answer inside the cluster: a template over `{id}` and `{namespace}`.
    /// Default `http://{id}.{namespace}.svc:4180`.
    pub site_address: String,
    /// Folder of the platform's templates of new sites, `<name>.yaml` or `<name>.json`; only read.
    pub templates_path: Option<PathBuf>,
    /// Longest time until a site's own API has answered. Default 10 s.
    pub site_api_timeout: Period,
}

/// Exact names of people and groups.
#[derive(Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct People {
    /// User ids, e-mail addresses or user names.
    pub users: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([0, 0, 0, 0], 8080)),
            dependency_log_level: "INFO".to_owned(),
            log_level: "INFO".to_owned(),
            log_format: LogFormat::Json,
            platform_administrators: People::default(),
            audience: None,
            session_lifetime: Period::seconds(12 * 3600),
            fresh_login: Period::seconds(15 * 60),
            requests_per_second: 50,
            request_timeout: Period::seconds(30),
            body_limit: 1 << 20,
            trusted_proxies: 0,
            bulk: Bulk::default(),
            site_address: "http://{id}.{namespace}.svc:4180".to_owned(),
            templates_path: None,
            site_api_timeout: Period::seconds(10),
        }
    }
}

/// `kubernetes`.
#[derive(Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Kubernetes {
    /// Class of the content volumes; absent means the cluster's default class.
    pub storage_class: Option<String>,
    /// Access mode of the content volumes. Default `ReadWriteOnce`.
    pub storage_access_mode: Option<String>,
    /// Whether a claim may grow after its creation. Default false.
    pub storage_expansion_supported: bool,
    /// Names that claims had on older platforms, as templates over `{id}` and `{owner}`.
    pub old_claim_names: Vec<String>,
    /// Names of Secrets to pull images with.
    pub image_pull_secrets: Vec<String>,
}

/// `routing`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Which kind of route a Site gets. Default `ingress`.
    #[serde(default)]
    pub mode: RoutingMode,
    /// Public host name of the sites. While it is missing, sites wait.
    #[serde(default)]
    pub host: Option<String>,
    /// Public host name of the Hub. Default: the same as the sites'.
    #[serde(default)]
    pub hub_host: Option<String>,
    /// Ingress mode.
    #[serde(default)]
    pub ingress: IngressRouting,
    /// Gateway mode.
    #[serde(default)]
    pub gateway: GatewayRouting,
}

/// Kind of route.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RoutingMode {
    /// NGINX Ingress Controller, mergeable minions.
    #[default]
    Ingress,
    /// Gateway API `HTTPRoute` with policies of a controller.
    Gateway,
}

/// `routing.ingress`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct IngressRouting {
    /// `spec.ingressClassName`. Default `nginx`.
    pub class: String,
    /// Read and send timeout of the proxy, nginx time such as `600s`.
    pub proxy_timeout: String,
}

impl Default for IngressRouting {
    fn default() -> Self {
        Self { class: "nginx".to_owned(), proxy_timeout: "600s".to_owned() }
    }
}

/// `routing.gateway`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayRouting {
    /// Gateway that routes attach to. Default `sites-gateway`.
    pub name: String,
    /// Its namespace; absent means the platform's own.
    pub namespace: Option<String>,
    /// Listener of that Gateway; absent means all.
    pub section_name: Option<String>,
    /// Whose policy objects go with the route.
    pub provider: GatewayProvider,
    /// Longest time of a request, Gateway API duration such as `600s`.
    pub request_timeout: String,
}

impl Default for GatewayRouting {
    fn default() -> Self {
        Self {
            name: "sites-gateway".to_owned(),
            namespace: None,
            section_name: None,
            provider: GatewayProvider::None,
            request_timeout: "600s".to_owned(),
        }
    }
}

/// Controller whose policies are written.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayProvider {
    /// Plain Gateway API: no policy objects.
    #[default]
    None,
    /// NGINX Gateway Fabric.
    NginxGatewayFabric,
    /// Envoy Gateway.
    EnvoyGateway,
}

/// `site`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct SiteDefaults {
    /// Pods of an enabled Site. Default 1.
    pub replicas: i32,
    /// Version of the built-in applications: the tag of images that give none.
    pub version: String,
    /// Image of each built-in application, `repository[:tag]`; names that are left out keep their default.
    pub images: BTreeMap<String, String>,
    /// Regular expressions, whole match: images of the replaced platform, replaced when rendering.
    pub legacy_image_patterns: Vec<String>,
    /// `imagePullPolicy` of every container. Default `IfNotPresent`.
    pub image_pull_policy: String,
    /// Limits of a custom application that gives none.
    pub custom_limits: Limits,
    /// User and group id of every process of a Site's pod. Default 1000.
    pub user_id: i64,
    /// Seconds that a pod has to end. Default 30.
    pub termination_grace_seconds: i64,
    /// Size of the content volume of a Site that gives no quota, in Gi. Default 1.
    pub default_quota: u32,
    /// Title shown on the error pages. Default `Sites`.
    pub brand: String,
    /// Who may read a Site that is made private and has no lists: users. Default nobody.
    pub default_view_users: Vec<String>,
    /// The same: groups.
    pub default_view_groups: Vec<String>,
}

impl Default for SiteDefaults {
    fn default() -> Self {
        Self {
            replicas: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            images: BTreeMap::new(),
            legacy_image_patterns: Vec::new(),
            image_pull_policy: "IfNotPresent".to_owned(),
            custom_limits: Limits::default(),
            user_id: 1000,
            termination_grace_seconds: 30,
            default_quota: 1,
            brand: "Sites".to_owned(),
            default_view_users: Vec::new(),
            default_view_groups: Vec::new(),
        }
    }
}

/// Kubernetes quantities.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// CPU. Default `500m`.
    pub cpu: String,
    /// Memory. Default `512Mi`.
    pub memory: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self { cpu: "500m".to_owned(), memory: "512Mi".to_owned() }
    }
}

/// `session`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Root of every derived secret. Changing it signs everybody out at each Site's next change.
    #[schemars(with = "String")]
    pub secret_key: SecretString,
}

/// `oidc`: rendering never asks the network, so the provider's addresses are settings.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// Issuer, as in its tokens.
    pub issuer: String,
    /// Client of all sites.
    pub client_id: String,
    /// Its secret.
    #[schemars(with = "String")]
    pub client_secret: SecretString,
    /// Authorization endpoint.
    pub login_url: String,
    /// Token endpoint.
    pub redeem_url: String,
    /// Key set.
    pub jwks_url: String,
    /// Scopes asked for. Default `openid email profile groups`.
    #[serde(default = "default_scope")]
    pub scope: String,
    /// Claim that carries the groups. Default `groups`.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: String,
    /// Where the Hub ends the provider's own session too. Default: what the provider publishes, if anything.
    #[serde(default)]
    pub logout_url: Option<String>,
    /// Where the Hub asks about tokens that only the provider can read. Default: what the provider publishes, if
    /// anything.
    #[serde(default)]
    pub introspection_url: Option<String>,
}

fn default_scope() -> String {
    "openid email profile groups".to_owned()
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

/// `redis`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Redis {
    /// `redis://` or `rediss://` address; may carry credentials.
    #[schemars(with = "String")]
    pub url: SecretString,
}

/// `migration`.
#[derive(Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Migration {
    /// Adds the mirror container to every Site. Default false.
    pub enabled: bool,
    /// Where the content comes from: a template over `{space}` and `{name}`.
    pub source: Option<String>,
}
