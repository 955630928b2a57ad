//! Who asks, and what they may do: the one place that turns an identity into a refusal.
//!
//! The layer of `auth` puts a [`Caller`] into each request; handlers take it as an argument. Must not know how a
//! person was recognised.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;

use super::catalog::query::Viewer;
use super::error::ApiError;
use super::forms::site::Author;
use crate::domain::people::{Person, Standing, standing};
use crate::domain::site::Site;

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
        Self { person: Some(person), administers, credential, logged_in }
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
