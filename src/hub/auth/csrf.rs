//! Whether a change that a browser's session asks for comes from one of our pages.
//!
//! Owns the three checks: the request's own origin, the kind of its body, and the token of the session, in the header
//! `X-CSRF-Token` or the field `csrf_token` of a form. A form's field is taken out: handlers never see it.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};

use super::secrets::Secrets;
use crate::hub::error::ApiError;

/// The header with the token.
pub const HEADER: &str = "x-csrf-token";
/// The field with the token.
pub const FIELD: &str = "csrf_token";
const FORM: &str = "application/x-www-form-urlencoded";

/// Whether a request changes nothing.
pub fn harmless(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

/// Gives back the request if it may change something. `origin` is the Hub's own, `limit` the most bytes of a body.
pub async fn check(
    request: Request,
    secrets: &Secrets,
    session: &str,
    origin: Option<&str>,
    limit: usize,
) -> Result<Request, ApiError> {
    if harmless(request.method()) {
        return Ok(request);
    }
    from_here(request.headers(), origin)?;
    let kind = body_kind(request.headers())?;
    if let Some(token) = request.headers().get(HEADER) {
        return if token.to_str().is_ok_and(|token| secrets.is_csrf_token(session, token)) {
            Ok(request)
        } else {
            Err(refused("the X-CSRF-Token is not that of this session, see /hub/api/v2/whoami/"))
        };
    }
    if kind != Kind::Form {
        return Err(refused("send the X-CSRF-Token that /hub/api/v2/whoami/ gives"));
    }
    let (mut head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, limit).await.map_err(|_| ApiError::TooLarge(limit))?;
    let (tokens, fields): (Vec<_>, Vec<_>) = form_urlencoded::parse(&body).partition(|(name, _)| name == FIELD);
    if !matches!(tokens.as_slice(), [(_, token)] if secrets.is_csrf_token(session, token)) {
        return Err(refused("the form's csrf_token is not that of this session: load the page again"));
    }
    let fields = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    head.headers.insert(header::CONTENT_LENGTH, fields.len().into());
    Ok(Request::from_parts(head, Body::from(fields)))
}

fn refused(reason: &str) -> ApiError {
    ApiError::forbidden(format!("this change does not come from a page of the Hub: {reason}"))
}

/// What browsers say of themselves. Older ones say nothing.
fn from_here(headers: &HeaderMap, origin: Option<&str>) -> Result<(), ApiError> {
    let of_here = |name: &str, ours: &str| {
        headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(|value| value.eq_ignore_ascii_case(ours)))
    };
    if !of_here("sec-fetch-site", "same-origin") {
        return Err(refused("another site asks for it"));
    }
    match origin {
        Some(origin) if of_here("origin", origin) => Ok(()),
        None if !headers.contains_key(header::ORIGIN) => Ok(()),
        _ => Err(refused("another site asks for it")),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Json,
    Form,
}

/// A body that a plain form of another site cannot send without being asked, or a form of ours.
fn body_kind(headers: &HeaderMap) -> Result<Kind, ApiError> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        let length = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
        let nothing = length && !headers.contains_key(header::TRANSFER_ENCODING);
        return if nothing { Ok(Kind::Nothing) } else { Err(ApiError::MediaType) };
    };
    let essence = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Ok(Kind::Json),
        FORM => Ok(Kind::Form),
        _ => Err(ApiError::MediaType),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use secrecy::SecretString;

    use super::*;

    const ORIGIN: Option<&str> = Some("https://hub.test");

    async fn ask(headers: &[(&str, &str)], body: &str) -> Result<String, StatusCode> {
        let secrets = Secrets::new(&SecretString::from("k")).unwrap();
        let token = secrets.csrf_token("s1");
        let mut request = Request::post("/").header("content-length", body.len());
        for (name, value) in headers {
            request = request.header(*name, value.replace("TOKEN", &token));
        }
        let request = request.body(Body::from(body.replace("TOKEN", &token))).unwrap();
        let checked = check(request, &secrets, "s1", ORIGIN, 1000).await.map_err(|error| error.status())?;
        let body = axum::body::to_bytes(checked.into_body(), 1000).await.unwrap();
        Ok(String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_change_comes_from_our_pages() {
        let (json, form) = (("content-type", "application/json; charset=utf-8"), ("content-type", FORM));
        let token = (HEADER, "TOKEN");
        for (headers, body, result) in [
            (&[json, token][..], "{}", Ok("{}")),
            (&[token], "", Ok("")),
            (&[form, token], "a=1", Ok("a=1")),
            (&[form], "a=1&csrf_token=TOKEN&b=%26", Ok("a=1&b=%26")),
            (&[json, token, ("origin", "https://hub.test"), ("sec-fetch-site", "same-origin")], "{}", Ok("{}")),
            (&[json], "{}", Err(403)),
            (&[], "", Err(403)),
            (&[form], "a=1", Err(403)),
            (&[form], "csrf_token=TOKEN&csrf_token=x", Err(403)),
            (&[json, (HEADER, "x")], "{}", Err(403)),
            (&[json, (HEADER, "")], "{}", Err(403)),
            (&[json, token, ("origin", "https://evil.test")], "{}", Err(403)),
            (&[json, token, ("origin", "null")], "{}", Err(403)),
            (&[json, token, ("origin", "https://hub.test"), ("origin", "https://evil.test")], "{}", Err(403)),
            (&[json, token, ("sec-fetch-site", "same-site")], "{}", Err(403)),
            (&[json, token, ("sec-fetch-site", "cross-site")], "{}", Err(403)),
            (&[("content-type", "text/plain"), token], "{}", Err(415)),
            (&[("content-type", "multipart/form-data; boundary=x"), token], "x", Err(415)),
            (&[token], "{}", Err(415)),
        ] {
            let result = result.map(str::to_owned).map_err(|code| StatusCode::from_u16(code).unwrap());
            assert_eq!(ask(headers, body).await, result, "{headers:?} {body}");
        }
        let large = format!("csrf_token=TOKEN&a={}", "x".repeat(1000));
        assert_eq!(ask(&[form], &large).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
    }
}
