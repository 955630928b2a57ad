//! The list of Sites, in memory and in order: a request costs neither an API call nor a sort.
//!
//! | module | owns |
//! |---|---|
//! | [`index`] | the Sites in every order that a caller may ask for. Pure |
//! | [`query`] | what a caller asks for, and which Sites fit. Pure |
//! | `keeper` | the actor that keeps the index true to the watch |
//! | [`page`] | a part of the answer, and the token that continues it while Sites come and go. Pure |

pub mod index;
mod keeper;
pub mod page;
pub mod query;

pub use keeper::{Catalog, CatalogMessage};
