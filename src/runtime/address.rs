//! The fixed part of our addresses, in whatever spelling it comes.
//!
//! nginx decides by the decoded path and passes on the bytes as they were sent, so both must agree: the fixed part is
//! compared segment by segment, decoded, empty segments ignored; what follows it is left as it is.

use percent_encoding::percent_decode_str;

/// What follows the given segments; it begins with a slash or is empty.
pub fn strip<'a, 'b>(path: &'a str, segments: impl IntoIterator<Item = &'b str>) -> Option<&'a str> {
    let mut rest = path;
    for expected in segments.into_iter().filter(|segment| !segment.is_empty()) {
        let text = rest.trim_start_matches('/');
        let end = text.find('/').unwrap_or(text.len());
        if !percent_decode_str(&text[..end]).eq(expected.bytes()) {
            return None;
        }
        rest = &text[end..];
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_in_any_spelling() {
        let segments = ["docs", "fdb", "s", "api", "v2"];
        for (path, rest) in [
            ("/docs/fdb/s/api/v2/files//a%2Fb", Some("/files//a%2Fb")),
            ("//docs/%66db//s/api/v2//files", Some("//files")),
            ("/docs/fdb/s/api/v2", Some("")),
            ("/docs/fdb/s/api/v20/files", None),
            ("/docs/fdb2/s/api/v2/files", None),
            ("/docs%2Ffdb/s/api/v2/files", None),
            ("/s/api/v2/files", None),
            ("/Docs/fdb/s/api/v2/files", None),
        ] {
            assert_eq!(strip(path, segments), rest, "{path}");
        }
        assert_eq!(strip("/a", "".split('/')), Some("/a"));
    }
}
