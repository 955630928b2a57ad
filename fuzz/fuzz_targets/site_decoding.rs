//! Fuzz target: see `judges::site_decoding`.
#![no_main]

#[path = "../judges.rs"]
#[allow(dead_code)]
mod judges;

libfuzzer_sys::fuzz_target!(|data: &[u8]| judges::site_decoding(data));
