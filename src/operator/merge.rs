//! How a render meets a live object: whether they differ, and what is written if they do. Pure.
//!
//! Compared is what we render: every rendered field must stand in the live object (what others added does not
//! count), data maps and our own annotations must be exactly ours. Written is the render, with what the API
//! server assigned or made immutable carried over, so that a replace is never refused for a field that nobody
//! meant to change.

use serde_json::{Map, Value, json};

use crate::domain::child::ChildKind;
use crate::domain::labels;
use crate::render::quantity::Amount;

/// Annotations with these prefixes are ours alone on the objects that we render: one that is not rendered any
/// more is removed.
pub const OUR_ANNOTATIONS: [&str; 3] = ["nginx.org/", "nginx.com/", "sites.ecmwf.int/"];

/// Fields of a `StatefulSet`'s spec that cannot change after its creation.
const FIXED_IN_STATEFUL_SET: [&str; 4] = ["selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"];

/// Fields of a claim's spec that we render and that cannot change after its creation.
const FIXED_IN_CLAIM: [&str; 3] = ["storageClassName", "accessModes", "volumeMode"];

/// How much of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that is rendered.
    All,
    /// Everything but the pod template.
    AllButTemplate,
    /// Labels and owner references only: of a child that was taken over as it is.
    Meta,
}

/// The object to write instead of `live`, or nothing if `live` equals its render already.
#[must_use]
pub fn replacement(kind: &ChildKind, rendered: &Value, live: &Value, scope: Scope) -> Option<Value> {
    let merged = merged(kind, rendered, live, scope);
    (!equal(kind, &merged, live, scope)).then_some(merged)
}

/// The render laid over the live object.
fn merged(kind: &ChildKind, rendered: &Value, live: &Value, scope: Scope) -> Value {
    let mut object = match scope {
        Scope::Meta => live.clone(),
        Scope::All | Scope::AllButTemplate => with_carried_fields(kind, rendered, live),
    };
    object["metadata"] = metadata(rendered, live, scope);
    if *kind == ChildKind::StatefulSet && scope == Scope::AllButTemplate {
        object["spec"]["template"] = live["spec"]["template"].clone();
    }
    if let Some(fields) = object.as_object_mut() {
        // Status is another resource; the server ignores it here.
        fields.remove("status");
    }
    object
}

fn with_carried_fields(kind: &ChildKind, rendered: &Value, live: &Value) -> Value {
    let mut object = rendered.clone();
    match kind {
        ChildKind::StatefulSet => {
            for field in FIXED_IN_STATEFUL_SET {
                // Absent is a value too: setting what was never set is refused like any other change.
                match (live["spec"].get(field), object["spec"].as_object_mut()) {
                    (Some(value), _) => object["spec"][field] = value.clone(),
                    (None, Some(spec)) => drop(spec.remove(field)),
                    (None, None) => {}
                }
            }
            // Pods must match the selector they were born under: an old selector's labels win.
            let selector = live["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default();
            overlay(&mut object["spec"]["template"]["metadata"]["labels"], selector);
        }
        ChildKind::Service => {
            let mut spec = live["spec"].clone();
            lay_over(&mut spec, &rendered["spec"]);
            // A legacy selector keeps reaching legacy pods; ours is part of every pod's labels.
            object["spec"] = spec;
        }
        ChildKind::PersistentVolumeClaim => {
            // Nothing of a claim's spec can change but its request; the caller decides about that.
            object["spec"] = live["spec"].clone();
        }
        ChildKind::Secret | ChildKind::ConfigMap => {
            for field in ["type", "immutable"] {
                if let Some(value) = live.get(field) {
                    object[field] = value.clone();
                }
            }
        }
        ChildKind::Ingress | ChildKind::HttpRoute | ChildKind::Policy { .. } => {}
    }
    object
}

fn metadata(rendered: &Value, live: &Value, scope: Scope) -> Value {
    let mut meta = live["metadata"].clone();
    overlay(&mut meta["labels"], map_of(&rendered["metadata"]["labels"]));
    if scope != Scope::Meta {
        let kept: Map<String, Value> = map_of(&meta["annotations"])
            .into_iter()
            .filter(|(name, _)| !OUR_ANNOTATIONS.iter().any(|prefix| name.starts_with(prefix)))
            .chain(map_of(&rendered["metadata"]["annotations"]))
            .collect();
        meta["annotations"] = Value::Object(kept);
    }
    meta["ownerReferences"] = rendered["metadata"]["ownerReferences"].clone();
    if let Some(fields) = meta.as_object_mut() {
        fields.remove("managedFields");
        fields.retain(|_, value| !value.is_null() && *value != json!({}));
    }
    meta
}

/// Whether writing `merged` would change nothing that we render.
fn equal(kind: &ChildKind, merged: &Value, live: &Value, scope: Scope) -> bool {
    let meta = ["labels", "annotations", "ownerReferences"]
        .iter()
        .all(|field| same_or_empty(&merged["metadata"][field], &live["metadata"][field]));
    if !meta || scope == Scope::Meta {
        return meta;
    }
    match kind {
        ChildKind::Secret | ChildKind::ConfigMap => {
            ["data", "binaryData", "stringData"].iter().all(|field| same_or_empty(&merged[field], &live[field]))
        }
        ChildKind::StatefulSet => {
            contained(&without_restart_time(&merged["spec"]), &without_restart_time(&live["spec"]))
        }
        _ => contained(&merged["spec"], &live["spec"]),
    }
}

/// `kubectl rollout restart` stays: its time is not compared.
fn without_restart_time(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(annotations) = spec.pointer_mut("/template/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(labels::RESTARTED_AT);
    }
    spec
}

fn same_or_empty(a: &Value, b: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    a == b || (empty(a) && empty(b))
}

/// Whether everything of `part` stands in `whole`: maps may have more keys, lists must have as many entries.
#[must_use]
pub fn contained(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(name, value)| match whole.get(name) {
            Some(other) => contained(value, other),
            None => says_nothing(value),
        }),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(a, b)| contained(a, b))
        }
        (Value::String(a), Value::String(b)) => a == b || same_quantity(a, b),
        (part, whole) => part == whole,
    }
}

/// What the server leaves out of an object: absent, false, or a map or list of nothing.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(map) => map.values().all(says_nothing),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// The server writes quantities in its own form: `1000m` comes back as `1`.
fn same_quantity(a: &str, b: &str) -> bool {
    matches!((Amount::parse(a), Amount::parse(b)), (Some(a), Some(b)) if a == b)
}

/// Fields whose rendered value differs from the live one and that the API server lets nobody change: the live value
/// stays.
#[must_use]
pub fn kept_fields(kind: &ChildKind, rendered: &Value, live: &Value) -> Vec<&'static str> {
    let fixed: &[&'static str] = match kind {
        ChildKind::StatefulSet => &FIXED_IN_STATEFUL_SET,
        ChildKind::PersistentVolumeClaim => &FIXED_IN_CLAIM,
        _ => return Vec::new(),
    };
    let differs = |field: &str| {
        let (wanted, is) = (&rendered["spec"][field], &live["spec"][field]);
        match field {
            "podManagementPolicy" if wanted.is_null() => is != "OrderedReady" && !is.is_null(),
            // A claim is given the cluster's defaults for what it does not say.
            "storageClassName" | "volumeMode" if wanted.is_null() => false,
            _ => !(same_or_empty(wanted, is) || contained(wanted, is) && contained(is, wanted)),
        }
    };
    fixed.iter().copied().filter(|field| differs(field)).collect()
}

/// Whether a quota (Gi) is more than what a claim asks for. A claim never shrinks.
#[must_use]
pub fn request_grows(request: Option<&str>, quota: Option<u32>) -> bool {
    let (Some(request), Some(quota)) = (request, quota) else { return false };
    matches!((Amount::parse(request), Amount::parse(&format!("{quota}Gi"))), (Some(present), Some(wanted)) if present != wanted && present.min(wanted) == present)
}

fn map_of(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Puts entries into a map, which is made if it is absent.
fn overlay(target: &mut Value, entries: Map<String, Value>) {
    if entries.is_empty() {
        return;
    }
    match target {
        Value::Object(map) => map.extend(entries),
        other => *other = Value::Object(entries),
    }
}

/// Lays rendered fields over live ones; lists are replaced as a whole.
fn lay_over(live: &mut Value, rendered: &Value) {
    match (live, rendered) {
        (Value::Object(live), Value::Object(rendered)) => {
            for (name, value) in rendered {
                lay_over(live.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (live, rendered) => *live = rendered.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::needless_pass_by_value)]
    fn replaced(kind: &ChildKind, rendered: Value, live: Value) -> Option<Value> {
        replacement(kind, &rendered, &live, Scope::All)
    }

    #[test]
    fn defaults_of_the_server_are_no_difference() {
        let rendered = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "template": {"spec": {
            "containers": [{"name": "x", "resources": {"limits": {"cpu": "1000m"}}, "readOnly": false}]}}}});
        let live = json!({"metadata": {"labels": {"a": "b"}, "uid": "u"}, "spec": {"replicas": 1, "revisionHistoryLimit": 10,
            "template": {"spec": {"containers": [{"name": "x", "image": "", "resources": {"limits": {"cpu": "1"}}}], "dnsPolicy": "ClusterFirst"}}}});
        assert_eq!(replaced(&ChildKind::StatefulSet, rendered, live), None);
    }

    #[test]
    fn one_key_of_a_data_map_edited_added_or_removed_is_a_difference() {
        let rendered = json!({"metadata": {}, "data": {"a": "1"}});
        for live in [json!({"a": "2"}), json!({"a": "1", "b": "2"}), json!({})] {
            let live = json!({"metadata": {"resourceVersion": "7"}, "data": live});
            let written = replaced(&ChildKind::ConfigMap, rendered.clone(), live).unwrap();
            assert_eq!(written["data"], json!({"a": "1"}));
            assert_eq!(written["metadata"]["resourceVersion"], "7");
        }
    }

    #[test]
    fn fixed_fields_and_an_old_selector_are_carried_over() {
        let rendered = json!({"metadata": {}, "spec": {"serviceName": "a", "selector": {"matchLabels": {"new": "1"}},
            "template": {"metadata": {"labels": {"new": "1"}}}}});
        let live = json!({"metadata": {}, "spec": {"serviceName": "old", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "legacy"}}, "template": {"metadata": {"labels": {"app": "legacy"}}}}});
        let written = replaced(&ChildKind::StatefulSet, rendered, live).unwrap();
        assert_eq!(written["spec"]["serviceName"], "old");
        assert_eq!(written["spec"]["podManagementPolicy"], "Parallel");
        assert_eq!(written["spec"]["template"]["metadata"]["labels"], json!({"new": "1", "app": "legacy"}));
    }

    #[test]
    fn a_fixed_field_that_was_never_set_stays_unset_and_is_named() {
        let rendered = json!({"metadata": {}, "spec": {"serviceName": "a", "selector": {"matchLabels": {"id": "1"}}, "replicas": 2}});
        let live = json!({"metadata": {}, "spec": {"selector": {"matchLabels": {"id": "1"}}, "replicas": 1,
            "podManagementPolicy": "OrderedReady", "volumeClaimTemplates": [{"metadata": {"name": "old"}}]}});
        assert_eq!(
            kept_fields(&ChildKind::StatefulSet, &rendered, &live),
            ["serviceName", "volumeClaimTemplates"],
            "and neither the selector nor the default policy"
        );
        let written = replaced(&ChildKind::StatefulSet, rendered, live).unwrap();
        assert_eq!(written["spec"].get("serviceName"), None);
        assert_eq!(written["spec"]["volumeClaimTemplates"], json!([{"metadata": {"name": "old"}}]));
        let claim = |class: &str| json!({"spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"]}});
        assert_eq!(kept_fields(&ChildKind::PersistentVolumeClaim, &claim("new"), &claim("old")), ["storageClassName"]);
        assert!(kept_fields(&ChildKind::PersistentVolumeClaim, &json!({"spec": {}}), &json!({"spec": {}})).is_empty());
    }

    #[test]
    fn a_service_keeps_its_addresses() {
        let rendered = json!({"metadata": {}, "spec": {"ports": [{"port": 4180}]}});
        let live = json!({"metadata": {}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}});
        let written = replaced(&ChildKind::Service, rendered, live).unwrap();
        assert_eq!(written["spec"], json!({"clusterIP": "10.0.0.1", "ports": [{"port": 4180}]}));
    }

    #[test]
    fn a_restart_by_kubectl_stays() {
        let set = |at: &str| {
            json!({"metadata": {}, "spec": {"template": {"metadata": {"annotations": {
            "kubectl.kubernetes.io/restartedAt": at, "x": "y"}}}}})
        };
        assert_eq!(replaced(&ChildKind::StatefulSet, set("then"), set("now")), None);
    }

    #[test]
    fn our_annotations_that_are_not_rendered_any_more_go_away_others_stay() {
        let rendered = json!({"metadata": {"annotations": {"nginx.org/a": "1"}}, "spec": {}});
        let live = json!({"metadata": {"annotations": {"nginx.org/a": "1", "nginx.org/location-snippets": "return 302 x;", "other": "2"}}, "spec": {}});
        let written = replaced(&ChildKind::Ingress, rendered, live).unwrap();
        assert_eq!(written["metadata"]["annotations"], json!({"nginx.org/a": "1", "other": "2"}));
    }

    #[test]
    fn owner_references_are_cleared_and_ours_appended() {
        let rendered = json!({"metadata": {"ownerReferences": [{"uid": "new"}]}, "data": {}});
        let live = json!({"metadata": {"ownerReferences": [{"uid": "old"}, {"uid": "new"}]}, "data": {}});
        let written = replaced(&ChildKind::Secret, rendered, live).unwrap();
        assert_eq!(written["metadata"]["ownerReferences"], json!([{"uid": "new"}]));
    }

    #[test]
    fn a_claim_never_shrinks() {
        assert!(request_grows(Some("1Gi"), Some(2)));
        assert!(!request_grows(Some("2Gi"), Some(2)));
        assert!(!request_grows(Some("2048Mi"), Some(2)));
        assert!(!request_grows(Some("3Gi"), Some(2)));
        assert!(!request_grows(None, Some(2)));
    }
}
