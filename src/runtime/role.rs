//! `sites runtime …`: one sub-command for each container of ours in a site's pod.

use super::{admin, api, init, mirror, s3, webdav};

/// A server or step of a site's pod. Each is told what it needs by its environment.
#[derive(clap::Subcommand, Debug)]
pub enum Role {
    /// The Site API.
    Api,
    /// The file manager.
    Admin,
    /// The content over `WebDAV`.
    Webdav,
    /// The content over S3.
    S3,
    /// Make the content volume ready, before the others start.
    Init,
    /// Copy another platform's site into this one, while a migration is on.
    Mirror,
    /// Print the OpenAPI document of the Site API.
    Openapi,
}

/// Runs a role to its end.
pub async fn run(role: Role) -> anyhow::Result<()> {
    match role {
        Role::Api => api::run().await,
        Role::Admin => admin::run().await,
        Role::Webdav => webdav::run().await,
        Role::S3 => s3::run().await,
        Role::Init => init::run(),
        Role::Mirror => mirror::run().await,
        Role::Openapi => {
            print!("{}", api::document());
            Ok(())
        }
    }
}
