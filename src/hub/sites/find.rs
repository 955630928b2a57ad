//! From a name to the Site, for those who may know of it.
//!
//! Owns the rule that a Site which is not theirs to see is no different from one that does not exist. A name is looked
//! up in the catalog, the Site itself is read from the API server: what is about to be changed is never a copy.

use super::super::caller::Caller;
use super::super::error::ApiError;
use super::super::state::Hub;
use super::address::Address;
use crate::domain::people::Standing;
use crate::domain::site::Site;

/// The Site as it is now, for a caller who may read it.
pub async fn visible(hub: &Hub, caller: &Caller, address: &Address) -> Result<Site, ApiError> {
    let site = match id(hub, address) {
        Some(id) => read(hub, &id).await?,
        None => None,
    };
    match site {
        Some(site) if caller.standing(&site) >= Standing::Viewer => Ok(site),
        _ if caller.person().is_none() => Err(ApiError::Unauthorized),
        _ => Err(ApiError::NotFound("the site")),
    }
}

/// The Site as it is now, whoever asks: for what shows nothing of it.
pub async fn any(hub: &Hub, address: &Address) -> Result<Site, ApiError> {
    let id = id(hub, address).ok_or(ApiError::NotFound("the site"))?;
    read(hub, &id).await?.ok_or(ApiError::NotFound("the site"))
}

/// The Site as it is now, for an administrator of it.
pub async fn administered(hub: &Hub, caller: &Caller, address: &Address) -> Result<Site, ApiError> {
    let site = visible(hub, caller, address).await?;
    caller.site_administrator(&site)?;
    Ok(site)
}

/// As [`administered`], of a Site that is not archived: else 410 with `what` is off.
pub async fn enabled(hub: &Hub, caller: &Caller, address: &Address, what: &'static str) -> Result<Site, ApiError> {
    let site = administered(hub, caller, address).await?;
    if site.enabled() { Ok(site) } else { Err(ApiError::Archived(what)) }
}

/// One Site by its id.
pub async fn read(hub: &Hub, id: &str) -> Result<Option<Site>, ApiError> {
    Ok(hub.cluster.read::<Site>(Some(&hub.namespace), id).await?)
}

/// A public path means the Site that owns its route, else the oldest that claims it.
fn id(hub: &Hub, address: &Address) -> Option<String> {
    let (space, name) = match address {
        Address::Id(id) => return Some(id.clone()),
        Address::Path { space, name } => (space, name),
    };
    let claimants = hub.catalog.read().at(space, name);
    let path = format!("/{space}/{name}");
    let held = |site: &Site| {
        let handled = site.status.as_ref().and_then(|status| status.handled.as_ref());
        handled.and_then(|handled| handled.path.as_deref()) == Some(path.as_str())
    };
    let owner = claimants.iter().find(|entry| held(&entry.site)).or(claimants.first())?;
    Some(owner.site.spec.id.clone())
}
