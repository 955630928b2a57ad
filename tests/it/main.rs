//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod lab_selftest;
mod life_01_objects_are_created_in_order;
mod render_nginx;
