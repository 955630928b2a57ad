//! The project's own tools as a library: what `cargo xtask` runs and what the tests use to get a control plane.
//! Nothing here is part of the product, and the product must not depend on it.

#![allow(clippy::disallowed_methods, reason = "there is no runtime here whose thread a sleep could block")]

pub mod clients;
pub mod cluster;
pub mod paths;
pub mod process;
pub mod progress;
