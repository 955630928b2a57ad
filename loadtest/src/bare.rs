//! The comparator of creation: a client loop that writes the very same bytes and does nothing else.
//!
//! Everything is rendered before the clock starts. A Site's objects are posted one after the other, as they depend on
//! each other, then its status is patched; so many Sites are in flight.

use anyhow::{Context, Result};
use futures::{TryStreamExt, stream};
use serde_json::{Value, json};
use sites::domain::change;
use sites::domain::site::Site;
use sites::operator::objects::{Objects, Rendered};
use sites::render::{Observed, Restart, render};

use crate::ground::{Ground, NAMESPACE};
use crate::population::SITES;
use crate::server::{Prepared, Server};

/// Numbers in flight of which the best counts.
pub const IN_FLIGHT: [usize; 5] = [1, 4, 8, 16, 32];

/// The requests of one Site, in order.
pub type Script = Vec<Prepared>;

/// What a Site's objects are, as the operator would render them at its creation.
pub fn rendered(ground: &Ground, site: &Site, restarted_at: &str) -> Result<Objects> {
    let restart = Restart { restarted_at: restarted_at.to_owned(), stamped_for: change::stamp(&change::trigger(site)) };
    let observed = Observed { namespace: NAMESPACE.to_owned(), restart, ..Observed::default() };
    Ok(Objects::of(render(site, &ground.settings, &observed)?)?)
}

/// The requests that make a Site, and its status.
pub fn script(ground: &Ground, site: &Site) -> Result<Script> {
    let now = jiff::Timestamp::now().round(jiff::Unit::Second)?.to_string();
    let objects = rendered(ground, site, &now)?;
    let mut script: Script = objects.all().map(post).collect();
    let name = site.metadata.name.as_deref().context("a Site without a name")?;
    let body = json!({
        "metadata": {"resourceVersion": site.metadata.resource_version},
        "status": status(site, &objects, &now),
    });
    script.push(Prepared::merge(format!("{SITES}/{name}/status"), &body));
    Ok(script)
}

fn post(rendered: &Rendered) -> Prepared {
    Prepared::post(rendered.kind.path(Some(NAMESPACE)), &rendered.body)
}

/// A status of the form and size that the operator writes.
fn status(site: &Site, objects: &Objects, now: &str) -> Value {
    let children: serde_json::Map<String, Value> = objects
        .all()
        .filter(|rendered| rendered.kind.plural != "persistentvolumeclaims")
        .map(|rendered| (rendered.key.to_string(), json!({"version": "12345", "state": "applied"})))
        .collect();
    let generation = site.metadata.generation;
    json!({
        "phase": "Pending",
        "all_steps_started": false,
        "observedGeneration": generation,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Reconciled", "message": "",
            "observedGeneration": generation, "lastTransitionTime": now,
        }],
        "handled": {
            "digest": change::digest(site),
            "restarted_at": now,
            "children": children,
            "path": format!("/load/{}", site.spec.id),
            "at": now,
        },
    })
}

/// Runs the scripts, so many at a time.
pub async fn run(server: &Server, scripts: Vec<Script>, in_flight: usize) -> Result<()> {
    stream::iter(scripts.into_iter().map(Ok))
        .try_for_each_concurrent(in_flight, |script| async move {
            for request in &script {
                server.send(request).await?;
            }
            Ok(())
        })
        .await
}

/// Scripts for many Sites.
pub fn scripts(ground: &Ground, sites: &[Site]) -> Result<Vec<Script>> {
    sites.iter().map(|site| script(ground, site)).collect()
}
