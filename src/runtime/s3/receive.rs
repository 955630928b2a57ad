//! Taking the bytes of an object or part, and checking all that the client said about them before they count.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use http::{Extensions, HeaderMap, StatusCode};
use md5::{Digest, Md5};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::Checksum as _;
use s3s::crypto::{Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto::{Checksum, StreamingBlob};
use s3s::{S3Error, S3ErrorCode, S3Result, TrailingHeaders};

use super::failure::{custom, error, join, not_offered, writing};
use super::gate::Trailers;
use crate::runtime::content::{ContentError, Upload, hexadecimal};

/// Collected before it is written.
const BLOCK: usize = 256 << 10;
/// Names what follows the body.
const TRAILER: &str = "x-amz-trailer";

/// What the client said of the bytes.
#[derive(Default)]
pub(super) struct Said {
    length: Option<u64>,
    md5: Option<String>,
    checksum: Checksum,
    /// Checksums that follow the bytes, by header.
    following: Vec<String>,
    trailers: Option<TrailingHeaders>,
}

impl Said {
    /// Of a request: `length` and `md5` as its headers say.
    pub(super) fn of(
        length: Option<i64>,
        md5: Option<String>,
        checksum: Checksum,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> S3Result<Self> {
        let text = headers.get(TRAILER).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let following: Vec<String> = text.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
        let following: Vec<String> = following.into_iter().filter(|name| !name.is_empty()).collect();
        if let Some(name) =
            following.iter().find(|name| !lines(&Checksum::default()).iter().any(|(own, _)| own == name))
        {
            return Err(not_offered(&format!("the trailer {name}")));
        }
        let trailers = extensions.get::<Trailers>().map(|Trailers(trailers)| trailers.clone());
        let length = length.map(u64::try_from).transpose();
        let length = length.map_err(|_| error(S3ErrorCode::InvalidArgument, "the length is negative"))?;
        Ok(Self { length, md5, checksum, following, trailers })
    }

    /// How many bytes will come, if that is known.
    pub(super) const fn length(&self) -> Option<u64> {
        self.length
    }
}

/// The checksums by header.
fn lines(checksum: &Checksum) -> [(&'static str, Option<&String>); 5] {
    [
        ("x-amz-checksum-crc32", checksum.checksum_crc32.as_ref()),
        ("x-amz-checksum-crc32c", checksum.checksum_crc32c.as_ref()),
        ("x-amz-checksum-crc64nvme", checksum.checksum_crc64nvme.as_ref()),
        ("x-amz-checksum-sha1", checksum.checksum_sha1.as_ref()),
        ("x-amz-checksum-sha256", checksum.checksum_sha256.as_ref()),
    ]
}

/// Bytes that are all there and are what the client said.
pub(super) struct Received {
    pub upload: Upload,
    /// Lower-case hexadecimal digits.
    pub md5: String,
    /// Those that were compared.
    pub checksum: Checksum,
}

struct Writer {
    upload: Upload,
    md5: Md5,
    hasher: ChecksumHasher,
}

impl Writer {
    fn write(mut self, bytes: &[u8]) -> Result<Self, ContentError> {
        self.upload.append(bytes)?;
        self.md5.update(bytes);
        self.hasher.update(bytes);
        Ok(self)
    }
}

/// Writes a body to an upload. What does not match is an error, and nothing comes of the upload.
pub(super) async fn receive(upload: Upload, body: Option<StreamingBlob>, said: Said) -> S3Result<Received> {
    let mut writer = Writer { upload, md5: Md5::new(), hasher: hasher(&said) };
    let mut block = Vec::new();
    let mut body = body;
    loop {
        let more = match &mut body {
            Some(body) => body.next().await.transpose().map_err(|error| broken_off(error.as_ref()))?,
            None => None,
        };
        let ended = more.is_none();
        block.extend_from_slice(&more.unwrap_or_default());
        let coming = writer.upload.written() + block.len() as u64;
        if said.length.is_some_and(|length| coming > length || ended && coming < length) {
            return Err(S3ErrorCode::IncompleteBody.into());
        }
        if block.len() >= BLOCK || ended && !block.is_empty() {
            let bytes = std::mem::take(&mut block);
            writer = join(move || writer.write(&bytes)).await?.map_err(|error| writing(&error))?;
        }
        if ended {
            break;
        }
    }
    let Writer { upload, md5, hasher } = writer;
    let (md5, checksum) = (md5.finalize(), hasher.finalize());
    if said.md5.as_ref().is_some_and(|wanted| *wanted != STANDARD.encode(md5)) {
        return Err(error(S3ErrorCode::BadDigest, "the bytes are not those of Content-MD5"));
    }
    compare(&said, &checksum)?;
    Ok(Received { upload, md5: hexadecimal(&md5), checksum })
}

/// Makes what was said of the bytes.
fn hasher(said: &Said) -> ChecksumHasher {
    let wanted = |at: usize| {
        let (name, value) = lines(&said.checksum)[at];
        value.is_some() || said.following.iter().any(|following| following == name)
    };
    ChecksumHasher {
        crc32: wanted(0).then(Crc32::new),
        crc32c: wanted(1).then(Crc32c::new),
        crc64nvme: wanted(2).then(Crc64Nvme::new),
        sha1: wanted(3).then(Sha1::new),
        sha256: wanted(4).then(Sha256::new),
    }
}

fn compare(said: &Said, made: &Checksum) -> S3Result<()> {
    let wrong = |name: &str| Err(error(S3ErrorCode::BadDigest, format!("the bytes are not those of {name}")));
    for ((name, wanted), (_, made)) in lines(&said.checksum).into_iter().zip(lines(made)) {
        if wanted.is_some() && wanted != made {
            return wrong(name);
        }
        if !said.following.iter().any(|following| following == name) {
            continue;
        }
        let read = |headers: &HeaderMap| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let given = said.trailers.as_ref().and_then(|trailers| trailers.read(read)).flatten();
        match given {
            None => return Err(error(S3ErrorCode::IncompleteBody, format!("{name} does not follow the bytes"))),
            Some(given) if Some(&given) != made => return wrong(name),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Why a body ended early, by the words of the one that reads it: it has no types for it.
fn broken_off(failure: &(dyn std::error::Error + Send + Sync)) -> S3Error {
    let text = failure.to_string();
    tracing::debug!(error = %text, "a body broke off");
    if text.contains("SignatureMismatch") {
        S3ErrorCode::SignatureDoesNotMatch.into()
    } else if text.contains("Mismatch") {
        let message = "the bytes are not those of x-amz-content-sha256";
        custom(StatusCode::BAD_REQUEST, "XAmzContentSHA256Mismatch", message)
    } else {
        S3ErrorCode::IncompleteBody.into()
    }
}
