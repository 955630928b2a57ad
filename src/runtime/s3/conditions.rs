//! Conditions on the object that is there: `If-Match` and its relatives.

use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3ErrorCode, S3Result};

/// Conditions of a request.
#[derive(Default)]
pub(super) struct Conditions {
    pub matches: Option<ETagCondition>,
    pub none_match: Option<ETagCondition>,
    pub modified_since: Option<Timestamp>,
    pub unmodified_since: Option<Timestamp>,
}

impl Conditions {
    /// Whether an object with this entity tag, last changed then, meets them; `otherwise` is the answer when the
    /// client has it already.
    pub(super) fn check(&self, etag: &str, modified: &Timestamp, otherwise: S3ErrorCode) -> S3Result<()> {
        // As RFC 9110 orders them: tags before times.
        let failed = match &self.matches {
            Some(condition) => !is_it(condition, etag),
            None => self.unmodified_since.as_ref().is_some_and(|since| modified > since),
        };
        if failed {
            return Err(S3ErrorCode::PreconditionFailed.into());
        }
        let known = match &self.none_match {
            Some(condition) => is_it(condition, etag),
            None => self.modified_since.as_ref().is_some_and(|since| modified <= since),
        };
        if known { Err(otherwise.into()) } else { Ok(()) }
    }
}

/// Whether a condition names this entity tag.
pub(super) fn is_it(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(wanted) => wanted.value() == etag,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use s3s::dto::ETag;

    use super::*;

    #[test]
    fn tags_come_before_times() {
        let at = |seconds| Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let tag = |text: &str| Some(ETagCondition::ETag(ETag::Strong(text.to_owned())));
        let outcome = |conditions: &Conditions| {
            let result = conditions.check("a", &at(100), S3ErrorCode::NotModified);
            result.err().map(|error| error.code().clone())
        };
        let (failed, known) = (Some(S3ErrorCode::PreconditionFailed), Some(S3ErrorCode::NotModified));
        for (conditions, expected) in [
            (Conditions::default(), None),
            (Conditions { matches: tag("a"), ..Conditions::default() }, None),
            (Conditions { matches: Some(ETagCondition::Any), ..Conditions::default() }, None),
            (Conditions { matches: tag("b"), ..Conditions::default() }, failed.clone()),
            (Conditions { matches: tag("a"), unmodified_since: Some(at(1)), ..Conditions::default() }, None),
            (Conditions { unmodified_since: Some(at(99)), ..Conditions::default() }, failed),
            (Conditions { unmodified_since: Some(at(100)), ..Conditions::default() }, None),
            (Conditions { none_match: tag("a"), ..Conditions::default() }, known.clone()),
            (Conditions { none_match: tag("b"), modified_since: Some(at(100)), ..Conditions::default() }, None),
            (Conditions { modified_since: Some(at(100)), ..Conditions::default() }, known),
            (Conditions { modified_since: Some(at(99)), ..Conditions::default() }, None),
        ] {
            assert_eq!(outcome(&conditions), expected);
        }
    }
}
