//! The trace that a request belongs to, as W3C `traceparent` writes it.
//!
//! It goes into the annotation of each write, so that the operator's pass joins the same trace.

use std::convert::Infallible;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rand::RngExt;

/// `00-<trace>-<span>-<flags>`; the caller's, else a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace(String);

impl Trace {
    /// A trace that begins here.
    #[must_use]
    pub fn begun() -> Self {
        let mut random = rand::rng();
        Self(format!("00-{:032x}-{:016x}-01", random.random::<u128>().max(1), random.random::<u64>().max(1)))
    }

    /// The trace of a header, if it is one.
    #[must_use]
    pub fn given(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('-').collect();
        let hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let [version, trace, span, flags] = parts[..] else { return None };
        let all_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        let legal = version == "00" && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
        (legal && !all_zero(trace) && !all_zero(span)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
        Ok(header.and_then(Self::given).unwrap_or_else(Self::begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legal_traceparent_is_kept_and_any_other_replaced() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(Trace::given(good).unwrap().to_string(), good);
        let begun = Trace::begun();
        assert_eq!(Trace::given(&begun.to_string()), Some(begun));
        for bad in
            ["", "00-x-y-01", &good.to_uppercase(), &good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32))]
        {
            assert_eq!(Trace::given(bad), None, "{bad}");
        }
    }
}
