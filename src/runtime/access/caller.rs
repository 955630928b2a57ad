//! Who asks, what is wanted, and what each kind of caller may do.

use std::fmt;

use http::Method;

use super::identity::Identity;
use super::tokens::Privilege;
use crate::runtime::content::SitePath;

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The content as visitors see it: everybody may on a public site.
    View,
    /// The content through an interface that needs a credential on public sites too.
    Read,
    /// To change content.
    Write,
    /// Tokens, signed and session URLs.
    Administer,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Has the master token.
    Master,
    /// Has an access token.
    Token {
        /// Public id of the token.
        id: String,
        /// What it opens.
        privilege: Privilege,
    },
    /// Has a signed URL; its signature was checked.
    Signed {
        /// The method it was made for.
        method: Method,
    },
    /// Came by a session URL; its ticket was checked.
    Ticket {
        /// Where it ends.
        folder: SitePath,
    },
    /// Known to the identity provider.
    Person {
        /// Who it is.
        identity: Identity,
        /// Owner, administrator or member of an administrators' group.
        administrator: bool,
        /// The private site is shared with this person.
        viewer: bool,
    },
    /// Nobody knows.
    Anonymous,
}

impl Caller {
    /// Whether this caller may do that. `public` is the site's; `path` is the content that is asked for, if any.
    #[must_use]
    pub fn may(&self, wanted: Wanted, public: bool, path: Option<&SitePath>) -> bool {
        let reading = matches!(wanted, Wanted::View | Wanted::Read);
        let open = public && wanted == Wanted::View;
        open || match self {
            Self::Master | Self::Person { administrator: true, .. } => true,
            Self::Token { privilege: Privilege::ReadWrite, .. } => wanted != Wanted::Administer,
            Self::Token { privilege: Privilege::Read, .. } => reading,
            Self::Signed { method } if *method == Method::GET => reading,
            Self::Signed { .. } => wanted == Wanted::Write,
            Self::Ticket { folder } => reading && path.is_some_and(|path| path.is_within(folder)),
            Self::Person { viewer, .. } => *viewer && reading,
            Self::Anonymous => false,
        }
    }
}

/// For logs and the history of tokens: names the caller, never a credential.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Master => f.write_str("master token"),
            Self::Token { id, .. } => write!(f, "access token {id}"),
            Self::Signed { .. } => f.write_str("signed URL"),
            Self::Ticket { .. } => f.write_str("session URL"),
            Self::Person { identity, .. } => write!(f, "user {}", identity.user),
            Self::Anonymous => f.write_str("anonymous"),
        }
    }
}
