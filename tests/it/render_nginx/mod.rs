//! The rendered nginx configuration, judged by the bytes that a real nginx serves.

mod custom;
mod files;
mod private;
mod servers;
mod world;
