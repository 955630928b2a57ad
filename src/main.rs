//! Sites.
fn main() {}
