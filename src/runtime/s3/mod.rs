//! `sites runtime s3`: the content as one bucket, `content`, for S3 clients, on loopback.
//!
//! Protocol and signatures are s3s's, in two steps: clients sign the public path, below which the bucket is not the
//! first name. So the first step only checks the signature of the request as it came (`gate`); what it lets through
//! is put to the second without the prefix and the signature (`store`), with who asks. What may be asked is decided
//! in [`super::access`], files are [`super::content`]'s. No cookie and no other credential counts here.

#[macro_use]
mod fields;

mod chunks;
mod conditions;
mod copy;
mod door;
mod failure;
mod gate;
mod listing;
mod multipart;
mod objects;
mod receive;
mod store;

use std::sync::Arc;

use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};

use super::access::Access;
use super::config::{self, SiteConfig};
use super::content::Content;
use super::serve::serve;
use crate::telemetry::logging;

/// The one bucket.
const BUCKET: &str = "content";
/// Most bytes of a request in XML: the parts of the largest upload with all their checksums.
const MAX_XML: usize = 4 << 20;

/// Serves until it is told to stop.
pub async fn run() -> anyhow::Result<()> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = SiteConfig::load(&environment)?;
    let address = config::listen(&environment, "SITE_S3_LISTEN")?;
    logging::init(&config.log)?;
    let content = Arc::new(Content::open(&config.content_dir, config.quota)?);
    let access = Arc::new(Access::open(&config, &content)?);
    let door = door::Door::new(content.clone(), service(content, access, &config.prefix), config.prefix);
    serve(address, "s3", move |request| door.clone().answer(request), door::broken).await
}

/// Both steps.
fn service(content: Arc<Content>, access: Arc<Access>, prefix: &str) -> S3Service {
    let mut limits = S3Config::default();
    limits.xml_max_body_size = MAX_XML;
    let limits = Arc::new(StaticConfigProvider::new(Arc::new(limits)));
    let mut inner = S3ServiceBuilder::new(store::Store { content });
    inner.set_config(limits.clone());
    inner.set_auth(gate::Nobody);
    inner.set_access(gate::Decider(access.clone()));
    let mut outer = S3ServiceBuilder::new(gate::Unreachable);
    outer.set_config(limits);
    outer.set_validation(gate::AnyName);
    outer.set_auth(gate::Keys(access.clone()));
    outer.set_route(gate::Verified { access, inner: inner.build(), prefix: prefix.to_owned() });
    outer.build()
}
