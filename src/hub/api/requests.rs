//! Requests that people decide: access to a Site, its publication, more room.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::caller::Caller;
use super::super::error::{ApiError, ErrorBody};
use super::super::forms::body::Fields;
use super::super::notify::message::{Kind, Request};
use super::super::sites::address::Address;
use super::super::sites::find;
use super::super::state::Hub;
use super::bodies::{AccessForm, PublishForm, StorageForm};
use super::site::{Done, done};
use crate::domain::people::Standing;
use crate::domain::site::{Site, SiteType};

/// Longest comment, in characters.
const COMMENT: usize = 4000;
/// In GB, unless the request says.
const QUOTA: u32 = 600;
const MOST_QUOTA: u32 = 1_000_000;

/// What is below one Site.
pub fn routes() -> OpenApiRouter<Hub> {
    OpenApiRouter::new().routes(routes!(access)).routes(routes!(publish)).routes(routes!(storage))
}

macro_rules! asks {
    ($name:ident, $path:literal, $form:ty, $ask:ident, $doc:literal) => {
        #[doc = $doc]
        #[utoipa::path(post, path = $path, tag = "requests",
            request_body(content(($form = "application/json"), ($form = "application/x-www-form-urlencoded"))),
            responses(
            (status = 200, body = Done, description = "It was handed over"),
            (status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
            (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
            (status = 500, body = ErrorBody, description = "It could not be handed over"),
            (status = 503, body = ErrorBody, description = "Requests are not available"),
        ))]
        pub async fn $name(
            State(hub): State<Hub>,
            caller: Caller,
            address: Address,
            fields: Fields,
        ) -> Result<Json<Done>, ApiError> {
            caller.somebody()?;
            hub.notifier.enabled()?;
            let request = $ask(&hub, &caller, &address, fields).await?;
            hub.notifier.send(&request).await?;
            Ok(done("the request was sent"))
        }
    };
}

asks!(
    access,
    "/access/",
    AccessForm,
    access_of,
    "Asks the owner for access to a Site that the caller may not read; `comment` may be given."
);
asks!(publish, "/requests/publish/", PublishForm, publication, "Asks to make the Site public.");
asks!(storage, "/requests/storage/", StorageForm, room, "Asks for more room.");

async fn access_of(hub: &Hub, caller: &Caller, address: &Address, mut fields: Fields) -> Result<Request, ApiError> {
    let comment = comment(&mut fields)?.unwrap_or_default();
    fields.nothing_else()?;
    // The one place where a Site that is not theirs to see may be named: nothing of it is shown.
    let site = find::any(hub, address).await?;
    if caller.standing(&site) >= Standing::Viewer {
        return Err(ApiError::forbidden("you have access to this site already"));
    }
    request(hub, caller, &site, Kind::Access, site.spec.owner.clone(), comment, 0)
}

async fn publication(hub: &Hub, caller: &Caller, address: &Address, mut fields: Fields) -> Result<Request, ApiError> {
    let site = find::administered(hub, caller, address).await?;
    let comment = comment(&mut fields)?;
    fields.nothing_else()?;
    if site.spec.site_type == SiteType::Public {
        return Err(ApiError::BadRequest("the site is public already".to_owned()));
    }
    request(hub, caller, &site, Kind::Publish, desk(hub)?, required(comment)?, 0)
}

async fn room(hub: &Hub, caller: &Caller, address: &Address, mut fields: Fields) -> Result<Request, ApiError> {
    let site = find::administered(hub, caller, address).await?;
    let comment = comment(&mut fields)?;
    let quota = match fields.0.as_object_mut().and_then(|fields| fields.remove("quota")) {
        None | Some(serde_json::Value::Null) => Some(QUOTA),
        // Form data has texts.
        Some(serde_json::Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    fields.nothing_else()?;
    let quota = quota
        .filter(|quota| (1..=MOST_QUOTA).contains(quota))
        .ok_or_else(|| ApiError::field("quota", format!("must be a number of GB from 1 to {MOST_QUOTA}")))?;
    request(hub, caller, &site, Kind::Storage, desk(hub)?, required(comment)?, quota)
}

fn comment(fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let comment = fields.take_text("comment")?.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if comment.as_ref().is_some_and(|text| text.chars().count() > COMMENT) {
        return Err(ApiError::field("comment", format!("must be at most {COMMENT} characters")));
    }
    Ok(comment)
}

fn required(comment: Option<String>) -> Result<String, ApiError> {
    comment.ok_or_else(|| ApiError::field("comment", "is required: say why"))
}

fn desk(hub: &Hub) -> Result<String, ApiError> {
    let assignee = hub.settings.jobs.notification_default_assignee.clone();
    // Words that clients know.
    assignee.ok_or_else(|| ApiError::Unavailable("Requests are not available".to_owned()))
}

fn request(
    hub: &Hub,
    caller: &Caller,
    site: &Site,
    kind: Kind,
    assignee: String,
    comment: String,
    quota: u32,
) -> Result<Request, ApiError> {
    let person = caller.somebody()?;
    let path = site.public_path().map(|(space, name)| format!("/{space}/{name}"));
    let path = path.unwrap_or_else(|| site.spec.id.clone());
    let host = hub.settings.host().filter(|_| path.starts_with('/'));
    Ok(Request {
        kind,
        url: host.map(|host| format!("https://{host}{path}/")).unwrap_or_default(),
        path,
        assignee,
        reporter: person.user.clone(),
        email: person.email.clone(),
        comment,
        quota,
    })
}
