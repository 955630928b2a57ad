//! The operations that are offered. Every other one is answered with `NotImplemented` by s3s.

use std::sync::Arc;

use async_trait::async_trait;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, Bucket, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CopyObjectInput, CopyObjectOutput, CreateBucketInput, CreateBucketOutput,
    CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, GetBucketLocationInput, GetBucketLocationOutput, GetBucketVersioningInput,
    GetBucketVersioningOutput, GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput,
    HeadObjectOutput, ListBucketsInput, ListBucketsOutput, ListMultipartUploadsInput, ListMultipartUploadsOutput,
    ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, ListPartsInput, ListPartsOutput,
    PutObjectInput, PutObjectOutput, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result};

use super::BUCKET;
use super::conditions::Conditions;
use super::failure::{blocking, error, join, not_offered, reading, writing};
use super::gate::Asker;
use super::objects::{bucket, changed, current, delete, delete_all, find, named, timestamp};
use super::{copy, listing, multipart, objects};
use crate::runtime::access::Caller;
use crate::runtime::content::{Content, SitePath};

/// The content as a bucket.
pub(super) struct Store {
    pub content: Arc<Content>,
}

type Answer<T> = S3Result<S3Response<T>>;

#[async_trait]
impl S3 for Store {
    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> Answer<ListBucketsOutput> {
        let content = self.content.clone();
        let root = blocking(reading, move || content.entry(&SitePath::root())).await?;
        let bucket = Bucket {
            name: Some(BUCKET.to_owned()),
            creation_date: Some(timestamp(root.modified.parse().unwrap_or_default())),
            ..Bucket::default()
        };
        Ok(S3Response::new(ListBucketsOutput { buckets: Some(vec![bucket]), ..ListBucketsOutput::default() }))
    }

    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        bucket(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn get_bucket_location(&self, request: S3Request<GetBucketLocationInput>) -> Answer<GetBucketLocationOutput> {
        bucket(&request.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    /// Clients ask before they delete: versions are not kept.
    async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> Answer<GetBucketVersioningOutput> {
        bucket(&request.input.bucket)?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    /// Clients make the bucket to be sure that it is there.
    async fn create_bucket(&self, request: S3Request<CreateBucketInput>) -> Answer<CreateBucketOutput> {
        if request.input.bucket == BUCKET {
            return Err(error(S3ErrorCode::BucketAlreadyOwnedByYou, "the bucket is there"));
        }
        Err(not_offered("another bucket"))
    }

    async fn list_objects(&self, request: S3Request<ListObjectsInput>) -> Answer<ListObjectsOutput> {
        let content = self.content.clone();
        Ok(S3Response::new(join(move || listing::first(&content, request.input)).await??))
    }

    async fn list_objects_v2(&self, request: S3Request<ListObjectsV2Input>) -> Answer<ListObjectsV2Output> {
        let content = self.content.clone();
        Ok(S3Response::new(join(move || listing::second(&content, request.input)).await??))
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        let input = request.input;
        let conditions = conditions!(input);
        let which = Which { bucket: &input.bucket, key: &input.key, version: input.version_id.as_deref() };
        let found = self.found(&which, input.part_number, &conditions).await?;
        Ok(S3Response::new(objects::head(found, input.range.as_ref())?))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        let anonymous = matches!(request.extensions.get(), Some(Asker(Caller::Anonymous)) | None);
        let input = request.input;
        let other = input.response_cache_control.is_some()
            || input.response_content_disposition.is_some()
            || input.response_content_encoding.is_some()
            || input.response_content_language.is_some()
            || input.response_content_type.is_some()
            || input.response_expires.is_some();
        if anonymous && other {
            return Err(error(S3ErrorCode::InvalidRequest, "headers of the answer are chosen by signed requests only"));
        }
        let conditions = conditions!(input);
        let which = Which { bucket: &input.bucket, key: &input.key, version: input.version_id.as_deref() };
        let found = self.found(&which, input.part_number, &conditions).await?;
        Ok(S3Response::new(objects::get(found, input.range.as_ref())?))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        Ok(S3Response::new(objects::put(&self.content, request).await?))
    }

    async fn copy_object(&self, request: S3Request<CopyObjectInput>) -> Answer<CopyObjectOutput> {
        Ok(S3Response::new(copy::copy(&self.content, request).await?))
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        let S3Request { input, extensions, .. } = request;
        bucket(&input.bucket)?;
        current(input.version_id.as_deref())?;
        if input.if_match.is_some() || input.if_match_size.is_some() || input.if_match_last_modified_time.is_some() {
            return Err(not_offered("this condition"));
        }
        let (content, key) = (self.content.clone(), named(&input.key)?);
        blocking(writing, move || delete(&content, &key)).await?;
        if let Ok(path) = SitePath::from_text(&input.key) {
            changed(&extensions, "deleted", &path, 0);
        }
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(&self, request: S3Request<DeleteObjectsInput>) -> Answer<DeleteObjectsOutput> {
        let S3Request { input, extensions, .. } = request;
        bucket(&input.bucket)?;
        let content = self.content.clone();
        let done = join(move || delete_all(&content, input.delete)).await??;
        if let Some(Asker(caller)) = extensions.get() {
            let refused = done.errors.as_ref().map_or(0, Vec::len);
            tracing::info!(refused, %caller, "files deleted by S3");
        }
        Ok(S3Response::new(done))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        Ok(S3Response::new(multipart::create(&self.content, request.input).await?))
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        Ok(S3Response::new(multipart::part(&self.content, request).await?))
    }

    async fn upload_part_copy(&self, request: S3Request<UploadPartCopyInput>) -> Answer<UploadPartCopyOutput> {
        Ok(S3Response::new(multipart::part_copy(&self.content, request.input).await?))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        Ok(S3Response::new(multipart::complete(&self.content, request).await?))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        let input = request.input;
        bucket(&input.bucket)?;
        multipart::abort(&self.content, input.upload_id, input.key).await?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> Answer<ListPartsOutput> {
        Ok(S3Response::new(multipart::parts(&self.content, request.input).await?))
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> Answer<ListMultipartUploadsOutput> {
        Ok(S3Response::new(multipart::uploads(&self.content, request.input).await?))
    }
}

/// Which object is asked for.
struct Which<'a> {
    bucket: &'a str,
    key: &'a str,
    version: Option<&'a str>,
}

impl Store {
    async fn found(
        &self,
        which: &Which<'_>,
        part_number: Option<i32>,
        conditions: &Conditions,
    ) -> S3Result<objects::Found> {
        bucket(which.bucket)?;
        current(which.version)?;
        if part_number.is_some() {
            return Err(not_offered("a part of an object by its number"));
        }
        let (content, key) = (self.content.clone(), named(which.key)?);
        let found = blocking(reading, move || find(&content, &key)).await?;
        conditions.check(&found.etag, &found.modified, S3ErrorCode::NotModified)?;
        Ok(found)
    }
}
