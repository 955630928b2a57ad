//! The rendered nginx configuration, judged by the bytes that a real nginx serves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod custom;
mod files;
mod private;
mod servers;
mod world;
