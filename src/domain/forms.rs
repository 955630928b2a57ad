//! The forms of texts in a Site: each as a pattern for the API server and as a predicate.
//!
//! Owns pairs that mean the same; a property test holds each predicate against its pattern. The patterns are RE2,
//! which both Go and the `regex` crate read, without a single quote, because they stand in a CEL raw string.
//! Must not know which field has which form: that is [`super::rules`].

/// A Site's id: a DNS label that begins with a letter, of at most 52 characters, because a StatefulSet's revision
/// label adds 11 (B12).
pub const ID: &str = "^[a-z]([-a-z0-9]{0,50}[a-z0-9])?$";

/// See [`ID`].
#[must_use]
pub fn id(text: &str) -> bool {
    dns_label(text) && text.len() <= 52 && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// A DNS label (RFC 1123).
pub const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

/// See [`DNS_LABEL`].
#[must_use]
pub fn dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// One segment of a public path. Upper case, `_` and `.` are in real use.
pub const SEGMENT: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$";

/// See [`SEGMENT`].
#[must_use]
pub fn segment(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// First segments of a public path that are the platform's own.
pub const RESERVED_SEGMENTS: [&str; 3] = ["hub", "oauth2", "s"];

/// A day that exists, `YYYY-MM-DD`: leap years as in the Gregorian calendar (B22).
pub const DAY: &str = "^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)$";

/// See [`DAY`].
#[must_use]
pub fn day(text: &str) -> bool {
    let shape = text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    shape && text.parse::<jiff::civil::Date>().is_ok()
}

/// A control character, as it is or percent-encoded (C0, DEL and C1): found anywhere in a text, it is refused (B15).
pub const CONTROL: &str = r"\p{Cc}|%[01][0-9A-Fa-f]|%7[Ff]|%[Cc]2%[89][0-9A-Fa-f]";

/// Whether [`CONTROL`] is found nowhere.
#[must_use]
pub fn without_control(text: &str) -> bool {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    // Value of the percent-encoded byte at a position.
    let encoded = |at: usize| match bytes.get(at) {
        Some(b'%') => Some(digit(bytes.get(at + 1))? * 16 + digit(bytes.get(at + 2))?),
        _ => None,
    };
    let control = |at: usize| match encoded(at) {
        Some(0..=0x1f | 0x7f) => true,
        Some(0xc2) => matches!(encoded(at + 3), Some(0x80..=0x9f)),
        _ => false,
    };
    !text.contains(char::is_control) && !(0..bytes.len()).any(control)
}

/// A segment `.` or `..`, as it is or percent-encoded, between slashes of either kind: it leads out of the content.
pub const DOT_SEGMENT: &str = r"(?i)(^|/|\\|%2f|%5c)(\.|%2e){1,2}(/|\\|%2f|%5c|$)";

/// A path of the Site's content: absolute, without query, fragment, [`CONTROL`] and [`DOT_SEGMENT`].
#[must_use]
pub fn content_path(text: &str) -> bool {
    let decoded =
        text.to_ascii_lowercase().replace("%2f", "/").replace("%5c", "/").replace("%2e", ".").replace('\\', "/");
    text.starts_with('/')
        && !text.contains(['?', '#'])
        && without_control(text)
        && !decoded.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Name of a response header: an HTTP token (RFC 9110, section 5.6.2).
pub const HEADER_NAME: &str = r"^[!#$%&\x27*+.^_`|~0-9A-Za-z-]{1,100}$";

/// See [`HEADER_NAME`].
#[must_use]
pub fn header_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte);
    (1..=100).contains(&text.len()) && text.bytes().all(inner)
}

/// Headers that a Site must not set, but for [`ALLOWED_HEADER`]: they frame or describe the body, belong to the
/// connection or to the server, or reach beyond the Site (the whole host shares `Clear-Site-Data`, service workers
/// and `Alt-Svc`; an nginx in front obeys `X-Accel-*`).
pub const REFUSED_HEADER: &str = "(?i)^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie2?|location|date|server|alt-svc|clear-site-data|service-worker-allowed|x-accel-.*|content-.*)$";

/// The `Content-*` headers that say nothing about the body.
pub const ALLOWED_HEADER: &str = "(?i)^content-security-policy(-report-only)?$";

/// See [`REFUSED_HEADER`] and [`ALLOWED_HEADER`].
#[must_use]
pub fn refused_header(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "set-cookie",
        "set-cookie2",
        "location",
        "date",
        "server",
        "alt-svc",
        "clear-site-data",
        "service-worker-allowed",
    ];
    const FAMILIES: [&str; 3] = ["proxy-", "x-accel-", "content-"];
    let name = name.to_ascii_lowercase();
    let refused = NAMES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family));
    refused && !matches!(name.as_str(), "content-security-policy" | "content-security-policy-report-only")
}

/// An image reference, as far as it matters here: printable ASCII without a space.
pub const IMAGE: &str = "^[!-~]{1,512}$";

/// See [`IMAGE`].
#[must_use]
pub fn image(text: &str) -> bool {
    (1..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A Kubernetes quantity above zero, as the API server's `quantity()` reads it.
#[must_use]
pub fn positive_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 16] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let number = text.strip_prefix('+').unwrap_or(text);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (digits, suffix) = number.split_at(end);
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i8>().is_ok());
    digits.matches('.').count() <= 1
        && digits.contains(|c: char| matches!(c, '1'..='9'))
        && (SUFFIXES.contains(&suffix) || exponent)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex};

    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn matches(pattern: &'static str, text: &str) -> bool {
        static COMPILED: LazyLock<Mutex<HashMap<&'static str, Regex>>> = LazyLock::new(Mutex::default);
        let mut compiled = COMPILED.lock().unwrap();
        compiled.entry(pattern).or_insert_with(|| Regex::new(pattern).unwrap()).is_match(text)
    }

    fn agree(pattern: &'static str, text: &str, holds: bool) {
        assert_eq!(matches(pattern, text), holds, "{text:?} and {pattern}");
        assert!(!pattern.contains('\''), "stands in a CEL raw string");
    }

    fn all(text: &str) {
        agree(ID, text, id(text));
        agree(DNS_LABEL, text, dns_label(text));
        agree(SEGMENT, text, segment(text));
        agree(DAY, text, day(text));
        agree(CONTROL, text, !without_control(text));
        agree(HEADER_NAME, text, header_name(text));
        assert_eq!(matches(REFUSED_HEADER, text) && !matches(ALLOWED_HEADER, text), refused_header(text), "{text:?}");
        agree(IMAGE, text, image(text));
        let path = matches("^/[^?#]*$", text) && !matches(CONTROL, text) && !matches(DOT_SEGMENT, text);
        assert_eq!(path, content_path(text), "{text:?}");
    }

    #[test]
    fn edges() {
        for length in [1, 51, 52, 53, 62, 63, 64, 100, 101, 512, 513] {
            all(&"a".repeat(length));
            all(&format!("a{}", "-".repeat(length)));
        }
        for text in [
            "",
            "-",
            "a\n",
            "a\n\n",
            "1a",
            "é",
            "%0",
            "%0G",
            "%c2%9f",
            "%C2%a0",
            "%c2%9",
            "/a/%2E./b",
            "/a\\..",
            "/...",
        ] {
            all(text);
        }
        assert!(id(&"a".repeat(52)) && !id(&"a".repeat(53)));
    }

    #[test]
    fn every_day_of_some_centuries() {
        for year in (0..2100).step_by(100).chain([1999, 2000, 2023, 2024, 2100, 9999]) {
            for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
                let text = format!("{year:04}-{month:02}-{day:02}");
                agree(DAY, &text, super::day(&text));
            }
        }
        assert!(day("2024-02-29") && !day("2025-02-30") && !day("2100-02-29") && !day("01/02/2026"));
    }

    #[test]
    fn refused_headers() {
        for name in ["Content-", "Content-Type", "content-length", "Content-Security", "Content-Security-Policy-X"] {
            assert!(refused_header(name), "{name}");
        }
        for name in ["Set-Cookie", "LOCATION", "Proxy-Authenticate", "X-Accel-Redirect", "TE"] {
            assert!(refused_header(name), "{name}");
        }
        for name in ["Access-Control-Allow-Origin", "X-Frame-Options", "Content-Security-Policy", "TEX"] {
            assert!(!refused_header(name), "{name}");
        }
    }

    #[test]
    fn quantities() {
        for text in ["1", "500m", "512Mi", "0.5", ".5", "5.", "1e3", "1E3", "1E", "2e-1", "+1"] {
            assert!(positive_quantity(text), "{text}");
        }
        for text in ["", "0", "0.0", "-1", "one", "1K", "1 Gi", "1.2.3", "1mi", ".", "1e", "1e2.5", "e3"] {
            assert!(!positive_quantity(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn predicates_and_patterns_agree(text in r"[-a-zA-Z0-9._%/\\#?\n\x7f\x{85}é]{0,20}") {
            all(&text);
        }

        #[test]
        fn predicates_and_patterns_agree_on_encoded_texts(parts in proptest::collection::vec("/|\\\\|%2[fFeE]|%5c|%[01][0-9a-f]|%7f|%c2|%8[0-9]|\\.|a|content-|security-|policy|-report-only", 0..8)) {
            all(&parts.concat());
        }
    }
}
