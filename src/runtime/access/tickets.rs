//! Session URLs: an address that, opened in a browser, lets that browser read the site (or a folder of it) for a time.
//!
//! Owns the ticket in it, which becomes a cookie: `<base64url of JSON>.<base64url of its HMAC>`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use http::HeaderMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::credential::cookies;
use crate::runtime::content::SitePath;

/// Longest life, in seconds: one day.
pub const MAX_DURATION: i64 = 24 * 3600;

#[derive(Serialize, Deserialize)]
struct Payload {
    site: String,
    folder: String,
    expires: i64,
}

/// Makes and checks tickets.
pub struct Tickets {
    mac: Hmac<Sha256>,
    site: String,
}

impl Tickets {
    /// For one site.
    #[must_use]
    pub fn new(key: Hmac<Sha256>, site: &str) -> Self {
        Self { mac: key, site: site.to_owned() }
    }

    /// Name of the cookie. The front door keeps every cookie that begins so from a custom application.
    #[must_use]
    pub fn cookie_name(&self) -> String {
        // No site's id has a dot, so this is no other site's session.
        format!("__Secure-sites.ticket-{}", self.site)
    }

    /// A ticket for a folder.
    #[must_use]
    pub fn create(&self, folder: &SitePath, expires: Timestamp) -> String {
        let payload = Payload { site: self.site.clone(), folder: folder.to_string(), expires: expires.as_second() };
        let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&payload).unwrap_or_default());
        let signature = URL_SAFE_NO_PAD.encode(self.mac(&payload).finalize().into_bytes());
        format!("{payload}.{signature}")
    }

    /// The folder that a ticket is for and when it ends, if it is good.
    #[must_use]
    pub fn check(&self, ticket: &str, now: Timestamp) -> Option<(SitePath, Timestamp)> {
        let (payload, signature) = ticket.split_once('.')?;
        self.mac(payload).verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let payload: Payload = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
        let expires = Timestamp::from_second(payload.expires).ok()?;
        let good = payload.site == self.site && now < expires;
        good.then(|| SitePath::from_text(&payload.folder).ok()).flatten().map(|folder| (folder, expires))
    }

    /// The folder of the request's ticket.
    pub(super) fn folder(&self, headers: &HeaderMap, now: Timestamp) -> Option<SitePath> {
        let name = self.cookie_name();
        let mut ours = cookies(headers).filter(|(candidate, _)| *candidate == name);
        ours.find_map(|(_, ticket)| self.check(ticket, now)).map(|(folder, _)| folder)
    }

    fn mac(&self, payload: &str) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(b"session-url/v1\n");
        mac.update(payload.as_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use hmac::KeyInit;

    use super::*;

    #[test]
    fn good_for_one_site_and_a_time() {
        let tickets = |site| Tickets::new(Hmac::new_from_slice(b"key").unwrap(), site);
        let (ours, other) = (tickets("plans"), tickets("other"));
        let folder = SitePath::from_text("a/b").unwrap();
        let end = Timestamp::from_second(1000).unwrap();
        let ticket = ours.create(&folder, end);
        assert_eq!(ours.check(&ticket, Timestamp::UNIX_EPOCH), Some((folder, end)));
        assert_eq!(ours.check(&ticket, end), None);
        assert_eq!(other.check(&ticket, Timestamp::UNIX_EPOCH), None);
        for (at, _) in ticket.match_indices(|letter: char| letter.is_ascii_alphanumeric()) {
            let mut changed = ticket.clone();
            changed.replace_range(at..=at, if ticket.as_bytes()[at] == b'x' { "y" } else { "x" });
            assert_eq!(ours.check(&changed, Timestamp::UNIX_EPOCH), None, "{changed}");
        }
    }
}
