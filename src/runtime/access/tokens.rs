//! HTTP access tokens: made by the site's administrators for programs, read or read and write, with an end.
//!
//! Kept in the state folder as hashes: whoever reads the volume cannot use them. A token has 256 random bits, so a
//! plain SHA-256 is enough. Revoked and expired ones are remembered for a while, so that their users are told (403)
//! instead of being asked to log in, and so that the history can be read.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;
use utoipa::ToSchema;

use crate::runtime::content::{Content, StateError, StateFile};

/// Most tokens that can be used at a time.
const MAX_ACTIVE: usize = 200;
/// Most tokens that are remembered, used ones included.
const MAX_REMEMBERED: usize = 500;
/// Most events that are remembered.
const MAX_HISTORY: usize = 1000;
/// Longest label, in characters.
const MAX_LABEL: usize = 100;
/// Longest life, in seconds: ten years.
const MAX_LIFE: i64 = 10 * 366 * 24 * 3600;

/// What a token opens.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Privilege {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Whether a token can be used.
#[derive(Serialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum TokenState {
    /// It can.
    Active,
    /// Its time is over.
    Expired,
    /// Somebody ended it.
    Revoked,
}

/// A token as clients see it: without its text, which nobody has but its user.
#[derive(Serialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// Names the token; no secret.
    pub id: String,
    /// What it is for.
    pub label: String,
    /// What it opens.
    pub privilege: Privilege,
    /// Whether it can be used.
    pub state: TokenState,
    /// RFC 3339.
    pub created_at: String,
    /// Who made it.
    pub created_by: String,
    /// RFC 3339; absent means never.
    pub expires_at: Option<String>,
}

/// What happened to a token.
#[derive(Serialize, Deserialize, ToSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// It was made.
    Created,
    /// It was ended.
    Revoked,
}

/// One line of the history.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// RFC 3339.
    #[schema(value_type = String)]
    pub at: Timestamp,
    /// What happened.
    pub event: EventKind,
    /// To which token.
    pub token_id: String,
    /// Its label.
    pub label: String,
    /// What it opens.
    pub privilege: Privilege,
    /// Who did it.
    pub by: String,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What it is for.
    pub label: String,
    /// What it opens.
    pub privilege: Privilege,
    /// Seconds that it lives; `None` means until it is revoked.
    pub duration: Option<i64>,
}

/// Why a token could not be made, ended or looked up.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The state folder.
    #[error(transparent)]
    State(#[from] StateError),
    /// The label is no good.
    #[error("label: give 1 to {MAX_LABEL} characters without control characters")]
    Label,
    /// The time is no good.
    #[error("duration: give 1 to {MAX_LIFE} seconds")]
    Duration,
    /// There are enough.
    #[error("this site has {MAX_ACTIVE} access tokens in use: revoke one first")]
    TooMany,
    /// No such token.
    #[error("no access token '{0}' was found")]
    NotFound(String),
}

#[derive(Serialize, Deserialize, Clone, Debug)]
struct Record {
    id: String,
    label: String,
    privilege: Privilege,
    /// SHA-256, hexadecimal.
    hash: String,
    created_at: Timestamp,
    created_by: String,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl Record {
    fn state(&self, now: Timestamp) -> TokenState {
        if self.revoked_at.is_some() {
            TokenState::Revoked
        } else if self.expires_at.is_some_and(|end| end <= now) {
            TokenState::Expired
        } else {
            TokenState::Active
        }
    }

    fn seen(&self, now: Timestamp) -> AccessToken {
        AccessToken {
            id: self.id.clone(),
            label: self.label.clone(),
            privilege: self.privilege,
            state: self.state(now),
            created_at: self.created_at.to_string(),
            created_by: self.created_by.clone(),
            expires_at: self.expires_at.map(|end| end.to_string()),
        }
    }
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Store {
    tokens: Vec<Record>,
    history: Vec<Event>,
}

/// The site's access tokens.
pub struct Tokens(StateFile<Store>);

impl Tokens {
    /// Those of this content.
    pub fn open(content: &Content) -> Result<Self, TokenError> {
        Ok(Self(content.state_file("tokens.json")?))
    }

    /// The token with this text, whatever its state. Takes the same time for every text.
    pub fn find(&self, text: &str, now: Timestamp) -> Result<Option<AccessToken>, TokenError> {
        let hash = token_hash(text);
        let store = self.0.read()?;
        let same = |record: &&Record| bool::from(record.hash.as_bytes().ct_eq(hash.as_bytes()));
        // All of them are looked at.
        Ok(store.tokens.iter().filter(same).fold(None, |_, record| Some(record.seen(now))))
    }

    /// The token with this id, whatever its state.
    pub fn get(&self, id: &str, now: Timestamp) -> Result<AccessToken, TokenError> {
        let store = self.0.read()?;
        let found = store.tokens.iter().find(|record| record.id == id).map(|record| record.seen(now));
        found.ok_or_else(|| TokenError::NotFound(id.to_owned()))
    }

    /// All that are remembered, newest first.
    pub fn list(&self, now: Timestamp) -> Result<Vec<AccessToken>, TokenError> {
        Ok(self.0.read()?.tokens.iter().rev().map(|record| record.seen(now)).collect())
    }

    /// What happened, newest first.
    pub fn history(&self) -> Result<Vec<Event>, TokenError> {
        let store: Arc<Store> = self.0.read()?;
        Ok(store.history.iter().rev().cloned().collect())
    }

    /// Makes a token. Its text is only in this answer.
    pub fn create(&self, new: NewToken, by: &str, now: Timestamp) -> Result<(AccessToken, String), TokenError> {
        let letters = new.label.chars().count();
        if letters == 0 || letters > MAX_LABEL || new.label.chars().any(char::is_control) {
            return Err(TokenError::Label);
        }
        if new.duration.is_some_and(|seconds| !(1..=MAX_LIFE).contains(&seconds)) {
            return Err(TokenError::Duration);
        }
        let mut bytes = [0; 32];
        rand::rng().fill_bytes(&mut bytes);
        let text = crate::runtime::content::hexadecimal(&bytes);
        let record = Record {
            id: uuid::Uuid::new_v4().simple().to_string(),
            label: new.label,
            privilege: new.privilege,
            hash: token_hash(&text),
            created_at: now,
            created_by: by.to_owned(),
            expires_at: new.duration.map(|seconds| now + SignedDuration::from_secs(seconds)),
            revoked_at: None,
        };
        let seen = record.seen(now);
        self.0.update(|store| {
            if store.tokens.iter().filter(|record| record.state(now) == TokenState::Active).count() >= MAX_ACTIVE {
                return Err(TokenError::TooMany);
            }
            note(store, EventKind::Created, &record, by, now);
            store.tokens.push(record);
            while store.tokens.len() > MAX_REMEMBERED {
                let Some(at) = store.tokens.iter().position(|record| record.state(now) != TokenState::Active) else {
                    break;
                };
                store.tokens.remove(at);
            }
            Ok(())
        })?;
        Ok((seen, text))
    }

    /// Ends a token.
    pub fn revoke(&self, id: &str, by: &str, now: Timestamp) -> Result<AccessToken, TokenError> {
        self.0.update(|store| {
            let found = store.tokens.iter_mut().find(|record| record.id == id && record.revoked_at.is_none());
            let record = found.ok_or_else(|| TokenError::NotFound(id.to_owned()))?;
            record.revoked_at = Some(now);
            let record = record.clone();
            note(store, EventKind::Revoked, &record, by, now);
            Ok(record.seen(now))
        })
    }
}

fn note(store: &mut Store, event: EventKind, record: &Record, by: &str, now: Timestamp) {
    store.history.push(Event {
        at: now,
        event,
        token_id: record.id.clone(),
        label: record.label.clone(),
        privilege: record.privilege,
        by: by.to_owned(),
    });
    let surplus = store.history.len().saturating_sub(MAX_HISTORY);
    store.history.drain(..surplus);
}

/// What is kept of a token's text: SHA-256 in hexadecimal digits.
#[must_use]
pub fn token_hash(text: &str) -> String {
    crate::runtime::content::hexadecimal(&Sha256::digest(text.as_bytes()))
}
