//! What a role is told: the environment that the operator renders (see `render::environment`), and nothing else.
//!
//! A variable that is missing or wrong ends the start with its name and what to give.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use secrecy::SecretString;
use thiserror::Error;

use crate::telemetry::logging::LogOptions;

/// A variable that is missing or wrong.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{name}: {problem}")]
pub struct ConfigError {
    /// Which variable.
    pub name: &'static str,
    /// What is wrong and what to give.
    pub problem: String,
}

/// One site, as its servers are told.
#[derive(Debug)]
pub struct SiteConfig {
    /// `SITE_ID`.
    pub id: String,
    /// `SITE_PREFIX`: `/<space>/<name>`, or empty for a site at the root of its host.
    pub prefix: String,
    /// `SITE_PUBLIC_URL`, with a slash at the end.
    pub public_url: String,
    /// `SITE_QUOTA_GI`, in bytes.
    pub quota: u64,
    /// `SITE_CONTENT_DIR`.
    pub content_dir: PathBuf,
    /// `SITE_ACCESS_FILE`.
    pub access_file: PathBuf,
    /// `SITE_IDENTITY_URL`: oauth2-proxy's `/oauth2/auth`, on loopback.
    pub identity_url: Uri,
    /// `SITE_COOKIE_NAME`: oauth2-proxy's session.
    pub cookie_name: String,
    /// `MASTER_TOKEN`; a site without one accepts none.
    pub master_token: Option<SecretString>,
    /// `SIGNING_KEY`.
    pub signing_key: SecretString,
    /// `SESSION_URL_KEY`.
    pub session_url_key: SecretString,
    /// `SITE_LOG_LEVEL` (default INFO) and `SITE_LOG_FORMAT` (`json`, the default, or `text`).
    pub log: LogOptions,
}

impl SiteConfig {
    /// Reads the environment.
    pub fn load(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let env = Environment(variable);
        let prefix = env.optional("SITE_PREFIX").unwrap_or_default();
        let two = prefix.strip_prefix('/').is_some_and(|rest| {
            let mut segments = rest.split('/');
            let good = |segment: Option<&str>| segment.is_some_and(crate::domain::forms::segment);
            good(segments.next()) && good(segments.next()) && segments.next().is_none()
        });
        if !prefix.is_empty() && !two {
            let problem = "give /<space>/<name>, or nothing for a site at the root of its host".to_owned();
            return Err(ConfigError { name: "SITE_PREFIX", problem });
        }
        let public_url = env.required("SITE_PUBLIC_URL", "give the site's public address")?;
        let rule = format!("give http(s)://<host>{prefix}/, with the prefix of SITE_PREFIX and a slash at the end");
        let path = public_url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
        if !public_url.starts_with("http") || path != Some(&format!("{prefix}/")) {
            return Err(ConfigError { name: "SITE_PUBLIC_URL", problem: rule });
        }
        let identity = env.parsed::<Uri>("SITE_IDENTITY_URL", "give the address of oauth2-proxy's /oauth2/auth")?;
        if !identity.host().is_some_and(|host| ["127.0.0.1", "localhost", "[::1]"].contains(&host)) {
            let problem = "must be on loopback: visitors' cookies are sent there".to_owned();
            return Err(ConfigError { name: "SITE_IDENTITY_URL", problem });
        }
        let quota = env.parsed::<u32>("SITE_QUOTA_GI", "give the quota as a number of Gi")?;
        if quota == 0 {
            return Err(ConfigError { name: "SITE_QUOTA_GI", problem: "must be at least 1".to_owned() });
        }
        Ok(Self {
            id: env.required("SITE_ID", "give the site's id")?,
            prefix,
            public_url,
            quota: u64::from(quota) << 30,
            content_dir: env
                .required("SITE_CONTENT_DIR", "give the folder where the content volume is mounted")?
                .into(),
            access_file: env.required("SITE_ACCESS_FILE", "give the access file of the Site's files")?.into(),
            identity_url: identity,
            cookie_name: env.required("SITE_COOKIE_NAME", "give the name of oauth2-proxy's session cookie")?,
            master_token: env.optional("MASTER_TOKEN").map(SecretString::from),
            signing_key: env.key("SIGNING_KEY")?,
            session_url_key: env.key("SESSION_URL_KEY")?,
            log: LogOptions {
                json: env.optional("SITE_LOG_FORMAT").is_none_or(|format| format != "text"),
                level: env.optional("SITE_LOG_LEVEL").unwrap_or_else(|| "INFO".to_owned()),
                dependency_level: "WARN".to_owned(),
            },
        })
    }
}

/// What the mirror is told beside.
#[derive(Debug)]
pub struct MirrorConfig {
    /// `SITE_MIRROR_SOURCE`: public address of the site that is copied.
    pub source: String,
    /// `SITE_MIRROR_INTERVAL_SECONDS`: time between two cycles. Default 900.
    pub interval: Duration,
    /// `SITE_MIRROR_MAX_DELETE_PERCENT`: most of what was copied that one cycle may delete. Default 10, 0 for none.
    pub max_delete_percent: u8,
    /// `SITE_MIRROR_DRY_RUN=true`: say what would be done, do nothing.
    pub dry_run: bool,
    /// `SITE_MIRROR_ONCE=true`: end after one cycle.
    pub once: bool,
}

impl MirrorConfig {
    /// Reads the environment.
    pub fn load(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let env = Environment(variable);
        let source = env.required("SITE_MIRROR_SOURCE", "give the public address of the site to copy")?;
        if source.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).is_none() {
            let problem = "give an address such as https://old.example.org/<space>/<name>".to_owned();
            return Err(ConfigError { name: "SITE_MIRROR_SOURCE", problem });
        }
        let max_delete_percent = env.number("SITE_MIRROR_MAX_DELETE_PERCENT", 10)?;
        if max_delete_percent > 100 {
            let problem = "give a number from 0 to 100".to_owned();
            return Err(ConfigError { name: "SITE_MIRROR_MAX_DELETE_PERCENT", problem });
        }
        Ok(Self {
            source,
            interval: Duration::from_secs(env.number("SITE_MIRROR_INTERVAL_SECONDS", 900)?),
            max_delete_percent,
            dry_run: env.optional("SITE_MIRROR_DRY_RUN").is_some_and(|text| text == "true"),
            once: env.optional("SITE_MIRROR_ONCE").is_some_and(|text| text == "true"),
        })
    }
}

/// Where a role listens.
pub fn listen(variable: &dyn Fn(&str) -> Option<String>, name: &'static str) -> Result<SocketAddr, ConfigError> {
    Environment(variable).parsed(name, "give the address to listen on, such as 127.0.0.1:10000")
}

struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// An empty variable is an absent one: so a `ConfigMap` can leave one out.
    fn optional(&self, name: &'static str) -> Option<String> {
        (self.0)(name).filter(|text| !text.is_empty())
    }

    fn required(&self, name: &'static str, advice: &str) -> Result<String, ConfigError> {
        self.optional(name).ok_or_else(|| ConfigError { name, problem: format!("is not set: {advice}") })
    }

    fn parsed<T: FromStr<Err: Display>>(&self, name: &'static str, advice: &str) -> Result<T, ConfigError> {
        let text = self.required(name, advice)?;
        text.parse().map_err(|error| ConfigError { name, problem: format!("'{text}' is wrong ({error}): {advice}") })
    }

    fn number<T: FromStr<Err: Display>>(&self, name: &'static str, default: T) -> Result<T, ConfigError> {
        if self.optional(name).is_none() { Ok(default) } else { self.parsed(name, "give a whole number") }
    }

    fn key(&self, name: &'static str) -> Result<SecretString, ConfigError> {
        let text = self.required(name, "the Secret of the Site has it")?;
        if text.len() < 32 {
            return Err(ConfigError { name, problem: "is too short: 32 random characters at least".to_owned() });
        }
        Ok(SecretString::from(text))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn good() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("SITE_ID", "plans"),
            ("SITE_PREFIX", "/team/plans"),
            ("SITE_PUBLIC_URL", "https://sites.example.org/team/plans/"),
            ("SITE_QUOTA_GI", "2"),
            ("SITE_CONTENT_DIR", "/data"),
            ("SITE_ACCESS_FILE", "/etc/site/access.json"),
            ("SITE_IDENTITY_URL", "http://127.0.0.1:4181/team/plans/oauth2/auth"),
            ("SITE_COOKIE_NAME", "__Secure-sites-plans"),
            ("SIGNING_KEY", "0123456789012345678901234567890123456789012"),
            ("SESSION_URL_KEY", "abcdefghijabcdefghijabcdefghijabcdefghijabc"),
        ])
    }

    fn load(values: &BTreeMap<&str, &str>) -> Result<SiteConfig, ConfigError> {
        SiteConfig::load(&|name| values.get(name).map(|value| (*value).to_owned()))
    }

    #[test]
    fn what_the_operator_renders_is_read() {
        let config = load(&good()).unwrap();
        assert_eq!((config.quota, config.master_token.is_none()), (2 << 30, true));
        let mut values = good();
        values.extend([("SITE_PREFIX", ""), ("SITE_PUBLIC_URL", "https://own.example.org/")]);
        assert_eq!(load(&values).unwrap().prefix, "");
    }

    #[test]
    fn errors_name_the_variable() {
        for name in good().keys().filter(|name| **name != "SITE_PREFIX") {
            let mut values = good();
            values.remove(name);
            assert_eq!(load(&values).unwrap_err().name, *name);
        }
        for (name, value) in [
            ("SITE_PREFIX", "team/plans"),
            ("SITE_PREFIX", "/team"),
            ("SITE_PUBLIC_URL", "https://sites.example.org/team/other/"),
            ("SITE_QUOTA_GI", "ten"),
            ("SITE_QUOTA_GI", "0"),
            ("SITE_IDENTITY_URL", "http://evil.example.org/"),
            ("SIGNING_KEY", "short"),
        ] {
            let mut values = good();
            values.insert(name, value);
            let error = load(&values).unwrap_err();
            assert!(error.name == name && !error.problem.is_empty(), "{error}");
        }
    }
}
