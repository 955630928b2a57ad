//! Which Sites a run is about.
//!
//! Every Site is named, so that the counts of a run say what became of each: the ones with nothing to do are skipped
//! with the reason.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cache::runs::{RunKind, SiteResult, SiteState};
use crate::domain::application::Catalog as Images;
use crate::domain::site::Site;
use crate::domain::upgrade::upgraded;

/// Each Site's place in a run.
#[must_use]
pub fn planned<'a>(
    sites: impl Iterator<Item = &'a Site>,
    kind: RunKind,
    force: bool,
    images: &Images,
    now: Timestamp,
) -> BTreeMap<String, SiteResult> {
    let place = |site: &Site| match idle(site, kind, force, images) {
        None => result(SiteState::Queued, None, now),
        Some(reason) => result(SiteState::Skipped, Some(reason.to_owned()), now),
    };
    sites.map(|site| (site.spec.id.clone(), place(site))).collect()
}

/// Why there is nothing to do for a Site.
#[must_use]
pub fn idle(site: &Site, kind: RunKind, force: bool, images: &Images) -> Option<&'static str> {
    if site.metadata.deletion_timestamp.is_some() {
        return Some("it is being deleted");
    }
    match kind {
        RunKind::Upgrade if force => None,
        RunKind::Upgrade | RunKind::Restart if !site.enabled() => Some("it is archived"),
        RunKind::Upgrade if upgraded(&site.spec, images) == site.spec.configuration.applications => {
            Some("it is up to date")
        }
        RunKind::Upgrade | RunKind::Restart => None,
    }
}

/// A result that waits for no pods.
#[must_use]
pub const fn result(state: SiteState, reason: Option<String>, at: Timestamp) -> SiteResult {
    SiteResult { state, reason, at, pods: Vec::new(), ran: false }
}

#[cfg(test)]
mod tests {
    use super::super::super::catalog::index::tests::site;
    use super::*;

    #[test]
    fn a_run_names_every_site_and_the_reason_of_those_with_nothing_to_do() {
        let images = Builtin::ALL.into_iter().filter(|builtin| *builtin != Builtin::Custom);
        let images = Images::new(images.map(|builtin| (builtin, format!("r/{}:2", builtin.name()))), &[]).unwrap();
        let [old, mut archived, mut current, mut going] =
            ["a", "b", "c", "d"].map(|id| site(id, "s", id, "o", "public"));
        archived.spec.configuration.enabled = Some(false);
        current.spec.configuration.applications = upgraded(&current.spec, &images);
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        let sites = [old, archived, current, going];
        let reasons = |kind, force| {
            let planned = planned(sites.iter(), kind, force, &images, Timestamp::UNIX_EPOCH);
            planned.into_values().map(|site| site.reason.unwrap_or_default()).collect::<Vec<_>>()
        };
        let going = "it is being deleted";
        assert_eq!(reasons(RunKind::Upgrade, false), ["", "it is archived", "it is up to date", going]);
        assert_eq!(reasons(RunKind::Upgrade, true), ["", "", "", going]);
        assert_eq!(reasons(RunKind::Restart, false), ["", "it is archived", "", going]);
    }

    use crate::domain::application::Builtin;
}
