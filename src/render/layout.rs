//! The pod's inner contract: ports, paths and well-known names that several objects must agree on.
//!
//! Owns constants only. A change here must work with pods of the previous release: their template
//! stays while the files `ConfigMap` is already new.

/// nginx, the front door; the only port of the Service.
pub const FRONT_PORT: i32 = 4180;
/// nginx's second server: probes only, because the kubelet cannot reach loopback.
pub const PROBE_PORT: i32 = 8081;
/// oauth2-proxy, on loopback.
pub const IDENTITY_PORT: i32 = 4181;
/// site-api, on loopback.
pub const API_PORT: i32 = 10000;
/// site-admin, on loopback.
pub const ADMIN_PORT: i32 = 9000;
/// site-webdav, on loopback.
pub const WEBDAV_PORT: i32 = 7000;
/// site-s3, on loopback.
pub const S3_PORT: i32 = 6000;
/// The custom application. The kubelet probes it, so it listens on all addresses.
pub const CUSTOM_PORT: i32 = 8000;

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

/// Pod annotation: the pods whose state the operator reports.
pub const OPERATOR_BOUND: &str = "sites.ecmwf.int/operator_bound";
/// Pod annotation: what the restart time stands for.
pub const STAMPED_FOR: &str = "sites.ecmwf.int/stamped-for";
/// Pod annotation of `kubectl rollout restart`.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
