//! Fuzz target: see `judges::nginx_rendering`.
#![no_main]

#[path = "../judges.rs"]
#[allow(dead_code)]
mod judges;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judges::nginx_rendering(data));
