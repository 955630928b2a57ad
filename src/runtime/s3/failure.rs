//! Every failure as an error of S3.

use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::runtime::access::Refusal;
use crate::runtime::content::ContentError;

/// An error of ours with a code that S3 does not have.
pub(super) fn custom(status: StatusCode, code: &'static str, message: impl Into<String>) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::Custom(code.into()), message.into());
    error.set_status_code(status);
    error
}

/// An error with a code of S3.
pub(super) fn error(code: S3ErrorCode, message: impl Into<String>) -> S3Error {
    S3Error::with_message(code, message.into())
}

/// What is not offered.
pub(super) fn not_offered(what: &str) -> S3Error {
    error(S3ErrorCode::NotImplemented, format!("{what} is not offered here"))
}

/// Why a key cannot be read.
pub(super) fn reading(failure: &ContentError) -> S3Error {
    match failure {
        ContentError::NotFound(_)
        | ContentError::NotAFolder(_)
        | ContentError::IsAFolder(_)
        | ContentError::Special(_) => error(S3ErrorCode::NoSuchKey, "there is no such key"),
        other => writing(other),
    }
}

/// Why a key cannot be written.
pub(super) fn writing(failure: &ContentError) -> S3Error {
    let message = failure.to_string();
    match failure {
        ContentError::Path(_) | ContentError::Root(_) => error(S3ErrorCode::InvalidArgument, message),
        ContentError::NotFound(_) => error(S3ErrorCode::NoSuchKey, message),
        // A file system cannot have a file and a folder of one name.
        ContentError::NotAFolder(_) | ContentError::IsAFolder(_) | ContentError::Special(_) | ContentError::Loop(_) => {
            custom(StatusCode::CONFLICT, "KeyConflict", message)
        }
        ContentError::Exists { .. } | ContentError::Changed(_) => error(S3ErrorCode::PreconditionFailed, message),
        // Not 507: clients send the whole file again after that.
        ContentError::Quota { .. } => custom(StatusCode::FORBIDDEN, "QuotaExceeded", message),
        ContentError::VolumeFull => custom(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message),
        ContentError::NotPermitted(_) => error(S3ErrorCode::AccessDenied, message),
        ContentError::Io { .. } => {
            tracing::error!(error = %message, "an S3 request failed");
            internal()
        }
    }
}

/// A failure of ours: the log has the reason, the client does not.
pub(super) fn internal() -> S3Error {
    error(S3ErrorCode::InternalError, "the site's server failed; its log says why")
}

/// Why a request is not served.
pub(super) fn refused(refusal: &Refusal) -> S3Error {
    match refusal {
        Refusal::Unauthenticated(_) => error(
            S3ErrorCode::AccessDenied,
            "authentication required: sign the request with an access key of this site",
        ),
        Refusal::Forbidden(_) => error(S3ErrorCode::AccessDenied, refusal.to_string()),
        Refusal::Malformed(_) => error(S3ErrorCode::InvalidRequest, refusal.to_string()),
        Refusal::Unavailable(_) => error(S3ErrorCode::ServiceUnavailable, refusal.to_string()),
    }
}

/// Runs work on files where it holds up nobody.
pub(super) async fn blocking<T: Send + 'static>(
    failed: fn(&ContentError) -> S3Error,
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> S3Result<T> {
    join(work).await?.map_err(|error| failed(&error))
}

/// The same for work whose failure is the caller's to judge.
pub(super) async fn join<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> S3Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "an S3 request failed");
        internal()
    })
}
