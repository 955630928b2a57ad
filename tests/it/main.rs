//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod fuzz_judges;
mod lab_selftest;
mod life_01_objects_are_created_in_order;
mod life_02_what_triggers_work;
mod life_03_a_change_restarts_once;
mod life_04_archived_sites;
mod render_nginx;
mod takeover_adoption;
