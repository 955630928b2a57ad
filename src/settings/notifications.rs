//! How people are told of requests: `notifications` and `jobs`.

use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// `jobs`.
#[derive(Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Jobs {
    /// Who gets requests to publish a site or to enlarge it: an address or an account of the issue tracker.
    pub notification_default_assignee: Option<String>,
}

/// `notifications`: `smtp` or `webhook`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Mail.
    #[serde(default)]
    pub smtp: Option<Smtp>,
    /// An issue tracker that takes JSON. Wins over `smtp`.
    #[serde(default)]
    pub webhook: Option<Webhook>,
    /// Folder of templates, `<request>.subject.txt` and `<request>.body.txt`; those that are missing are built in.
    #[serde(default)]
    pub templates_path: Option<PathBuf>,
}

/// `notifications.smtp`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// Host name of the mail server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected. Default `starttls`.
    #[serde(default)]
    pub security: SmtpSecurity,
    /// Sender of every mail.
    pub from: String,
    /// Added to assignees that are no mail address: `<user>@<domain>`.
    #[serde(default)]
    pub default_domain: Option<String>,
    /// User, if the server wants a login.
    #[serde(default)]
    pub user: Option<String>,
    /// Password of the user.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub password: Option<SecretString>,
}

/// How a connection to a mail server is protected.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum SmtpSecurity {
    /// Encrypted after the greeting; never without.
    #[default]
    Starttls,
    /// Encrypted from the start.
    Tls,
    /// Not at all: for a relay on the same network.
    Plain,
}

/// `notifications.webhook`.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where the JSON is posted.
    pub url: String,
    /// Header that carries the secret. Default `X-Sites-Secret`.
    #[serde(default = "secret_header")]
    pub header: String,
    /// The secret.
    #[schemars(with = "String")]
    pub secret: SecretString,
}

fn secret_header() -> String {
    "X-Sites-Secret".to_owned()
}
