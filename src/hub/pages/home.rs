//! `/hub/`: who is signed in, and the way in and out. Where people land after a login.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::hub::caller::{Caller, Credential};
use crate::hub::error::ApiError;
use crate::hub::state::Hub;
use crate::settings::Settings;

#[derive(Template)]
#[template(path = "home.html")]
struct Page<'a> {
    brand: &'a str,
    /// Empty for nobody.
    user: &'a str,
    /// Empty without a session: there is nothing to sign out of.
    csrf_token: &'a str,
}

/// `GET /hub/` and `GET /hub/logout/`: the form that signs out, for who is signed in; else the way to sign in.
pub async fn page(State(hub): State<Hub>, caller: Caller) -> Result<Response, ApiError> {
    let settings: &Arc<Settings> = &hub.settings;
    let person = caller.person();
    let user = person.and_then(|person| person.names().last()).unwrap_or_default();
    let csrf_token = caller.csrf_token().filter(|_| caller.credential() == Credential::Session).unwrap_or_default();
    let page = Page { brand: &settings.site.brand, user, csrf_token };
    let html = page.render().map_err(|_| ApiError::Upstream("the page cannot be made".to_owned()))?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response())
}
