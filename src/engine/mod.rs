//! The reusable actor runtime for any custom resource. Knows nothing of Sites.
//!
//! ```text
//! watches ──► registry actor ──► object actor (one per key, for its whole life)
//!                │  slot queue        │  machine: idle ─ queued ─ running ─ waiting
//!                └── permits ────────►│  pass (a task, with a permit) ──► Finished
//!                                     └─ status lane (a task, without a permit) ──► Written
//! ```
//!
//! An operator is one implementation of [`Reconciler`] and the watches that feed it. Pure and tested apart:
//! [`slots`], [`machine`], [`backoff`], [`status_lane`], [`supervision`].

pub mod admin;
pub mod backoff;
pub mod context;
pub mod key;
pub mod machine;
pub mod messages;
pub mod object;
mod object_pass;
mod object_status;
pub mod outstanding;
pub mod plain;
pub mod process;
pub mod reconciler;
pub mod registry;
pub mod rights;
pub mod runtime;
pub mod slots;
pub mod status_lane;
pub mod supervision;
pub mod timer;
mod version;

pub use context::{Context, Options};
pub use key::ObjectKey;
pub use machine::Retry;
pub use messages::{RegistryMessage, SourceEvent};
pub use plain::{Plain, PlainOptions, Reconcile, Reconciled};
pub use process::{ProcessOptions, connect, run};
pub use reconciler::{Broken, Failure, Look, Moment, Pass, Reconciler, Settled};
pub use runtime::{Engine, Feeds};
pub use slots::Class;
pub use version::asks_differently;
