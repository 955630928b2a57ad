//! What a Site is. No tokio, no client, no clock reads: time and randomness come in as arguments.

pub mod application;
pub mod change;
pub mod changed_paths;
pub mod child;
pub mod conditions;
pub mod crd;
pub mod forms;
pub mod labels;
pub mod mask;
pub mod names;
pub mod people;
pub mod pod_health;
pub mod route_owner;
pub mod rules;
pub mod site;
pub mod upgrade;
