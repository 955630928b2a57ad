//! Objects that are uploaded in parts.

use std::sync::Arc;

use md5::{Digest, Md5};
use s3s::dto::{
    Checksum, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart, CopyPartResult,
    CreateMultipartUploadInput, CreateMultipartUploadOutput, ListMultipartUploadsInput, ListMultipartUploadsOutput,
    ListPartsInput, ListPartsOutput, MultipartUpload, Part as ToldPart, UploadPartCopyInput, UploadPartCopyOutput,
    UploadPartInput, UploadPartOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use super::conditions::Conditions;
use super::copy::{open, pour, range, source};
use super::failure::{blocking, error, not_offered, writing};
use super::listing::{limit, spelling};
use super::objects::{Named, bucket, changed, condition, metadata, named, strong, timestamp};
use super::receive::{Received, Said, receive};
use crate::runtime::content::{
    Content, ContentError, Part, PartedUpload, SitePath, WriteOptions, hexadecimal, plain_etag,
};

/// Highest number of a part, as in S3.
const MAX_PARTS: i32 = 10_000;

fn file(key: &str) -> S3Result<SitePath> {
    match named(key)? {
        Named::File(path) => Ok(path),
        Named::Folder(_) => Err(error(S3ErrorCode::InvalidArgument, "a folder has no bytes")),
    }
}

/// Why an upload cannot go on.
fn unknown(failure: &ContentError) -> S3Error {
    match failure {
        ContentError::NotFound(_) => error(S3ErrorCode::NoSuchUpload, "there is no such upload, or it has ended"),
        other => writing(other),
    }
}

fn number(given: i32) -> S3Result<u32> {
    let number = u32::try_from(given).ok().filter(|_| (1..=MAX_PARTS).contains(&given));
    number.ok_or_else(|| error(S3ErrorCode::InvalidArgument, format!("parts have numbers from 1 to {MAX_PARTS}")))
}

/// The upload with this id, if it is of this key.
fn upload_of(content: &Content, id: &str, key: &str) -> Result<PartedUpload, ContentError> {
    let upload = content.parted_upload(id)?;
    if upload.key == key { Ok(upload) } else { Err(ContentError::NotFound(id.to_owned())) }
}

pub(super) async fn create(
    content: &Arc<Content>,
    input: CreateMultipartUploadInput,
) -> S3Result<CreateMultipartUploadOutput> {
    bucket(&input.bucket)?;
    if input.tagging.is_some() || input.server_side_encryption.is_some() || input.sse_customer_algorithm.is_some() {
        return Err(not_offered("tagging or encryption by the server"));
    }
    let (path, metadata) = (file(&input.key)?, metadata(input.metadata)?);
    let content = content.clone();
    let upload = blocking(writing, move || content.begin_parts(&path, metadata)).await?;
    Ok(CreateMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(upload.id),
        ..CreateMultipartUploadOutput::default()
    })
}

pub(super) async fn part(content: &Arc<Content>, request: S3Request<UploadPartInput>) -> S3Result<UploadPartOutput> {
    let S3Request { input, headers, extensions, .. } = request;
    bucket(&input.bucket)?;
    let (number, id) = (number(input.part_number)?, input.upload_id);
    let checksum = checksums!(Checksum, input);
    let said = Said::of(input.content_length, input.content_md5, checksum, &headers, &extensions)?;
    let (begun, to, key, length) = (content.clone(), id.clone(), input.key, said.length());
    let upload = blocking(unknown, move || {
        upload_of(&begun, &to, &key)?;
        begun.write_part(&to, length)
    });
    let Received { upload, md5, checksum } = receive(upload.await?, input.body, said).await?;
    let part = blocking(unknown, move || upload.finish_part(&id, number, &md5)).await?;
    Ok(checksums!(UploadPartOutput, checksum, e_tag: Some(strong(part.md5))))
}

pub(super) async fn part_copy(content: &Arc<Content>, input: UploadPartCopyInput) -> S3Result<UploadPartCopyOutput> {
    bucket(&input.bucket)?;
    let number = number(input.part_number)?;
    let conditions = conditions!(source of input);
    let found = open(content, &source(&input.copy_source)?, &conditions).await?;
    let opened = found.opened.ok_or_else(|| error(S3ErrorCode::InvalidRequest, "a folder has no bytes"))?;
    let range = range(input.copy_source_range.as_deref(), opened.size)?;
    let length = range.as_ref().map_or(opened.size, |range| range.end - range.start);
    let (content, id, key) = (content.clone(), input.upload_id, input.key);
    let part = blocking(unknown, move || {
        upload_of(&content, &id, &key)?;
        let (upload, md5) = pour(opened, range, content.write_part(&id, Some(length))?)?;
        upload.finish_part(&id, number, &md5)
    });
    let part = part.await?;
    let result = CopyPartResult {
        e_tag: Some(strong(part.md5)),
        last_modified: Some(timestamp(part.modified)),
        ..CopyPartResult::default()
    };
    Ok(UploadPartCopyOutput { copy_part_result: Some(result), ..UploadPartCopyOutput::default() })
}

/// The parts that a client chose, in its order.
fn chosen(parts: &[Part], wanted: &[CompletedPart]) -> S3Result<Vec<Part>> {
    if wanted.is_empty() {
        return Err(error(S3ErrorCode::MalformedXML, "name at least one part"));
    }
    let numbers: Vec<i32> = wanted.iter().map(|part| part.part_number.unwrap_or_default()).collect();
    if !numbers.windows(2).all(|two| two[0] < two[1]) {
        return Err(S3ErrorCode::InvalidPartOrder.into());
    }
    let find = |(wanted, given): (&CompletedPart, &i32)| {
        let known = parts.iter().find(|part| i32::try_from(part.number) == Ok(*given));
        let tag = wanted.e_tag.as_ref().map(|tag| tag.value().trim_matches('"').to_ascii_lowercase());
        let same = known.filter(|part| tag.is_some_and(|tag| tag == part.md5)).cloned();
        same.ok_or_else(|| error(S3ErrorCode::InvalidPart, format!("part {given} is not there, or another one is")))
    };
    wanted.iter().zip(&numbers).map(find).collect()
}

/// The entity tag that S3 gives an object of parts.
fn etag(parts: &[Part]) -> String {
    let mut digest = Md5::new();
    for part in parts {
        let byte = |two: &[u8]| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
        digest.update(part.md5.as_bytes().chunks(2).filter_map(byte).collect::<Vec<u8>>());
    }
    format!("{}-{}", hexadecimal(&digest.finalize()), parts.len())
}

pub(super) async fn complete(
    content: &Arc<Content>,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<CompleteMultipartUploadOutput> {
    let S3Request { input, extensions, .. } = request;
    bucket(&input.bucket)?;
    let path = file(&input.key)?;
    let wanted = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
    let (looked, id, key) = (content.clone(), input.upload_id, path.to_string());
    let known = blocking(unknown, move || Ok((upload_of(&looked, &id, &key)?, looked.parts(&id)?)));
    let (upload, parts) = known.await?;
    let parts = chosen(&parts, &wanted)?;
    let total: u64 = parts.iter().map(|part| part.size).sum();
    if input.mpu_object_size.is_some_and(|size| u64::try_from(size) != Ok(total)) {
        return Err(error(S3ErrorCode::InvalidRequest, format!("the parts have {total} bytes")));
    }
    let condition = condition(content, &path, input.if_match, input.if_none_match).await?;
    let tag = etag(&parts);
    let (content, given) = (content.clone(), tag.clone());
    let options = WriteOptions { backup: false, condition };
    let written = blocking(writing, move || content.complete_parts(&upload, &parts, given, &options)).await?;
    changed(&extensions, "put together", &path, written.size);
    Ok(CompleteMultipartUploadOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        e_tag: Some(strong(if written.noted { tag } else { plain_etag(&written.etag) })),
        ..CompleteMultipartUploadOutput::default()
    })
}

pub(super) async fn abort(content: &Arc<Content>, id: String, key: String) -> S3Result<()> {
    let content = content.clone();
    blocking(unknown, move || {
        upload_of(&content, &id, &key)?;
        content.abort_parts(&id)
    })
    .await
}

pub(super) async fn parts(content: &Arc<Content>, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    bucket(&input.bucket)?;
    let max = limit(input.max_parts)?;
    let (content, id, key) = (content.clone(), input.upload_id.clone(), input.key.clone());
    let parts = blocking(unknown, move || {
        upload_of(&content, &id, &key)?;
        content.parts(&id)
    });
    let after = input.part_number_marker.unwrap_or_default();
    let told = |part: Part| ToldPart {
        part_number: i32::try_from(part.number).ok(),
        e_tag: Some(strong(part.md5)),
        size: i64::try_from(part.size).ok(),
        last_modified: Some(timestamp(part.modified)),
        ..ToldPart::default()
    };
    let mut parts: Vec<ToldPart> = parts.await?.into_iter().map(told).collect();
    parts.retain(|part| part.part_number > Some(after));
    let truncated = parts.len() > max.unsigned_abs() as usize;
    parts.truncate(max.unsigned_abs() as usize);
    Ok(ListPartsOutput {
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id),
        max_parts: Some(max),
        part_number_marker: Some(after),
        next_part_number_marker: parts.last().filter(|_| truncated).and_then(|part| part.part_number),
        is_truncated: Some(truncated),
        parts: Some(parts),
        ..ListPartsOutput::default()
    })
}

pub(super) async fn uploads(
    content: &Arc<Content>,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    bucket(&input.bucket)?;
    if input.delimiter.as_ref().is_some_and(|delimiter| !delimiter.is_empty()) {
        return Err(not_offered("a delimiter in a list of uploads"));
    }
    let max = limit(input.max_uploads)?;
    let spell = spelling(input.encoding_type.as_ref())?;
    let prefix = input.prefix.unwrap_or_default();
    let content = content.clone();
    let mut uploads = blocking(writing, move || content.parted_uploads()).await?;
    uploads.sort_by(|one, other| (&one.key, &one.id).cmp(&(&other.key, &other.id)));
    let after = (input.key_marker.clone().unwrap_or_default(), input.upload_id_marker.clone());
    uploads.retain(|upload| {
        // Without an id all uploads of the marker's key have been told.
        let later = match &after.1 {
            Some(id) => (&upload.key, &upload.id) > (&after.0, id),
            None => upload.key > after.0,
        };
        upload.key.starts_with(&prefix) && later
    });
    let truncated = uploads.len() > max.unsigned_abs() as usize;
    uploads.truncate(max.unsigned_abs() as usize);
    let last = uploads.last().filter(|_| truncated).cloned();
    let told = |upload: PartedUpload| MultipartUpload {
        key: Some(spell(&upload.key)),
        upload_id: Some(upload.id),
        initiated: Some(timestamp(upload.begun)),
        ..MultipartUpload::default()
    };
    Ok(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        prefix: Some(spell(&prefix)),
        key_marker: Some(spell(&after.0)),
        upload_id_marker: after.1,
        next_key_marker: last.as_ref().map(|upload| spell(&upload.key)),
        next_upload_id_marker: last.map(|upload| upload.id),
        max_uploads: Some(max),
        is_truncated: Some(truncated),
        encoding_type: input.encoding_type,
        uploads: Some(uploads.into_iter().map(told).collect()),
        ..ListMultipartUploadsOutput::default()
    })
}
