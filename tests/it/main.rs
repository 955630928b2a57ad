//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod arc_04_labels_and_owner;
mod b14_foreign_routes;
mod calls_of_a_new_site;
mod lab_selftest;
mod life_01_objects_are_created_in_order;
mod life_02_what_triggers_work;
mod life_03_a_change_restarts_once;
mod life_04_archived_sites;
mod life_05_deletion_cascades;
mod life_05_life_08_two_hundred_sites;
mod life_06_upgrade;
mod life_07_route_conflicts;
mod life_08_operator_restart;
mod render_nginx;
