//! The platform's templates: files of one folder, which is never left.

use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use serde_json::Value;
use tracing::error;

use super::super::error::ApiError;
use super::super::forms::bind::value_into;
use super::super::forms::site::SiteForm;
use super::super::state::Hub;
use crate::domain::forms;

/// Largest template, in bytes.
const MOST: u64 = 256 * 1024;
const ENDINGS: [&str; 2] = ["yaml", "json"];

/// The fields of a template, if there is a file of it. `name` has been checked.
pub async fn read(hub: &Hub, name: &str) -> Result<Option<Value>, ApiError> {
    let Some(path) = hub.settings.hub.templates_path.clone() else { return Ok(None) };
    let name = name.to_owned();
    blocking(move || one(path, &name)).await
}

/// Names of the files that are templates.
pub async fn names(hub: &Hub) -> Result<Vec<String>, ApiError> {
    let Some(path) = hub.settings.hub.templates_path.clone() else { return Ok(Vec::new()) };
    blocking(move || {
        let folder = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| broken(&error))?;
        let mut names = Vec::new();
        for entry in folder.entries().map_err(|error| broken(&error))? {
            let file = entry.map_err(|error| broken(&error))?.file_name();
            let parts = file.to_str().and_then(|text| text.rsplit_once('.'));
            names.extend(
                parts
                    .filter(|(name, end)| ENDINGS.contains(end) && forms::segment(name))
                    .map(|(name, _)| name.to_owned()),
            );
        }
        names.sort();
        names.dedup();
        Ok(names)
    })
    .await
}

fn one(path: PathBuf, name: &str) -> Result<Option<Value>, ApiError> {
    let folder = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| broken(&error))?;
    for ending in ENDINGS {
        let file = format!("{name}.{ending}");
        let mut options = OpenOptions::new();
        // A pipe in the folder must not hold the request.
        options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let opened = match folder.open_with(&file, &options) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // A link that leads out of the folder is refused here.
            Err(error) => {
                error!(file, %error, "a template cannot be opened");
                return Err(ApiError::field("template", "leads out of the folder of templates, or cannot be read"));
            }
        };
        let mut text = String::new();
        opened.take(MOST + 1).read_to_string(&mut text).map_err(|error| broken(&error))?;
        // Cut, it could still be YAML, of another meaning.
        if text.len() as u64 > MOST {
            return Err(invalid(&file, "is too large"));
        }
        let fields: Value = serde_saphyr::from_str(&text).map_err(|_| invalid(&file, "is not YAML"))?;
        value_into::<SiteForm>(fields.clone()).map_err(|error| invalid(&file, &error.to_string()))?;
        return Ok(Some(fields));
    }
    Ok(None)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(&error)))
}

fn invalid(file: &str, reason: &str) -> ApiError {
    error!(file, reason, "a template of the platform is not valid");
    ApiError::Upstream("this template of the platform is not valid: tell its administrators".to_owned())
}

fn broken(error: &dyn std::fmt::Display) -> ApiError {
    error!(%error, "hub.templates_path cannot be read");
    ApiError::Upstream("the folder of templates cannot be read".to_owned())
}
