//! What the program says about itself: log lines, metrics, and the masking of secrets in both.
//!
//! A leaf: it knows no other room, and no Site appears as a label.

pub mod logging;
pub mod masking;
mod metrics;

pub use metrics::{Metrics, MetricsError};
