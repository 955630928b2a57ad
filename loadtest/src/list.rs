//! The comparator of a restart: a process that lists the kinds that the operator lists, in the same form (streaming
//! lists; metadata only where the operator takes metadata only), parses every object and drops it.

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Config, Event};
use sites::domain::labels;
use sites::domain::site::Site;
use tokio::task::JoinSet;

use crate::ground::NAMESPACE;

/// Lists everything at the same time, as `KUBECONFIG` says.
pub async fn run() -> Result<()> {
    let client = kube::Client::try_default().await?;
    let children = Config::default().streaming_lists().labels(labels::ID);
    let all = Config::default().streaming_lists();
    let mut lists = JoinSet::new();
    macro_rules! list {
        ($config:expr, $($kind:ty),*) => {$(
            let api = Api::<$kind>::namespaced(client.clone(), NAMESPACE);
            lists.spawn(drained(watcher::watcher(api, $config.clone())));
        )*};
    }
    list!(all, Site);
    list!(children, Pod, PersistentVolumeClaim, StatefulSet);
    list!(
        children,
        PartialObjectMeta<Secret>,
        PartialObjectMeta<ConfigMap>,
        PartialObjectMeta<Service>,
        PartialObjectMeta<Ingress>
    );
    lists.spawn(drained(watcher::watcher(Api::<PersistentVolume>::all(client), all)));
    while let Some(list) = lists.join_next().await {
        list??;
    }
    Ok(())
}

async fn drained<K>(stream: impl futures::Stream<Item = watcher::Result<Event<K>>>) -> Result<()> {
    let mut stream = std::pin::pin!(stream);
    loop {
        match stream.next().await.context("the watch ended")? {
            Ok(Event::InitDone) => return Ok(()),
            Ok(_) => {}
            Err(error) => bail!("{error}"),
        }
    }
}
