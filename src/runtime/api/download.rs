//! A file as an answer: whole, a part, or not at all because the client has it.

use std::io::{Seek, SeekFrom};

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, LAST_MODIFIED, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::asked::Asked;
use super::error::ApiError;
use crate::runtime::content::Opened;

/// Bytes per read.
const BLOCK: usize = 64 << 10;

/// Answers with the file.
pub(super) fn answer(asked: &Asked, mut opened: Opened, public: bool) -> Result<Response, ApiError> {
    let headers = &asked.headers;
    let mut response = Response::new(Body::empty());
    let shown = response.headers_mut();
    let value = |text: String| HeaderValue::from_str(&text).map_err(|error| ApiError::internal(&error));
    shown.insert(ETAG, value(opened.etag.clone())?);
    shown.insert(LAST_MODIFIED, value(http_date(opened.modified))?);
    shown.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    shown.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let keep = if public { "no-cache" } else { "private, no-cache" };
    shown.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    if is_known(headers, &opened) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    shown.insert(CONTENT_TYPE, value(content_type(asked.path.segments().last().map_or("", String::as_str)))?);
    let (start, length) = match range(headers, &opened) {
        Wish::Whole => (0, opened.size),
        Wish::Part(start, end) => {
            shown.insert(CONTENT_RANGE, value(format!("bytes {start}-{end}/{}", opened.size))?);
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            (start, end - start + 1)
        }
        Wish::Outside => {
            let mut error = ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "the file has no such part");
            error.header = Some((CONTENT_RANGE, value(format!("bytes */{}", opened.size))?));
            return Err(error);
        }
    };
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    if asked.method != http::Method::HEAD && length > 0 {
        opened.file.seek(SeekFrom::Start(start)).map_err(|error| ApiError::internal(&error))?;
        let part = tokio::fs::File::from_std(opened.file).take(length);
        *response.body_mut() = Body::from_stream(ReaderStream::with_capacity(part, BLOCK));
    }
    Ok(response)
}

enum Wish {
    Whole,
    /// First and last byte.
    Part(u64, u64),
    Outside,
}

/// One part is served; of several, and of what is no range of bytes, the whole file, as RFC 9110 allows.
fn range(headers: &HeaderMap, opened: &Opened) -> Wish {
    let Some(text) = text(headers, &RANGE).and_then(|text| text.strip_prefix("bytes=")) else { return Wish::Whole };
    if text_is_other(headers, opened) || text.contains(',') {
        return Wish::Whole;
    }
    let Some((first, last)) = text.trim().split_once('-') else { return Wish::Whole };
    let number = |text: &str| if text.is_empty() { Ok(None) } else { text.parse::<u64>().map(Some) };
    let (Ok(first), Ok(last)) = (number(first), number(last)) else { return Wish::Whole };
    let end = opened.size.saturating_sub(1);
    match (first, last) {
        (Some(first), Some(last)) if last < first => Wish::Whole,
        (Some(first), _) if first >= opened.size => Wish::Outside,
        (Some(first), last) => Wish::Part(first, last.unwrap_or(end).min(end)),
        (None, Some(last)) if last > 0 && opened.size > 0 => Wish::Part(opened.size.saturating_sub(last), end),
        (None, Some(_)) => Wish::Outside,
        (None, None) => Wish::Whole,
    }
}

/// `If-Range` of another version.
fn text_is_other(headers: &HeaderMap, opened: &Opened) -> bool {
    text(headers, &IF_RANGE).is_some_and(|version| {
        let same = if version.contains('"') { version == opened.etag } else { date(version) == Some(opened.modified) };
        !same
    })
}

fn is_known(headers: &HeaderMap, opened: &Opened) -> bool {
    match text(headers, &IF_NONE_MATCH) {
        Some(known) => {
            known.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == "*" || tag == opened.etag)
        }
        None => text(headers, &IF_MODIFIED_SINCE).and_then(date).is_some_and(|since| opened.modified <= since),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

fn http_date(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// From the name's extension; text is UTF-8.
pub(in crate::runtime) fn content_type(name: &str) -> String {
    let known = mime_guess::from_path(name).first_or_octet_stream();
    let essence = known.essence_str();
    let text = essence.starts_with("text/") || ["application/json", "application/javascript"].contains(&essence);
    if text { format!("{essence}; charset=utf-8") } else { essence.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Opened {
        let modified = Timestamp::from_second(784_111_777).unwrap();
        Opened { file: std::fs::File::open("/dev/null").unwrap(), size: 100, modified, etag: "\"a\"".to_owned() }
    }

    #[test]
    fn ranges() {
        let wish = |range: &str, version: Option<&str>| {
            let mut headers = HeaderMap::from_iter([(RANGE, range.parse().unwrap())]);
            headers.extend(version.map(|version| (IF_RANGE, version.parse().unwrap())));
            match super::range(&headers, &opened()) {
                Wish::Whole => None,
                Wish::Part(first, last) => Some((first, last)),
                Wish::Outside => Some((1, 0)),
            }
        };
        let outside = Some((1, 0));
        for (range, expected) in [
            ("bytes=0-9", Some((0, 9))),
            ("bytes=90-", Some((90, 99))),
            ("bytes=-10", Some((90, 99))),
            ("bytes=-1000", Some((0, 99))),
            ("bytes=0-1000", Some((0, 99))),
            ("bytes=100-", outside),
            ("bytes=-0", outside),
            ("bytes=9-0", None),
            ("bytes=0-9,20-29", None),
            ("bytes=x-9", None),
            ("bytes=-", None),
            ("lines=0-9", None),
            ("bytes=99999999999999999999-", None),
        ] {
            assert_eq!(wish(range, None), expected, "{range}");
        }
        assert_eq!(wish("bytes=0-9", Some("\"a\"")), Some((0, 9)));
        assert_eq!(wish("bytes=0-9", Some("\"b\"")), None);
        assert_eq!(wish("bytes=0-9", Some("Sun, 06 Nov 1994 08:49:37 GMT")), Some((0, 9)));
        assert_eq!(wish("bytes=0-9", Some("Sun, 06 Nov 1994 08:49:38 GMT")), None);
        assert_eq!(http_date(opened().modified), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn types() {
        for (name, expected) in [
            ("versions.json", "application/json; charset=utf-8"),
            ("index.html", "text/html; charset=utf-8"),
            ("a.png", "image/png"),
            ("model.ckpt", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected);
        }
    }
}
