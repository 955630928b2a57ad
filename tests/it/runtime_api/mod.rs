//! The Site API as a process: what real clients send, who may do what, and that nothing is torn, lost or overrun.

mod access;
mod contract;
pub mod curl;
pub mod deletion;
pub mod links;
pub mod listing;
mod private_content;
mod process;
pub mod quota;
pub mod token_matrix;
mod traversal;
pub mod trees;
pub mod uploads;
pub mod urls;
