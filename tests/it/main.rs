//! The integration tests: one binary, one control plane, a namespace a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/mod.rs"]
mod support;

mod admin_port;
mod arc_04_labels_and_owner;
mod architecture;
mod b09_rendering_is_deterministic;
mod b12_long_ids;
mod b13_owners;
mod b14_foreign_routes;
mod b15_hostile_texts;
mod b16_true_status;
mod b17_quiet_status;
mod b23_cookie_secrets;
mod bad_input_host;
mod bad_input_refused;
mod bad_input_settings;
mod bad_input_slipped_through;
mod calls_of_a_new_site;
mod crd_is_published;
mod fault_matrix;
mod fuzz_judges;
mod graceful_stop;
mod lab_selftest;
mod leadership;
mod life_01_objects_are_created_in_order;
mod life_02_what_triggers_work;
mod life_03_a_change_restarts_once;
mod life_04_archived_sites;
mod life_05_deletion_cascades;
mod life_05_life_08_two_hundred_sites;
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
mod mutation_live;
mod render_nginx;
mod samples_run;
mod takeover_adoption;
mod takeover_later_edit;
mod takeover_volume;
mod takeover_without_record;
