//! The pod's inner contract: ports, paths and well-known names that several objects must agree on.
//!
//! Owns constants only. A change here must work with pods of the previous release: their template
//! stays while the files `ConfigMap` is already new.

use crate::domain::application::Builtin;

/// Port of an application that listens. Loopback, but for the front door and the custom application.
#[must_use]
pub fn port(builtin: Builtin) -> i32 {
    // Every port fits; an application that listens nowhere is never asked.
    builtin.port().map_or(0, i32::from)
}

/// Where the content volume is mounted, in every container that has it.
pub const CONTENT_DIR: &str = "/data";
/// Where the files `ConfigMap` is mounted.
pub const CONFIG_DIR: &str = "/etc/site";
/// nginx's pid file and temporary files.
pub const NGINX_TMP: &str = "/tmp/nginx";
/// Key and file name of the access lists: a file, because one environment variable ends at 128 KiB.
pub const ACCESS_FILE: &str = "access.json";
/// Where archived sites lead, at the Hub.
pub const GONE_PATH: &str = "/hub/error/page/410/";
