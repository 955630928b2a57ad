//! One running nginx on a rendered configuration, with stubs for the servers behind it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use serde_json::json;
use sites::domain::site::Site;
use sites::render::{Observed, render};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use xtask::process::free_port;

pub use crate::support::http::Answer;

/// Name of each stub and the port that it stands for.
const STUBS: [(&str, u16); 6] =
    [("oauth2", 4181), ("api", 10000), ("admin", 9000), ("dav", 7000), ("s3", 6000), ("custom", 8000)];

pub struct World {
    folder: TempDir,
    front: u16,
    probe: u16,
    // Dropped with the world, and killed by the kernel if the test process dies first.
    _nginx: Child,
}

impl World {
    /// Renders a Site of `tests/render/sites` after a change and starts nginx on it.
    pub async fn start(name: &str, change: impl FnOnce(&mut Site)) -> Self {
        Self::start_without(name, &[], change).await
    }

    /// The same, with some of the servers behind nginx down.
    pub async fn start_without(name: &str, down: &[&str], change: impl FnOnce(&mut Site)) -> Self {
        let sites = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/render/sites");
        let text = std::fs::read_to_string(sites.join(format!("{name}.yaml"))).unwrap();
        let mut site: Site = serde_saphyr::from_str(&text).unwrap();
        change(&mut site);
        let observed = Observed { namespace: "sites".to_owned(), ..Observed::default() };
        let desired = render(&site, &settings(), &observed).unwrap();

        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for part in ["config", "data", "tmp"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        let (front, probe) = (free_port().unwrap(), free_port().unwrap());
        let here = |part: &str| folder.path().join(part).display().to_string();
        let mut replaced = vec![
            ("/etc/site/".to_owned(), format!("{}/", here("config"))),
            ("/tmp/nginx/".to_owned(), format!("{}/", here("tmp"))),
            (" /data".to_owned(), format!(" {}", here("data"))),
            ("=/data".to_owned(), format!("={}", here("data"))),
            ("listen 4180;".to_owned(), format!("listen 127.0.0.1:{front};")),
            ("listen 8081;".to_owned(), format!("listen 127.0.0.1:{probe};")),
        ];
        for (stub, port) in STUBS {
            let there = if down.contains(&stub) { free_port().unwrap() } else { serve(stub).await };
            replaced.push((format!("127.0.0.1:{port} "), format!("127.0.0.1:{there} ")));
        }
        for (name, text) in desired.files.data.unwrap() {
            let text = replaced.iter().fold(text, |text, (from, to)| text.replace(from, to));
            std::fs::write(folder.path().join("config").join(name), text).unwrap();
        }
        let nginx = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "nginx", "-e", "/dev/stderr", "-c"])
            .arg(folder.path().join("config/nginx.conf"))
            // One process, so that nothing outlives it.
            .args(["-g", "daemon off; master_process off;"])
            .env("PATH", format!("/usr/sbin:{}", std::env::var("PATH").unwrap_or_default()))
            .kill_on_drop(true)
            .spawn()
            .expect("nginx and setpriv: apt-get install nginx util-linux");
        let world = Self { folder, front, probe, _nginx: nginx };
        let deadline = Instant::now() + Duration::from_secs(20);
        while world.ask(world.probe, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.is_none_or(|a| a.status != 200) {
            assert!(Instant::now() < deadline, "nginx does not start; its messages are above");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        world
    }

    /// Path of a content file.
    pub fn content(&self, path: &str) -> PathBuf {
        self.folder.path().join("data").join(path)
    }

    /// Writes a content file.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.content(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Takes nginx's temporary folders away: whatever it wants to keep on the way fails from now on.
    pub fn forbid_buffering(&self) {
        let tmp = self.folder.path().join("tmp");
        std::fs::remove_dir_all(&tmp).unwrap();
        std::fs::write(tmp, "").unwrap();
    }

    /// A request to the front door with the given lines of header.
    pub async fn request(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        self.send(self.front, method, path, headers, "").await
    }

    /// A GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[]).await
    }

    /// A request with a body.
    pub async fn put(&self, path: &str, body: &str) -> Answer {
        self.send(self.front, "PUT", path, &[], body).await
    }

    /// A GET at the probe port.
    pub async fn probe(&self, path: &str) -> u16 {
        self.send(self.probe, "GET", path, &[], "").await.status
    }

    async fn send(&self, port: u16, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut lines = String::new();
        for header in headers {
            lines.push_str(header);
            lines.push_str("\r\n");
        }
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: sites.example.org\r\nConnection: close\r\n{length}{lines}\r\n{body}"
        );
        self.ask(port, &text).await.unwrap()
    }

    async fn ask(&self, port: u16, text: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        stream.write_all(text.as_bytes()).await.ok()?;
        let mut bytes = Vec::new();
        let reading = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes));
        // A probe without `Connection: close` stays open; what has come is the answer.
        if text.contains("Connection: close") {
            reading.await.expect("an answer within ten seconds").ok()?;
        } else {
            bytes.resize(4096, 0);
            let read = stream.read(&mut bytes).await.ok()?;
            bytes.truncate(read);
        }
        Answer::parse(&bytes)
    }
}

/// Starts a stub; it answers with what it was asked.
async fn serve(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(move |request: Request| answer(name, request));
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

async fn answer(name: &'static str, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in &parts.headers {
        headers.entry(key.to_string()).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    let first = |key: &str| headers.get(key).map(|values| values[0].clone()).unwrap_or_default();
    let path = parts.uri.path();
    if name == "api" && path == "/_auth/private" {
        let cookie = first("cookie");
        assert_eq!(headers.get("x-original-uri").map(Vec::len), Some(1), "exactly one, and nginx's");
        let original = first("x-original-uri");
        let response = Response::builder();
        return if cookie.contains("viewer") || first("authorization") == "Bearer good" {
            response.status(StatusCode::NO_CONTENT).body(Body::empty()).unwrap()
        } else if cookie.contains("stranger") {
            response.status(StatusCode::FORBIDDEN).body(Body::empty()).unwrap()
        } else if cookie.contains("broken") {
            response.status(StatusCode::SERVICE_UNAVAILABLE).body(Body::empty()).unwrap()
        } else {
            let login = if cookie.contains("evil") {
                "//evil.example.org/".to_owned()
            } else {
                format!("/team/plans/oauth2/start?rd={}&m={}", original.replace('/', "%2F"), first("x-original-method"))
            };
            response.status(StatusCode::UNAUTHORIZED).header("X-Sites-Login", login).body(Body::empty()).unwrap()
        };
    }
    let mut response = Response::builder().header("Content-Type", "application/json");
    if name == "custom" {
        if path.starts_with("/own") {
            response = response.header("X-Frame-Options", "DENY").header("Content-Security-Policy", "app");
            response = response.header("Set-Cookie", "a=1; Path=/").header("Set-Cookie", "b=2; Path=/deep");
        }
        if path.starts_with("/moved") {
            response = response.status(StatusCode::FOUND).header("Location", "/elsewhere");
        }
        if path.starts_with("/missing") {
            response = response.status(StatusCode::NOT_FOUND);
        }
    }
    let body = to_bytes(body, 64 << 20).await.unwrap();
    let value = json!({
        "server": name,
        "method": parts.method.as_str(),
        "target": parts.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body[..body.len().min(100)]),
        "bytes": body.len(),
    });
    response.body(Body::from(value.to_string())).unwrap()
}

fn settings() -> sites::settings::Settings {
    serde_json::from_value(json!({
        "routing": { "host": "sites.example.org" },
        "session": { "secret_key": "a session key of the tests, long enough" },
        "oidc": {
            "issuer": "https://login.example.org",
            "client_id": "sites",
            "client_secret": "secret",
            "login_url": "https://login.example.org/auth",
            "redeem_url": "https://login.example.org/token",
            "jwks_url": "https://login.example.org/keys",
        },
    }))
    .unwrap()
}
