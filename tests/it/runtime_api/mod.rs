//! The Site API as a process: what real clients send, who may do what, and that nothing is torn, lost or overrun.

mod access;
mod contract;
mod curl;
mod deletion;
mod links;
mod listing;
mod private_content;
mod process;
mod quota;
mod token_matrix;
mod traversal;
mod trees;
mod uploads;
mod urls;
