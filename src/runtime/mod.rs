//! What runs in a site's pod. Uses `domain`, `settings` and `telemetry` only: no Kubernetes client is in a site's pod.
//!
//! | module | owns |
//! |---|---|
//! | [`config`] | what a role is told by its environment |
//! | [`content`] | files below the content root, quota, the site's state |
//! | [`access`] | every decision on who may do what |
//! | [`serve`] | HTTP on loopback, for every role |
//! | [`api`] | the Site API, and nginx's questions |
//! | [`webdav`] | the content over `WebDAV` |
//! | [`s3`] | the content over S3 |
//! | [`admin`] | the file manager |
//! | [`init`] | makes a volume ready |
//! | [`address`] | the fixed part of our addresses |
//! | [`mirror`] | the content of another platform's site, while a migration is on |
//! | [`role`] | the sub-commands |

pub mod access;
pub mod address;
pub mod admin;
pub mod api;
pub mod config;
pub mod content;
pub mod init;
pub mod mirror;
mod rest;
pub mod role;
pub mod s3;
pub mod serve;
pub mod webdav;
