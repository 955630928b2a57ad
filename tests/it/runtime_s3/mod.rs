//! The content over S3 as a process: what boto3, rclone and curl do with it, who may what, and that nothing is torn,
//! lost, overrun or led out of the site.

mod clients;
mod keys;
mod rights;
mod writing;

use crate::support::RunningSite;
use crate::support::s3::Key;
use crate::support::site::{Role, Start};

/// A site with its S3 server.
struct World {
    site: RunningSite,
    s3: Role,
}

impl World {
    async fn start() -> Self {
        Self::of(Start::default()).await
    }

    async fn of(start: Start<'_>) -> Self {
        let site_type = start.site_type.to_owned();
        let site = RunningSite::start(start).await;
        let s3 = site.role_as("s3", &site_type).await;
        Self { site, s3 }
    }

    /// A request that is signed with the master token.
    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> crate::support::http::Answer {
        Key::master().send(&self.site, &self.s3, method, &format!("/content/{path}"), &[], body).await
    }

    /// Bytes that the site uses.
    async fn used(&self) -> u64 {
        self.site.get("usage").await.json()["used"].as_u64().unwrap()
    }
}
