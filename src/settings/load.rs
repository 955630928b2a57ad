//! Reading the settings: a YAML file, environment overrides, and messages that say what to do.
//!
//! Owns the way from text to [`Settings`]. Consistency is judged in [`super::check`]. Must not print a value:
//! any of them may be a secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::check::{self, Violation};
use super::{Settings, shape};

/// What environment variables that override a setting begin with.
pub const PREFIX: &str = "SITES__";

/// Why the settings cannot be used. No variant carries a value.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("settings file {}: {source}; give a readable file with --config", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is no YAML.
    #[error("settings file is not valid YAML{place}; correct the syntax")]
    Syntax {
        /// ` at line <n>, column <n>`, or empty.
        place: String,
    },
    /// A key is missing, unknown or of the wrong type.
    #[error("{key}: {problem}{origin}")]
    Key {
        /// Such as `operator.worker_limit`.
        key: String,
        /// What is expected and what to do.
        problem: String,
        /// Names the environment variable, when the value came from one.
        origin: String,
    },
    /// The values contradict a rule.
    #[error("{}", list(.0))]
    Inconsistent(Vec<Violation>),
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n")
}

impl Settings {
    /// The settings of a YAML file, with the environment's overrides, checked.
    ///
    /// An override is `SITES__<KEY>__<KEY>` (`SITES__OPERATOR__WORKER_LIMIT=7`): keys in any case, the value a
    /// text where the key takes a text, otherwise YAML or JSON.
    pub fn load(path: &Path, env: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| SettingsError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, env)
    }

    /// As [`Settings::load`], from the file's text.
    pub fn parse(text: &str, env: impl Iterator<Item = (String, String)>) -> Result<Self, SettingsError> {
        let mut tree: Value = if text.trim().is_empty() { Value::Null } else { yaml(text)? };
        let schema = shape::schema();
        let mut origins = BTreeMap::new();
        for (variable, value) in env {
            let Some(name) = variable.strip_prefix(PREFIX) else { continue };
            let keys: Vec<String> = name.split("__").map(str::to_lowercase).collect();
            let value = if shape::is_text(&schema, &keys) { Value::String(value) } else { scalar(value) };
            place(&mut tree, &keys, value);
            origins.insert(keys.join("."), variable);
        }
        if tree.is_null() {
            tree = Value::Object(Map::new());
        }
        if let Some(path) = shape::list_for_keys(&schema, &[], &tree) {
            return Err(explained(&schema, &path, "invalid type: list, expected a map of keys", &origins));
        }
        let settings: Self = serde_path_to_error::deserialize(tree).map_err(|error| {
            let segments = segments(error.path());
            explained(&schema, &segments, &error.inner().to_string(), &origins)
        })?;
        match check::violations(&settings) {
            none if none.is_empty() => Ok(settings),
            violations => Err(SettingsError::Inconsistent(violations)),
        }
    }
}

fn yaml(text: &str) -> Result<Value, SettingsError> {
    serde_saphyr::from_str(text).map_err(|error: serde_saphyr::Error| {
        let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
        SettingsError::Syntax { place: place.unwrap_or_default() }
    })
}

/// A value of the environment as YAML; what is no YAML is a text.
fn scalar(text: String) -> Value {
    serde_saphyr::from_str(&text).unwrap_or(Value::String(text))
}

/// Puts a value at a path; whatever is in the way is replaced by a map.
fn place(tree: &mut Value, keys: &[String], value: Value) {
    let slot = keys.iter().fold(tree, |tree, key| {
        if !tree.is_object() {
            *tree = Value::Object(Map::new());
        }
        // Indexing an object by a missing key adds it.
        &mut tree[key]
    });
    *slot = value;
}

fn segments(path: &serde_path_to_error::Path) -> Vec<String> {
    use serde_path_to_error::Segment;
    let text = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("[{index}]"),
        Segment::Map { key } => key.clone(),
        Segment::Enum { variant } => variant.clone(),
        Segment::Unknown => "?".to_owned(),
    };
    path.iter().map(text).collect()
}

/// Turns serde's message into one that says what to do, without the value that it may hold.
fn explained(schema: &Value, path: &[String], message: &str, origins: &BTreeMap<String, String>) -> SettingsError {
    let backticked = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    let below = |name: &str| {
        let known = path.last().is_some_and(|last| last == name);
        let parent = if known { &path[..path.len() - 1] } else { path };
        (parent.to_vec(), [parent, &[name.to_owned()]].concat().join("."))
    };
    let (key, problem) = if message.starts_with("unknown field") {
        let name = backticked(message);
        let (parent, key) = below(&name);
        (key, unknown(&name, &shape::keys(schema, &parent)))
    } else if message.starts_with("missing field") {
        let (_, key) = below(&backticked(message));
        (key, "is required; set it".to_owned())
    } else if let Some(rest) = message.strip_prefix("unknown variant") {
        let expected = rest.split_once(", expected ").map_or("another word", |(_, expected)| expected);
        (path.join("."), format!("is none of the known words; expected {expected}"))
    } else {
        (path.join("."), mistyped(message))
    };
    let origin = origins.iter().find(|(set, _)| key.starts_with(set.as_str()) || set.starts_with(&key));
    let origin =
        origin.map_or_else(String::new, |(_, variable)| format!(" (set by the environment variable {variable})"));
    SettingsError::Key { key: if key.is_empty() { "settings".to_owned() } else { key }, problem, origin }
}

fn unknown(name: &str, known: &[String]) -> String {
    let near = |key: &&String| strsim::damerau_levenshtein(name, key);
    match known.iter().min_by_key(near) {
        Some(nearest) if near(&nearest) <= 3 => format!("unknown key; did you mean {nearest}?"),
        _ if known.is_empty() => "unknown key; remove it".to_owned(),
        _ => format!("unknown key; known keys here: {}", known.join(", ")),
    }
}

/// `invalid type: string "x", expected u32` without the value: `expected a whole number of 0 or more, found a text`.
fn mistyped(message: &str) -> String {
    let (found, expected) = match message.rsplit_once(", expected ") {
        Some((found, expected)) => (found, expected),
        None => ("", message.strip_prefix("expected ").unwrap_or("another value")),
    };
    let expected = match expected {
        "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i32" | "i64" => "a whole number",
        "a boolean" => "true or false",
        "a string" | "string" => "a text",
        "a sequence" => "a list",
        "a map" => "a map",
        other if other.starts_with("struct ") => "a map of keys",
        other => other,
    };
    let kind = found.strip_prefix("invalid type: ").unwrap_or_default();
    let kind = kind.split(['"', '`']).next().unwrap_or_default().trim();
    match kind {
        "" => format!("expected {expected}; correct the value"),
        "string" => format!("expected {expected}, found a text; correct the value"),
        kind => format!("expected {expected}, found {kind}; correct the value"),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
pub(crate) mod tests;
