//! The project's own tools as a library: what `cargo xtask` runs and what the tests use to get a control plane.
//! Nothing here is part of the product, and the product must not depend on it.

pub mod cluster;
pub mod paths;
pub mod process;
pub mod progress;
