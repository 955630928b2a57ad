//! The platform as its administrators see and steer it.
//!
//! | module | owns |
//! |---|---|
//! | [`state`] | the read-only switch |
//! | [`volumes`] | volumes that deleted Sites have left |
//! | [`quota`] | what the namespace may use |

pub mod quota;
pub mod state;
pub mod volumes;

pub use state::Switch;
