//! Typed platform configuration. A leaf: uses no other room.

pub mod duration;
pub mod types;

pub use duration::Period;
pub use types::Settings;
