//! Properties that clients attach to files and folders, and that mean nothing to us ("dead" properties).
//!
//! Kept in the state folder, by path. They follow a move and a copy made over `WebDAV`; what other servers delete is
//! forgotten at the next change.

use std::collections::BTreeMap;
use std::sync::Arc;

use dav_server::fs::{DavProp, FsError};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::runtime::content::{Content, SitePath, StateError, StateFile};

/// Most bytes of all properties of the site.
const MAX_BYTES: usize = 2 << 20;

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Property {
    name: String,
    prefix: Option<String>,
    namespace: Option<String>,
    /// The whole element.
    xml: Option<String>,
}

type Store = BTreeMap<String, Vec<Property>>;

/// The site's properties.
pub(super) struct Properties {
    content: Arc<Content>,
    file: StateFile<Store>,
}

impl Properties {
    pub(super) fn open(content: &Arc<Content>) -> Result<Self, StateError> {
        Ok(Self { content: content.clone(), file: content.state_file("webdav-properties.json")? })
    }

    /// All of a name's.
    pub(super) fn get(&self, path: &SitePath) -> Result<Vec<DavProp>, FsError> {
        let store = self.file.read().map_err(|error| failed(&error))?;
        let found = store.get(&path.to_string()).into_iter().flatten();
        Ok(found
            .map(|property| DavProp {
                name: property.name.clone(),
                prefix: property.prefix.clone(),
                namespace: property.namespace.clone(),
                xml: property.xml.clone().map(String::into_bytes),
            })
            .collect())
    }

    /// Sets and removes some of a name's.
    pub(super) fn patch(
        &self,
        path: &SitePath,
        changes: Vec<(bool, DavProp)>,
    ) -> Result<Vec<(StatusCode, DavProp)>, FsError> {
        self.change(|store| {
            let mine = store.entry(path.to_string()).or_default();
            let done = changes.into_iter().map(|(set, prop)| {
                mine.retain(|known| (&known.namespace, &known.name) != (&prop.namespace, &prop.name));
                let DavProp { name, prefix, namespace, xml } = prop;
                let bare =
                    DavProp { name: name.clone(), prefix: prefix.clone(), namespace: namespace.clone(), xml: None };
                let xml = xml.map(|xml| String::from_utf8_lossy(&xml).into_owned());
                mine.extend(set.then_some(Property { name, prefix, namespace, xml }));
                (StatusCode::OK, bare)
            });
            done.collect()
        })
    }

    /// After a move (`keep` is false) or copy.
    pub(super) fn follow(&self, from: &SitePath, to: &SitePath, keep: bool) -> Result<(), FsError> {
        self.unless_empty(|store| {
            forget(store, to);
            let moved: Vec<_> =
                store.keys().filter_map(|key| Some((key.clone(), below(key, from)?.to_owned()))).collect();
            for (key, rest) in moved {
                let properties = if keep { store.get(&key).cloned() } else { store.remove(&key) };
                store.extend(properties.map(|properties| (format!("{to}{rest}"), properties)));
            }
        })
    }

    /// After a deletion.
    pub(super) fn forget(&self, path: &SitePath) -> Result<(), FsError> {
        self.unless_empty(|store| forget(store, path))
    }

    fn unless_empty(&self, change: impl FnOnce(&mut Store)) -> Result<(), FsError> {
        if self.file.read().map_err(|error| failed(&error))?.is_empty() {
            return Ok(());
        }
        self.change(change)
    }

    fn change<R>(&self, change: impl FnOnce(&mut Store) -> R) -> Result<R, FsError> {
        self.file
            .update(|store| {
                let result = change(store);
                store.retain(|path, properties| {
                    let there = SitePath::from_text(path).is_ok_and(|path| self.content.entry(&path).is_ok());
                    there && !properties.is_empty()
                });
                let text = |property: &Property| property.name.len() + property.xml.as_ref().map_or(0, String::len);
                let bytes: usize =
                    store.iter().map(|(path, all)| path.len() + all.iter().map(text).sum::<usize>()).sum();
                if bytes > MAX_BYTES { Err(Failure::Full) } else { Ok(result) }
            })
            .map_err(|failure| match failure {
                Failure::Full => FsError::InsufficientStorage,
                Failure::State(error) => failed(&error),
            })
    }
}

enum Failure {
    Full,
    State(StateError),
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

fn failed(error: &StateError) -> FsError {
    tracing::error!(%error, "WebDAV properties");
    FsError::GeneralFailure
}

fn forget(store: &mut Store, path: &SitePath) {
    store.retain(|key, _| below(key, path).is_none());
}

/// What follows `folder` in a key that is it or below it.
fn below<'a>(key: &'a str, folder: &SitePath) -> Option<&'a str> {
    key.strip_prefix(&folder.to_string()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}
