//! Whether a Site's front page answers.
//!
//! Nothing of an answer is repeated but its status.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::pod_http::{Bounds, PodError, Pods, Question};
use crate::domain::site::Site;

/// What is waited for and read of an answer, here and wherever many Sites are asked at once.
pub const BOUNDS: Bounds = Bounds { time: Duration::from_secs(5), bytes: 64 * 1024 };

/// What a probe said.
#[derive(Serialize, Deserialize, ToSchema, Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Whether the Site answers, if only with a login: a status below 500.
    pub ok: bool,
    /// The status, or why there is none.
    pub outcome: String,
    /// Time until the answer was complete.
    pub milliseconds: u64,
}

/// Asks for the front page. A page that is larger than what is read is an answer.
pub async fn probe(pods: &Pods, site: &Site) -> Probe {
    let (at, begun) = (Timestamp::now(), Instant::now());
    let answer = pods.ask(site, Question::get("/", None), BOUNDS).await;
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (ok, outcome) = match answer {
        Ok((status, _)) => (!status.is_server_error(), status.as_str().to_owned()),
        Err(error @ PodError::TooLarge(_)) => (true, error.to_string()),
        Err(error) => (false, error.to_string()),
    };
    Probe { at, ok, outcome, milliseconds }
}
