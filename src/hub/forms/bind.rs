//! From a body to a form.
//!
//! Owns the two notations of one form: JSON, and pairs whose names are paths (`share.view_users=ana`, repeated for
//! a list, `headers.X-Frame-Options=DENY`). An empty pair takes a value away.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::FieldError;

/// Fields whose value is a list: in pairs they may be repeated, or hold commas and lines.
const LISTS: [&str; 4] =
    ["share.administrator_users", "share.administrator_groups", "share.view_users", "share.view_groups"];
const BOOLEANS: [&str; 4] = ["enabled", "read_only", "settings.monitored", "settings.error_handling.directory_listing"];
const NUMBERS: [&str; 2] = ["quota", "duration"];
/// Groups of fields. A list would be read as one too, by the order of its fields.
const GROUPS: [&str; 4] = ["/share", "/settings", "/settings/resource_limits", "/settings/error_handling"];
/// Deepest path of a pair.
const DEPTH: usize = 4;

/// Binds JSON. The error names the field by its path.
pub fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, FieldError> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| FieldError::new("", format!("the body is no JSON: {error}")))?;
    value_into(value)
}

/// Binds pairs of `application/x-www-form-urlencoded`.
pub fn pairs<T: DeserializeOwned>(body: &[u8]) -> Result<T, FieldError> {
    value_into(nested(form_urlencoded::parse(body))?)
}

/// Binds fields that are JSON already.
pub fn value_into<T: DeserializeOwned>(value: Value) -> Result<T, FieldError> {
    if !value.is_object() {
        return Err(FieldError::new("", "the body must be an object of fields"));
    }
    if let Some(list) = GROUPS.iter().find(|group| value.pointer(group).is_some_and(Value::is_array)) {
        return Err(FieldError::new(list[1..].replace('/', "."), "must be an object of fields"));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        FieldError::new(field, error.inner().to_string())
    })
}

fn nested<'a>(
    pairs: impl Iterator<Item = (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)>,
) -> Result<Value, FieldError> {
    let mut root = Map::new();
    for (name, text) in pairs {
        let text = text.trim();
        let value = if LISTS.contains(&name.as_ref()) {
            let parts = text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty());
            Value::from(parts.map(str::to_owned).collect::<Vec<_>>())
        } else if text.is_empty() {
            Value::Null
        } else if BOOLEANS.contains(&name.as_ref()) {
            match text {
                "true" | "on" | "1" => Value::Bool(true),
                "false" | "off" | "0" => Value::Bool(false),
                _ => return Err(FieldError::new(name, "must be true or false")),
            }
        } else if NUMBERS.contains(&name.as_ref()) {
            let number: u64 = text.parse().map_err(|_| FieldError::new(name.clone(), "must be a whole number"))?;
            Value::from(number)
        } else {
            Value::from(text)
        };
        put(&mut root, &name, value)?;
    }
    Ok(Value::Object(root))
}

/// Puts a value at a path. A list that is repeated grows; another field that is repeated is an error.
fn put(root: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), FieldError> {
    // Names of headers have dots neither before nor behind their first one.
    let parts: Vec<&str> = name.splitn(DEPTH, '.').collect();
    let Some((last, parents)) = parts.split_last() else { return Ok(()) };
    let mut map = root;
    for parent in parents {
        let inner = map.entry((*parent).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        map = inner.as_object_mut().ok_or_else(|| FieldError::new(name, "is given as a value and as a group"))?;
    }
    match (map.get_mut(*last), value) {
        (Some(Value::Array(old)), Value::Array(new)) => old.extend(new),
        (Some(_), _) => return Err(FieldError::new(name, "is given twice")),
        (None, value) => {
            map.insert((*last).to_owned(), value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_and_json_are_one_form() {
        let body = "name=fdb&quota=5&enabled=on&share.view_users=ana%2Cben&share.view_users=cleo\
                    &headers.X-Frame-Options=DENY&settings.error_handling.not_found_page=%2F404.html&description=";
        let value: Value = pairs(body.as_bytes()).unwrap();
        assert_eq!(
            value,
            json!({"name": "fdb", "quota": 5, "enabled": true, "share": {"view_users": ["ana", "ben", "cleo"]},
                "headers": {"X-Frame-Options": "DENY"}, "description": null,
                "settings": {"error_handling": {"not_found_page": "/404.html"}}})
        );
    }

    #[test]
    fn errors_name_the_field() {
        for (body, expected) in [
            ("quota=ten", "[quota] must be a whole number"),
            ("enabled=maybe", "[enabled] must be true or false"),
            ("name=a&name=b", "[name] is given twice"),
            ("share=a&share.view_users=b", "[share.view_users] is given as a value and as a group"),
        ] {
            assert_eq!(pairs::<Value>(body.as_bytes()).unwrap_err().to_string(), expected);
        }
        assert!(json::<Value>(b"{").unwrap_err().to_string().starts_with("the body is no JSON"));
        assert_eq!(json::<Value>(b"[]").unwrap_err().to_string(), "the body must be an object of fields");
        for (body, field) in [
            (r#"{"share": [["ana"]]}"#, "share"),
            (r#"{"settings": []}"#, "settings"),
            (r#"{"settings": {"resource_limits": ["1"]}}"#, "settings.resource_limits"),
        ] {
            let refused = json::<super::super::site::SiteForm>(body.as_bytes()).unwrap_err();
            assert_eq!(refused.to_string(), format!("[{field}] must be an object of fields"));
        }
    }
}
