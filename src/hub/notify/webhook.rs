//! An issue tracker that takes JSON, with a secret in a header.

use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use secrecy::ExposeSecret;
use serde_json::json;

use super::message::Message;
use super::{NotifyError, Provider, Sending};
use crate::settings::notifications::Webhook;

const LIMIT: Duration = Duration::from_secs(10);

/// A tracker.
pub struct Tracker {
    http: Client,
    url: Url,
    header: HeaderName,
    secret: HeaderValue,
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Tracker {
    pub(super) fn new(settings: &Webhook) -> Result<Self, NotifyError> {
        let bad = |key: &str| NotifyError::Settings(format!("notifications.webhook.{key} cannot be used"));
        let client = Client::builder().redirect(redirect::Policy::none()).no_proxy().timeout(LIMIT).build();
        let mut secret = HeaderValue::from_str(settings.secret.expose_secret()).map_err(|_| bad("secret"))?;
        secret.set_sensitive(true);
        Ok(Self {
            http: client.map_err(|_| bad("url"))?,
            url: settings.url.parse().map_err(|_| bad("url"))?,
            header: settings.header.parse().map_err(|_| bad("header"))?,
            secret,
        })
    }
}

impl Provider for Tracker {
    fn send<'a>(&'a self, message: &'a Message) -> Sending<'a> {
        Box::pin(async move {
            let issue = json!({
                "summary": message.summary,
                "description": message.body,
                "site": message.path,
                "assignee": message.assignee,
                "reporter": message.reporter,
                "duplicate_key": message.duplicate_key,
            });
            let request = self.http.post(self.url.clone()).header(&self.header, &self.secret).json(&issue);
            let refused = |reason: String| NotifyError::Refused("issue tracker", reason);
            // Never the error itself: it names the address, which may carry credentials.
            let answer = request.send().await.map_err(|_| refused("it cannot be reached".to_owned()))?;
            if answer.status().is_success() { Ok(()) } else { Err(refused(format!("it answered {}", answer.status()))) }
        })
    }
}
