//! What all actors of the Hub have in common: a name in the metrics, and an end that ends the process.

use futures::FutureExt;
use futures::future::BoxFuture;
use ractor::{Actor, ActorRef, SpawnErr};

use crate::telemetry::Metrics;

/// Ends with an actor, by a panic too, and names it.
pub type Ended = BoxFuture<'static, &'static str>;

/// Starts an actor.
pub async fn started<A: Actor>(
    name: &'static str,
    actor: A,
    arguments: A::Arguments,
    metrics: &Metrics,
) -> Result<(ActorRef<A::Msg>, Ended), SpawnErr> {
    metrics.actors(name);
    let (actor, handle) = Actor::spawn(None, actor, arguments).await?;
    // A panic is an end too.
    Ok((actor, handle.map(move |_| name).boxed()))
}
