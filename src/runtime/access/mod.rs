//! Every decision on who may do what. All servers of a site ask here, for every request.
//!
//! Owns the order in which credentials count and what each of them opens. No header says who somebody is: tokens,
//! signatures and tickets are checked here, sessions and the provider's tokens by asking oauth2-proxy.
//!
//! | credential | opens |
//! |---|---|
//! | master token | everything |
//! | access token | reading, or reading and writing |
//! | signed URL | its one path by its one method, for a time |
//! | session URL (a ticket in a cookie) | reading below its path, for a time |
//! | session or token of the provider | everything for owner and administrators; reading a private site for those it is shared with |
//! | none | the public view of a public site |
//!
//! A credential that nobody knows is answered like none (401); a caller who is known, or was, gets 403.

mod caller;
mod credential;
mod cross_site;
mod decide;
mod identity;
mod login;
mod refusal;
mod share;
mod signed;
mod tickets;
mod tokens;

pub use caller::{Caller, Wanted};
pub use decide::{Access, Request};
pub use identity::{Identity, IdentitySource};
pub use login::login_url;
pub use refusal::Refusal;
pub use share::{AccessFile, Share, ShareError};
pub use signed::{SignedUrls, UrlError, Verdict};
pub use tickets::{MAX_DURATION as MAX_TICKET_DURATION, Tickets};
pub use tokens::{AccessToken, Event, EventKind, NewToken, Privilege, TokenError, TokenState, Tokens, token_hash};
