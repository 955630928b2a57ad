//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod b01_watches_come_back;
mod b02_one_broken_site;
mod b25_a_cold_cache;
mod b26_two_operators;
mod lab_selftest;
mod proxy_selftest;
mod render_nginx;
mod tenant_finalizer;
mod tenant_leadership;
mod tenant_reconcile;
