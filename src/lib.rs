//! Sites: websites as a service on Kubernetes.

pub mod cache;
pub mod cluster;
pub mod domain;
pub mod render;
pub mod settings;
pub mod telemetry;
