//! A person at a browser: goes where answers send them, keeps cookies, fills in the provider's login page.

use std::collections::BTreeMap;
use std::sync::Mutex;

use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{Method, Request, Response};
use hyper::body::Bytes;
use serde_json::json;
use xtask::cluster::node::OPENID_HOST;

use super::api::condition;
use super::node::Edge;
use super::wait::eventually;
use super::world::World;

/// Answers that a person is sent through before they give up, as browsers do.
const MOST: usize = 20;
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

pub struct Visitor {
    edge: Edge,
    /// By host, path and name.
    cookies: Mutex<BTreeMap<(String, String, String), String>>,
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
        Self { edge, cookies: Mutex::default() }
    }

    /// Opens an address and follows every redirect.
    pub async fn open(&self, address: &str) -> Result<Seen, String> {
        self.follow(Method::GET, address.to_owned(), String::new()).await
    }

    /// Opens an address, which must lead to the provider's login page, and logs in; the password is the name.
    pub async fn log_in(&self, address: &str, name: &str) -> Result<Seen, String> {
        let page = self.open(address).await?;
        if !page.address.starts_with(&format!("https://{OPENID_HOST}/interaction/")) {
            return Err(format!("this is no login page: {page:?}"));
        }
        self.follow(Method::POST, page.address, format!("name={name}&password={name}")).await
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
            address = match location.strip_prefix('/') {
                Some(path) => format!("https://{}/{path}", parts(&address)?.0),
                None => location.to_owned(),
            };
            (method, body) = (Method::GET, String::new());
        }
        Err(format!("sent on and on, at last to {address}"))
    }

    async fn send(&self, method: &Method, address: &str, body: &str) -> Result<Response<Bytes>, String> {
        let (host, path) = parts(address)?;
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, "text/html,*/*;q=0.8");
        let cookies = self.cookies_for(host, path);
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies);
        }
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let request = request.body(Bytes::from(body.to_owned())).map_err(|error| error.to_string())?;
        let answer = self.edge.send(host, request).await?;
        for cookie in answer.headers().get_all(SET_COOKIE) {
            self.keep(host, cookie.to_str().map_err(|error| error.to_string())?);
        }
        Ok(answer)
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
    let rest = address.strip_prefix("https://").ok_or_else(|| format!("{address} is not secure"))?;
    let at = rest.find('/').ok_or_else(|| format!("{address} has no path"))?;
    Ok(rest.split_at(at))
}

impl World {
    /// The Hub as a pod, with this world's settings, behind the edge. One at a time: it has fixed paths.
    pub async fn start_hub(&self) {
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
    }
}
