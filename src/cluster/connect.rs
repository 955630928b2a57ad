//! Making a [`Cluster`]: configuration found, credentials loaded, the road built.
//!
//! Owns the handle that everybody clones. Must not know a verb or a kind: those are in `calls`.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;

use super::leadership::Leadership;
use super::token::TokenFile;
use super::transport::{Road, Transport, http_client};
use crate::telemetry::Metrics;

/// How calls are made.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Who we are among the replicas; the second half of the user agent.
    pub instance: String,
    /// First half of the user agent, `<program>/<version>`. The API server takes the part before the slash
    /// as the field manager of our writes.
    pub agent: String,
    /// Longest time a single call may take, and a watch until its first byte.
    pub call_timeout: Duration,
    /// Most calls a second; a burst of as many is allowed. 0 counts as 1.
    pub calls_per_second: u32,
    /// Where calls are counted.
    pub metrics: Metrics,
}

/// Why no client could be built. Nothing was sent to the API server yet.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a `ServiceAccount`.
    #[error("no way to the API server: KUBECONFIG is not usable and this is not a pod with a ServiceAccount: {0}")]
    Configuration(#[source] Box<kube::config::InferConfigError>),
    /// The kubeconfig named is not usable.
    #[error("kubeconfig {path}: {source}")]
    Kubeconfig {
        /// Path of the file.
        path: String,
        /// The failure.
        source: Box<kube::config::KubeconfigError>,
    },
    /// The kubeconfig asks for a proxy.
    #[error("the kubeconfig has a proxy-url, which is not supported")]
    Proxy,
    /// The token file cannot be read.
    #[error("token file {path}: {source}")]
    Token {
        /// Path of the file.
        path: String,
        /// The failure.
        source: std::io::Error,
    },
    /// The token or the user agent has characters that no header may have.
    #[error("{0} cannot be sent as a header")]
    Header(&'static str),
    /// Certificates or credentials of the kubeconfig are not usable.
    #[error("credentials: {0}")]
    Credentials(#[source] Box<kube::Error>),
}

/// A handle on one API server; cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: Client,
    pub(super) road: Arc<Road>,
    namespace: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Finds the API server as `KUBECONFIG` or the pod's `ServiceAccount` says. Sends nothing.
    ///
    /// The write gate is closed: see [`Leadership`].
    pub async fn connect(options: ClusterOptions) -> Result<Self, ConnectError> {
        let config = Config::infer().await.map_err(|error| ConnectError::Configuration(Box::new(error)))?;
        Self::with_config(options, config).await
    }

    /// As [`Self::connect`], with the kubeconfig at `path` and its current context.
    pub async fn connect_with(options: ClusterOptions, path: &Path) -> Result<Self, ConnectError> {
        let unusable = |error| ConnectError::Kubeconfig { path: path.display().to_string(), source: Box::new(error) };
        let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(unusable)?;
        Self::with_config(options, config).await
    }

    async fn with_config(options: ClusterOptions, mut config: Config) -> Result<Self, ConnectError> {
        if config.proxy_url.is_some() {
            return Err(ConnectError::Proxy);
        }
        // Whoever else brings rustls may bring a second provider: choose, before it has to guess and panics.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        // The token file is ours: kube reads it again once a minute only, and not after a 401.
        let token = match config.auth_info.token_file.take() {
            Some(path) => Some(TokenFile::open(path.into()).await?),
            None => None,
        };
        let agent = HeaderValue::from_str(&format!("{} ({})", options.agent, options.instance))
            .map_err(|_| ConnectError::Header("the user agent"))?;
        let rate = NonZeroU32::new(options.calls_per_second).unwrap_or(NonZeroU32::MIN);
        let road = Arc::new(Road::new(agent, token, options.call_timeout, rate, options.metrics));
        let inner = http_client(&config).map_err(|error| ConnectError::Credentials(Box::new(error)))?;
        let namespace = config.default_namespace.clone();
        let client = Client::new(Transport::new(inner, Arc::clone(&road)), namespace.clone());
        Ok(Self { client, road, namespace })
    }

    /// The write gate of this handle and all its clones.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        &self.road.leadership
    }

    /// The namespace of the kubeconfig's context or of the pod.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}
