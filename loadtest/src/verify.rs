//! The convergence audit: reads every object from the API server and compares its content with a fresh render.
//!
//! It is the same for the operator and for the comparators, and it does not believe a status. What counts of an
//! object are the fields that rendering sets (the server adds defaults); maps of data must be exact.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sites::domain::labels;
use sites::domain::site::Site;

use crate::bare::rendered;
use crate::ground::{Ground, NAMESPACE};

/// Mistakes that a message names.
const NAMED: usize = 5;

/// The audit's verdict.
#[derive(Debug)]
pub struct Verdict {
    /// Objects that were compared.
    pub objects: usize,
    /// Hash over all contents, uids and restart times left out: equal for all who made the same.
    pub content: String,
}

/// Compares all objects of the Sites; fails if one is missing, different or too many.
pub async fn verify(ground: &Ground, sites: &[Site]) -> Result<Verdict> {
    let mut live: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut kinds = Vec::new();
    let first = sites.first().context("no Site to compare")?;
    for object in rendered(ground, first, "")?.all() {
        if !kinds.contains(&object.kind) {
            kinds.push(object.kind.clone());
        }
    }
    for kind in &kinds {
        for object in ground.admin.list(&kind.path(Some(NAMESPACE))).await? {
            if object["metadata"]["labels"][labels::ID].is_string() {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                live.insert((kind.plural.to_string(), name), object);
            }
        }
    }
    let mut wrong = Vec::new();
    let mut hashes = Vec::new();
    for site in sites {
        let set = live.get(&("statefulsets".to_owned(), site.spec.id.clone()));
        let annotation = set.map(|set| &set["spec"]["template"]["metadata"]["annotations"][labels::RESTARTED_AT]);
        let restarted_at = annotation.and_then(Value::as_str).unwrap_or_default().to_owned();
        for object in rendered(ground, site, &restarted_at)?.all() {
            let key = (object.kind.plural.to_string(), object.key.name.clone());
            let Some(mut there) = live.remove(&key) else {
                wrong.push(format!("{}/{} is missing", key.0, key.1));
                continue;
            };
            let exact = matches!(&*object.kind.plural, "secrets" | "configmaps");
            // The items of a list do not say what they are.
            for name in ["apiVersion", "kind"] {
                there[name] = object.body[name].clone();
            }
            let mut found = projected(&there, &object.body);
            if exact {
                found["data"] = there["data"].clone();
            }
            if found != object.body {
                wrong.push(format!("{}/{} has another content", key.0, key.1));
            }
            hashes.push(content_hash(&key, &found, site, &restarted_at));
        }
    }
    wrong.extend(live.keys().map(|(kind, name)| format!("{kind}/{name} is too many")));
    ensure!(wrong.is_empty(), "{} objects are not as they should be: {}", wrong.len(), {
        wrong[..wrong.len().min(NAMED)].join(", ")
    });
    hashes.sort();
    Ok(Verdict { objects: hashes.len(), content: hex(&hashes.concat()) })
}

/// The part of `live` that `wanted` speaks of.
fn projected(live: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            let fields = wanted.iter().filter_map(|(name, wanted)| {
                let value = live.get(name)?;
                Some((name.clone(), projected(value, wanted)))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            Value::Array(live.iter().zip(wanted).map(|(live, wanted)| projected(live, wanted)).collect())
        }
        (live, _) => live.clone(),
    }
}

fn content_hash(key: &(String, String), content: &Value, site: &Site, restarted_at: &str) -> String {
    let uid = site.metadata.uid.as_deref().unwrap_or_default();
    let mut text = content.to_string().replace(uid, "<uid>");
    if !restarted_at.is_empty() {
        text = text.replace(restarted_at, "<time>");
    }
    hex(&format!("{}/{} {text}", key.0, key.1))
}

fn hex(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{first:016x}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_server_adds_is_left_out_and_what_differs_is_kept() {
        let wanted = json!({"spec": {"ports": [{"port": 1}], "type": "ClusterIP"}});
        let live = json!({"spec": {"ports": [{"port": 1, "protocol": "TCP"}], "type": "ClusterIP", "ip": "x"}});
        assert_eq!(projected(&live, &wanted), wanted);
        for other in [
            json!({"spec": {"ports": [{"port": 2}], "type": "ClusterIP"}}),
            json!({"spec": {"ports": [{"port": 1}, {"port": 3}], "type": "ClusterIP"}}),
            json!({"spec": {"ports": [{"port": 1}]}}),
        ] {
            assert_ne!(projected(&other, &wanted), wanted);
        }
    }
}
