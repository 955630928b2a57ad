//! The two ways to name a Site in a path: `/sites/{space}/{site}/` and `/sites/-/{id}/`.
//!
//! Owns the check of the segments: nothing that is no legal segment reaches a lookup or another server (B24).

use std::collections::HashMap;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::super::error::ApiError;
use crate::domain::forms;

/// Names a Site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// By its public path.
    Path {
        /// First segment.
        space: String,
        /// Second segment.
        name: String,
    },
    /// By its id.
    Id(String),
}

impl Address {
    fn of(mut given: HashMap<String, String>) -> Result<Self, ApiError> {
        if let Some(id) = given.remove("site_id") {
            return if forms::id(&id) { Ok(Self::Id(id)) } else { Err(ApiError::field("id", "is no id of a site")) };
        }
        let mut segment = |field: &str| {
            let text = given.remove(field).unwrap_or_default();
            if forms::segment(&text) {
                Ok(text)
            } else {
                Err(ApiError::field(field, "must be 1 to 63 letters, digits, dots, dashes or underscores"))
            }
        };
        Ok(Self::Path { space: segment("space")?, name: segment("site")? })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Address {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let given = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
        let Path(given) = given.map_err(|_| ApiError::field("site", "the path is not UTF-8"))?;
        Self::of(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b24_only_legal_segments_name_a_site() {
        let path = |space: &str, site: &str| {
            Address::of(HashMap::from([("space".to_owned(), space.to_owned()), ("site".to_owned(), site.to_owned())]))
        };
        assert!(matches!(path("docs", "eu-climate_1"), Ok(Address::Path { .. })));
        for bad in ["../backups/20260101", "/etc/passwd", "a/../../b", ".", "..", "", "a\0b", "a b", "ü"] {
            assert!(matches!(path("docs", bad), Err(ApiError::Invalid(_))), "{bad:?}");
            assert!(matches!(path(bad, "fdb"), Err(ApiError::Invalid(_))), "{bad:?}");
            let id = HashMap::from([("site_id".to_owned(), bad.to_owned())]);
            assert!(matches!(Address::of(id), Err(ApiError::Invalid(_))), "{bad:?}");
        }
    }
}
