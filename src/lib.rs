//! Sites: websites as a service on Kubernetes.

pub mod domain;
pub mod render;
pub mod settings;
