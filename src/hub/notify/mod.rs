//! Tells people of requests: one trait, two providers.
//!
//! | module | owns |
//! |---|---|
//! | [`message`] | texts from templates, and the duplicate key |
//! | [`smtp`] | mail |
//! | [`webhook`] | an issue tracker that takes JSON |
//!
//! Must not keep a message or try one again: whoever asked is told that it failed.

pub mod message;
mod smtp;
mod webhook;

use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use tracing::{error, info};

use super::error::ApiError;
use crate::settings::Settings;
use message::{Message, Request, Texts};

/// Why nobody was told. Never holds an address with credentials, nor a server's own words.
#[derive(Debug, Error)]
pub enum NotifyError {
    /// The settings do not fit.
    #[error("{0}")]
    Settings(String),
    /// A template cannot be filled in.
    #[error("the template {0} cannot be filled in")]
    Template(String),
    /// Nobody to tell, or no sender.
    #[error("{0} is no mail address")]
    Address(&'static str),
    /// The other side did not take it.
    #[error("the {0} did not take it: {1}")]
    Refused(&'static str, String),
}

/// A message on its way.
type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), NotifyError>> + Send + 'a>>;

/// One way to tell people.
trait Provider: Send + Sync + std::fmt::Debug {
    /// Hands the message over; done when the other side has taken it.
    fn send<'a>(&'a self, message: &'a Message) -> Sending<'a>;
}

/// The provider that is set, or none.
#[derive(Clone, Debug)]
pub struct Notifier(Option<Arc<(Texts, Box<dyn Provider>)>>);

impl Notifier {
    /// As the settings say.
    pub fn new(settings: &Settings) -> Result<Self, NotifyError> {
        let Some(set) = &settings.notifications else { return Ok(Self(None)) };
        let provider: Box<dyn Provider> = match (&set.webhook, &set.smtp) {
            (Some(webhook), _) => Box::new(webhook::Tracker::new(webhook)?),
            (None, Some(smtp)) => Box::new(smtp::Mail::new(smtp)?),
            (None, None) => return Ok(Self(None)),
        };
        Ok(Self(Some(Arc::new((Texts::new(set.templates_path.as_deref())?, provider)))))
    }

    /// 503 without a provider.
    pub fn enabled(&self) -> Result<(), ApiError> {
        self.0.as_ref().map(drop).ok_or_else(|| ApiError::Unavailable("Requests are not available".to_owned()))
    }

    /// Renders and hands over, inside the request; 500 when that fails.
    pub async fn send(&self, request: &Request) -> Result<(), ApiError> {
        let Some(parts) = &self.0 else { return self.enabled() };
        let sent = async { parts.1.send(&parts.0.render(request)?).await };
        match sent.await {
            Ok(()) => {
                info!(kind = request.kind.name(), path = request.path, "a request was handed over");
                Ok(())
            }
            Err(error) => {
                error!(kind = request.kind.name(), path = request.path, %error, "a request could not be handed over");
                Err(ApiError::Upstream("the request could not be handed over: try again later".to_owned()))
            }
        }
    }
}
