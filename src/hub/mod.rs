//! The Hub: how people and programs use the platform.
//!
//! Owns everything that answers HTTP for the platform: the API, the login, the pages. It reads and writes Sites
//! through the API server only; what follows from a Site is the operator's work.

mod actor;
mod api;
mod auth;
pub mod caller;
pub mod catalog;
pub mod error;
pub mod etag;
pub mod forms;
pub mod health;
mod limits;
mod notify;
mod pages;
pub mod platform;
mod pod_http;
pub mod reports;
pub mod rights;
pub mod role;
mod router;
pub mod runs;
mod shell;
mod site_api;
pub mod sites;
mod state;
mod templates;
mod trace;

pub use api::document::document as openapi;
