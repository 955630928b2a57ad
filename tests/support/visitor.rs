//! A person at a browser: goes where answers send them, keeps cookies, fills in the provider's login page.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{Method, Request, Response};
use hyper::body::Bytes;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::MutexGuard;
use xtask::cluster::node::{OPENID_HOST, SITES_HOST};

use super::api::{condition, name_of};
use super::node::{Edge, exchange};
use super::wait::eventually;
use super::world::World;

/// Answers that a person is sent through before they give up, as browsers do.
const MOST: usize = 20;
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Name of the Hub's route, which is where its paths are.
const ROUTE: &str = "sites-hub";

/// Something whose pages a person opens.
enum Way {
    /// Everything is behind the edge of a real node.
    Edge(Edge),
    /// Processes of this machine, by host; they speak plain HTTP whatever the address says.
    Here(BTreeMap<String, SocketAddr>),
}

pub struct Visitor {
    way: Way,
    /// By host, path and name.
    cookies: Mutex<BTreeMap<(String, String, String), String>>,
    /// Every cookie as it was set.
    set: Mutex<Vec<String>>,
}

/// Where a person ended up.
#[derive(Debug)]
pub struct Seen {
    /// `https://HOST/PATH`.
    pub address: String,
    pub status: u16,
    pub text: String,
}

impl Visitor {
    pub fn at(edge: Edge) -> Self {
        Self::by(Way::Edge(edge))
    }

    /// A browser that reaches these hosts at these addresses.
    pub fn on_this_machine(hosts: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        Self::by(Way::Here(hosts.into_iter().collect()))
    }

    fn by(way: Way) -> Self {
        Self { way, cookies: Mutex::default(), set: Mutex::default() }
    }

    /// Opens an address and follows every redirect.
    pub async fn open(&self, address: &str) -> Result<Seen, String> {
        self.follow(Method::GET, address.to_owned(), String::new()).await
    }

    /// Opens an address, which must lead to the provider's login page, and logs in; the password is the name.
    pub async fn log_in(&self, address: &str, name: &str) -> Result<Seen, String> {
        let page = self.open(address).await?;
        self.fill_in(&page, name).await
    }

    /// Fills in the login page that a person is at.
    pub async fn fill_in(&self, page: &Seen, name: &str) -> Result<Seen, String> {
        if !page.address.contains("/interaction/") {
            return Err(format!("this is no login page: {page:?}"));
        }
        self.follow(Method::POST, page.address.clone(), format!("name={name}&password={name}")).await
    }

    /// Sends a form and follows every redirect.
    pub async fn post(&self, address: &str, form: &str) -> Result<Seen, String> {
        self.follow(Method::POST, address.to_owned(), form.to_owned()).await
    }

    async fn follow(&self, mut method: Method, mut address: String, mut body: String) -> Result<Seen, String> {
        for _ in 0..MOST {
            let answer = self.send(&method, &address, &body).await?;
            let status = answer.status();
            let Some(location) = answer.headers().get(LOCATION).filter(|_| status.is_redirection()) else {
                let text = String::from_utf8_lossy(answer.body()).into_owned();
                return Ok(Seen { address, status: status.as_u16(), text });
            };
            let location = location.to_str().map_err(|error| error.to_string())?;
            let base = reqwest::Url::parse(&address).map_err(|error| error.to_string())?;
            address = base.join(location).map_err(|error| error.to_string())?.into();
            (method, body) = (Method::GET, String::new());
        }
        Err(format!("sent on and on, at last to {address}"))
    }

    async fn send(&self, method: &Method, address: &str, body: &str) -> Result<Response<Bytes>, String> {
        self.request(method, address, &[], body).await
    }

    /// One request as this browser sends it, with more headers; redirects are not followed.
    pub async fn request(
        &self,
        method: &Method,
        address: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response<Bytes>, String> {
        let (host, path) = parts(address)?;
        let path = path.split('#').next().unwrap_or_default();
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "accept") {
            request = request.header(ACCEPT, "text/html,*/*;q=0.8");
        }
        let cookies = self.cookies_for(host, path);
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies);
        }
        if *method == Method::POST && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::from(body.to_owned())).map_err(|error| error.to_string())?;
        let answer = match &self.way {
            Way::Edge(edge) => edge.send(host, request).await?,
            Way::Here(hosts) => {
                let address = hosts.get(host).ok_or_else(|| format!("{host} is not of this test"))?;
                let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
                exchange(stream, host, request).await.map_err(|error| error.to_string())?
            }
        };
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = cookie.to_str().map_err(|error| error.to_string())?;
            self.set.lock().unwrap().push(cookie.to_owned());
            self.keep(host, cookie);
        }
        Ok(answer)
    }

    /// Every `Set-Cookie` it was given so far.
    pub fn set_cookies(&self) -> Vec<String> {
        self.set.lock().unwrap().clone()
    }

    /// The `Cookie` header that it sends to an address.
    pub fn cookies_at(&self, address: &str) -> String {
        let (host, path) = parts(address).unwrap();
        self.cookies_for(host, path)
    }

    fn cookies_for(&self, host: &str, path: &str) -> String {
        let kept = self.cookies.lock().unwrap();
        let sent = kept.iter().filter(|((of, below, _), _)| of == host && path.starts_with(below.as_str()));
        sent.map(|((.., name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&self, host: &str, cookie: &str) {
        let mut attributes = cookie.split(';').map(str::trim);
        let (name, value) = attributes.next().and_then(|pair| pair.split_once('=')).expect("a cookie has a name");
        let find = |attributes: std::str::Split<'_, char>, wanted: &str| {
            let mut found = attributes.map(str::trim).filter_map(|attribute| attribute.split_once('='));
            found.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.to_owned())
        };
        let path = find(cookie.split(';'), "path").unwrap_or_else(|| "/".to_owned());
        let gone =
            value.is_empty() || find(cookie.split(';'), "max-age").is_some_and(|age| age.starts_with(['0', '-']));
        let key = (host.to_owned(), path, name.to_owned());
        let mut kept = self.cookies.lock().unwrap();
        if gone {
            kept.remove(&key)
        } else {
            kept.insert(key, value.to_owned())
        };
    }
}

/// Host and path of an address.
fn parts(address: &str) -> Result<(&str, &str), String> {
    let rest = address.split_once("://").ok_or_else(|| format!("{address} is no address"))?.1;
    let at = rest.find('/').ok_or_else(|| format!("{address} has no path"))?;
    Ok(rest.split_at(at))
}

impl World {
    /// The Hub as a pod, with this world's settings, behind the edge. It has fixed paths: another test's waits until
    /// what this gives is dropped.
    pub async fn start_hub(&self) -> MutexGuard<'static, ()> {
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let turn = TURN.lock().await;
        let edge = self.lab().edge();
        for route in self.api.list("HTTPRoute", "", "").await {
            if name_of(&route) == ROUTE {
                let namespace = route["metadata"]["namespace"].as_str().unwrap();
                self.api.delete("HTTPRoute", namespace, ROUTE).await;
            }
        }
        let answers = async |host, path, wanted| {
            let status = edge.get(host, path).await?.status();
            if (status == 200) == wanted { Ok(()) } else { Err(status.to_string()) }
        };
        eventually("the Hub of the test before is gone", PATIENCE, || answers(SITES_HOST, "/hub/healthz", false)).await;
        let settings = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sites-config"},
            "data": {"settings.yaml": self.settings.to_string()},
        });
        self.api.apply(&self.namespace, &settings).await.expect("the Hub's settings");
        let manifest = include_str!("../cluster/manifests/hub.yaml");
        self.apply(&manifest.replace("namespace: sites\n", &format!("namespace: {}\n", self.namespace))).await;
        eventually("the Hub is available", PATIENCE, || async {
            let hub = self.must("Deployment", "sites-hub").await;
            let available = condition(&hub, "Available").is_some_and(|found| found["status"] == "True");
            if available { Ok(()) } else { Err(hub["status"].to_string()) }
        })
        .await;
        for (host, path) in [(SITES_HOST, "/hub/healthz"), (OPENID_HOST, "/healthz")] {
            eventually(&format!("{host}{path} answers"), PATIENCE, || answers(host, path, true)).await;
        }
        turn
    }
}
