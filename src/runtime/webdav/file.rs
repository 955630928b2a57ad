//! One open file of `WebDAV`: read from an open handle, or written beside and moved into place when it is complete.

use std::io::{Read, Seek, SeekFrom};

use dav_server::fs::{DavFile, DavMetaData, FsError, FsFuture};
use hyper::body::{Buf, Bytes};

use super::files::{blocking, failed};
use super::metadata::Seen;
use crate::runtime::content::{Opened, Upload, WriteOptions};

/// Collected before it is written.
const BLOCK: usize = 256 << 10;

/// A file that is being read.
#[derive(Debug)]
pub(super) struct Reading(pub Option<Opened>);

/// A file that is being written. Without a flush nothing comes of it.
pub(super) struct Writing {
    pub upload: Option<Upload>,
    pub block: Vec<u8>,
    pub options: WriteOptions,
    /// What the client said that will come.
    pub expected: Option<u64>,
    pub seen: Option<Seen>,
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writing").field("expected", &self.expected).finish_non_exhaustive()
    }
}

impl Writing {
    async fn store(&mut self, bytes: &[u8], at_least: usize) -> Result<(), FsError> {
        self.block.extend_from_slice(bytes);
        if self.block.len() < at_least {
            return Ok(());
        }
        let mut upload = self.upload.take().ok_or(FsError::GeneralFailure)?;
        let block = std::mem::take(&mut self.block);
        let upload = blocking(move || {
            upload.append(&block)?;
            Ok(upload)
        });
        self.upload = Some(upload.await?);
        Ok(())
    }
}

impl DavFile for Reading {
    fn metadata(&'_ mut self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        Box::pin(async move {
            let opened = self.0.as_ref().ok_or(FsError::GeneralFailure)?;
            let (size, modified, etag) = (opened.size, opened.modified, Some(opened.etag.clone()));
            Ok(Box::new(Seen { folder: false, link: false, size, modified, etag }) as Box<dyn DavMetaData>)
        })
    }

    fn write_buf(&'_ mut self, _buf: Box<dyn Buf + Send>) -> FsFuture<'_, ()> {
        Box::pin(async { Err(FsError::Forbidden) })
    }

    fn write_bytes(&'_ mut self, _buf: Bytes) -> FsFuture<'_, ()> {
        Box::pin(async { Err(FsError::Forbidden) })
    }

    fn read_bytes(&'_ mut self, count: usize) -> FsFuture<'_, Bytes> {
        Box::pin(async move {
            let mut opened = self.0.take().ok_or(FsError::GeneralFailure)?;
            let (opened, block) = blocking(move || {
                let mut block = vec![0; count];
                let read = opened.file.read(&mut block).map_err(|error| failed("read", error))?;
                block.truncate(read);
                Ok((opened, block))
            })
            .await?;
            self.0 = Some(opened);
            Ok(Bytes::from(block))
        })
    }

    fn seek(&'_ mut self, position: SeekFrom) -> FsFuture<'_, u64> {
        Box::pin(async move {
            let opened = self.0.as_mut().ok_or(FsError::GeneralFailure)?;
            opened.file.seek(position).map_err(|_| FsError::GeneralFailure)
        })
    }

    fn flush(&'_ mut self) -> FsFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl DavFile for Writing {
    fn metadata(&'_ mut self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        Box::pin(async move {
            let seen = self.seen.clone().ok_or(FsError::NotImplemented)?;
            Ok(Box::new(seen) as Box<dyn DavMetaData>)
        })
    }

    fn write_buf(&'_ mut self, mut buf: Box<dyn Buf + Send>) -> FsFuture<'_, ()> {
        Box::pin(async move {
            let bytes = buf.copy_to_bytes(buf.remaining());
            self.store(&bytes, BLOCK).await
        })
    }

    fn write_bytes(&'_ mut self, buf: Bytes) -> FsFuture<'_, ()> {
        Box::pin(async move { self.store(&buf, BLOCK).await })
    }

    fn read_bytes(&'_ mut self, _count: usize) -> FsFuture<'_, Bytes> {
        Box::pin(async { Err(FsError::Forbidden) })
    }

    fn seek(&'_ mut self, _position: SeekFrom) -> FsFuture<'_, u64> {
        Box::pin(async { Err(FsError::NotImplemented) })
    }

    /// The file is complete: dav-server calls this once, at its end.
    fn flush(&'_ mut self) -> FsFuture<'_, ()> {
        Box::pin(async move {
            self.store(&[], 1).await?;
            let upload = self.upload.take().ok_or(FsError::GeneralFailure)?;
            // A body that broke off must not replace what is there.
            if self.expected.is_some_and(|expected| expected != upload.written()) {
                return Err(FsError::Forbidden);
            }
            let options = self.options.clone();
            let written = blocking(move || upload.finish(&options)).await?;
            let modified = jiff::Timestamp::now();
            let etag = Some(written.etag);
            self.seen = Some(Seen { folder: false, link: false, size: written.size, modified, etag });
            Ok(())
        })
    }
}
