//! Asks a Site's own API with its master token.
//!
//! Owns what a failure means to the caller, and a second attempt for reads only. Must not keep or log anything of what
//! it carries: the token comes from the Site at each call.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::Value;
use tracing::warn;

use super::error::ApiError;
use super::pod_http::{Bounds, PodError, Pods, Question};
use super::sites::master_token;
use crate::domain::forms;
use crate::domain::site::Site;

/// Longest answer of a Site, in bytes.
const MOST: usize = 4 << 20;
/// Longest message of a Site that is passed on, in characters.
const MESSAGE: usize = 400;
/// Characters of a token that tell enough of it to be a secret.
const TOLD: usize = 8;

/// The way to the Sites' own APIs; cheap to clone.
#[derive(Clone, Debug)]
pub struct SiteApi {
    pods: Pods,
    bounds: Bounds,
}

/// A Site that did not do it.
struct Refusal {
    /// What it answered; none if it gave no answer, or one that nobody can use.
    status: Option<StatusCode>,
    message: String,
}

impl SiteApi {
    /// Answers are waited for as long as `limit`.
    pub const fn new(pods: Pods, limit: Duration) -> Self {
        Self { pods, bounds: Bounds { time: limit, bytes: MOST } }
    }

    /// One call; `path` is made of checked segments, such as `["tokens", id]`. A failure is 500 with the Site's words;
    /// 404 for what the Site does not have, 400 for what it says is wrong with the request. A Site that gave no usable
    /// answer has no words to pass on: 503, which says that it is worth another try;
    /// one that has no API to ask yet: 409.
    pub async fn call(
        &self,
        site: &Site,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let token =
            master_token::of(site).ok_or_else(|| ApiError::conflict("the site has no master token: regenerate it"))?;
        let addressed = site.public_path().is_some() && path.iter().all(|segment| forms::segment(segment));
        if !addressed {
            return Err(ApiError::conflict("the site has no public path yet: its API cannot be asked"));
        }
        let path = format!("/s/api/v2/{}", path.join("/"));
        let question = Question { method, path: &path, token: Some(token), body };
        let mut answer = self.once(site, question.clone()).await;
        let failed = |refusal: &Refusal| refusal.status.is_none_or(|status| status.is_server_error());
        if question.method == Method::GET && answer.as_ref().is_err_and(failed) {
            answer = self.once(site, question).await;
        }
        answer.map_err(|Refusal { status, message }| {
            warn!(site = site.spec.id, status = status.map(|status| status.as_u16()), "a site's API did not do it");
            match status {
                Some(StatusCode::NOT_FOUND) => ApiError::NotFound("the token"),
                Some(StatusCode::BAD_REQUEST) => ApiError::BadRequest(message),
                Some(StatusCode::CONFLICT) => ApiError::conflict(message),
                // It said so itself, or its front door did: its servers are not there.
                None | Some(StatusCode::SERVICE_UNAVAILABLE) => ApiError::Unavailable(message),
                Some(_) => ApiError::Upstream(message),
            }
        })
    }

    async fn once(&self, site: &Site, question: Question<'_>) -> Result<Value, Refusal> {
        let unanswered = |error: PodError| match error {
            // It did answer, so it is not said to be down, and is not asked for as much again.
            PodError::TooLarge(_) => Refusal {
                status: Some(StatusCode::PAYLOAD_TOO_LARGE),
                message: "the site's API: its answer is too long".to_owned(),
            },
            error => Refusal { status: None, message: format!("the site's API does not answer: {error}") },
        };
        let token = question.token.unwrap_or_default();
        let (status, bytes) = self.pods.ask(site, question, self.bounds).await.map_err(unanswered)?;
        let value: Option<Value> = serde_json::from_slice(&bytes).ok();
        match value {
            Some(value) if status.is_success() => Ok(value),
            value => {
                let said = value.as_ref().and_then(|value| value["message"].as_str());
                let said = said.map_or_else(
                    || {
                        if status.is_success() {
                            "its answer is no JSON".to_owned()
                        } else {
                            format!("it answered {status}")
                        }
                    },
                    |text| {
                        let text = without(text, token);
                        text.chars().filter(|one| !one.is_control()).take(MESSAGE).collect()
                    },
                );
                Err(Refusal { status: Some(status), message: format!("the site's API: {said}") })
            }
        }
    }
}

/// A text without a token or its beginning, wherever its author has cut it.
fn without(text: &str, token: &str) -> String {
    let start: String = token.chars().take(TOLD).collect();
    if start.is_empty() {
        return text.to_owned();
    }
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(&start) {
        let (before, from) = rest.split_at(at);
        let same = from.chars().zip(token.chars()).take_while(|(is, was)| is == was);
        rest = &from[same.map(|(is, _)| is.len_utf8()).sum()..];
        kept.push_str(before);
        kept.push('…');
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b21_no_beginning_of_a_token_is_passed_on() {
        let token = "0123456789abcdef";
        for (text, kept) in [
            ("no: Bearer 0123456789abcdef!", "no: Bearer …!"),
            ("cut: 0123456789ab, 01234567x 0123456", "cut: …, …x 0123456"),
            ("0123456789abcdef0123456789abcdef", "……"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without(text, token), kept);
        }
        assert_eq!(without("a sécrét b", "sécrét"), "a … b");
        assert_eq!(without("a", ""), "a");
    }
}
