//! Who asks, and what they may do: the one place that turns an identity into a refusal.
//!
//! The layer of `auth` puts a [`Caller`] into each request; handlers take it as an argument. Must not know how a
//! person was recognised.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;

use super::catalog::query::Viewer;
use super::error::ApiError;
use super::forms::site::Author;
use crate::domain::people::{Person, Standing, standing};
use crate::domain::site::Site;
use crate::settings::Settings;

/// How somebody said who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Credential {
    /// Not at all.
    #[default]
    None,
    /// By the cookie of a browser: changes need a CSRF token.
    Session,
    /// By a token of the provider.
    Bearer,
}

/// Who asks. The default is nobody.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    person: Option<Person>,
    administers: bool,
    credential: Credential,
    logged_in: Option<Timestamp>,
    csrf_token: Option<Arc<str>>,
}

impl Caller {
    /// Somebody who is known. `administers`: a member of the platform's administrators. `logged_in`: when they last
    /// gave their password, as the provider says.
    #[must_use]
    pub const fn known(
        person: Person,
        administers: bool,
        credential: Credential,
        logged_in: Option<Timestamp>,
    ) -> Self {
        Self { person: Some(person), administers, credential, logged_in, csrf_token: None }
    }

    /// With what their pages send along with a change.
    #[must_use]
    pub fn with_csrf_token(self, token: &str) -> Self {
        Self { csrf_token: Some(token.into()), ..self }
    }

    /// What a page of this session sends along with a change; none without a session.
    #[must_use]
    pub fn csrf_token(&self) -> Option<&str> {
        self.csrf_token.as_deref()
    }

    /// For master tokens, deletion and bulk actions: where sites share the Hub's host, a script of theirs could use a
    /// browser's session, so it must be of a login that was just made. 403 says where to make one.
    pub fn fresh(&self, settings: &Settings) -> Result<(), ApiError> {
        self.fresh_at(settings, Timestamp::now())
    }

    fn fresh_at(&self, settings: &Settings, now: Timestamp) -> Result<(), ApiError> {
        let longest = i64::try_from(settings.hub.fresh_login.get().as_secs()).unwrap_or(i64::MAX);
        let recent = |at: Timestamp| now.as_second().saturating_sub(at.as_second()) <= longest;
        let asked = self.credential == Credential::Session && settings.shares_host();
        if !asked || self.logged_in.is_some_and(recent) {
            return Ok(());
        }
        Err(ApiError::forbidden("log in again to do this: open /hub/login/?fresh=1&next=/hub/ and come back"))
    }

    /// Who it is.
    #[must_use]
    pub const fn person(&self) -> Option<&Person> {
        self.person.as_ref()
    }

    /// How they said it.
    #[must_use]
    pub const fn credential(&self) -> Credential {
        self.credential
    }

    /// Since when they are logged in, if the provider said so.
    #[must_use]
    pub const fn logged_in(&self) -> Option<Timestamp> {
        self.logged_in
    }

    /// Whether everything is theirs.
    #[must_use]
    pub const fn administers(&self) -> bool {
        self.administers
    }

    /// Which Sites of a list they see.
    #[must_use]
    pub fn viewer(&self) -> Viewer {
        match &self.person {
            Some(_) if self.administers => Viewer::Everything,
            Some(person) => Viewer::Person(person.clone()),
            None => Viewer::Anonymous,
        }
    }

    /// What they are to a Site; a platform administrator administers each.
    #[must_use]
    pub fn standing(&self, site: &Site) -> Standing {
        if self.administers { Standing::Administrator } else { standing(site, self.person.as_ref()) }
    }

    /// Somebody who is logged in, else 401.
    pub fn somebody(&self) -> Result<&Person, ApiError> {
        self.person.as_ref().ok_or(ApiError::Unauthorized)
    }

    /// A platform administrator, else 401 or 403.
    pub fn platform_administrator(&self) -> Result<&Person, ApiError> {
        let person = self.somebody()?;
        if self.administers { Ok(person) } else { Err(ApiError::forbidden("only platform administrators may do this")) }
    }

    /// An administrator of the Site. Who may not even see it is told that there is none.
    pub fn site_administrator(&self, site: &Site) -> Result<&Person, ApiError> {
        match (self.standing(site), &self.person) {
            (Standing::Administrator, Some(person)) => Ok(person),
            (Standing::Stranger, Some(_)) => Err(ApiError::NotFound("the site")),
            (_, Some(_)) => Err(ApiError::forbidden("only administrators of the site may do this")),
            (_, None) => Err(ApiError::Unauthorized),
        }
    }

    /// As the author of a form.
    pub fn author(&self) -> Result<Author<'_>, ApiError> {
        Ok(Author { person: self.somebody()?, platform_administrator: self.administers })
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::load::tests::minimal;

    #[test]
    fn a_shared_host_asks_sessions_for_a_fresh_login() {
        let mut shared = minimal();
        shared.routing.host = Some("sites.example.org".to_owned());
        let mut apart = shared.clone();
        apart.routing.hub_host = Some("hub.example.org".to_owned());
        let at = |second| Timestamp::from_second(second).ok();
        let now = Timestamp::from_second(10_000).unwrap();
        for (settings, credential, logged_in, may) in [
            (&shared, Credential::Session, at(10_000 - 900), true),
            (&shared, Credential::Session, at(10_000 - 901), false),
            (&shared, Credential::Session, None, false),
            (&shared, Credential::Bearer, None, true),
            (&apart, Credential::Session, None, true),
        ] {
            let caller = Caller::known(Person::default(), true, credential, logged_in);
            let told = caller.fresh_at(settings, now);
            assert_eq!(told.is_ok(), may, "{credential:?} {logged_in:?}");
            if let Err(error) = told {
                assert!(error.to_string().contains("/hub/login/?fresh=1&next="), "{error}");
            }
        }
    }
}
