//! The settings reference page, made from the types: every key with its type, default and meaning.
//!
//! Owns the page's form. Must not say anything about a key that its type does not say.

use std::fmt::Write as _;

use serde_json::Value;

use super::shape;

const INTRODUCTION: &str = "# Settings

This page is generated from the types by `sites config reference`: change those, then print it again.

The settings are one YAML file. Each key can be overridden by an environment variable: `SITES__OPERATOR__WORKER_LIMIT=7`
sets `operator.worker_limit`. A value there is a text where the key takes a text, otherwise YAML or JSON. A key that is
not on this page stops the start, as does a value of the wrong kind; `sites config check` says what is wrong without
starting anything. A length of time is written `300s`, `5m`, `500ms`, or as a number of seconds.
";

/// The page as Markdown: the same text each time.
#[must_use]
pub fn markdown() -> String {
    let schema = shape::schema();
    let mut page = INTRODUCTION.to_owned();
    let mut sections = Vec::new();
    section(&schema, &schema, &[], &mut sections);
    for part in sections {
        page.push_str(&part);
    }
    page
}

/// One table for the keys of a place, then the places below it.
fn section(schema: &Value, place: &Value, path: &[String], sections: &mut Vec<String>) {
    let optional = place["anyOf"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "null"));
    let place = shape::resolved(schema, place);
    let required: Vec<&str> = place["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut rows = String::new();
    let mut below = Vec::new();
    for key in shape::keys(schema, path) {
        let property = &place["properties"][&key];
        let here = [path, std::slice::from_ref(&key)].concat();
        if shape::resolved(schema, property).get("properties").is_some() {
            below.push((here, property));
            continue;
        }
        let default = default(property, required.contains(&key.as_str()));
        // Writing to a String cannot fail.
        let _ =
            writeln!(rows, "| `{}` | {} | {default} | {} |", here.join("."), kind(schema, property), meaning(property));
    }
    if !rows.is_empty() {
        let about = place["description"].as_str().filter(|_| !path.is_empty()).map(sentence).unwrap_or_default();
        let title = if path.is_empty() { "settings".to_owned() } else { path.join(".") };
        let whole = if optional { "May be left out as a whole.\n\n" } else { "" };
        sections.push(format!(
            "\n## {title}\n\n{about}{whole}| Key | Type | Default | Meaning |\n|---|---|---|---|\n{rows}"
        ));
    }
    for (path, property) in below {
        section(schema, property, &path, sections);
    }
}

/// The description of a structure, unless it is only its own name.
fn sentence(text: &str) -> String {
    let text = text.replace('\n', " ");
    if text.starts_with('`') && text.ends_with("`.") && text.matches('`').count() == 2 {
        return String::new();
    }
    format!("{text}\n\n")
}

fn kind(schema: &Value, property: &Value) -> String {
    if property["format"] == "period" {
        return "length of time".to_owned();
    }
    let place = shape::resolved(schema, property);
    if let Some(words) = words(place) {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
    }
    let first = match &place["type"] {
        Value::Array(types) => types.iter().find(|type_| *type_ != "null").and_then(Value::as_str),
        type_ => type_.as_str(),
    };
    match first {
        Some("string") => "text",
        Some("integer") => "whole number",
        Some("boolean") => "true or false",
        Some("array") => "list",
        Some("object") => "map",
        _ => "value",
    }
    .to_owned()
}

/// The words of an enumeration.
fn words(place: &Value) -> Option<Vec<&str>> {
    if let Some(words) = place["enum"].as_array() {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let alternatives = place["oneOf"].as_array()?;
    Some(alternatives.iter().filter_map(|alternative| alternative["const"].as_str()).collect())
}

fn default(property: &Value, required: bool) -> String {
    match &property["default"] {
        _ if required => "**required**".to_owned(),
        Value::Null => "—".to_owned(),
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        Value::Object(map) if map.is_empty() => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// The description without its own sentence about the default, when there is a column for it.
fn meaning(property: &Value) -> String {
    let text = property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
    match text.split_once(" Default `").or_else(|| text.split_once(" Default ")) {
        Some((before, _)) if !property["default"].is_null() => before.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_there_with_a_meaning() {
        let page = markdown();
        for row in [
            "| `operator.worker_limit` | whole number | `5` |",
            "| `operator.max_backoff` | length of time | `300s` |",
            "| `routing.mode` | `ingress` or `gateway` | `ingress` |",
            "| `session.secret_key` | text | **required** |",
            "| `redis.url` | text | **required** |",
            "| `operator.volume_label.update` | length of time | `5s` |",
        ] {
            assert!(page.contains(row), "{row} in\n{page}");
        }
        assert!(!page.contains("|  |"), "a key without a meaning");
    }

    #[test]
    fn the_committed_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md");
        if std::env::var_os("SITES_BLESS").is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap(),
            markdown(),
            "print it again: sites config reference > {path}"
        );
    }
}
