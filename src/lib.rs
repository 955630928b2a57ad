//! Sites: websites as a service on Kubernetes.
//!
//! ```text
//!            operator ────────────┐        the Site on the engine, and the process
//!        hub    │                 │        the platform's API, login and pages
//!           ╱   │   ╲             │
//!     engine    │    render       cache    actor runtime │ objects of a Site │ Redis
//!        │      │    ╱    ╲
//!     cluster   domain    │                the API server │ what a Site is
//!        │                │
//!     telemetry        settings            leaves: they use no other room
//!          ╲         ╱
//!            runtime                       what runs in a site's pod; also uses domain, never cluster
//! ```
//!
//! Nothing outside `cluster` names a Kubernetes client, nothing outside `engine` and `operator` an actor,
//! nothing outside `cache` Redis; the engine knows nothing of Sites. A test holds the rooms to this.

pub mod cache;
pub mod cluster;
pub mod domain;
pub mod engine;
pub mod hub;
pub mod operator;
pub mod render;
pub mod runtime;
pub mod settings;
pub mod telemetry;
