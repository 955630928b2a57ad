//! The real node of the test process: one box for all tests whose pods must run, with an edge in front. Started by the
//! first test that asks; ended with the process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use xtask::cluster::node::contour::Contour;
use xtask::cluster::node::{Node, OPENID_HOST, SITES_HOST, image};
use xtask::cluster::{Options, Profile, node_obstacle};

use super::api::{condition, merge_into};
use super::lab::Lab;
use super::wait::{LONG, eventually};
use super::world::World;

impl Lab {
    /// The cluster with a real node, or none, saying why the test does nothing.
    pub async fn node(test: &str) -> Option<&'static Lab> {
        static LAB: OnceLock<Lab> = OnceLock::new();
        if let Some(obstacle) = node_obstacle() {
            eprintln!("{test}: skipped: {obstacle}");
            return None;
        }
        let started = tokio::task::spawn_blocking(|| LAB.get_or_init(|| Lab::start_local(&node_options())));
        Some(started.await.expect("the real node starts"))
    }

    /// What a real node has beside the cluster.
    pub fn the_node(&self) -> &Node {
        self.cluster().and_then(|cluster| cluster.node()).expect("a cluster with a real node")
    }

    /// The folder of a local cluster.
    pub fn dir(&self) -> PathBuf {
        self.cluster().expect("a local cluster").dir().to_owned()
    }

    /// Ends a separate cluster and waits until it has ended.
    pub async fn end(self) {
        tokio::task::spawn_blocking(move || drop(self)).await.expect("the cluster ends");
    }

    /// An entrance for Ingress objects beside the Gateway's, until it is dropped. One at a time.
    pub async fn start_contour(&'static self) -> Contour {
        let started = tokio::task::spawn_blocking(|| Contour::start(self.cluster().expect("a local cluster")));
        started.await.expect("no panic").expect("Contour starts")
    }

    /// A program inside the box, where all public names and their ports are real, with a folder of this machine to be
    /// in. It trusts who signed the edge's certificate, and ends with the returned command's child.
    pub fn program(&self, folder: &Path, program: impl AsRef<Path>) -> tokio::process::Command {
        const TRUST: &str =
            "mount --bind \"$0\" /etc/ssl/certs/ca-certificates.crt && cd \"$1\" && shift && exec \"$@\"";
        let ca = self.edge().ca;
        let mut command = self.the_node().command("unshare");
        command.args(["--mount", "--", "sh", "-c", TRUST]).arg(&ca).arg(folder).arg(program.as_ref());
        // Who does not go by that file goes by one of these.
        command.env("REQUESTS_CA_BUNDLE", &ca).env("SSL_CERT_FILE", ca);
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        command
    }

    /// What stands in front of the sites.
    pub fn edge(&self) -> Edge {
        let cluster = self.cluster().expect("a local cluster");
        Edge { address: self.the_node().edge(), ca: cluster.ca() }
    }
}

pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How a test starts a real node that runs this build of the product.
pub fn node_options() -> Options {
    let product = Some(PathBuf::from(env!("CARGO_BIN_EXE_sites")));
    Options { profile: Profile::Node, product, ..Options::default() }
}

impl World {
    /// A world on the real node, whose operator routes by the edge's Gateway and uses the images that are there.
    pub async fn on_node(lab: &Lab, name: &str) -> Self {
        let mut world = Self::on(lab, name).await;
        let own = image("sites");
        let mut images: serde_json::Map<_, _> =
            ["site-api", "site-admin", "site-webdav", "site-s3", "site-initializer", "site-mirror"]
                .map(|application| (application.to_owned(), json!(own)))
                .into_iter()
                .collect();
        images.insert("site-proxy".into(), json!(image("nginx")));
        images.insert("site-oauth2".into(), json!(image("oauth2-proxy")));
        let settings = json!({
            "kubernetes": {"storage_class": "local-path"},
            "routing": {
                "mode": "gateway", "host": SITES_HOST,
                "gateway": {
                    "name": "sites-gateway", "namespace": "envoy-gateway-system", "provider": "envoy-gateway",
                },
            },
            "site": {"images": images, "termination_grace_seconds": 5},
            "oidc": {
                "issuer": format!("https://{OPENID_HOST}"),
                "client_secret": "demo-not-a-secret",
                "login_url": format!("https://{OPENID_HOST}/auth"),
                "redeem_url": "http://openid.sites-services.svc/token",
                "jwks_url": "http://openid.sites-services.svc/jwks",
            },
        });
        merge_into(&mut world.settings, &settings);
        world
    }
}

impl World {
    /// Waits until a Site's first pod is ready by the kubelet's own word. A first pod waits for its volume, and other
    /// tests may keep the machine busy.
    pub async fn pod_is_ready(&self, id: &str) {
        eventually(&format!("the pod of {id} is ready"), LONG, || async {
            let pod = self.get("Pod", &format!("{id}-0")).await.ok_or("there is no pod")?;
            let ready = condition(&pod, "Ready").is_some_and(|ready| ready["status"] == "True");
            if ready { Ok(()) } else { Err(pod["status"].to_string()) }
        })
        .await;
    }
}

/// The public entrance, as a browser on this machine reaches it.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who signed its certificate.
    pub ca: PathBuf,
}

impl Edge {
    /// Asks for `https://HOST/PATH`.
    pub async fn get(&self, host: &str, path: &str) -> Result<Response<Bytes>, String> {
        let request = Request::get(path).body(Bytes::new()).expect("a request");
        self.send(host, request).await
    }

    /// Sends a request, on a connection of its own, whose address is a path; the host name is added.
    pub async fn send(&self, host: &str, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let exchange = async { exchange(self.connect(host).await?, host, request).await };
        exchange.await.map_err(|error: Failure| error.to_string())
    }

    /// A connection to one of its hosts.
    pub(super) async fn connect(&self, host: &str) -> Result<TlsStream<TcpStream>, Failure> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(host.to_owned())?;
        Ok(TlsConnector::from(self.tls()?).connect(name, stream).await?)
    }

    /// Asks an address for `http://HOST/PATH`.
    pub async fn plain(address: SocketAddr, host: &str, path: &str) -> Result<Response<Bytes>, String> {
        let request = Request::get(path).body(Bytes::new()).expect("a request");
        let exchange = async { exchange(TcpStream::connect(address).await?, host, request).await };
        exchange.await.map_err(|error: Failure| error.to_string())
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, Failure> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(&self.ca)? {
            roots.add(certificate?)?;
        }
        Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
    }
}

/// One request on one connection.
pub(super) async fn exchange<S>(stream: S, host: &str, request: Request<Bytes>) -> Result<Response<Bytes>, Failure>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (mut head, body) = request.into_parts();
    head.headers.insert(http::header::HOST, host.parse()?);
    let answer = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
    let (head, body) = answer.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}
