//! What the operator renders is what the site's servers read.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use sites::domain::site::Site;
use sites::render::{Observed, render};
use sites::runtime::config::{SiteConfig, listen};
use sites::settings::Settings;

fn settings() -> Settings {
    serde_json::from_value(json!({
        "routing": { "host": "sites.example.org" },
        "session": { "secret_key": "a session key of the tests, long enough" },
        "oidc": {
            "issuer": "https://login.example.org",
            "client_id": "sites",
            "client_secret": "secret",
            "login_url": "https://login.example.org/auth",
            "redeem_url": "https://login.example.org/token",
            "jwks_url": "https://login.example.org/keys",
        },
    }))
    .unwrap()
}

#[test]
fn every_rendered_site_starts_with_its_environment() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/render/sites");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let site: Site = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let observed = Observed { namespace: "sites".to_owned(), ..Observed::default() };
        let desired = render(&site, &settings(), &observed).unwrap();
        let mut environment: BTreeMap<String, String> = desired.environment.data.unwrap();
        let secret = desired.secret.data.unwrap();
        environment.extend(secret.into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())));
        let variable = |name: &str| environment.get(name).cloned();
        let config = SiteConfig::load(&variable).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(config.id, site.spec.id);
        for name in ["SITE_API_LISTEN", "SITE_WEBDAV_LISTEN", "SITE_ADMIN_LISTEN", "SITE_S3_LISTEN"] {
            assert!(listen(&variable, name).unwrap().ip().is_loopback(), "{name}");
        }
        // The access file of the rendered files is one that is understood.
        let access = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(access.path(), &desired.files.data.unwrap()["access.json"]).unwrap();
        let share = sites::runtime::access::AccessFile::open(access.path()).unwrap().share();
        assert_eq!(share.is_public(), site.spec.site_type == sites::domain::site::SiteType::Public);
        seen += 1;
    }
    assert!(seen > 3);
}
