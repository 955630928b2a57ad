//! Requests that a foreign page makes a visitor's browser send.
//!
//! Owns the check for credentials that a browser adds by itself (cookies, remembered Basic passwords), on requests that
//! change something. The headers read here can only take rights away.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method};

/// Whether a page of another origin caused this request, and not just by opening one of ours: a link in a mail, or the
/// provider's way back from the login, shows a page to the visitor and to nobody else.
pub(super) fn is_cross_site(method: &Method, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let reads = [Method::GET, Method::HEAD].contains(method);
    if reads && text("sec-fetch-mode") == Some("navigate") && text("sec-fetch-dest") == Some("document") {
        return false;
    }
    if let Some(relation) = text("sec-fetch-site") {
        return !["same-origin", "none"].contains(&relation);
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    origin.is_none() || origin != host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        for (fetch, origin, cross) in [
            (None, None, false),
            (Some("same-origin"), Some("https://evil.example.org"), false),
            (Some("none"), None, false),
            (Some("same-site"), None, true),
            (Some("cross-site"), Some("https://sites.example.org"), true),
            (None, Some("https://sites.example.org"), false),
            (None, Some("https://evil.example.org"), true),
            (None, Some("null"), true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "sites.example.org".parse().unwrap());
            if let Some(fetch) = fetch {
                headers.insert("sec-fetch-site", fetch.parse().unwrap());
            }
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(is_cross_site(&Method::GET, &headers), cross, "{fetch:?} {origin:?}");
        }
    }

    #[test]
    fn a_page_may_be_opened_from_elsewhere() {
        for (method, mode, dest, cross) in [
            (Method::GET, "navigate", "document", false),
            (Method::GET, "navigate", "iframe", true),
            (Method::GET, "no-cors", "image", true),
            (Method::GET, "cors", "empty", true),
            (Method::POST, "navigate", "document", true),
        ] {
            let headers = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
            let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            assert_eq!(is_cross_site(&method, &HeaderMap::from_iter(headers)), cross, "{method} {mode} {dest}");
        }
    }
}
