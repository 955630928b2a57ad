//! Sites on the real node that many tests use, one test after the other: made once per test process, with an operator
//! of their own, and never removed (the node ends with the process, and everything in it). Each test gets its site
//! empty and for itself.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use xtask::cluster::node::image;

use super::lab::Lab;
use super::operator::Operator;
use super::site::MASTER;
use super::site_client::SiteClient;
use super::wait::{LONG, eventually};
use super::world::World;

/// What the sites belong to must outlive the test that asked first: so do its connections, on a runtime of their own.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap());

/// The sites, their world and its operator.
pub struct Pods {
    pub lab: &'static Lab,
    pub world: World,
    pub operator: Operator,
    private: Mutex<SiteClient>,
    public: Mutex<SiteClient>,
    custom: Mutex<SiteClient>,
    reports: Mutex<SiteClient>,
}

/// A site that is one test's until it is dropped.
pub struct Lent(MutexGuard<'static, SiteClient>);

impl Deref for Lent {
    type Target = SiteClient;

    fn deref(&self) -> &SiteClient {
        &self.0
    }
}

/// Runs a test with the sites, or says why it does nothing.
pub fn with_pods(test: &str, body: impl AsyncFnOnce(&'static Pods)) {
    static PODS: OnceCell<Pods> = OnceCell::const_new();
    RUNTIME.block_on(async {
        let Some(lab) = Lab::node(test).await else { return };
        body(PODS.get_or_init(|| Pods::start(lab)).await).await;
    });
}

impl Pods {
    async fn start(lab: &'static Lab) -> Self {
        let mut world = World::on_node(lab, "pods").await;
        world.settings["hub"] = json!({"platform_administrators": {"groups": ["sites-admins"]}});
        let operator = world.start_operator().await;
        let applications = json!([{"name": "site-admin"}, {"name": "site-webdav"}, {"name": "site-s3"}]);
        let share = json!({"administrator_users": ["alice@example.test"], "view_groups": ["weather"]});
        world.pod_site("plans", "private", json!({"applications": applications, "share": share})).await;
        // Data for other people's pages, and room for the biggest files.
        let data = json!({
            "applications": applications, "quota": 6,
            "headers": {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"},
        });
        world.pod_site("pages", "public", data).await;
        let board = json!({
            "applications": [{"name": "site-custom", "image": image("custom-app")}, {"name": "site-webdav"}],
            "headers": {"X-Frame-Options": "SAMEORIGIN", "X-Only-Ours": "1"},
        });
        world.pod_site("board", "public", board).await;
        let share = json!({"administrator_groups": ["docs"]});
        world.pod_site("reports", "public", json!({"applications": [], "share": share})).await;
        Self {
            lab,
            private: world.reached(lab, "plans").await.into(),
            public: world.reached(lab, "pages").await.into(),
            custom: world.reached(lab, "board").await.into(),
            reports: world.reached(lab, "reports").await.into(),
            operator,
            world,
        }
    }

    /// A private Site with 1 Gi, without content.
    pub async fn private(&'static self) -> Lent {
        Self::emptied(&self.private).await
    }

    /// A public Site with 6 Gi that lets pages of other origins read it, without content.
    pub async fn public(&'static self) -> Lent {
        Self::emptied(&self.public).await
    }

    /// A public Site with an application of its own (`tests/cluster/custom-app`).
    pub async fn custom(&'static self) -> Lent {
        Self::emptied(&self.custom).await
    }

    /// A Site that the group `docs` administers: public, until a test changes it.
    pub async fn reports(&'static self) -> Lent {
        Self::emptied(&self.reports).await
    }

    async fn emptied(site: &'static Mutex<SiteClient>) -> Lent {
        let site = site.lock().await;
        let answer = site.delete("files/").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        Lent(site)
    }
}

impl World {
    /// Creates a Site below `/team` with the tests' master token.
    pub async fn pod_site(&self, id: &str, kind: &str, configuration: Value) {
        let mut spec = json!({"type": kind, "configuration": {"space": "team", "tokens": {"master": MASTER}}});
        super::api::merge_into(&mut spec["configuration"], &configuration);
        self.site(id, spec).await;
    }

    /// Waits until the API of a Site's pod answers over the edge.
    pub async fn reached(&self, lab: &'static Lab, id: &str) -> SiteClient {
        self.pod_is_ready(id).await;
        let site = SiteClient::of_pod(lab, &format!("/team/{id}"), self.content_of(lab, id).await);
        eventually(&format!("{id} answers over the edge"), LONG, || async {
            let answer = site.api("GET", "files/").token(MASTER).try_send().await.ok_or("no answer")?;
            if answer.status == 200 { Ok(()) } else { Err(format!("{} {}", answer.status, answer.text())) }
        })
        .await;
        site
    }

    /// Where the content of a Site is, as this machine sees it.
    pub async fn content_of(&self, lab: &Lab, id: &str) -> PathBuf {
        let volume = eventually("the volume is bound", LONG, || self.volume(id)).await;
        let spec = &volume["spec"];
        let path = spec["local"]["path"].as_str().or(spec["hostPath"]["path"].as_str()).expect("a folder of the node");
        // The box has its `/var/lib` in the folder of the cluster.
        lab.dir().join(path.trim_start_matches('/'))
    }
}
