//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod admin_port;
mod arc_04_labels_and_owner;
mod b03_edit_during_an_update;
mod b04_big_sites;
mod b05_taken_names;
mod b06_dead_owners;
mod b07_pods_that_changed;
mod b08_immutable_fields;
mod b10_retained_volumes;
mod b11_late_volume_labels;
mod b14_foreign_routes;
mod b16_true_status;
mod b17_quiet_status;
mod calls_of_a_change;
mod calls_of_a_new_site;
mod fuzz_judges;
mod graceful_stop;
mod hand_edits;
mod lab_selftest;
mod leadership;
mod life_01_objects_are_created_in_order;
mod life_02_what_triggers_work;
mod life_03_a_change_restarts_once;
mod life_04_archived_sites;
mod life_05_deletion_cascades;
mod life_06_upgrade;
mod life_07_route_conflicts;
mod life_08_operator_restart;
mod life_09_upgrade_request;
mod life_10_pod_state;
mod life_11_repair;
mod life_12_owner;
mod life_13_other_mode;
mod life_14_cache;
mod life_15_stuck_pods;
mod logging;
mod new_release;
mod render_nginx;
mod takeover_adoption;
