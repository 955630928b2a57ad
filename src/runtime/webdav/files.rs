//! The content as dav-server's file system.

use std::pin::Pin;
use std::sync::Arc;

use dav_server::davpath::DavPath;
use dav_server::fs::{
    DavDirEntry, DavFile, DavFileSystem, DavMetaData, DavProp, FsError, FsFuture, FsStream, OpenOptions, ReadDirMeta,
};
use futures::stream;
use http::StatusCode;

use super::file::{Reading, Writing};
use super::metadata::{Named, Seen};
use super::props::Properties;
use crate::runtime::content::{
    Condition, Content, ContentError, EntryType, ListOptions, SitePath, StateError, WriteOptions,
};

/// The content, with the properties that clients attach to it.
#[derive(Clone)]
pub(super) struct Files {
    content: Arc<Content>,
    properties: Arc<Properties>,
}

impl DavFileSystem for Files {
    fn open<'a>(&'a self, path: &'a DavPath, options: OpenOptions) -> FsFuture<'a, Box<dyn DavFile>> {
        Box::pin(async move {
            let (content, path) = (self.content.clone(), site_path(path)?);
            if !options.write {
                let opened = blocking(move || content.read(&path)).await?;
                return Ok(Box::new(Reading(Some(opened))) as Box<dyn DavFile>);
            }
            let writing = blocking(move || {
                // WebDAV makes no folders on the way.
                parent(&content, &path)?;
                let known = content.entry(&path);
                let condition = match (options.create_new, options.create, &known) {
                    (true, ..) => Condition::Absent,
                    (_, false, Err(error)) if is_missing(error) => {
                        return Err(ContentError::NotFound(path.to_string()));
                    }
                    _ => Condition::Any,
                };
                if options.append || !options.truncate && known.is_ok() {
                    return Err(ContentError::Special(path.to_string()));
                }
                let write = WriteOptions { backup: false, condition };
                let mut upload = content.write(path.clone(), options.size)?;
                if !options.truncate {
                    // A lock on a name that is not there makes an empty file and writes nothing.
                    upload.finish(&WriteOptions { condition: Condition::Absent, ..write.clone() })?;
                    upload = content.write(path, None)?;
                }
                Ok(Writing {
                    upload: Some(upload),
                    block: Vec::new(),
                    options: write,
                    expected: options.size,
                    seen: None,
                })
            });
            Ok(Box::new(writing.await?) as Box<dyn DavFile>)
        })
    }

    fn read_dir<'a>(&'a self, path: &'a DavPath, _: ReadDirMeta) -> FsFuture<'a, FsStream<Box<dyn DavDirEntry>>> {
        Box::pin(async move {
            let (content, path) = (self.content.clone(), site_path(path)?);
            let listing = blocking(move || content.list(&path, &ListOptions::default())).await?;
            // A link that leads nowhere cannot be opened: it is not shown.
            let shown = listing.entries.into_iter().filter(|entry| entry.entry_type != EntryType::Broken);
            let entries = shown.map(|entry| {
                let seen = Seen::of(&entry);
                Ok(Box::new(Named { name: entry.path, seen }) as Box<dyn DavDirEntry>)
            });
            Ok(Box::pin(stream::iter(entries.collect::<Vec<_>>())) as FsStream<Box<dyn DavDirEntry>>)
        })
    }

    fn metadata<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, Box<dyn DavMetaData>> {
        Box::pin(async move {
            let (content, path) = (self.content.clone(), site_path(path)?);
            let entry = blocking(move || content.entry(&path)).await?;
            if entry.entry_type == EntryType::Broken {
                return Err(FsError::NotFound);
            }
            Ok(Box::new(Seen::of(&entry)) as Box<dyn DavMetaData>)
        })
    }

    /// Of a link itself: it is a small file to all that delete, move or copy it.
    fn symlink_metadata<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, Box<dyn DavMetaData>> {
        Box::pin(async move {
            let (content, path) = (self.content.clone(), site_path(path)?);
            let mut seen = Seen::of(&blocking(move || content.entry(&path)).await?);
            seen.folder &= !seen.link;
            Ok(Box::new(seen) as Box<dyn DavMetaData>)
        })
    }

    fn create_dir<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, ()> {
        Box::pin(async move {
            let (content, path) = (self.content.clone(), site_path(path)?);
            blocking(move || {
                parent(&content, &path)?;
                match content.entry(&path) {
                    Err(error) if is_missing(&error) => content.make_folders(&path),
                    Err(error) => Err(error),
                    Ok(_) => Err(ContentError::Exists { path: path.to_string(), advice: "" }),
                }
            })
            .await
        })
    }

    fn remove_dir<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, ()> {
        self.remove(path)
    }

    fn remove_file<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, ()> {
        self.remove(path)
    }

    fn rename<'a>(&'a self, from: &'a DavPath, to: &'a DavPath) -> FsFuture<'a, ()> {
        Box::pin(async move {
            let (content, from, to) = (self.content.clone(), site_path(from)?, site_path(to)?);
            let (old, new) = (from.clone(), to.clone());
            blocking(move || {
                parent(&content, &to)?;
                content.rename(&from, &to, true)
            })
            .await?;
            self.kept(move |properties| properties.follow(&old, &new, false)).await
        })
    }

    fn copy<'a>(&'a self, from: &'a DavPath, to: &'a DavPath) -> FsFuture<'a, ()> {
        Box::pin(async move {
            let (content, from, to) = (self.content.clone(), site_path(from)?, site_path(to)?);
            let (old, new) = (from.clone(), to.clone());
            blocking(move || {
                parent(&content, &to)?;
                content.copy(&from, &to, true)
            })
            .await?;
            self.kept(move |properties| properties.follow(&old, &new, true)).await
        })
    }

    fn have_props<'a>(&'a self, _: &'a DavPath) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async { true })
    }

    fn patch_props<'a>(
        &'a self,
        path: &'a DavPath,
        changes: Vec<(bool, DavProp)>,
    ) -> FsFuture<'a, Vec<(StatusCode, DavProp)>> {
        Box::pin(async move {
            let path = site_path(path)?;
            self.kept(move |properties| properties.patch(&path, changes)).await
        })
    }

    fn get_props<'a>(&'a self, path: &'a DavPath, do_content: bool) -> FsFuture<'a, Vec<DavProp>> {
        Box::pin(async move {
            let path = site_path(path)?;
            let mut found = self.kept(move |properties| properties.get(&path)).await?;
            if !do_content {
                for prop in &mut found {
                    prop.xml = None;
                }
            }
            Ok(found)
        })
    }

    fn get_prop<'a>(&'a self, path: &'a DavPath, prop: DavProp) -> FsFuture<'a, Vec<u8>> {
        Box::pin(async move {
            let path = site_path(path)?;
            let found = self.kept(move |properties| properties.get(&path)).await?;
            let same = |one: &DavProp| (&one.namespace, &one.name) == (&prop.namespace, &prop.name);
            found.into_iter().find(same).and_then(|prop| prop.xml).ok_or(FsError::NotFound)
        })
    }

    fn get_quota(&'_ self) -> FsFuture<'_, (u64, Option<u64>)> {
        Box::pin(async move {
            let content = self.content.clone();
            let usage = blocking(move || content.usage()).await?;
            Ok((usage.used, Some(usage.used + usage.free)))
        })
    }
}

impl Files {
    pub(super) fn open(content: &Arc<Content>) -> Result<Self, StateError> {
        Ok(Self { content: content.clone(), properties: Arc::new(Properties::open(content)?) })
    }

    async fn kept<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Properties) -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, FsError> {
        let properties = self.properties.clone();
        tokio::task::spawn_blocking(move || work(&properties)).await.map_err(|_| FsError::GeneralFailure)?
    }

    fn remove<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, ()> {
        Box::pin(async move {
            let (content, path) = (self.content.clone(), site_path(path)?);
            if path.is_root() {
                return Err(FsError::Forbidden);
            }
            let gone = path.clone();
            blocking(move || content.remove(&path).map(drop)).await?;
            self.kept(move |properties| properties.forget(&gone)).await
        })
    }
}

/// The folder that a name is put in must be there.
fn parent(content: &Content, path: &SitePath) -> Result<(), ContentError> {
    let Some((parent, _)) = path.split() else { return Err(ContentError::Root("name something below it")) };
    match content.entry(&parent)?.entry_type {
        EntryType::Directory => Ok(()),
        _ => Err(ContentError::NotFound(parent.to_string())),
    }
}

fn is_missing(error: &ContentError) -> bool {
    matches!(error, ContentError::NotFound(_) | ContentError::NotAFolder(_))
}

fn site_path(path: &DavPath) -> Result<SitePath, FsError> {
    let text = std::str::from_utf8(path.as_bytes()).map_err(|_| FsError::Forbidden)?;
    SitePath::from_text(text).map_err(|_| FsError::Forbidden)
}

pub(super) fn failed(step: &'static str, error: std::io::Error) -> ContentError {
    ContentError::io(step, "the file", error)
}

/// Runs work on files where it holds up nobody.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, FsError> {
    let result = tokio::task::spawn_blocking(work).await.map_err(|_| FsError::GeneralFailure)?;
    result.map_err(|error| match error {
        ContentError::NotFound(_) | ContentError::NotAFolder(_) => FsError::NotFound,
        ContentError::Exists { .. } | ContentError::IsAFolder(_) => FsError::Exists,
        ContentError::Quota { .. } | ContentError::VolumeFull => FsError::InsufficientStorage,
        ContentError::Special(_) => FsError::NotImplemented,
        ContentError::Io { .. } => {
            tracing::error!(%error, "a WebDAV request failed");
            FsError::GeneralFailure
        }
        _ => FsError::Forbidden,
    })
}
