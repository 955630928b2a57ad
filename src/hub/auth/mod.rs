//! Who is who: sessions of browsers and tokens of programs.
//!
//! Owns the way from a request to a [`Caller`]. What the caller may do is decided in [`super::caller`].

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::caller::Caller;
use super::state::Hub;
use crate::settings::Settings;

/// What is needed to recognise somebody; cheap to clone.
#[derive(Clone, Debug)]
pub struct Auth {}

impl Auth {
    /// By the settings.
    #[must_use]
    pub fn new(_: &Settings) -> Self {
        Self {}
    }
}

/// Puts the [`Caller`] into each request.
pub async fn identify(State(_): State<Hub>, mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Caller::default());
    next.run(request).await
}
