//! The site's own state: small JSON files in the state folder, shared by all processes of the site.
//!
//! A file is replaced as a whole, under a lock; readers keep their copy while the file is the same.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{Content, walk};

/// Why the site's state could not be read or written.
#[derive(Debug, Error)]
pub enum StateError {
    /// The file system.
    #[error("{step} .sites/{name}: {source}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// Name of the file.
        name: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The file is not what it should be. It is left as it is.
    #[error(".sites/{name} cannot be read: {source}")]
    Decode {
        /// Name of the file.
        name: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// Which version of the file a copy is of: a replacement is another file.
type Stamp = (u64, i64, i64, u64);

/// One file of state.
pub struct StateFile<T> {
    folder: Dir,
    name: &'static str,
    cached: Mutex<Option<(Stamp, Arc<T>)>>,
    writing: Mutex<()>,
}

impl Content {
    /// A file of state. It need not exist: it is then the default.
    pub fn state_file<T>(&self, name: &'static str) -> Result<StateFile<T>, StateError> {
        let folder =
            self.state.try_clone().map_err(|source| StateError::Io { step: "open", name: name.into(), source })?;
        Ok(StateFile { folder, name, cached: Mutex::new(None), writing: Mutex::new(()) })
    }
}

impl<T: Serialize + DeserializeOwned + Default + Clone> StateFile<T> {
    /// The state now.
    pub fn read(&self) -> Result<Arc<T>, StateError> {
        let file = match self.folder.open(self.name) {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(source) => return Err(self.failed("open", source)),
        };
        let stamp = stamp(&file).map_err(|source| self.failed("look at", source))?;
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((seen, state)) if *seen == stamp => Ok(state.clone()),
            _ => {
                let state = Arc::new(self.decode(file)?);
                *cached = Some((stamp, state.clone()));
                Ok(state)
            }
        }
    }

    /// Changes the state. Nobody changes it in between; when `change` fails nothing is written.
    pub fn update<R, E: From<StateError>>(&self, change: impl FnOnce(&mut T) -> Result<R, E>) -> Result<R, E> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = self.folder.open_with(format!("{}.lock", self.name), &options);
        let lock = lock.map_err(|source| self.failed("lock", source))?.into_std();
        lock.lock().map_err(|source| self.failed("lock", source))?;
        let mut state = T::clone(&*self.read()?);
        let result = change(&mut state)?;
        self.replace(&state)?;
        Ok(result)
    }

    fn replace(&self, state: &T) -> Result<(), StateError> {
        let failed = |source| self.failed("write", source);
        let bytes =
            serde_json::to_vec(state).map_err(|source| StateError::Decode { name: self.name.into(), source })?;
        let name = format!("{}.new", self.name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = self.folder.open_with(&name, &options).map_err(failed)?.into_std();
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        self.folder.rename(&name, &self.folder, self.name).map_err(failed)?;
        walk::sync(&self.folder).map_err(failed)
    }

    fn decode(&self, mut file: File) -> Result<T, StateError> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| self.failed("read", source))?;
        serde_json::from_slice(&bytes).map_err(|source| StateError::Decode { name: self.name.into(), source })
    }

    fn failed(&self, step: &'static str, source: std::io::Error) -> StateError {
        StateError::Io { step, name: self.name.to_owned(), source }
    }
}

fn stamp(file: &File) -> std::io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok((metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.size()))
}
