//! Whether a Site's objects are what a fresh rendering of it gives, and its status is true.

use serde_json::Value;
use sites::domain::change;
use sites::domain::labels::RESTARTED_AT;
use sites::domain::site::Site;
use sites::render::quantity::Amount;
use sites::render::{Desired, Observed, Restart, Route, render};
use sites::settings::Settings;

use super::oracle::{Truth, truth};
use crate::support::World;
use crate::support::api::{condition, kind_of, name_of};
use crate::support::belongings::{LABELS, owner_reference_to};

/// Says what is not yet as it should be with a Site.
pub async fn judge(world: &World, settings: &Settings, live: &Value) -> Result<(), String> {
    compare(settings, live, world.objects_of(name_of(live)).await)
}

/// As [`judge`], of a Site and everything that carries its label.
pub fn compare(settings: &Settings, live: &Value, mut found: Vec<Value>) -> Result<(), String> {
    let id = name_of(live);
    let status = &live["status"];
    let ready = condition(live, "Ready").unwrap_or(&Value::Null);
    if ready["status"] != "True" || status["observedGeneration"] != live["metadata"]["generation"] {
        return Err(format!("{id} is not Ready for its generation: {live}"));
    }
    let site: Site = serde_json::from_value(live.clone()).map_err(|error| format!("{id}: {error}"))?;
    let trigger = change::trigger(&site);
    let handled = &status["handled"];
    if handled["digest"] != trigger.digest.as_str()
        || handled["upgrade_request"].as_str() != trigger.upgrade_request.as_deref()
    {
        return Err(format!("{id} has something that is not handled: {trigger:?}, {handled}"));
    }
    let pods: Vec<Value> = found.extract_if(.., |object| kind_of(object) == "Pod").collect();
    found.retain(|object| kind_of(object) != "PersistentVolume");
    let set = found.iter().find(|object| kind_of(object) == "StatefulSet" && name_of(object) == id);
    let set = set.ok_or_else(|| format!("{id} has no StatefulSet with its label"))?;
    let restarted_at = &set["spec"]["template"]["metadata"]["annotations"][RESTARTED_AT];
    let restart = Restart {
        restarted_at: restarted_at.as_str().unwrap_or_default().to_owned(),
        stamped_for: change::stamp(&trigger),
    };
    let namespace = live["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let observed = Observed { namespace, restart, ..Observed::default() };
    let desired = render(&site, settings, &observed).map_err(|error| format!("{id}: {error}"))?;

    for (kind, wanted) in wanted(desired) {
        let name = name_of(&wanted).to_owned();
        let place = found.iter().position(|object| kind_of(object) == kind && name_of(object) == name);
        let object = found.swap_remove(place.ok_or_else(|| format!("there is no {kind} {name} with its label"))?);
        equal(kind, &wanted, &object, live).map_err(|reason| format!("{kind} {name}: {reason}"))?;
    }
    if let Some(object) = found.first() {
        return Err(format!("{id} has {} {}, which nobody renders", kind_of(object), name_of(object)));
    }
    let (told, is) = (Truth::told(status), truth(live, &pods));
    if told == is { Ok(()) } else { Err(format!("{id} tells {told:?}, and its pods {is:?}")) }
}

/// Every rendered object with its kind. An object that is added to the rendering does not compile until it is here.
pub fn wanted(desired: Desired) -> Vec<(&'static str, Value)> {
    let Desired { secret, oauth2_secret, environment, files, claim, stateful_set, service, route } = desired;
    let mut all = vec![
        ("Secret", serde_json::to_value(secret)),
        ("Secret", serde_json::to_value(oauth2_secret)),
        ("ConfigMap", serde_json::to_value(environment)),
        ("ConfigMap", serde_json::to_value(files)),
        ("PersistentVolumeClaim", serde_json::to_value(claim)),
        ("StatefulSet", serde_json::to_value(stateful_set)),
        ("Service", serde_json::to_value(service)),
    ];
    match route {
        Some(Route::Ingress(ingress)) => all.push(("Ingress", serde_json::to_value(ingress))),
        Some(Route::Http(_)) => panic!("the matrix runs in ingress mode"),
        None => {}
    }
    all.into_iter().map(|(kind, value)| (kind, value.unwrap())).collect()
}

/// Rendered fields must stand in the live object, data maps must be exactly those.
fn equal(kind: &str, wanted: &Value, live: &Value, site: &Value) -> Result<(), String> {
    owner_reference_to(live, site)?;
    if !live["metadata"]["deletionTimestamp"].is_null() {
        return Err("it is being deleted".into());
    }
    for label in LABELS {
        if live["metadata"]["labels"][label] != wanted["metadata"]["labels"][label] {
            return Err(format!("label {label} is {}", live["metadata"]["labels"][label]));
        }
    }
    within("annotations", &wanted["metadata"]["annotations"], &live["metadata"]["annotations"])?;
    match kind {
        "Secret" | "ConfigMap" if wanted["data"] == live["data"] => Ok(()),
        "Secret" | "ConfigMap" => {
            let keys = |object: &Value| object["data"].as_object().map(|data| data.keys().cloned().collect::<Vec<_>>());
            Err(format!("data differ; keys {:?} and {:?}", keys(wanted), keys(live)))
        }
        // A claim never shrinks and keeps what its volume has; it must be there and bound.
        "PersistentVolumeClaim" if live["status"]["phase"] == "Bound" => Ok(()),
        "PersistentVolumeClaim" => Err(format!("it is not bound: {}", live["status"])),
        _ => within("spec", &wanted["spec"], &live["spec"]),
    }
}

/// Whether everything that `part` says stands in `whole`; the path of the first that does not.
fn within(path: &str, part: &Value, whole: &Value) -> Result<(), String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(_) | Value::Null) => {
            part.iter().try_for_each(|(key, part)| within(&format!("{path}.{key}"), part, &whole[key]))
        }
        (Value::Array(part), Value::Null) if part.is_empty() => Ok(()),
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => {
            let pairs = part.iter().zip(whole).enumerate();
            pairs.into_iter().try_for_each(|(place, (part, whole))| within(&format!("{path}[{place}]"), part, whole))
        }
        // What is not rendered may be anything.
        (Value::Null, _) | (Value::Bool(false), Value::Null) => Ok(()),
        // The server writes a quantity in its own form.
        (Value::String(a), Value::String(b)) if a == b || same_amount(a, b) => Ok(()),
        (part, whole) if part == whole => Ok(()),
        (part, whole) => Err(format!("{path} is {whole}, rendered {part}")),
    }
}

fn same_amount(a: &str, b: &str) -> bool {
    matches!((Amount::parse(a), Amount::parse(b)), (Some(a), Some(b)) if a == b)
}
