//! Showing that an operator does nothing: counts in the audit log, taken after it has done something else.

use std::collections::BTreeSet;

use serde_json::json;

use super::api::name_of;
use super::audit::{Calls, Mark};
use super::world::World;

/// What the operators of a world asked about a Site since `mark`, Leases, lists and watches left out.
///
/// A Site of another id is created first and awaited: then the operator leads, knows every object and has looked at
/// each, so that what it has not done by then it does not do.
pub async fn calls_about(world: &World, mark: Mark, id: &str) -> Calls {
    let mut names: BTreeSet<String> =
        world.objects_of(id).await.iter().map(|object| name_of(object).to_owned()).collect();
    names.insert(id.to_owned());
    let canary = format!("canary-{}", &uuid::Uuid::new_v4().simple().to_string()[..6]);
    world.site(&canary, json!({})).await;
    world.wait_ready(&canary).await;
    world.wait_phase(&canary, "Running").await;
    world.calls(mark).of_passes().filter(|call| names.contains(&call.name))
}

/// Fails unless the operators of a world have left a Site and its objects alone since `mark`.
pub async fn assert_left_alone(world: &World, mark: Mark, id: &str) {
    let calls = calls_about(world, mark, id).await;
    assert_eq!(calls.count(), 0, "{id} was not left alone:\n{}", calls.describe());
}
