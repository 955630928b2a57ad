//! Why somebody could not be recognised: one enum for the whole of `auth`.
//!
//! No variant holds a token, a code or what a provider said: such texts may repeat a secret.

use thiserror::Error;

use super::token::Fault;
use crate::hub::error::ApiError;

/// Why a login, a session or a token did not do.
#[derive(Debug, Error)]
pub enum AuthError {
    /// The settings name an address that is none.
    #[error("{0}: not an address")]
    Setting(&'static str),
    /// The session key is unusable.
    #[error("session.secret_key: no keys can be made of it")]
    Key,
    /// The token of a program is refused.
    #[error(transparent)]
    Token(#[from] Fault),
    /// Nobody can log in yet.
    #[error("routing.host is not set: the Hub has no public address to come back to")]
    NoAddress,
    /// The provider does not answer, or not as it should.
    #[error("the identity provider does not answer: {0}")]
    Provider(&'static str),
    /// The browser came back without the cookie of a login, or too late.
    #[error("this login was not begun here or took too long: begin again at /hub/login/")]
    NotBegun,
    /// The provider refuses the login.
    #[error("the identity provider refused the login")]
    Refused,
    /// The provider refuses what it gave a moment ago.
    #[error("the identity provider did not confirm the login: begin again at /hub/login/")]
    Code,
    /// The provider was asked for a fresh login and gave an old one.
    #[error("the identity provider did not ask for the password again: begin again at /hub/login/?fresh=1")]
    NotFresh,
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Token(fault) => Self::InvalidToken(fault.words()),
            AuthError::NoAddress | AuthError::Provider(_) | AuthError::Setting(_) | AuthError::Key => {
                Self::Unavailable(error.to_string())
            }
            AuthError::NotBegun | AuthError::Code => Self::BadRequest(error.to_string()),
            AuthError::Refused | AuthError::NotFresh => Self::forbidden(error.to_string()),
        }
    }
}
