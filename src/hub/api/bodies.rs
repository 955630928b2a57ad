//! What small bodies hold, for the document: handlers take the fields of a request one by one, and events are a
//! stream.

#![expect(dead_code, reason = "documents the forms")]

use serde::Deserialize;
use utoipa::ToSchema;

/// Switches a Site.
#[derive(Deserialize, ToSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"enabled": true}))]
pub struct ToggleForm {
    /// `false` archives; absent: the other way round than it is.
    #[schema(nullable)]
    enabled: Option<bool>,
}

/// Asks for something.
#[derive(Deserialize, ToSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"comment": "for the course in May"}))]
pub struct AccessForm {
    /// Why, at most 4000 characters.
    #[schema(nullable, max_length = 4000)]
    comment: Option<String>,
}

/// Asks to make a Site public.
#[derive(Deserialize, ToSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"comment": "the paper is out"}))]
pub struct PublishForm {
    /// Why, at most 4000 characters.
    #[schema(max_length = 4000)]
    comment: String,
}

/// Asks for more room.
#[derive(Deserialize, ToSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"comment": "the reanalysis", "quota": 800}))]
pub struct StorageForm {
    /// Why, at most 4000 characters.
    #[schema(max_length = 4000)]
    comment: String,
    /// In GB. Default 600.
    #[schema(nullable, minimum = 1, maximum = 1_000_000)]
    quota: Option<u32>,
}

/// Turns the read-only switch.
#[derive(Deserialize, ToSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"read_only": false, "message": "back at noon"}))]
pub struct PlatformStateForm {
    /// Whether nobody may change Sites.
    read_only: bool,
    /// Why, for those who are refused: one line.
    #[schema(nullable, max_length = 500)]
    message: Option<String>,
}

/// An access token to be made.
#[derive(Deserialize, ToSchema, Debug)]
#[schema(example = json!({"label": "documentation pipeline", "privilege": "read", "duration": 86400}))]
pub struct TokenForm {
    /// What it is for.
    label: String,
    /// `read` or `read-write`.
    #[schema(pattern = "^(read|read-write)$")]
    privilege: String,
    /// Seconds that it lives; absent means until it is revoked.
    #[schema(nullable)]
    duration: Option<i64>,
}

/// An address to be signed.
#[derive(Deserialize, ToSchema, Debug)]
#[schema(example = json!({"url": "/reports/a.pdf", "duration": 3600}))]
pub struct SignForm {
    /// Path of content, percent-encoded.
    url: String,
    /// Seconds that it is good for: up to 30 days.
    duration: i64,
    /// `GET` (default), `PUT` or `DELETE`.
    #[schema(nullable)]
    method: Option<String>,
}

/// A signed address to be looked at.
#[derive(Deserialize, ToSchema, Debug)]
#[schema(example = json!({"url": "https://sites.example.org/docs/fdb/s/api/v2/files/a.pdf?signature=…"}))]
pub struct VerifyForm {
    /// The address, as it was given.
    url: String,
}

/// A session address to be made.
#[derive(Deserialize, ToSchema, Debug)]
#[schema(example = json!({"path": "", "duration": 3600}))]
pub struct SessionForm {
    /// The folder that it opens; absent means all.
    path: Option<String>,
    /// Seconds that it is good for: up to one day.
    duration: i64,
}

/// An event of a run.
#[derive(Deserialize, ToSchema, Debug)]
pub struct StreamedEvent {
    /// For `Last-Event-ID`.
    id: String,
    /// `run` or `site`.
    event: String,
    /// JSON: the run, or the result of a Site.
    data: String,
}
