//! Objects: looking at them, reading, writing and deleting them.

use std::io::{Seek, SeekFrom};
use std::sync::Arc;
use std::time::SystemTime;

use s3s::dto::{
    Checksum, Delete, DeleteObjectsOutput, DeletedObject, ETag, ETagCondition, Error, GetObjectOutput,
    HeadObjectOutput, Metadata, PutObjectInput, PutObjectOutput, Range, StreamingBlob, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;
use tracing::info;

use super::BUCKET;
use super::conditions::is_it;
use super::failure::{blocking, error, not_offered, reading, writing};
use super::gate::Asker;
use super::receive::{Received, Said, receive};
use crate::runtime::content::{
    Condition, Content, ContentError, EntryType, MAX_METADATA, Note, Opened, SitePath, WriteOptions, plain_etag,
};

/// Bytes per read.
const BLOCK: usize = 64 << 10;
/// Entity tag of no bytes: the MD5 of nothing.
const EMPTY: &str = "d41d8cd98f00b204e9800998ecf8427e";
/// Most keys of one deletion, as in S3.
const MAX_DELETE: usize = 1000;

/// What a key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A file.
    File(SitePath),
    /// A folder: the key ends in a slash.
    Folder(SitePath),
}

/// Reads a key. Every file has one key: no empty names, no second spelling.
pub(super) fn named(key: &str) -> S3Result<Named> {
    let bad = |message: String| error(S3ErrorCode::InvalidArgument, message);
    let path = SitePath::from_text(key).map_err(|error| bad(error.to_string()))?;
    let (text, folder) = key.strip_suffix('/').map_or((key, false), |text| (text, true));
    if path.is_root() || path.to_string() != text {
        return Err(bad("the key has an empty or dot name: give names with one '/' between them".to_owned()));
    }
    Ok(if folder { Named::Folder(path) } else { Named::File(path) })
}

/// There is one bucket.
pub(super) fn bucket(name: &str) -> S3Result<()> {
    let unknown = || error(S3ErrorCode::NoSuchBucket, format!("there is one bucket here: '{BUCKET}'"));
    if name == BUCKET { Ok(()) } else { Err(unknown()) }
}

/// Versions are not kept.
pub(super) fn current(version: Option<&str>) -> S3Result<()> {
    if version.is_none_or(|version| version == "null") { Ok(()) } else { Err(not_offered("a version of an object")) }
}

pub(super) fn strong(etag: impl Into<String>) -> ETag {
    ETag::Strong(etag.into())
}

pub(super) fn timestamp(time: jiff::Timestamp) -> Timestamp {
    Timestamp::from(SystemTime::from(time))
}

/// An object that is there.
pub(super) struct Found {
    /// Its bytes; a folder has none.
    pub opened: Option<Opened>,
    pub size: u64,
    pub modified: Timestamp,
    pub etag: String,
    pub metadata: Option<Metadata>,
    pub content_type: String,
}

/// Looks at a key and opens it.
pub(super) fn find(content: &Content, key: &Named) -> Result<Found, ContentError> {
    match key {
        Named::Folder(path) => {
            let entry = content.entry(path)?;
            if entry.entry_type != EntryType::Directory {
                return Err(ContentError::NotFound(path.to_string()));
            }
            Ok(Found {
                opened: None,
                size: 0,
                modified: timestamp(entry.modified.parse().unwrap_or_default()),
                etag: EMPTY.to_owned(),
                metadata: None,
                content_type: "application/x-directory".to_owned(),
            })
        }
        Named::File(path) => {
            let opened = content.read(path)?;
            let note = opened.note();
            let etag = note.as_ref().map_or_else(|| plain_etag(&opened.etag), |note| note.etag.clone());
            Ok(Found {
                size: opened.size,
                modified: timestamp(opened.modified),
                etag,
                metadata: note.filter(|note| !note.metadata.is_empty()).map(|note| note.metadata.into_iter().collect()),
                content_type: content_type(path),
                opened: Some(opened),
            })
        }
    }
}

/// From the name's extension; text is UTF-8.
fn content_type(path: &SitePath) -> String {
    let name = path.segments().last().map_or("", String::as_str);
    crate::runtime::api::content_type(name)
}

/// The part of an object that is asked for: its first byte, its length and `Content-Range`.
fn part(range: Option<&Range>, size: u64) -> S3Result<(u64, i64, Option<String>)> {
    let whole = 0..size;
    let part = range.map_or(Ok(whole), |range| range.check(size).map_err(s3s::S3Error::from))?;
    let told = range.map(|_| format!("bytes {}-{}/{size}", part.start, part.end - 1));
    let length = i64::try_from(part.end - part.start).map_err(|_| S3ErrorCode::EntityTooLarge)?;
    Ok((part.start, length, told))
}

/// The answer to a HEAD.
pub(super) fn head(found: Found, range: Option<&Range>) -> S3Result<HeadObjectOutput> {
    let (_, length, content_range) = part(range, found.size)?;
    Ok(HeadObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        content_length: Some(length),
        content_range,
        content_type: Some(found.content_type),
        e_tag: Some(strong(found.etag)),
        last_modified: Some(found.modified),
        metadata: found.metadata,
        ..HeadObjectOutput::default()
    })
}

/// The answer to a GET.
pub(super) fn get(found: Found, range: Option<&Range>) -> S3Result<GetObjectOutput> {
    let (start, length, content_range) = part(range, found.size)?;
    let body = match found.opened {
        Some(mut opened) if length > 0 => {
            let sought = opened.file.seek(SeekFrom::Start(start));
            sought.map_err(|error| writing(&ContentError::io("read", "the file", error)))?;
            let part = tokio::fs::File::from_std(opened.file).take(length.unsigned_abs());
            Some(StreamingBlob::wrap(ReaderStream::with_capacity(part, BLOCK)))
        }
        _ => None,
    };
    Ok(GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        body,
        content_length: Some(length),
        content_range,
        content_type: Some(found.content_type),
        e_tag: Some(strong(found.etag)),
        last_modified: Some(found.modified),
        metadata: found.metadata,
        ..GetObjectOutput::default()
    })
}

/// User metadata that fits.
pub(super) fn metadata(given: Option<Metadata>) -> S3Result<std::collections::BTreeMap<String, String>> {
    let given: std::collections::BTreeMap<String, String> = given.unwrap_or_default().into_iter().collect();
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_METADATA {
        let message = format!("the metadata has more than {MAX_METADATA} bytes");
        return Err(error(S3ErrorCode::MetadataTooLarge, message));
    }
    Ok(given)
}

/// What must be true of the object that is replaced.
pub(super) async fn condition(
    content: &Arc<Content>,
    path: &SitePath,
    matches: Option<ETagCondition>,
    none_match: Option<ETagCondition>,
) -> S3Result<Condition> {
    match (matches, none_match) {
        (None, None) => Ok(Condition::Any),
        (None, Some(ETagCondition::Any)) => Ok(Condition::Absent),
        (Some(wanted @ ETagCondition::ETag(_)), None) => {
            let (content, path) = (content.clone(), path.clone());
            let opened = blocking(reading, move || content.read(&path)).await?;
            // Our own tag of the version that was compared: whoever replaces it meanwhile is noticed.
            if is_it(&wanted, &opened.key_etag()) {
                Ok(Condition::Matches(opened.etag))
            } else {
                Err(S3ErrorCode::PreconditionFailed.into())
            }
        }
        _ => Err(not_offered("this condition")),
    }
}

/// What is asked for with an object and means something that we do not do.
fn refuse_what_is_not_kept(input: &PutObjectInput) -> S3Result<()> {
    for (given, what) in [
        (input.tagging.is_some(), "tagging"),
        (input.server_side_encryption.is_some() || input.sse_customer_algorithm.is_some(), "encryption by the server"),
        (input.object_lock_mode.is_some() || input.object_lock_legal_hold_status.is_some(), "object lock"),
        (input.write_offset_bytes.is_some(), "appending"),
        (input.website_redirect_location.is_some(), "a redirect"),
    ] {
        if given {
            return Err(not_offered(what));
        }
    }
    Ok(())
}

/// Writes an object.
pub(super) async fn put(content: &Arc<Content>, request: S3Request<PutObjectInput>) -> S3Result<PutObjectOutput> {
    let S3Request { input, headers, extensions, .. } = request;
    bucket(&input.bucket)?;
    refuse_what_is_not_kept(&input)?;
    let checksum = checksums!(Checksum, input);
    let said = Said::of(input.content_length, input.content_md5, checksum, &headers, &extensions)?;
    let metadata = metadata(input.metadata)?;
    let path = match named(&input.key)? {
        Named::File(path) => path,
        Named::Folder(path) => {
            if said.length() != Some(0) {
                return Err(error(S3ErrorCode::InvalidArgument, "a key that ends in '/' is a folder: it has no bytes"));
            }
            let content = content.clone();
            blocking(writing, move || content.make_marked_folder(&path)).await?;
            return Ok(PutObjectOutput { e_tag: Some(strong(EMPTY)), ..PutObjectOutput::default() });
        }
    };
    let condition = condition(content, &path, input.if_match, input.if_none_match).await?;
    let (begun, target, length) = (content.clone(), path.clone(), said.length());
    let upload = blocking(writing, move || begun.write(target, length)).await?;
    let Received { mut upload, md5, checksum } = receive(upload, input.body, said).await?;
    upload.note(Note { etag: md5.clone(), metadata });
    let options = WriteOptions { backup: false, condition };
    let written = blocking(writing, move || upload.finish(&options)).await?;
    changed(&extensions, "written", &path, written.size);
    let etag = if written.noted { md5 } else { plain_etag(&written.etag) };
    Ok(checksums!(PutObjectOutput, checksum, e_tag: Some(strong(etag))))
}

/// Says in the log who changed what.
pub(super) fn changed(extensions: &http::Extensions, what: &'static str, path: &SitePath, bytes: u64) {
    if let Some(Asker(caller)) = extensions.get() {
        info!(%path, bytes, %caller, "file {what} by S3");
    }
}

/// Deletes a key. What is not there is gone.
pub(super) fn delete(content: &Content, key: &Named) -> Result<(), ContentError> {
    match key {
        Named::File(path) => content.remove_key(path).map(drop),
        Named::Folder(path) => content.remove_marked_folder(path),
    }
}

/// Deletes many keys; each has its own outcome.
pub(super) fn delete_all(content: &Content, wanted: Delete) -> S3Result<DeleteObjectsOutput> {
    if wanted.objects.len() > MAX_DELETE {
        return Err(error(S3ErrorCode::MalformedXML, format!("give up to {MAX_DELETE} keys")));
    }
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for object in wanted.objects {
        let done = current(object.version_id.as_deref())
            .and_then(|()| if object.e_tag.is_some() { Err(not_offered("this condition")) } else { Ok(()) })
            .and_then(|()| named(&object.key))
            .and_then(|key| delete(content, &key).map_err(|error| writing(&error)));
        let key = Some(object.key);
        match done {
            Ok(()) => deleted.push(DeletedObject { key, ..DeletedObject::default() }),
            Err(error) => errors.push(Error {
                key,
                code: Some(error.code().as_str().to_owned()),
                message: error.message().map(str::to_owned),
                version_id: None,
            }),
        }
    }
    let deleted = if wanted.quiet == Some(true) { None } else { Some(deleted) };
    Ok(DeleteObjectsOutput { deleted, errors: Some(errors), ..DeleteObjectsOutput::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_one_key() {
        let path = |text: &str| SitePath::from_text(text).unwrap();
        assert_eq!(named("a/b c.txt").ok(), Some(Named::File(path("a/b c.txt"))));
        assert_eq!(named("a/b/").ok(), Some(Named::Folder(path("a/b"))));
        for key in ["", "/", ".", "./", "/a", "a//b", "a//", "a/../b", "..", "a/./b", ".sites/usage", "a\\b", "a\nb"] {
            let error = named(key).unwrap_err();
            assert_eq!(error.code(), &S3ErrorCode::InvalidArgument, "{key:?}");
        }
    }

    #[test]
    fn parts_of_objects() {
        let told = |range: Option<Range>, size| part(range.as_ref(), size).ok();
        assert_eq!(told(None, 10), Some((0, 10, None)));
        assert_eq!(told(None, 0), Some((0, 0, None)));
        let first = Range::Int { first: 0, last: Some(3) };
        assert_eq!(told(Some(first), 10), Some((0, 4, Some("bytes 0-3/10".to_owned()))));
        assert_eq!(told(Some(Range::Suffix { length: 3 }), 10), Some((7, 3, Some("bytes 7-9/10".to_owned()))));
        assert_eq!(told(Some(Range::Int { first: 10, last: None }), 10), None);
        assert_eq!(told(Some(first), 0), None);
    }
}
