//! The way to the Kubernetes API server: calls, watches, the Lease, discovery and Events.
//!
//! The only room that may name `kube::Client` or `Api`, and a generic one: it knows nothing of Sites and
//! decides nothing about retries. `transport` is the road of every request (rate limit, Retry-After gate,
//! leadership gate, token, timeout, metric); `calls` turns it into typed and untyped verbs.

mod calls;
mod connect;
mod decode;
mod discovery;
mod error;
mod events;
mod gate;
mod guard;
mod kind;
mod leadership;
mod lease;
mod recovery;
mod reply;
mod request;
mod token;
mod transport;
mod watch;

pub use calls::{Precondition, Propagation};
pub use connect::{Cluster, ClusterOptions, ConnectError};
pub use discovery::{is_served, wait_served};
pub use error::{Call, CallError};
pub use events::{EventKind, Events, Regarding};
pub use kind::{ApiObject, Kind};
pub use leadership::Leadership;
pub use lease::{Elector, LeaseOptions};
pub use watch::{Metadata, WatchEvent, WatchSpec, watch, watch_metadata};
