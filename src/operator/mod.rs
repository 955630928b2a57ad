//! `Site` on the engine: from a Site to its objects, and from its pods to its status.
//!
//! Pure: [`facts`], [`state`], [`look`], [`merge`], [`volumes`], [`status`]. With calls: [`pass`] and what it
//! uses ([`apply`], [`attach`]). Glue: [`sources`] (watches to facts), [`sites`] (the engine's seam), [`routes`]
//! (the route owner actor), [`role`] (the process). [`rights`] is what all this may do in the cluster.

pub mod apply;
pub mod attach;
pub mod error;
pub mod facts;
pub mod look;
pub mod merge;
pub mod objects;
pub mod pass;
pub mod rights;
pub mod role;
pub mod routes;
pub mod sites;
pub mod sources;
pub mod state;
pub mod status;
pub mod volumes;
