//! The list of Sites, in memory and in order: a request costs neither an API call nor a sort.
//!
//! | module | owns |
//! |---|---|
//! | [`index`] | the Sites in every order that a caller may ask for. Pure |
//! | [`query`] | what a caller asks for, and which Sites fit. Pure |
//! | [`page`] | a part of the answer, and the token that continues it while Sites come and go. Pure |

pub mod index;
pub mod page;
pub mod query;
