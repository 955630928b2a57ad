//! From JSON to a type, with errors that name the place and the expected form but never the value.
//!
//! Owns [`Guarded`], which keeps one undecodable object from failing a whole list or watch (kube's
//! `DeserializeGuard` is not used: its message holds the value and not the path), and [`Slim`], metadata alone.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::kind::ApiObject;

/// An object, or why it is none and what its metadata says.
#[derive(Clone, Debug)]
pub(super) enum Guarded<K> {
    Object(K),
    Broken { meta: Box<ObjectMeta>, error: String },
}

impl<'de, K: ApiObject> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Part::Whole.deserialize(deserializer)?;
        Ok(match by_reference(&value) {
            Ok(object) => Self::Object(object),
            Err(error) => Self::Broken { meta: Box::new(metadata(&value)), error },
        })
    }
}

/// The metadata; where even that is malformed, the few texts that tell which object.
fn metadata(value: &Value) -> ObjectMeta {
    let raw = &value["metadata"];
    ObjectMeta::deserialize(raw).unwrap_or_else(|_| {
        let text = |key: &str| raw[key].as_str().map(str::to_owned);
        ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            generation: raw["generation"].as_i64(),
            ..ObjectMeta::default()
        }
    })
}

/// Which part of an object is read into a [`Value`]. `managedFields`, half of the bytes of most objects, are skipped.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    Metadata,
    Else,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Self::Whole | Self::Metadata => deserializer.deserialize_any(self),
            Self::Else => Value::deserialize(deserializer),
        }
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = serde_json::Map::new();
        while let Some(name) = map.next_key::<String>()? {
            match (self, name.as_str()) {
                (Self::Metadata, "managedFields") => {
                    map.next_value::<IgnoredAny>()?;
                }
                (Self::Whole, "metadata") => {
                    let value = map.next_value_seed(Self::Metadata)?;
                    fields.insert(name, value);
                }
                _ => {
                    let value = map.next_value_seed(Self::Else)?;
                    fields.insert(name, value);
                }
            }
        }
        Ok(Value::Object(fields))
    }

    // Where a map is due and something else stands, the typed form says what is wrong.
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }
    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from(number))
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
}

impl<K: ApiObject> Resource for Guarded<K> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }
    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }
    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }
    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }
    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Object(object) => object.meta(),
            Self::Broken { meta, .. } => meta,
        }
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Object(object) => object.meta_mut(),
            Self::Broken { meta, .. } => meta,
        }
    }
}

/// The metadata of an object. All else is skipped, also `managedFields`, which is most of a metadata's bytes.
#[derive(Clone, Debug)]
pub(super) struct Slim(pub(super) ObjectMeta);

impl<'de> Deserialize<'de> for Slim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(default)]
            metadata: Fields,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Fields {
            namespace: Option<String>,
            name: Option<String>,
            uid: Option<String>,
            labels: Option<BTreeMap<String, String>>,
            annotations: Option<BTreeMap<String, String>>,
            owner_references: Option<Vec<OwnerReference>>,
            resource_version: Option<String>,
            generation: Option<i64>,
            deletion_timestamp: Option<Time>,
        }
        let Fields {
            namespace,
            name,
            uid,
            labels,
            annotations,
            owner_references,
            resource_version,
            generation,
            deletion_timestamp,
        } = Whole::deserialize(deserializer)?.metadata;
        Ok(Self(ObjectMeta {
            namespace,
            name,
            uid,
            labels,
            annotations,
            owner_references,
            resource_version,
            generation,
            deletion_timestamp,
            ..ObjectMeta::default()
        }))
    }
}

impl Resource for Slim {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }
    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }
    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }
    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.0
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0
    }
    fn metadata_api() -> bool {
        true
    }
}

/// The typed form of a value, or where it departs from the type.
fn by_reference<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    // Keeping track of the place costs a text per field: only what does not decode is decoded a second time.
    T::deserialize(value).or_else(|_| serde_path_to_error::deserialize(value).map_err(|error| described(&error)))
}

/// The typed form of an answer's bytes.
pub(super) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).or_else(|_| {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        serde_path_to_error::deserialize(&mut reader).map_err(|error| described(&error))
    })
}

fn described(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    let message = error.inner().to_string();
    // A type that decodes itself may name the place already.
    let message = message.strip_prefix(&format!("{path}: ")).unwrap_or(&message);
    let message = without_value(message);
    // The place in the text says nothing to people who never see the text.
    let message = message.rfind(" at line ").map_or(message.as_str(), |at| &message[..at]);
    match message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        Some(field) if path == "." => format!("{field}: is required"),
        Some(field) => format!("{path}.{field}: is required"),
        None => format!("{path}: {message}"),
    }
}

/// serde's message without what was found: `invalid type: string "x", expected u32` becomes
/// `invalid type: string, expected a whole number of 0 or more`. Messages of unknown form are replaced as a whole.
fn without_value(message: &str) -> String {
    const FOUND: [&str; 5] =
        ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant", "unknown field"];
    // What a message says whose author took care to leave the value out.
    const AS_THEY_ARE: [&str; 6] = [
        "missing field ",
        "duplicate field ",
        "EOF",
        "expected value at",
        "expected a Kubernetes quantity",
        "not of the expected type",
    ];
    if AS_THEY_ARE.iter().any(|start| message.starts_with(start)) {
        return message.to_owned();
    }
    if let Some(start) = FOUND.iter().find(|start| message.starts_with(**start))
        && let Some((what, expected)) = message[start.len()..].rsplit_once(", expected ")
    {
        let what = what.split(['"', '`']).next().unwrap_or_default();
        let what: String = what.chars().take_while(|c| c.is_ascii_alphabetic() || *c == ' ').collect();
        let gap = if what.trim().is_empty() { "" } else { " " };
        return format!("{}{gap}{}, expected {}", start.trim_end(), what.trim(), plainly(expected));
    }
    "not in the expected form".to_owned()
}

/// What people call the types of this program.
fn plainly(expected: &str) -> &str {
    let end = expected.find(" at line ").unwrap_or(expected.len());
    match &expected[..end] {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        text if text.starts_with("struct ") => "a map of fields",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stay_out_of_messages() {
        let cases = [
            (
                r#"invalid type: string "s3cret-marker", expected u32"#,
                "invalid type: string, expected a whole number of 0 or more",
            ),
            ("invalid type: integer `12345678`, expected a string", "invalid type: integer, expected a string"),
            ("unknown variant `s3cret`, expected `a` or `b`", "unknown variant, expected `a` or `b`"),
            (
                r#"invalid type: string "a, expected b", expected u32"#,
                "invalid type: string, expected a whole number of 0 or more",
            ),
            (
                "invalid type: null, expected struct Share at line 1 column 3",
                "invalid type: null, expected a map of fields",
            ),
            ("missing field `spec`", "missing field `spec`"),
            ("failed to parse s3cret as a date", "not in the expected form"),
        ];
        for (message, expected) in cases {
            assert_eq!(without_value(message), expected);
        }
    }

    #[test]
    fn an_answer_names_the_place() {
        let error = from_bytes::<ConfigMap>(br#"{"data": {"a": 3}}"#).unwrap_err();
        assert_eq!(error, "data.a: invalid type: integer, expected a string");
    }

    #[test]
    fn a_type_that_names_the_place_itself_is_not_told_twice() {
        #[derive(Debug)]
        struct Odd;
        impl<'de> Deserialize<'de> for Odd {
            fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
                Err(serde::de::Error::custom(r#"a[0]: invalid type: string "s3cret", expected u32"#))
            }
        }
        #[derive(Debug, Deserialize)]
        struct Whole {
            #[serde(rename = "a")]
            _a: Vec<Odd>,
            #[serde(rename = "b")]
            _b: u8,
        }
        let error = from_bytes::<Whole>(br#"{"a": [1], "b": 2}"#).unwrap_err();
        assert_eq!(error, "a[0]: invalid type: string, expected a whole number of 0 or more");
        let error = from_bytes::<Whole>(br#"{"a": []}"#).unwrap_err();
        assert_eq!(error, "b: is required");
    }

    #[test]
    fn a_bad_object_keeps_its_identity() {
        let bad: Guarded<Pod> = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "managedFields": [{}]},
            "spec": {"containers": "s3cret-marker"},
        }))
        .unwrap();
        assert_eq!(bad.meta().name.as_deref(), Some("p"));
        assert_eq!(bad.meta().resource_version.as_deref(), Some("7"));
        let Guarded::Broken { error, .. } = bad else { panic!("decoded") };
        assert!(error.starts_with("spec.containers: invalid type: string, expected"), "{error}");
        assert!(!error.contains("s3cret"));
    }

    #[test]
    fn even_broken_metadata_is_no_failure() {
        let bad: Guarded<ConfigMap> = serde_json::from_value(json!({"metadata": {"name": "p", "labels": 3}})).unwrap();
        assert_eq!(bad.meta().name.as_deref(), Some("p"));
        assert!(matches!(bad, Guarded::Broken { .. }));
    }

    #[test]
    fn metadata_alone_keeps_what_is_compared() {
        let whole = json!({
            "apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]},
            "metadata": {
                "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 2,
                "labels": {"a": "b"}, "annotations": null, "managedFields": [{"manager": "m"}],
                "ownerReferences": [{"apiVersion": "x/v1", "kind": "K", "name": "o", "uid": "w"}],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
        });
        let Slim(meta) = from_bytes(whole.to_string().as_bytes()).unwrap();
        let mut all: ObjectMeta = serde_json::from_value(whole["metadata"].clone()).unwrap();
        all.managed_fields = None;
        assert_eq!(meta, all);
    }

    #[test]
    fn odd_objects_are_broken_not_fatal() {
        for (text, kept) in [
            (r#"{"metadata": "x"}"#, None),
            (r#"{"metadata": [1, {"a": -2}, 0.5, null]}"#, None),
            (r#"{"metadata": {"name": "p"}, "data": {"managedFields": 3}}"#, Some("p")),
            ("[]", None),
        ] {
            let bad: Guarded<ConfigMap> = serde_json::from_str(text).unwrap();
            assert!(matches!(bad, Guarded::Broken { .. }), "{text}");
            assert_eq!(bad.meta().name.as_deref(), kept);
        }
        let null: Guarded<ConfigMap> = serde_json::from_str(r#"{"metadata": null}"#).unwrap();
        assert_eq!(null.meta().name, None);
    }

    #[test]
    fn managed_fields_are_dropped() {
        let good: Guarded<ConfigMap> = serde_json::from_value(json!({
            "metadata": {"name": "p", "managedFields": [{"manager": "m"}], "annotations": {"a": "b"}},
        }))
        .unwrap();
        let Guarded::Object(object) = good else { panic!("broken") };
        assert_eq!(object.metadata.managed_fields, None);
        assert!(object.metadata.annotations.is_some());
    }
}
