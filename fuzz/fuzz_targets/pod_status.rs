//! Fuzz target: see `judges::pod_status`.
#![no_main]

#[path = "../judges.rs"]
#[allow(dead_code)]
mod judges;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judges::pod_status(data));
