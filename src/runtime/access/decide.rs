//! The decision on one request.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::credential::{Authorization, authorization, session_cookies};
use super::cross_site::is_cross_site;
use super::identity::{Identity, IdentitySource};
use super::share::AccessFile;
use super::signed::SignedUrls;
use super::tickets::Tickets;
use super::tokens::{Privilege, TokenState, Tokens, token_hash};
use super::{Caller, Refusal, TokenError, Wanted};
use crate::runtime::config::SiteConfig;
use crate::runtime::content::{Content, SitePath};

/// Access key id of the master token, for S3.
const MASTER_KEY_ID: &str = "master";
const NO_CREDENTIAL: Refusal = Refusal::Unauthenticated("give a token, or log in");
const UNKNOWN_TOKEN: Refusal = Refusal::Unauthenticated("the token is not known here");
const STATE_BROKEN: Refusal = Refusal::Unavailable("the site's tokens cannot be read");

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its query, as it was sent.
    pub query: &'a str,
    /// Its path below the site's public one, if it is one.
    pub path: Option<&'a SitePath>,
    /// The content that it names, if any.
    pub content: Option<&'a SitePath>,
}

/// All that decides.
pub struct Access {
    master_hash: Option<String>,
    master: Option<SecretString>,
    signing: Hmac<Sha256>,
    cookie_name: String,
    file: AccessFile,
    identities: IdentitySource,
    /// HTTP access tokens.
    pub tokens: Tokens,
    /// Signed URLs.
    pub urls: SignedUrls,
    /// Session URLs.
    pub tickets: Tickets,
}

impl Access {
    /// For one site.
    pub fn open(config: &SiteConfig, content: &Content) -> anyhow::Result<Self> {
        let master = config.master_token.clone();
        let text = master.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default();
        Ok(Self {
            master_hash: master.as_ref().map(|token| token_hash(token.expose_secret())),
            signing: key(&config.signing_key, "signing", "")?,
            cookie_name: config.cookie_name.clone(),
            file: AccessFile::open(&config.access_file)?,
            identities: IdentitySource::new(config.identity_url.clone()),
            tokens: Tokens::open(content)?,
            urls: SignedUrls::new(
                key(&config.signing_key, "signed-url", text)?,
                &config.id,
                &config.public_url,
                &config.prefix,
            ),
            tickets: Tickets::new(key(&config.session_url_key, "session-url", text)?, &config.id),
            master,
        })
    }

    /// Whether everybody may see the site.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.file.share().is_public()
    }

    /// Who asks, if that may be; else why not.
    pub async fn decide(&self, request: &Request<'_>, wanted: Wanted) -> Result<Caller, Refusal> {
        let public = self.is_public();
        if public && wanted == Wanted::View {
            // Nothing that the request carries could matter.
            return Ok(Caller::Anonymous);
        }
        let now = Timestamp::now();
        let (caller, by_browser) = match authorization(request.headers)? {
            Some(Authorization::Bearer(token)) => (self.bearer(&token, request.headers, now).await?, false),
            Some(Authorization::Basic(token)) => (self.token(&token, now)?.ok_or(UNKNOWN_TOKEN)?, true),
            None => match self.urls.check(request.query, request.method, request.path, now)? {
                Some(method) => (Caller::Signed { method }, false),
                None => (self.visitor(request, wanted, now).await?, true),
            },
        };
        self.judge(&caller, wanted, request.content)?;
        let changes = matches!(wanted, Wanted::Write | Wanted::Administer);
        if changes && by_browser && is_cross_site(request.method, request.headers) {
            return Err(Refusal::Forbidden("the request came from a page of another origin"));
        }
        Ok(caller)
    }

    /// Whether a caller who is known already may do that, and else why not. For S3, whose signatures are checked
    /// elsewhere, with the keys of [`Access::secret_key`].
    pub fn judge(&self, caller: &Caller, wanted: Wanted, content: Option<&SitePath>) -> Result<(), Refusal> {
        if caller.may(wanted, self.is_public(), content) {
            return Ok(());
        }
        Err(match caller {
            Caller::Anonymous => NO_CREDENTIAL,
            Caller::Token { privilege: Privilege::Read, .. } if wanted == Wanted::Write => {
                Refusal::Forbidden("the access token is read-only")
            }
            Caller::Token { .. } => Refusal::Forbidden("this needs the master token or an administrator"),
            Caller::Person { .. } => Refusal::Forbidden("the site is not shared with you for this"),
            _ => Refusal::Forbidden("the address does not open this"),
        })
    }

    /// The secret key of an S3 access key id, and whose it is.
    pub fn secret_key(&self, access_key_id: &str) -> Result<Option<(SecretString, Caller)>, Refusal> {
        if access_key_id == MASTER_KEY_ID {
            return Ok(self.master.clone().map(|token| (token, Caller::Master)));
        }
        let token = match self.tokens.get(access_key_id, Timestamp::now()) {
            Err(TokenError::NotFound(_)) => return Ok(None),
            result => result.map_err(|error| broken(&error))?,
        };
        if token.state != TokenState::Active {
            return Ok(None);
        }
        let caller = Caller::Token { id: token.id, privilege: token.privilege };
        Ok(Some((self.s3_secret(access_key_id), caller)))
    }

    /// The S3 secret that goes with an access token's id: derived, so that it is kept nowhere.
    #[must_use]
    pub fn s3_secret(&self, token_id: &str) -> SecretString {
        let mut mac = self.signing.clone();
        mac.update(b"s3-secret/v1\n");
        mac.update(token_id.as_bytes());
        let text = crate::runtime::content::hexadecimal(&mac.finalize().into_bytes());
        SecretString::from(text[..40].to_owned())
    }

    async fn bearer(&self, token: &SecretString, headers: &HeaderMap, now: Timestamp) -> Result<Caller, Refusal> {
        if let Some(caller) = self.token(token, now)? {
            return Ok(caller);
        }
        // Only what can be a token of the provider is worth a question.
        if !token.expose_secret().starts_with("ey") {
            return Err(UNKNOWN_TOKEN);
        }
        let identity = self.identities.ask(None, headers.get(AUTHORIZATION).cloned()).await?;
        identity.map(|identity| self.person(&identity)).ok_or(UNKNOWN_TOKEN)
    }

    /// The master token or an access token; one that has ended is no secret to its user.
    fn token(&self, token: &SecretString, now: Timestamp) -> Result<Option<Caller>, Refusal> {
        let hash = token_hash(token.expose_secret());
        if self.master_hash.as_ref().is_some_and(|master| master.as_bytes().ct_eq(hash.as_bytes()).into()) {
            return Ok(Some(Caller::Master));
        }
        let found = self.tokens.find(token.expose_secret(), now).map_err(|error| broken(&error))?;
        match found.map(|token| (token.state, token)) {
            None => Ok(None),
            Some((TokenState::Active, token)) => Ok(Some(Caller::Token { id: token.id, privilege: token.privilege })),
            Some((TokenState::Expired, _)) => Err(Refusal::Forbidden("the access token has expired")),
            Some((TokenState::Revoked, _)) => Err(Refusal::Forbidden("the access token was revoked")),
        }
    }

    /// By cookies: a ticket, when it suffices, is the cheaper question.
    async fn visitor(&self, request: &Request<'_>, wanted: Wanted, now: Timestamp) -> Result<Caller, Refusal> {
        let ticket = self.tickets.folder(request.headers, now).map(|folder| Caller::Ticket { folder });
        if let Some(ticket) = ticket.as_ref().filter(|ticket| ticket.may(wanted, false, request.content)) {
            return Ok(ticket.clone());
        }
        let identity = match session_cookies(request.headers, &self.cookie_name) {
            Some(session) => self.identities.ask(Some(session), None).await?,
            None => None,
        };
        let person = identity.map(|identity| self.person(&identity));
        Ok(person.or(ticket).unwrap_or(Caller::Anonymous))
    }

    fn person(&self, identity: &Arc<Identity>) -> Caller {
        let share = self.file.share();
        Caller::Person {
            administrator: share.is_administrator(identity),
            viewer: share.is_viewer(identity),
            identity: Identity::clone(identity),
        }
    }
}

fn broken(error: &TokenError) -> Refusal {
    tracing::error!(%error, "the site's tokens cannot be read");
    STATE_BROKEN
}

/// A key of its own for each purpose; `more` makes it end with something else.
fn key(secret: &SecretString, purpose: &str, more: &str) -> anyhow::Result<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes())?;
    mac.update(format!("{purpose}\n{more}").as_bytes());
    Ok(Hmac::<Sha256>::new_from_slice(&mac.finalize().into_bytes())?)
}
