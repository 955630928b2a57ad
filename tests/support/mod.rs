//! What tests stand on: a real control plane, a world of their own in it, real operator processes, faults on the wire.
//!
//! Objects are JSON here: the support shares no type with the product, so that a wrong type cannot agree with itself.
//!
//! | module | owns |
//! |---|---|
//! | [`lab`] | the control plane of the test process |
//! | [`mail`] | a real mail server |
//! | [`node`] | the real node of the test process, and its edge |
//! | [`world`] | a namespace with an identity for an operator, the Sites in it and what belongs to them |
//! | [`operator`] | one running `sites operator` |
//! | [`tenant`] | the same ground for the example operator |
//! | [`hub`] | one running `sites hub` |
//! | [`openid`] | the real OpenID provider |
//! | [`visitor`] | a person at a browser, and the Hub that they come back through |
//! | [`browser`] | headless Chromium before the edge |
//! | [`proxy`] | faults between an operator and the API server |
//! | [`audit`] | who asked the API server for what |
//! | [`api`] | objects as JSON |
//! | [`wait`] | deadlines with polling; nothing sleeps |
//! | [`redis`] | a Redis server |
//! | [`runs`] | bulk runs as an administrator sees them |
//! | [`http`] | answers, to the byte |
//! | [`schema`] | a served OpenAPI document against its server |
//! | [`identity`] | a stand-in for oauth2-proxy |
//! | [`s3`] | clients of S3 |
//! | [`traversal`] | paths that try to get out of a site's content |
//! | [`site`] | one running `sites runtime api` with a volume of its own |
//! | [`site_client`] | any site as its clients see it, a process or a pod |
//! | [`pods`] | the sites on the real node that many tests use |
//! | [`legacy`] | what the replaced platform leaves |
//! | [`older`] | Sites written before the present definition |
//! | [`stillness`] | that an operator does nothing |
//! | [`belongings`] | what a Site has, and when nothing is left to do for it |

#![allow(dead_code, unused_imports, reason = "a test uses what it needs")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken test ground must fail the test")]
#![allow(missing_docs, reason = "read by the people who write tests, beside the code")]

pub mod api;
pub mod audit;
pub mod belongings;
pub mod browser;
pub mod http;
pub mod hub;
pub mod identity;
pub mod lab;
pub mod legacy;
pub mod mail;
pub mod node;
pub mod older;
pub mod openid;
pub mod operator;
pub mod pods;
pub mod proxy;
pub mod redis;
pub mod runs;
pub mod s3;
pub mod schema;
pub mod site;
pub mod site_client;
pub mod stillness;
pub mod tenant;
pub mod traversal;
pub mod visitor;
pub mod wait;
pub mod world;

pub use audit::{Audit, Calls};
pub use hub::{HUB, HubProcess, Told};
pub use lab::Lab;
pub use legacy::Legacy;
pub use mail::MailServer;
pub use node::{Edge, node_options};
pub use openid::OpenId;
pub use operator::{Operator, Start};
pub use pods::{Pods, with_pods};
pub use proxy::{Act, FaultProxy, Match, Times, Upset};
pub use redis::Redis;
pub use site::{MASTER, RunningSite};
pub use site_client::SiteClient;
pub use stillness::{assert_left_alone, calls_about};
pub use tenant::Tenants;
pub use visitor::Visitor;
pub use wait::{LONG, SOON, eventually};
pub use world::World;
pub use xtask::cluster::Options;
