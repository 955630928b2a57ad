//! oauth2-proxy as an identity service on loopback: its flags, as environment variables.
//!
//! It never stands in front of content: `/oauth2/auth` always answers, and says who the caller is when it knows.
//! Its secrets come from the Secret `<id>-oauth2`. The provider's addresses are settings, so that it starts while
//! the provider is down.

use k8s_openapi::api::core::v1::EnvVar;

use crate::domain::application::Builtin;
use crate::render::context::Context;
use crate::render::layout::port;

/// The flags, in a fixed order.
#[must_use]
pub fn environment(context: &Context<'_>) -> Vec<EnvVar> {
    let oidc = &context.settings.oidc;
    let flag = |value: &str| value.to_owned();
    [
        ("HTTP_ADDRESS", format!("127.0.0.1:{}", port(Builtin::Oauth2))),
        ("UPSTREAMS", flag("static://404")),
        ("SET_XAUTHREQUEST", flag("true")),
        // Everybody may ask: deciding is site-api's work. (Skipping routes by pattern misses odd paths.)
        ("TRUSTED_IPS", flag("0.0.0.0/0,::/0")),
        ("REVERSE_PROXY", flag("false")),
        ("EMAIL_DOMAINS", flag("*")),
        ("PROXY_PREFIX", format!("{}/oauth2", context.prefix)),
        // One callback for all sites: strict providers know exactly one. The Hub passes the answer on.
        ("REDIRECT_URL", format!("https://{}/oauth2/callback", context.host)),
        ("COOKIE_NAME", context.cookie_name()),
        ("COOKIE_PATH", format!("{}/", context.prefix)),
        ("COOKIE_SAMESITE", flag("lax")),
        ("COOKIE_EXPIRE", flag("12h")),
        // Parallel tabs log in at the same time.
        ("COOKIE_CSRF_PER_REQUEST", flag("true")),
        ("COOKIE_CSRF_PER_REQUEST_LIMIT", flag("5")),
        // No provider token in the cookie: 260 bytes, and nothing to steal.
        ("SESSION_COOKIE_MINIMAL", flag("true")),
        ("SKIP_PROVIDER_BUTTON", flag("true")),
        ("SKIP_JWT_BEARER_TOKENS", flag("true")),
        ("PROVIDER", flag("oidc")),
        ("OIDC_ISSUER_URL", oidc.issuer.clone()),
        ("SKIP_OIDC_DISCOVERY", flag("true")),
        ("LOGIN_URL", oidc.login_url.clone()),
        ("REDEEM_URL", oidc.redeem_url.clone()),
        ("OIDC_JWKS_URL", oidc.jwks_url.clone()),
        ("INSECURE_OIDC_SKIP_NONCE", flag("false")),
        ("CODE_CHALLENGE_METHOD", flag("S256")),
        ("SCOPE", oidc.scope.clone()),
        ("OIDC_GROUPS_CLAIM", oidc.groups_claim.clone()),
        ("CLIENT_ID", oidc.client_id.clone()),
        ("ALLOW_QUERY_SEMICOLONS", flag("true")),
        // It would log odd Authorization headers word by word.
        ("REQUEST_LOGGING", flag("false")),
        ("SILENCE_PING_LOGGING", flag("true")),
    ]
    .into_iter()
    .map(|(name, value)| variable(&format!("OAUTH2_PROXY_{name}"), &value))
    .chain([variable("GOMEMLIMIT", "60MiB")])
    .collect()
}

/// `$(` would be read as a reference to another variable.
fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.replace("$(", "$$(")), ..EnvVar::default() }
}
