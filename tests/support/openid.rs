//! The real OpenID provider as a process of this machine, with users and clients of a test's own, and tokens signed
//! with its key: what it would give, and what it never would.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openidconnect::PrivateSigningKey;
use openidconnect::core::{CoreJwsSigningAlgorithm, CoreRsaPrivateSigningKey};
use serde_json::{Value, json};
use xtask::cluster::openid::{Provider, demo_config, provider};
use xtask::process::{Process, free_port, tied};

use super::api::merge_into;
use super::hub::{Told, ask};
use super::wait::{SOON, eventually};

/// The client of all sites and the Hub.
pub const CLIENT: &str = "sites";
pub const SECRET: &str = "demo-not-a-secret";
/// Members administer the platform.
pub const ADMINISTRATORS: &str = "sites-admins";

/// A running provider; dropping it ends it. Passwords are the names of the users: those of the demo (`alice` of
/// `docs`, `bob` of `weather`, `carol-admin` of `sites-admins`, `dave`), `ada`, and `many` with 300 groups.
#[derive(Debug)]
pub struct OpenId {
    port: u16,
    dir: tempfile::TempDir,
    process: Mutex<Option<Process>>,
    key: Mutex<Arc<Key>>,
    tokens: Mutex<BTreeMap<String, String>>,
}

impl OpenId {
    /// The provider of this test process.
    pub async fn get() -> &'static Self {
        static SHARED: tokio::sync::OnceCell<OpenId> = tokio::sync::OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// A provider of a test's own.
    pub async fn start() -> Self {
        let port = free_port().unwrap();
        let key = Mutex::new(Key::new("first").await);
        let openid =
            Self { port, dir: tempfile::tempdir().unwrap(), process: Mutex::default(), key, tokens: Mutex::default() };
        openid.write_files();
        openid.run().await;
        openid
    }

    /// Stops it, makes another key and starts it again at the same address.
    pub async fn rotate(&self, kid: &str) {
        let key = Key::new(kid).await;
        *self.key.lock().unwrap() = key;
        self.tokens.lock().unwrap().clear();
        self.write_files();
        self.run().await;
    }

    /// Stops it.
    pub fn stop(&self) {
        *self.process.lock().unwrap() = None;
    }

    fn write_files(&self) {
        let read = |file| -> Value {
            serde_json::from_str(&std::fs::read_to_string(demo_config().join(file)).unwrap()).unwrap()
        };
        let mut users = read("users.json");
        let many: Vec<String> = (0..300).map(|number| format!("team-{number:03}-of-a-large-institute")).collect();
        merge_into(
            &mut users,
            &json!({
                "ada": {"password": "ada", "name": "Ada", "email": "ada@example.test", "groups": []},
                "many": {"password": "many", "name": "Many", "email": "many@example.test", "groups": many},
            }),
        );
        let mut clients = read("clients.json");
        clients[0]["redirect_uris"] = json!(["https://sites.example.test/hub/callback/"]);
        clients[0]["post_logout_redirect_uris"] = json!(["https://sites.example.test/hub/"]);
        let keys = json!({"keys": [self.key().private]});
        for (file, content) in [("users.json", users), ("clients.json", clients), ("keys.json", keys)] {
            std::fs::write(self.dir.path().join(file), content.to_string()).unwrap();
        }
    }

    async fn run(&self) {
        // It has the port.
        self.stop();
        let Provider { node, script } = installed().await;
        let mut command = tied(node);
        command
            .arg(script)
            .env("ISSUER", self.issuer())
            .env("AUDIENCE", CLIENT)
            .env("CONFIG", self.dir.path())
            .env("HOST", "127.0.0.1")
            .env("PORT", self.port.to_string());
        let log = self.dir.path().join("provider.log");
        *self.process.lock().unwrap() = Some(Process::start("openid", command, &log).expect("the provider starts"));
        eventually("the provider answers", SOON, || async {
            match ask(self.address(), "GET", "/healthz", &[], "").await {
                Ok(told) if told.status == 200 => Ok(()),
                Ok(told) => Err(told.text()),
                Err(reason) => Err(format!("{reason}: {}", xtask::process::last_lines(&log, 5))),
            }
        })
        .await;
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Its public address.
    pub fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The settings of a Hub that uses it.
    pub fn settings(&self) -> Value {
        let issuer = self.issuer();
        json!({
            "oidc": {
                "issuer": issuer, "client_id": CLIENT, "client_secret": SECRET,
                "login_url": format!("{issuer}/auth"), "redeem_url": format!("{issuer}/token"),
                "jwks_url": format!("{issuer}/jwks"),
            },
            "hub": {"platform_administrators": {"groups": [ADMINISTRATORS]}},
        })
    }

    /// The key that it signs with.
    pub fn key(&self) -> Arc<Key> {
        Arc::clone(&self.key.lock().unwrap())
    }

    /// The claims of an access token that it would give a user now.
    pub fn claims(&self, user: &str) -> Value {
        let users: Value = serde_json::from_slice(&std::fs::read(self.dir.path().join("users.json")).unwrap()).unwrap();
        let known = &users[user];
        assert!(known.is_object(), "{user} is no user of the provider");
        let now = jiff::Timestamp::now().as_second();
        json!({
            "iss": self.issuer(), "aud": CLIENT, "sub": user, "preferred_username": user, "email_verified": true,
            "email": known["email"], "name": known["name"], "groups": known["groups"],
            "client_id": CLIENT, "scope": "openid", "iat": now, "exp": now + 3600,
        })
    }

    /// An access token of a user, as it would give them.
    pub fn token(&self, user: &str) -> String {
        if let Some(token) = self.tokens.lock().unwrap().get(user) {
            return token.clone();
        }
        let token = self.token_with(user, &json!({}));
        self.tokens.lock().unwrap().insert(user.to_owned(), token.clone());
        token
    }

    /// As [`OpenId::token`] with other claims; null takes one away.
    pub fn token_with(&self, user: &str, claims: &Value) -> String {
        let mut all = self.claims(user);
        merge_into(&mut all, claims);
        self.key().sign(&all)
    }

    /// What its token endpoint answers to a form of the client.
    pub async fn redeem(&self, form: &str) -> Value {
        let secret = base64::engine::general_purpose::STANDARD.encode(format!("{CLIENT}:{SECRET}"));
        let headers = [
            ("authorization", format!("Basic {secret}")),
            ("content-type", "application/x-www-form-urlencoded".to_owned()),
        ];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let told =
            ask(self.address(), "POST", "/token", &headers, form.to_owned()).await.expect("the provider answers");
        assert_eq!(told.status, 200, "{}", told.text());
        told.json()
    }

    /// An access token of the client itself, from the provider.
    pub async fn client_token(&self) -> String {
        self.redeem("grant_type=client_credentials").await["access_token"].as_str().unwrap().to_owned()
    }

    /// As [`OpenId::client_token`], one that only the provider can read.
    pub async fn opaque_token(&self) -> String {
        let form = format!("grant_type=client_credentials&resource=urn%3Asites%3A{CLIENT}%3Aopaque");
        self.redeem(&form).await["access_token"].as_str().unwrap().to_owned()
    }
}

/// A key pair; the provider uses it, and so can a test.
#[derive(Debug)]
pub struct Key {
    pub kid: String,
    /// As the provider reads it.
    pub private: Value,
    pem: String,
}

impl Key {
    pub async fn new(kid: &str) -> Arc<Self> {
        let Provider { node, .. } = installed().await;
        let program = "const k = require('crypto').generateKeyPairSync('rsa', {modulusLength: 2048}).privateKey; \
                       console.log(JSON.stringify({jwk: k.export({format: 'jwk'}), \
                       pem: k.export({format: 'pem', type: 'pkcs1'})}))";
        let out = tokio::process::Command::new(node).args(["-e", program]).output().await.unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let mut made: Value = serde_json::from_slice(&out.stdout).unwrap();
        merge_into(&mut made["jwk"], &json!({"use": "sig", "alg": "RS256", "kid": kid}));
        let pem = made["pem"].as_str().unwrap().to_owned();
        Arc::new(Self { kid: kid.to_owned(), private: made["jwk"].take(), pem })
    }

    /// As its holder publishes it.
    pub fn public(&self) -> Value {
        let field = |name: &str| self.private[name].clone();
        json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": field("n"), "e": field("e")})
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&json!({"alg": "RS256", "kid": self.kid, "typ": "at+jwt"}), claims)
    }

    /// As [`Key::sign`] with any header; what is signed is RS256 whatever it says.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let key = CoreRsaPrivateSigningKey::from_pem(&self.pem, None).expect("a key");
        let input = format!("{}.{}", encoded(header), encoded(claims));
        let algorithm = CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256;
        let signature = key.sign(&algorithm, input.as_bytes()).expect("a signature");
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A part of a token.
pub fn encoded(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

async fn installed() -> Provider {
    tokio::task::spawn_blocking(provider).await.expect("no panic").expect("the provider is there (`npm`)")
}
