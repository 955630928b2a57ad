//! Who asks, and whether that may be: the keys that signatures are checked with, the way from the first step to the
//! second, and the decision on each operation.

use std::sync::Arc;

use async_trait::async_trait;
use form_urlencoded::parse;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, Method, Request, Uri};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::route::S3Route;
use s3s::service::S3Service;
use s3s::validation::NameValidation;
use s3s::{Body, S3, S3ErrorCode, S3Request, S3Response, S3Result, TrailingHeaders};
use secrecy::{ExposeSecret, SecretString};

use super::failure::{error, internal, join, refused};
use crate::runtime::access::{Access, Caller, Wanted};
use crate::runtime::address::strip;
use crate::runtime::content::SitePath;

/// What a signature adds to an address. The second step does not see it.
const SIGNATURE: [&str; 8] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
    "X-Amz-Security-Token",
    "X-Amz-Content-Sha256",
];

/// Who asks, beside the request in the second step.
#[derive(Clone)]
pub(super) struct Asker(pub Caller);

/// What follows the body, beside the request in the second step.
#[derive(Clone)]
pub(super) struct Trailers(pub TrailingHeaders);

/// The secrets of the site's access keys.
pub(super) struct Keys(pub Arc<Access>);

#[async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let (secret, _) = holder(&self.0, access_key).await?;
        Ok(SecretKey::from(secret.expose_secret()))
    }
}

/// The secret of an access key and whose it is.
async fn holder(access: &Arc<Access>, access_key: &str) -> S3Result<(SecretString, Caller)> {
    let (access, key) = (access.clone(), access_key.to_owned());
    let found = join(move || access.secret_key(&key)).await?.map_err(|refusal| refused(&refusal))?;
    let unknown = || error(S3ErrorCode::InvalidAccessKeyId, "the access key is not known here, or it has ended");
    found.ok_or_else(unknown)
}

/// In the first step the bucket is whatever the path begins with.
pub(super) struct AnyName;

impl NameValidation for AnyName {
    fn validate_bucket_name(&self, _: &str) -> bool {
        true
    }
}

/// The first step has no operations: its route takes every request.
pub(super) struct Unreachable;

impl S3 for Unreachable {}

/// The second step has no signatures.
pub(super) struct Nobody;

#[async_trait]
impl S3Auth for Nobody {
    async fn get_secret_key(&self, _: &str) -> S3Result<SecretKey> {
        Err(internal())
    }
}

/// From the first step to the second.
pub(super) struct Verified {
    pub access: Arc<Access>,
    pub inner: S3Service,
    pub prefix: String,
}

#[async_trait]
impl S3Route for Verified {
    fn is_match(&self, _: &Method, _: &Uri, _: &HeaderMap, _: &mut http::Extensions) -> bool {
        true
    }

    /// The second step decides, on the operation.
    async fn check_access(&self, _: &mut S3Request<Body>) -> S3Result<()> {
        Ok(())
    }

    async fn call(&self, request: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let caller = match &request.credentials {
            None => Caller::Anonymous,
            Some(_) if request.service.as_deref() != Some("s3") => {
                return Err(error(S3ErrorCode::InvalidRequest, "the signature is for another service than s3"));
            }
            Some(credentials) => holder(&self.access, &credentials.access_key).await?.1,
        };
        let segments = self.prefix.split('/').chain(["s", "s3"]);
        let rest = strip(request.uri.path(), segments).ok_or(S3ErrorCode::NoSuchBucket)?;
        let target = format!("/{}{}", rest.trim_start_matches('/'), query(request.uri.query().unwrap_or_default()));
        let mut inner = Request::new(request.input);
        *inner.uri_mut() = target.parse().map_err(|_| S3ErrorCode::InvalidURI)?;
        *inner.method_mut() = request.method;
        *inner.headers_mut() = request.headers;
        inner.headers_mut().remove(AUTHORIZATION);
        // It would be taken for one that names a bucket.
        inner.headers_mut().remove(HOST);
        inner.extensions_mut().insert(Asker(caller));
        if let Some(trailers) = request.trailing_headers {
            inner.extensions_mut().insert(Trailers(trailers));
        }
        let answer = self.inner.call(inner).await.map_err(|_| internal())?;
        let (parts, body) = answer.into_parts();
        let mut response = S3Response::with_headers(body, parts.headers);
        response.status = Some(parts.status);
        Ok(response)
    }
}

/// The query without the signature, with its question mark if anything is left.
fn query(text: &str) -> String {
    let kept = text.split('&').filter(|pair| {
        let name = parse(pair.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default();
        !name.is_empty() && !SIGNATURE.contains(&name.as_str())
    });
    let kept: Vec<&str> = kept.collect();
    if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) }
}

/// What an operation needs. One that we do not know changes something.
fn wanted(operation: &str, method: &Method, anonymous: bool) -> Wanted {
    match operation {
        // The uploads of others are no content.
        "ListParts" | "ListMultipartUploads" => Wanted::Write,
        "ListBuckets" | "HeadBucket" | "GetBucketLocation" | "ListObjects" | "ListObjectsV2" | "GetObject"
        | "HeadObject"
            if anonymous =>
        {
            Wanted::View
        }
        _ if method == Method::GET || method == Method::HEAD => Wanted::Read,
        _ => Wanted::Write,
    }
}

/// Decides on each operation of the second step.
pub(super) struct Decider(pub Arc<Access>);

#[async_trait]
impl S3Access for Decider {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let Asker(caller) = context.extensions_mut().get().cloned().ok_or_else(internal)?;
        let wanted = wanted(context.s3_op().name(), context.method(), caller == Caller::Anonymous);
        let path = context.s3_path().get_object_key().and_then(|key| SitePath::from_text(key).ok());
        self.0.judge(&caller, wanted, path.as_ref()).map_err(|refusal| refused(&refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_taken_out_of_the_address() {
        for (text, kept) in [
            ("", ""),
            ("list-type=2&prefix=a%20b", "?list-type=2&prefix=a%20b"),
            ("X-Amz-Algorithm=x&uploadId=1&X-Amz-Signature=y", "?uploadId=1"),
            ("%58-Amz-Signature=y", ""),
            ("x-amz-signature=y", "?x-amz-signature=y"),
            ("&&uploads&", "?uploads"),
        ] {
            assert_eq!(query(text), kept, "{text}");
        }
    }

    #[test]
    fn an_unknown_operation_changes_something() {
        for (operation, method, anonymous, expected) in [
            ("GetObject", Method::GET, true, Wanted::View),
            ("GetObject", Method::GET, false, Wanted::Read),
            ("GetBucketAcl", Method::GET, true, Wanted::Read),
            ("ListParts", Method::GET, false, Wanted::Write),
            ("ListMultipartUploads", Method::GET, true, Wanted::Write),
            ("PutObject", Method::PUT, false, Wanted::Write),
            ("SelectObjectContent", Method::POST, false, Wanted::Write),
            ("Other", Method::DELETE, true, Wanted::Write),
        ] {
            assert_eq!(wanted(operation, &method, anonymous), expected, "{operation}");
        }
    }
}
