//! The shape of the settings as a JSON schema: which keys there are, and which of them are texts.
//!
//! Owns looking a key up in the schema that is derived from the types. Must not read values.

use schemars::schema_for;
use serde_json::Value;

use super::Settings;

/// The schema of all settings.
#[must_use]
pub fn schema() -> Value {
    schema_for!(Settings).to_value()
}

/// The schema of a key such as `["operator", "worker_limit"]`; `None` for a key that does not exist.
#[must_use]
pub fn of<'a>(schema: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(schema, |place, key| {
        let place = resolved(schema, place);
        place
            .get("properties")
            .and_then(|properties| properties.get(key))
            .or_else(|| place.get("additionalProperties").filter(|values| values.is_object()))
    })
}

/// Whether a key takes a text and nothing else: then a value from the environment is that text, whatever it looks like.
#[must_use]
pub fn is_text(schema: &Value, path: &[String]) -> bool {
    let found = of(schema, path).map(|place| resolved(schema, place)).and_then(|place| place.get("type"));
    match found {
        Some(Value::String(word)) => word == "string",
        Some(Value::Array(words)) => words.iter().all(|word| word == "string" || word == "null"),
        _ => false,
    }
}

/// The keys below a place, sorted; empty when it has none of its own.
#[must_use]
pub fn keys(schema: &Value, path: &[String]) -> Vec<String> {
    let properties = of(schema, path).map(|place| resolved(schema, place)).and_then(|place| place.get("properties"));
    let mut keys: Vec<String> =
        properties.and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys).cloned().collect();
    keys.sort();
    keys
}

/// The first place where a value is a list though the schema has keys there. Serde would take its entries for the
/// keys, in the order of the type.
#[must_use]
pub fn list_for_keys(schema: &Value, path: &[String], value: &Value) -> Option<Vec<String>> {
    let keys = keys(schema, path);
    if value.is_array() && !keys.is_empty() {
        return Some(path.to_vec());
    }
    keys.iter().find_map(|key| list_for_keys(schema, &[path, std::slice::from_ref(key)].concat(), value.get(key)?))
}

/// A place behind its reference, or behind the one alternative of an optional structure.
#[must_use]
pub fn resolved<'a>(schema: &'a Value, place: &'a Value) -> &'a Value {
    let referenced = place
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| schema.pointer(reference.trim_start_matches('#')));
    if let Some(target) = referenced {
        return target;
    }
    let alternatives = place.get("anyOf").and_then(Value::as_array);
    match alternatives.into_iter().flatten().find(|alternative| alternative["type"] != "null") {
        Some(alternative) => resolved(schema, alternative),
        None => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn texts_are_known() {
        let schema = schema();
        for key in ["session.secret_key", "routing.host", "site.version", "site.images.site-api", "redis.url"] {
            assert!(is_text(&schema, &path(key)), "{key}");
        }
        for key in
            ["operator.worker_limit", "operator.max_backoff", "operator", "redis", "nothing", "migration.enabled"]
        {
            assert!(!is_text(&schema, &path(key)), "{key}");
        }
    }

    #[test]
    fn keys_of_a_place() {
        let schema = schema();
        assert_eq!(keys(&schema, &path("operator.volume_label")), ["create_max", "create_min", "update"]);
        assert_eq!(keys(&schema, &path("redis")), ["url"]);
        assert!(keys(&schema, &path("site.images")).is_empty());
    }
}
