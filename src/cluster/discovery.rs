//! Which kinds the API server serves: the kinds of the other routing mode may be absent.
//!
//! Owns the question and its repetition. What follows from an absent kind is the caller's decision.

use std::time::Duration;

use serde::Deserialize;

use super::connect::Cluster;
use super::error::{Call, CallError};
use super::kind::Kind;

#[derive(Deserialize)]
struct Served {
    #[serde(default)]
    resources: Vec<ServedKind>,
}

#[derive(Deserialize)]
struct ServedKind {
    name: String,
    kind: String,
}

impl Cluster {
    /// Whether the API server serves `kind` in its version.
    pub async fn serves(&self, kind: &Kind) -> Result<bool, CallError> {
        let call = Call::new("discover", &kind.kind, None, None);
        match self.get::<Served>(&call, &kind.version_path()).await {
            Ok(served) => Ok(served.resources.iter().any(|one| one.name == kind.plural && one.kind == kind.kind)),
            Err(CallError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Pause after a question that got no answer.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether `kind` is served, asking until there is an answer. A kind that nobody may ask for counts as absent.
pub async fn is_served(cluster: &Cluster, kind: &Kind) -> bool {
    let mut said = false;
    loop {
        match cluster.serves(kind).await {
            Ok(served) => return served,
            Err(CallError::Forbidden { .. }) => return false,
            Err(error) if said => tracing::debug!(%kind, %error, "discovery failed"),
            Err(error) => tracing::warn!(%kind, %error, "discovery failed, asking again"),
        }
        said = true;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns once `kind` is served, asking every `period`. One warning says that it is absent.
pub async fn wait_served(cluster: &Cluster, kind: &Kind, period: Duration) {
    let mut said = false;
    loop {
        match cluster.serves(kind).await {
            Ok(true) => return,
            Ok(false) if said => {}
            Ok(false) => tracing::warn!(%kind, "the cluster does not serve this kind, asking again from time to time"),
            Err(error) if said => tracing::debug!(%kind, %error, "discovery failed"),
            Err(error) => tracing::warn!(%kind, %error, "discovery failed, asking again from time to time"),
        }
        said = true;
        tokio::time::sleep(period).await;
    }
}
