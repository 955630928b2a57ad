//! One running `sites hub`: a real process, its log lines, and the ways to ask it.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::{HeaderMap, Request};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use xtask::process::tied;

use super::api::merge_into;
use super::node::exchange;
use super::openid::OpenId;
use super::operator::{Operator, Start, field};
use super::visitor::Visitor;
use super::wait::{SOON, eventually};
use super::world::World;

/// The log line that says where it listens.
const LINE: &str = "sites hub starts";

/// The Hub's public host in tests; it leads to the process.
pub const HUB: &str = "https://sites.example.test";

/// A running Hub. Dropping it kills it; if the test is failing then, its log is printed.
#[derive(Debug)]
pub struct HubProcess {
    /// The process: log lines, stop, kill, pause.
    pub process: Operator,
    address: SocketAddr,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Told {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Told {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// A header, or an empty text.
    pub fn header(&self, name: &str) -> String {
        self.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }
}

/// Asks an address on this machine, on a connection of its own.
pub async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Told, String> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body.into()).map_err(|error| error.to_string())?;
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        exchange(stream, &address.to_string(), request).await
    };
    let (head, body) = exchange.await.map_err(|error| error.to_string())?.into_parts();
    Ok(Told { status: head.status.as_u16(), headers: head.headers, body })
}

impl HubProcess {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks for anything.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Told {
        let told = ask(self.address, method, path, headers, body).await;
        told.unwrap_or_else(|reason| panic!("{method} {path}: {reason}:\n{}", self.process.log_text()))
    }

    /// A `GET` by a program with a token; an empty token sends none.
    pub async fn get(&self, path: &str, token: &str) -> Told {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        self.ask("GET", path, if token.is_empty() { &[] } else { &headers }, "").await
    }

    /// Sends JSON as a program with a token; an empty token sends none, null no body.
    pub async fn json(&self, method: &str, path: &str, token: &str, body: &Value) -> Told {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("content-type", "application/json")];
        if !token.is_empty() {
            headers.push(("authorization", &bearer));
        }
        if body.is_null() {
            self.ask(method, path, &headers[1..], "").await
        } else {
            self.ask(method, path, &headers, body.to_string()).await
        }
    }

    /// A browser that reaches this Hub at its public host, and the provider.
    pub fn browser(&self, openid: &OpenId) -> Visitor {
        let host = HUB.trim_start_matches("https://").to_owned();
        Visitor::on_this_machine([(host, self.address), (openid.address().to_string(), openid.address())])
    }
}

impl World {
    /// Starts a Hub that knows a provider, and waits until it is ready.
    pub async fn start_hub_process(&self, openid: &OpenId) -> HubProcess {
        self.start_hub_process_with(openid, Start::default()).await
    }

    /// Starts a Hub that differs from the usual; it is always waited for.
    pub async fn start_hub_process_with(&self, openid: &OpenId, start: Start) -> HubProcess {
        let kubeconfig: PathBuf = match start.kubeconfig {
            Some(other) => other,
            None => self.hub_kubeconfig().await,
        };
        let mut settings = self.settings.clone();
        merge_into(&mut settings, &openid.settings());
        merge_into(
            &mut settings,
            &json!({"hub": {"address": "127.0.0.1:0", "log_format": "json", "requests_per_second": 100_000}}),
        );
        if !start.settings.is_null() {
            merge_into(&mut settings, &start.settings);
        }
        let path = self.write_settings(&settings);
        let mut command = tied(env!("CARGO_BIN_EXE_sites"));
        command
            .args(["hub", "--namespace", &self.namespace, "--config"])
            .arg(path)
            .env("KUBECONFIG", kubeconfig)
            .envs(start.environment.iter().map(|(key, value)| (key, value)));
        let process = Operator::run(&format!("{}/hub", self.namespace), command);
        self.keep(&process);
        let address = eventually("the Hub is ready", SOON, || async {
            if let Some(status) = process.ended() {
                panic!("the Hub ended ({status}):\n{}", process.log_text());
            }
            let lines = process.logs_with(LINE);
            let address = lines.last().and_then(|line| field(line, "address")?.as_str()).ok_or("it has not begun")?;
            let address: SocketAddr = address.parse().map_err(|_| format!("{address} is no address"))?;
            let told = ask(address, "GET", "/hub/readyz", &[], "").await?;
            if told.status == 200 { Ok(address) } else { Err(format!("{} {}", told.status, told.text())) }
        })
        .await;
        HubProcess { process, address }
    }
}
