//! Records the versions of the packages that the binary is built from, for the start line at debug level.

use std::fs;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    let mut packages = Vec::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(text) = line.strip_prefix("name = ") {
            name = text.trim_matches('"');
        } else if let Some(version) = line.strip_prefix("version = ") {
            if !name.is_empty() {
                packages.push(format!("{name} {}", version.trim_matches('"')));
            }
            name = "";
        }
    }
    println!("cargo::rustc-env=SITES_PACKAGES={}", packages.join(", "));
}
