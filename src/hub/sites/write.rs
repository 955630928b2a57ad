//! Creating, editing and deleting a Site without losing anybody's edit.
//!
//! Owns the one way to the API server for writes of Sites: each carries who did it into the audit log, the trace it
//! belongs to, and the version it was made from. A conflict with a status write is tried again; one with another
//! person's edit is theirs to solve.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil::Date};
use rand::RngExt;
use serde_json::{Value, json};
use tracing::info;

use super::super::caller::Caller;
use super::super::error::ApiError;
use super::super::etag;
use super::super::forms::site::{self as form, Edit, Fresh, Method, Rules};
use super::super::state::Hub;
use super::super::trace::Trace;
use super::find;
use super::fits::{fits, largest};
use crate::cluster::{CallError, Precondition, Propagation};
use crate::domain::labels;
use crate::domain::site::Site;

/// Attempts while the operator writes its status at the same time.
const ATTEMPTS: usize = 5;

/// Today, UTC.
#[must_use]
pub fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

/// A secret that nobody guesses: 256 random bits.
#[must_use]
pub fn fresh_token() -> String {
    URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 32]>())
}

/// Creates a Site from a body, with a template's fields under it.
pub async fn create(
    hub: &Hub,
    caller: &Caller,
    body: Value,
    template: Option<Value>,
    trace: &Trace,
) -> Result<Site, ApiError> {
    let fresh = Fresh {
        // A letter first: the id names a Service.
        id: format!("s{}", &uuid::Uuid::new_v4().simple().to_string()[..20]),
        token: fresh_token(),
        today: today(),
        quota: hub.settings.site.default_quota,
    };
    let mut site = form::create(body, template, caller.author()?, &fresh)?;
    fits(None, &site, &hub.settings)?;
    free(hub, &site)?;
    site.metadata.namespace = Some(hub.namespace.to_string());
    site.metadata.annotations = Some([(labels::TRACEPARENT.to_owned(), trace.to_string())].into());
    let created = hub.cluster.create(Some(&hub.namespace), &site).await.map_err(|error| refused(error, &site))?;
    log(caller, &created, "created", &[]);
    hub.catalog.note(created.clone());
    Ok(created)
}

/// 409 for a path that another Site claims.
fn free(hub: &Hub, site: &Site) -> Result<(), ApiError> {
    let Some((space, name)) = site.public_path() else { return Ok(()) };
    let taken = hub.catalog.read().at(space, name).into_iter().any(|entry| entry.site.spec.id != site.spec.id);
    if taken {
        return Err(ApiError::conflict(format!("/{space}/{name} is taken: choose another name or space")));
    }
    Ok(())
}

/// Edits a Site by its form. `tag`: the version that the caller saw.
pub async fn edit(
    hub: &Hub,
    caller: &Caller,
    site: Site,
    body: &Value,
    method: Method,
    tag: Option<&str>,
    trace: &Trace,
) -> Result<Edit, ApiError> {
    let author = caller.author()?;
    let defaults = &hub.settings.site;
    let rules = Rules {
        catalog: &hub.images,
        default_view: (&defaults.default_view_users, &defaults.default_view_groups),
        today: today(),
    };
    let changed = |site: &Site| {
        let edit = form::edit(site, body.clone(), method, author, rules)?;
        fits(Some(site), &edit.site, &hub.settings)?;
        if edit.site.public_path() != site.public_path() {
            free(hub, &edit.site)?;
        }
        Ok(edit)
    };
    patched(hub, caller, site, tag, trace, changed).await
}

/// Changes a Site as `change` says, on the newest copy, as often as it takes.
pub async fn patched(
    hub: &Hub,
    caller: &Caller,
    mut site: Site,
    tag: Option<&str>,
    trace: &Trace,
    change: impl Fn(&Site) -> Result<Edit, ApiError>,
) -> Result<Edit, ApiError> {
    let id = site.spec.id.clone();
    for _ in 0..ATTEMPTS {
        unchanged(tag, &site)?;
        let mut edit = change(&site)?;
        if edit.patch.is_null() {
            return Ok(edit);
        }
        let mut patch = edit.patch.clone();
        patch["metadata"]["resourceVersion"] = json!(site.metadata.resource_version);
        patch["metadata"]["annotations"][labels::TRACEPARENT] = json!(trace.to_string());
        match hub.cluster.merge_patch::<Site>(Some(&hub.namespace), &id, &patch).await {
            Ok(written) => {
                log(caller, &written, "edited", &edit.audit);
                hub.catalog.note(written.clone());
                edit.site = written;
                return Ok(edit);
            }
            Err(CallError::Conflict { .. }) => {
                site = find::read(hub, &id).await?.ok_or(ApiError::NotFound("the site"))?;
            }
            Err(error) => return Err(refused(error, &edit.site)),
        }
    }
    Err(busy())
}

/// Deletes a Site; what belongs to it goes after it. `tag`: the version that the caller saw; an edit that comes between
/// reading and deleting is 409 then.
pub async fn delete(hub: &Hub, caller: &Caller, site: &Site, tag: Option<&str>) -> Result<(), ApiError> {
    let (namespace, id) = (Some(&*hub.namespace), &site.spec.id);
    let mut newest = site.clone();
    for _ in 0..ATTEMPTS {
        unchanged(tag, &newest)?;
        // Who saw a version deletes that one; who saw none means this Site, whatever was edited since.
        let resource_version = seen(tag).and(newest.metadata.resource_version.clone());
        let guard = Precondition { uid: site.metadata.uid.clone(), resource_version };
        match hub.cluster.delete::<Site>(namespace, id, &guard, Some(Propagation::Background)).await {
            Ok(_) => {
                log(caller, site, "deleted", &[]);
                hub.catalog.forget(id);
                return Ok(());
            }
            Err(error @ CallError::Conflict { .. }) => {
                newest = find::read(hub, id).await?.ok_or(ApiError::NotFound("the site"))?;
                if newest.metadata.uid != site.metadata.uid {
                    return Err(refused(error, site));
                }
            }
            Err(error) => return Err(refused(error, site)),
        }
    }
    Err(busy())
}

/// The version that the caller saw; `*` is any.
fn seen(tag: Option<&str>) -> Option<&str> {
    tag.filter(|tag| *tag != "*")
}

fn busy() -> ApiError {
    ApiError::Unavailable("the site changes all the time: try again".to_owned())
}

/// 409 with the fields that changed since the caller saw them.
fn unchanged(tag: Option<&str>, site: &Site) -> Result<(), ApiError> {
    let Some(tag) = seen(tag) else { return Ok(()) };
    let fields = etag::changed_since(tag, site)
        .ok_or_else(|| ApiError::field("etag", "is no entity tag of a site: send the one that its answer had"))?;
    if fields.is_empty() {
        return Ok(());
    }
    Err(ApiError::Conflict {
        message: format!("somebody else changed {} meanwhile: read the site again", fields.join(", ")),
        fields: fields.into_iter().map(str::to_owned).collect(),
    })
}

/// What the API server refuses is the caller's to mend where it names a field.
fn refused(error: CallError, site: &Site) -> ApiError {
    match error {
        CallError::Invalid { field, message, .. } => {
            let field = field.unwrap_or_default().replace("spec.configuration.", "").replace("spec.", "");
            ApiError::field(&field, message)
        }
        CallError::TooLarge { .. } => {
            ApiError::field(largest(site), "the site is larger than the API server takes: shorten this")
        }
        CallError::NotFound { .. } => ApiError::NotFound("the site"),
        CallError::AlreadyExists { .. } | CallError::Conflict { .. } => {
            ApiError::conflict("the site changed meanwhile: read it again")
        }
        other => other.into(),
    }
}

/// The audit log: who did what to which Site, and what of its address, owner and type changed.
fn log(caller: &Caller, site: &Site, deed: &str, changes: &[(&'static str, String, String)]) {
    let user = caller.person().map_or("", |person| person.user.as_str());
    info!(target: "sites::audit", user, site = site.spec.id, deed, "site");
    for (field, before, after) in changes {
        info!(target: "sites::audit", user, site = site.spec.id, field, before, after, "site changed");
    }
}
