//! Tests of rendering. Fixtures are the Sites in `tests/render/sites`; golden files are beside them.

mod golden;
mod keys;
mod limits;
mod mutation;
mod same_bytes;
mod user_text;
mod words;

use serde_json::{Value, json};

use super::{Desired, HttpRoutes, Observed, RenderError, Restart, Route};
use crate::domain::site::Site;
use crate::settings::Settings;
use crate::settings::types::{GatewayProvider, RoutingMode};

const SITES: [(&str, &str); 6] = [
    ("minimal", include_str!("../../../tests/render/sites/minimal.yaml")),
    ("docs", include_str!("../../../tests/render/sites/docs.yaml")),
    ("data", include_str!("../../../tests/render/sites/data.yaml")),
    ("dashboard", include_str!("../../../tests/render/sites/dashboard.yaml")),
    ("archived", include_str!("../../../tests/render/sites/archived.yaml")),
    ("shared", include_str!("../../../tests/render/sites/shared.yaml")),
];

/// Routing modes and providers, with the name that golden files carry.
const MODES: [(&str, RoutingMode, GatewayProvider); 4] = [
    ("ingress", RoutingMode::Ingress, GatewayProvider::None),
    ("gateway", RoutingMode::Gateway, GatewayProvider::None),
    ("nginx-gateway-fabric", RoutingMode::Gateway, GatewayProvider::NginxGatewayFabric),
    ("envoy-gateway", RoutingMode::Gateway, GatewayProvider::EnvoyGateway),
];

fn site(name: &str) -> Site {
    let (_, text) = SITES.iter().find(|(candidate, _)| *candidate == name).unwrap();
    serde_saphyr::from_str(text).unwrap()
}

fn settings() -> Settings {
    serde_json::from_value(json!({
        "routing": { "host": "sites.example.org" },
        "session": { "secret_key": "a session key of the tests, long enough" },
        "oidc": {
            "issuer": "https://login.example.org/realms/sites",
            "client_id": "sites",
            "client_secret": "client-secret-of-the-tests",
            "login_url": "https://login.example.org/auth",
            "redeem_url": "https://login.example.org/token",
            "jwks_url": "https://login.example.org/keys",
        },
        "site": {
            "version": "1.2.3",
            "images": {
                "site-oauth2": "images.example.org/oauth2-proxy:7.15",
                "site-proxy": "images.example.org/nginx:1.28",
                "site-api": "images.example.org/sites",
                "site-admin": "images.example.org/sites",
                "site-webdav": "images.example.org/sites",
                "site-s3": "images.example.org/sites",
                "site-initializer": "images.example.org/sites",
                "site-mirror": "images.example.org/sites",
            },
            "legacy_image_patterns": ["old\\.example\\.org/.*"],
        },
        "kubernetes": { "storage_class": "sites", "image_pull_secrets": ["pull"] },
        "migration": { "source": "https://old.example.org/{space}/{name}/" },
    }))
    .unwrap()
}

fn observed() -> Observed {
    Observed {
        namespace: "sites".to_owned(),
        restart: Restart {
            restarted_at: "2026-01-02T03:04:05Z".to_owned(),
            stamped_for: "v1:digest/request".to_owned(),
        },
        ..Observed::default()
    }
}

fn render(site: &Site) -> Result<Desired, RenderError> {
    super::render(site, &settings(), &observed())
}

/// Every object, in the order of creation, as the API server would read it.
fn objects(desired: &Desired) -> Vec<Value> {
    let Desired { secret, oauth2_secret, environment, files, claim, stateful_set, service, route } = desired.clone();
    let mut objects = vec![
        json!(secret),
        json!(oauth2_secret),
        json!(environment),
        json!(files),
        json!(claim),
        json!(stateful_set),
        json!(service),
    ];
    match route {
        None => {}
        Some(Route::Ingress(ingress)) => objects.push(json!(ingress)),
        Some(Route::Http(routes)) => {
            let HttpRoutes { route, policies } = *routes;
            objects.push(json!(route));
            objects.extend(policies.iter().map(|policy| json!(policy)));
        }
    }
    objects
}

fn file(desired: &Desired, name: &str) -> String {
    desired.files.data.as_ref().unwrap()[name].clone()
}
