//! Typed platform configuration. A leaf: uses no other room.

pub mod bulk;
pub mod check;
pub mod derived;
pub mod duration;
pub mod load;
pub mod notifications;
pub mod reference;
pub mod shape;
pub mod types;

pub use check::Violation;
pub use duration::Period;
pub use load::SettingsError;
pub use types::Settings;
