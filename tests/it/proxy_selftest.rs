//! The fault proxy makes each of its faults, on the request that it is told and no other.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::{AsyncBufReadExt, StreamExt};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;
use serde_json::{Value, json};

use crate::support::api::{ApiServer, name_of};
use crate::support::{Act, FaultProxy, Lab, Match, SOON, Times, Upset, World, eventually};

/// A world whose account may edit, a proxy, and the way through it.
struct Ground {
    world: World,
    proxy: FaultProxy,
    through: ApiServer,
    client: kube::Client,
}

impl Ground {
    async fn new(name: &str) -> Self {
        let lab = Lab::get().await;
        let world = World::bare(lab, name).await;
        let rights = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "edit"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": "sites", "namespace": world.namespace}],
        });
        world.api.create(&world.namespace, &rights).await.unwrap();
        let proxy = FaultProxy::start(lab).await;
        let client = crate::support::lab::client(&proxy.kubeconfig(&world).await).await;
        let through = ApiServer::new(client.clone());
        let ground = Self { world, proxy, through, client };
        eventually("the rights are in force", SOON, || async { ground.list("").await }).await;
        ground
    }

    async fn list(&self, query: &str) -> Result<Value, kube::Error> {
        let path = format!("/api/v1/namespaces/{}/configmaps?{query}", self.world.namespace);
        self.through.send("GET", &path, "application/json", &Value::Null).await
    }

    async fn map(&self, name: &str) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        self.world.api.create(&self.world.namespace, &map).await.unwrap();
    }

    /// The events of a watch until it ends; an error of the connection is the last.
    async fn watch(&self) -> impl futures::Stream<Item = Result<Value, std::io::Error>> + use<> {
        let path = format!("/api/v1/namespaces/{}/configmaps?watch=true", self.world.namespace);
        let request = Request::get(path).body(Vec::new()).unwrap();
        let lines = self.client.request_stream(request).await.expect("a watch").lines();
        lines.map(|line| line.map(|line| serde_json::from_str(&line).unwrap()))
    }
}

fn code(result: Result<Value, kube::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("no answer of HTTP: {error}"),
    }
}

fn names(list: &Value) -> Vec<&str> {
    let all = list["items"].as_array().unwrap().iter().map(name_of);
    all.filter(|name| *name != "kube-root-ca.crt").collect()
}

fn was_reset(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionReset) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[tokio::test]
async fn proxy_answers_any_status_by_verb_kind_name_and_count() {
    let ground = Ground::new("proxy-status").await;
    let (proxy, through) = (&ground.proxy, &ground.through);
    let send = raw(&proxy.kubeconfig(&ground.world).await).await;
    let path = format!("/api/v1/namespaces/{}/configmaps", ground.world.namespace);
    let asked = async || send(&path).await.unwrap().status().as_u16();
    for status in [401, 403, 409, 410, 429, 500, 503] {
        let rule = proxy.fault(Match::on("list", "configmaps"), Act::status(status), Times::Count(2));
        assert_eq!(asked().await, status);
        assert!(through.list("Secret", &ground.world.namespace, "").await.is_empty(), "another kind passes");
        assert!(through.get("ConfigMap", &ground.world.namespace, "none").await.is_none(), "another verb passes");
        assert_eq!(asked().await, status);
        assert_eq!(asked().await, 200, "the third passes");
        assert_eq!(proxy.hits(rule), 2);
    }
    proxy.fault(Match::on("get", "configmaps").named("a"), Act::status(500), Times::Always);
    assert!(through.get("ConfigMap", &ground.world.namespace, "b").await.is_none(), "another name passes");
    let path = format!("/api/v1/namespaces/{}/configmaps/a", ground.world.namespace);
    assert_eq!(code(through.send("GET", &path, "application/json", &Value::Null).await), 500);
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_says_when_to_come_again() {
    let ground = Ground::new("proxy-retry-after").await;
    ground.proxy.fault(Match::on("list", "configmaps"), Act::status(429).retry_after(7), Times::Count(1));
    let send = raw(&ground.proxy.kubeconfig(&ground.world).await).await;
    let answer = send(&format!("/api/v1/namespaces/{}/configmaps", ground.world.namespace)).await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    let body: Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((&body["kind"], &body["details"]["retryAfterSeconds"]), (&json!("Status"), &json!(7)));
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_refuses_a_token_until_another_one_comes() {
    let ground = Ground::new("proxy-token").await;
    let used = ground.proxy.seen("list", "configmaps").last().unwrap().asked.bearer.clone();
    ground.proxy.fault(Match::all().bearing(&used), Act::status(401), Times::Always);
    assert_eq!(code(ground.list("").await), 401);
    let (kubeconfig, file) = ground.proxy.kubeconfig_with_token_file(&ground.world).await;
    assert_ne!(std::fs::read_to_string(file).unwrap(), used);
    let newer = ApiServer::new(crate::support::lab::client(&kubeconfig).await);
    assert!(newer.get("ConfigMap", &ground.world.namespace, "none").await.is_none());
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_expires_versions_in_three_forms() {
    let ground = Ground::new("proxy-expired").await;
    ground.proxy.fault(Match::on("watch", "configmaps"), Act::status(410), Times::Count(1));
    let path = format!("/api/v1/namespaces/{}/configmaps?watch=true", ground.world.namespace);
    assert_eq!(code(ground.through.send("GET", &path, "application/json", &Value::Null).await), 410);

    ground.proxy.fault(Match::on("watch", "configmaps"), Act::WatchError(410), Times::Count(1));
    let events: Vec<_> = ground.watch().await.collect().await;
    let [Ok(event)] = &events[..] else { panic!("one event and an orderly end, not {events:?}") };
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));

    let mut open = std::pin::pin!(ground.watch().await);
    ground.map("seen").await;
    let next = tokio::time::timeout(SOON, async {
        while let Some(event) = open.next().await {
            let event = event.unwrap();
            if event["object"]["metadata"]["name"] == "seen" {
                return event;
            }
        }
        panic!("the watch ended");
    });
    assert_eq!(next.await.unwrap()["type"], "ADDED");
    assert_eq!(ground.proxy.upset(&Match::on("watch", "configmaps"), Upset::Expire), 1);
    assert_eq!(open.next().await.unwrap().unwrap()["object"]["reason"], "Expired", "in the middle of a watch");
    assert!(open.next().await.is_none());

    ground.map("more").await;
    let page = ground.list("limit=1").await.unwrap();
    let next = page["metadata"]["continue"].as_str().unwrap();
    ground.proxy.fault(Match::on("list", "configmaps").asking("continue="), Act::status(410), Times::Count(1));
    assert_eq!(code(ground.list(&format!("limit=1&continue={next}")).await), 410);
    assert_eq!(code(ground.list(&format!("limit=1&continue={next}")).await), 200);
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_resets_connections_before_and_within_an_answer() {
    let ground = Ground::new("proxy-reset").await;
    ground.map("a").await;
    let send = raw(&ground.proxy.kubeconfig(&ground.world).await).await;
    let path = format!("/api/v1/namespaces/{}/configmaps", ground.world.namespace);

    let rule = ground.proxy.fault(Match::on("list", "configmaps"), Act::Reset, Times::Count(1));
    let error = send(&path).await.unwrap_err();
    assert!(was_reset(&error), "{error:?}");
    assert_eq!(ground.proxy.hits(rule), 1);

    ground.proxy.fault(Match::on("list", "configmaps"), Act::ResetAt(40), Times::Count(1));
    let answer = send(&path).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut body = answer.into_body();
    let mut got = 0;
    let error = loop {
        match body.frame().await.expect("no orderly end") {
            Ok(frame) => got += frame.into_data().map_or(0, |data| data.len()),
            Err(error) => break error,
        }
    };
    assert!(got == 40 && was_reset(&error), "{got} bytes, {error:?}");
    assert_eq!(send(&path).await.unwrap().status(), 200);
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_delays_slows_and_holds() {
    let ground = Ground::new("proxy-slow").await;
    let pause = Duration::from_millis(200);
    for act in [Act::Delay(pause), Act::Slow(pause)] {
        ground.proxy.fault(Match::first_list("configmaps"), act, Times::Count(1));
        let begun = Instant::now();
        ground.list("").await.unwrap();
        assert!(begun.elapsed() >= pause);
    }
    let held = ground.proxy.fault(Match::first_list("configmaps"), Act::Hold, Times::Always);
    let list = ground.list("");
    let release = async {
        eventually("the list is held", SOON, || async { ground.proxy.hits(held) == 1 }).await;
        assert!(ground.list("limit=1&continue=x").await.is_err(), "a later page is no first list, and is refused");
        assert_eq!(ground.proxy.seen("list", "configmaps").iter().rfind(|one| one.fault.is_some()).unwrap().code, None);
        ground.proxy.lift(held);
    };
    let (list, ()) = tokio::join!(list, release);
    list.unwrap();

    let again = ground.proxy.fault(Match::on("list", "configmaps"), Act::Hold, Times::Always);
    assert!(tokio::time::timeout(pause, ground.list("")).await.is_err());
    eventually("the client has gone", SOON, || async {
        ground.proxy.seen("list", "configmaps").last().unwrap().abandoned.is_some()
    })
    .await;
    ground.proxy.lift(again);
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_silences_and_breaks_watches_that_are_open() {
    let ground = Ground::new("proxy-watch").await;
    let (mut silent, mut broken) = (std::pin::pin!(ground.watch().await), std::pin::pin!(ground.watch().await));
    assert!(silent.next().await.unwrap().is_ok() && broken.next().await.unwrap().is_ok());
    assert_eq!(ground.proxy.upset(&Match::on("watch", "configmaps"), Upset::Silence), 2);
    ground.map("unseen").await;
    assert!(tokio::time::timeout(Duration::from_millis(300), silent.next()).await.is_err(), "silence has no end");
    ground.proxy.upset(&Match::on("watch", "configmaps"), Upset::Break);
    assert!(broken.next().await.unwrap().is_err(), "no orderly end");
    let mut new = std::pin::pin!(ground.watch().await);
    assert!(new.next().await.unwrap().is_ok(), "a new one works");
    ground.world.end().await;
}

#[tokio::test]
async fn proxy_gives_stale_and_paged_lists() {
    let ground = Ground::new("proxy-lists").await;
    ground.map("a").await;
    let stale = ground.proxy.fault(Match::on("list", "configmaps"), Act::Stale, Times::Always);
    assert_eq!(names(&ground.list("").await.unwrap()), ["a"]);
    ground.map("b").await;
    assert_eq!(names(&ground.list("").await.unwrap()), ["a"]);
    ground.proxy.lift(stale);
    assert_eq!(names(&ground.list("").await.unwrap()), ["a", "b"]);

    ground.proxy.fault(Match::on("list", "configmaps"), Act::Pages(1), Times::Always);
    let first = ground.list("limit=500").await.unwrap();
    assert_eq!(first["items"].as_array().unwrap().len(), 1);
    assert!(!first["metadata"]["continue"].as_str().unwrap().is_empty());
    ground.world.end().await;
}

type Send = Box<dyn Fn(&str) -> ResponseFuture>;

/// Sends a GET and shows the connection's own errors. (kube's client repeats what is answered 429, 503 or 504.)
async fn raw(kubeconfig: &Path) -> Send {
    let file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let user = serde_json::to_value(file.auth_infos[0].auth_info.as_ref().unwrap()).unwrap();
    let token = format!("Bearer {}", user["token"].as_str().unwrap());
    let config = crate::support::lab::config(kubeconfig).await;
    let client = Client::builder(TokioExecutor::new()).build(config.rustls_https_connector().unwrap());
    let base = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    Box::new(move |path| {
        let request = Request::get(format!("{base}{path}")).header("authorization", &token);
        client.request(request.body(Full::<Bytes>::default()).unwrap())
    })
}
