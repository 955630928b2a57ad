//! `/whoami/`: who asks, as the Hub sees it.

use axum::Json;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::hub::caller::{Caller, Credential};
use crate::hub::error::ErrorBody;
use crate::hub::state::Hub;

/// Who asks.
#[derive(Serialize, ToSchema, Debug)]
pub struct WhoAmI {
    /// User id at the provider; null for nobody.
    user: Option<String>,
    /// E-mail address, if the provider has checked it.
    email: Option<String>,
    /// User name.
    preferred_username: Option<String>,
    /// Exact names of groups.
    groups: Vec<String>,
    /// `anonymous`, or `user` and perhaps `platform-administrator`. What somebody is to a Site, the Site says.
    roles: Vec<&'static str>,
    /// How they said who they are: `none`, `session`, `bearer`.
    credential: &'static str,
    /// What a session sends as `X-CSRF-Token` along with each change.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf_token: Option<String>,
    /// When they last gave their password, if the provider says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    logged_in: Option<Timestamp>,
}

/// The route.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new().routes(routes!(whoami))
}

/// Who asks, as the Hub sees it.
#[utoipa::path(
    get,
    path = "/whoami/",
    tag = "platform",
    responses(
        (status = 200, description = "Identity and roles; nobody's too", body = WhoAmI),
        (status = 401, description = "The token is refused", body = ErrorBody),
        (status = 429, description = "Too many requests", body = ErrorBody),
        (status = 503, description = "The provider does not answer", body = ErrorBody),
    ),
)]
async fn whoami(caller: Caller) -> Json<WhoAmI> {
    let person = caller.person();
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut roles = vec![if person.is_some() { "user" } else { "anonymous" }];
    if caller.administers() {
        roles.push("platform-administrator");
    }
    Json(WhoAmI {
        user: person.map(|person| person.user.clone()),
        email: person.and_then(|person| text(&person.email)),
        preferred_username: person.and_then(|person| text(&person.preferred_username)),
        groups: person.map(|person| person.groups.clone()).unwrap_or_default(),
        roles,
        credential: match caller.credential() {
            Credential::None => "none",
            Credential::Session => "session",
            Credential::Bearer => "bearer",
        },
        csrf_token: caller.csrf_token().map(str::to_owned),
        logged_in: caller.logged_in(),
    })
}
