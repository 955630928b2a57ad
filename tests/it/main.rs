//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod architecture;
mod b09_rendering_is_deterministic;
mod b12_long_ids;
mod b13_owners;
mod b15_hostile_texts;
mod b23_cookie_secrets;
mod bad_input_host;
mod bad_input_refused;
mod bad_input_settings;
mod bad_input_slipped_through;
mod crd_is_published;
mod lab_selftest;
mod mutation_live;
mod render_nginx;
mod samples_run;
mod takeover_adoption;
mod takeover_later_edit;
mod takeover_volume;
mod takeover_without_record;
