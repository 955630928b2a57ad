//! What a Site is. No tokio, no client, no clock reads: time and randomness come in as arguments.

pub mod site;
