//! Copying inside the bucket, as a whole and as a part of an upload.

use std::io::Read;
use std::sync::Arc;

use md5::{Digest, Md5};
use s3s::dto::{CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, MetadataDirective, Range};
use s3s::{S3ErrorCode, S3Request, S3Result};

use super::conditions::Conditions;
use super::failure::{blocking, error, not_offered, reading, writing};
use super::objects::{Found, Named, bucket, changed, current, find, metadata, named, strong, timestamp};
use crate::runtime::content::{
    Content, ContentError, Note, Opened, SitePath, Upload, WriteOptions, hexadecimal, plain_etag,
};

/// Bytes per read.
const BLOCK: usize = 256 << 10;

/// The key that a copy is made of.
pub(super) fn source(source: &CopySource) -> S3Result<Named> {
    let CopySource::Bucket { bucket: name, key, version_id } = source else {
        return Err(not_offered("a copy from elsewhere"));
    };
    bucket(name)?;
    current(version_id.as_deref())?;
    named(key)
}

/// Opens the source of a copy, if it is as the client expects.
pub(super) async fn open(content: &Arc<Content>, source: &Named, conditions: &Conditions) -> S3Result<Found> {
    let (content, source) = (content.clone(), source.clone());
    let found = blocking(reading, move || find(&content, &source)).await?;
    conditions.check(&found.etag, &found.modified, S3ErrorCode::PreconditionFailed)?;
    Ok(found)
}

/// Copies bytes, all or a part. Blocks.
pub(super) fn pour(
    mut opened: Opened,
    part: Option<std::ops::Range<u64>>,
    mut upload: Upload,
) -> Result<(Upload, String), ContentError> {
    use std::io::{Seek, SeekFrom};
    let failed = |error| ContentError::io("read", "the source", error);
    let part = part.unwrap_or(0..opened.size);
    opened.file.seek(SeekFrom::Start(part.start)).map_err(failed)?;
    let mut left = opened.file.take(part.end - part.start);
    let mut digest = Md5::new();
    let mut block = vec![0; BLOCK];
    loop {
        match left.read(&mut block).map_err(failed)? {
            0 => break,
            read => {
                digest.update(&block[..read]);
                upload.append(&block[..read])?;
            }
        }
    }
    if upload.written() != part.end - part.start {
        return Err(ContentError::Changed("the source".to_owned()));
    }
    Ok((upload, hexadecimal(&digest.finalize())))
}

/// The part of the source that `x-amz-copy-source-range` names.
pub(super) fn range(text: Option<&str>, size: u64) -> S3Result<Option<std::ops::Range<u64>>> {
    let bad = || error(S3ErrorCode::InvalidArgument, "give the range as bytes=<first>-<last>");
    let Some(text) = text else { return Ok(None) };
    match Range::parse(text).map_err(|_| bad())? {
        Range::Int { last: Some(last), .. } if last >= size => Err(bad()),
        range => range.check(size).map(Some).map_err(|_| bad()),
    }
}

/// Copies an object.
pub(super) async fn copy(content: &Arc<Content>, request: S3Request<CopyObjectInput>) -> S3Result<CopyObjectOutput> {
    let S3Request { input, extensions, .. } = request;
    bucket(&input.bucket)?;
    if input.tagging.is_some() || input.server_side_encryption.is_some() {
        return Err(not_offered("tagging or encryption by the server"));
    }
    let (from, to) = (source(&input.copy_source)?, named(&input.key)?);
    let conditions = conditions!(source of input);
    let found = open(content, &from, &conditions).await?;
    let directive = input.metadata_directive.as_ref().map_or(MetadataDirective::COPY, MetadataDirective::as_str);
    let metadata = match directive {
        MetadataDirective::REPLACE => metadata(input.metadata)?,
        _ => found.metadata.clone().unwrap_or_default().into_iter().collect(),
    };
    let etag = match (found.opened, to) {
        (None, Named::Folder(path)) => {
            let content = content.clone();
            blocking(writing, move || content.make_marked_folder(&path)).await?;
            found.etag
        }
        (Some(opened), Named::File(path)) if from == Named::File(path.clone()) => {
            if directive != MetadataDirective::REPLACE {
                let message = "a copy of an object to itself must replace its metadata";
                return Err(error(S3ErrorCode::InvalidRequest, message));
            }
            let note = Note { etag: found.etag.clone(), metadata };
            // Only of a file whose tag is an MD5: another one must not become a lasting one.
            if opened.note().is_some() {
                blocking(writing, move || opened.keep(&note)).await?;
            }
            found.etag
        }
        (Some(opened), Named::File(path)) => {
            let (size, target) = (opened.size, path.clone());
            let content = content.clone();
            let written = blocking(writing, move || copied(&content, opened, target, metadata));
            let etag = written.await?;
            changed(&extensions, "copied", &path, size);
            etag
        }
        _ => return Err(error(S3ErrorCode::InvalidRequest, "a file is copied to a file, a folder to a folder")),
    };
    let result = CopyObjectResult {
        e_tag: Some(strong(etag)),
        last_modified: Some(timestamp(jiff::Timestamp::now())),
        ..CopyObjectResult::default()
    };
    Ok(CopyObjectOutput { copy_object_result: Some(result), ..CopyObjectOutput::default() })
}

fn copied(
    content: &Arc<Content>,
    opened: Opened,
    target: SitePath,
    metadata: std::collections::BTreeMap<String, String>,
) -> Result<String, ContentError> {
    let upload = content.write(target, Some(opened.size))?;
    let (mut upload, md5) = pour(opened, None, upload)?;
    upload.note(Note { etag: md5.clone(), metadata });
    let written = upload.finish(&WriteOptions::default())?;
    Ok(if written.noted { md5 } else { plain_etag(&written.etag) })
}
