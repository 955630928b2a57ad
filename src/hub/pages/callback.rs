//! `/oauth2/callback`: the one address that the provider sends people back to, for all sites.
//!
//! Strict providers know exactly one redirect address. Each site's own oauth2-proxy began the login and waits for
//! the answer under its own prefix; `state` is `<nonce>:<where the visitor wants to go>`, and the first two segments
//! of that path say which site. Owns nothing secret: code and state are only passed on, on our own origin, and the
//! site's own cookie binds them to the browser that began.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::error;
use crate::domain::forms;
use crate::settings::Settings;

/// Longest query that is passed on: nginx in front of a site takes 32 KiB in one line.
const LONGEST: usize = 16 << 10;

/// `GET /oauth2/callback?code=…&state=…`: 302 to the site's own callback with the same query; 400 when the state
/// names no site.
pub async fn forward(State(settings): State<Arc<Settings>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = query.unwrap_or_default();
    let location = target(&query).and_then(|path| HeaderValue::from_str(&format!("{path}?{query}")).ok());
    match location {
        Some(location) => (StatusCode::FOUND, [(header::LOCATION, location)]).into_response(),
        None => error::answer(&settings, 400, &headers),
    }
}

/// `/<space>/<name>/oauth2/callback` of the site that `state` names.
fn target(query: &str) -> Option<String> {
    if query.len() > LONGEST {
        return None;
    }
    let mut states = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "state");
    let (_, state) = states.next()?;
    // Two states: oauth2-proxy and we might read different ones.
    if states.next().is_some() {
        return None;
    }
    let (_nonce, wanted) = state.split_once(':')?;
    let wanted = percent_encoding::percent_decode_str(wanted).decode_utf8().ok()?;
    let mut segments = wanted.strip_prefix('/')?.split(['/', '?', '#']);
    let (space, name) = (segments.next()?, segments.next()?);
    let reserved = forms::RESERVED_SEGMENTS.contains(&space);
    (forms::segment(space) && forms::segment(name) && !reserved).then(|| format!("/{space}/{name}/oauth2/callback"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_state_names_the_site() {
        for (query, path) in [
            ("code=c&state=n%3A%2Fdocs%2Ffdb%2Flatest%2F", Some("/docs/fdb/oauth2/callback")),
            // oauth2-proxy encodes the path once more.
            ("state=n%3A%252Fdocs%252Ffdb%252F%253Fa%253Db", Some("/docs/fdb/oauth2/callback")),
            ("state=n:/user1/z3.x_Y-1?q#f", Some("/user1/z3.x_Y-1/oauth2/callback")),
            ("error=access_denied&state=n:/docs/fdb", Some("/docs/fdb/oauth2/callback")),
            ("", None),
            ("state=", None),
            ("state=n", None),
            ("state=n:", None),
            ("state=n:/docs", None),
            ("state=n:docs/fdb", None),
            ("state=n://evil.test/x", None),
            ("state=n:/%2Fevil.test/x", None),
            ("state=n:/docs/..", None),
            ("state=n:/docs/a%5Cb", None),
            ("state=n:/hub/x/y", None),
            ("state=n:/oauth2/x", None),
            ("state=n:https://evil.test/a/b", None),
            ("state=n:/a/b&state=n:/c/d", None),
        ] {
            assert_eq!(target(query).as_deref(), path, "{query}");
        }
        assert_eq!(target(&format!("state=n:/a/b&x={}", "y".repeat(LONGEST))), None);
    }

    proptest! {
        /// Whatever is sent, a browser stays on our origin and on a site's callback.
        #[test]
        fn nothing_leads_elsewhere(state in "[n:/\\\\%.a-b25cCfF\t@?#-]{0,24}") {
            if let Some(path) = target(&format!("state={state}")) {
                let mut parts = path.split('/');
                prop_assert_eq!(parts.next(), Some(""));
                prop_assert!(parts.next().is_some_and(forms::segment) && parts.next().is_some_and(forms::segment));
                prop_assert_eq!(parts.collect::<Vec<_>>(), ["oauth2", "callback"]);
            }
        }
    }
}
