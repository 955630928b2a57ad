//! Lists of keys, in both forms of S3.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::dto::{
    CommonPrefix, EncodingType, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, Object,
};
use s3s::{S3ErrorCode, S3Result};

use super::failure::{error, reading};
use super::objects::{bucket, strong, timestamp};
use crate::runtime::content::{Content, Key, KeyPage, KeyQuery};

/// Most keys of a page, as in S3.
const MAX_KEYS: i32 = 1000;
/// What `encoding-type=url` leaves as it is.
const URL: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// How many keys a page has.
pub(super) fn limit(wanted: Option<i32>) -> S3Result<i32> {
    match wanted.unwrap_or(MAX_KEYS) {
        negative if negative < 0 => Err(error(S3ErrorCode::InvalidArgument, "give a number from 0 on")),
        wanted => Ok(wanted.min(MAX_KEYS)),
    }
}

/// How keys are told.
pub(super) fn spelling(encoding: Option<&EncodingType>) -> S3Result<fn(&str) -> String> {
    match encoding.map(EncodingType::as_str) {
        None => Ok(str::to_owned),
        Some(EncodingType::URL) => Ok(|text| utf8_percent_encode(text, &URL).to_string()),
        Some(_) => Err(error(S3ErrorCode::InvalidArgument, "give the encoding type url or none")),
    }
}

fn told(page: KeyPage, spell: fn(&str) -> String) -> (Vec<Object>, Vec<CommonPrefix>) {
    let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
    for key in page.keys {
        match key {
            Key::Prefix(text) => prefixes.push(CommonPrefix { prefix: Some(spell(&text)) }),
            Key::Object { key, size, modified, etag } => objects.push(Object {
                key: Some(spell(&key)),
                size: i64::try_from(size).ok(),
                last_modified: Some(timestamp(modified)),
                e_tag: Some(strong(etag)),
                ..Object::default()
            }),
        }
    }
    (objects, prefixes)
}

/// `ListObjectsV2`. Blocks.
pub(super) fn second(content: &Content, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
    bucket(&input.bucket)?;
    let max = limit(input.max_keys)?;
    let spell = spelling(input.encoding_type.as_ref())?;
    let after = match &input.continuation_token {
        Some(token) => {
            let text = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.ok_or_else(|| error(S3ErrorCode::InvalidArgument, "the continuation token is not one of ours"))?
        }
        None => input.start_after.clone().unwrap_or_default(),
    };
    let (prefix, delimiter) = (input.prefix.unwrap_or_default(), input.delimiter.unwrap_or_default());
    let query = KeyQuery { prefix: &prefix, after: &after, delimiter: &delimiter, limit: max.unsigned_abs() as usize };
    let page = content.keys(&query).map_err(|error| reading(&error))?;
    let last = page.keys.last().filter(|_| page.truncated).map(|key| URL_SAFE_NO_PAD.encode(key.text()));
    let (truncated, count) = (page.truncated, page.keys.len());
    let (objects, prefixes) = told(page, spell);
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(spell(&prefix)),
        delimiter: Some(spell(&delimiter)).filter(|text| !text.is_empty()),
        max_keys: Some(max),
        key_count: i32::try_from(count).ok(),
        continuation_token: input.continuation_token,
        start_after: input.start_after.as_deref().map(spell),
        is_truncated: Some(truncated),
        next_continuation_token: last,
        contents: Some(objects),
        common_prefixes: Some(prefixes),
        encoding_type: input.encoding_type,
        ..ListObjectsV2Output::default()
    })
}

/// `ListObjects`. Blocks.
pub(super) fn first(content: &Content, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    bucket(&input.bucket)?;
    let max = limit(input.max_keys)?;
    let spell = spelling(input.encoding_type.as_ref())?;
    let after = input.marker.unwrap_or_default();
    let (prefix, delimiter) = (input.prefix.unwrap_or_default(), input.delimiter.unwrap_or_default());
    let query = KeyQuery { prefix: &prefix, after: &after, delimiter: &delimiter, limit: max.unsigned_abs() as usize };
    let page = content.keys(&query).map_err(|error| reading(&error))?;
    // Told without a delimiter too: older clients read it always.
    let last = page.keys.last().filter(|_| page.truncated).map(|key| spell(key.text()));
    let truncated = page.truncated;
    let (objects, prefixes) = told(page, spell);
    Ok(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(spell(&prefix)),
        marker: Some(spell(&after)),
        delimiter: Some(spell(&delimiter)).filter(|text| !text.is_empty()),
        max_keys: Some(max),
        is_truncated: Some(truncated),
        next_marker: last,
        contents: Some(objects),
        common_prefixes: Some(prefixes),
        encoding_type: input.encoding_type,
        ..ListObjectsOutput::default()
    })
}
