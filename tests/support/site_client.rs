//! A site as its clients see it, wherever it runs: a process of this machine that speaks plain HTTP, or a pod of the
//! real node behind the edge. Requests go out byte by byte, and programs of other people find the same site.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use xtask::cluster::node::SITES_HOST;

use super::http::Answer;
use super::lab::Lab;
use super::site::{MASTER, PREFIX};

/// How a site is reached.
#[derive(Clone, Copy)]
enum Way {
    /// At a port of this machine.
    Process(u16),
    /// Through the edge of this node, by its public name.
    Edge(&'static Lab),
}

/// How to talk to one site.
#[derive(Clone)]
pub struct SiteClient {
    way: Way,
    /// Path of the site.
    pub prefix: String,
    content: PathBuf,
}

impl SiteClient {
    /// A server of this machine with its content.
    pub(super) fn of_process(port: u16, content: PathBuf) -> Self {
        Self { way: Way::Process(port), prefix: PREFIX.to_owned(), content }
    }

    /// A pod behind the edge; `content` is its volume as this machine sees it.
    pub(super) fn of_pod(lab: &'static Lab, prefix: &str, content: PathBuf) -> Self {
        Self { way: Way::Edge(lab), prefix: prefix.to_owned(), content }
    }

    /// Whether a proxy of the platform stands before it, which has answers of its own.
    pub fn behind_edge(&self) -> bool {
        matches!(self.way, Way::Edge(_))
    }

    /// The public host name.
    pub fn host(&self) -> &'static str {
        match self.way {
            Way::Process(_) => "sites.example.org",
            Way::Edge(_) => SITES_HOST,
        }
    }

    /// Path of a content file, for what only its neighbours on the volume can do.
    pub fn content(&self, path: &str) -> PathBuf {
        self.content.join(path)
    }

    /// A folder that a neighbour on the volume makes.
    pub fn make_folder(&self, path: &str) {
        std::fs::create_dir(self.content(path)).unwrap();
        self.give(path);
    }

    /// A file full of holes that a neighbour on the volume makes: it counts, and takes no space.
    pub fn make_sparse(&self, path: &str, length: u64) {
        std::fs::File::create(self.content(path)).unwrap().set_len(length).unwrap();
        self.give(path);
    }

    /// In a pod the neighbours run as the same user.
    fn give(&self, path: &str) {
        if self.behind_edge() {
            let owner = std::fs::metadata(self.content(".sites")).unwrap();
            std::os::unix::fs::chown(self.content(path), Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }

    /// Address of a page, for clients that are other programs (see [`SiteClient::program`]).
    pub fn page_url(&self, path: &str) -> String {
        let origin = match self.way {
            Way::Process(port) => format!("http://127.0.0.1:{port}"),
            Way::Edge(_) => format!("https://{SITES_HOST}"),
        };
        format!("{origin}{}/{path}", self.prefix)
    }

    /// Address of an endpoint of the API, for clients that are other programs.
    pub fn url(&self, path: &str) -> String {
        self.page_url(&format!("s/api/v2/{path}"))
    }

    /// Path and query of a public address of the site.
    pub fn local(&self, url: &str) -> String {
        url.strip_prefix(&format!("https://{}", self.host())).expect(url).to_owned()
    }

    /// A program of other people that reaches the site by [`SiteClient::url`]. For a pod it runs where all public names
    /// are known, with their ports, and trusts who signed the edge's certificate.
    pub fn program(&self, program: impl AsRef<Path>) -> Command {
        self.program_in(Path::new("/"), program)
    }

    /// The same in a folder.
    pub fn program_in(&self, folder: &Path, program: impl AsRef<Path>) -> Command {
        match self.way {
            Way::Process(_) => {
                let mut command = Command::new(program.as_ref());
                command.current_dir(folder);
                command
            }
            Way::Edge(lab) => lab.program(folder, program),
        }
    }

    /// A request to an endpoint of the API.
    pub fn api(&self, method: &str, path: &str) -> Call {
        self.raw(method, &format!("{}/s/api/v2/{path}", self.prefix))
    }

    /// A request to any path.
    pub fn raw(&self, method: &str, path: &str) -> Call {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host());
        Call { way: self.way, head, body: Vec::new() }
    }

    /// A GET with the master token.
    pub async fn get(&self, path: &str) -> Answer {
        self.api("GET", path).token(MASTER).send().await
    }

    /// A file as a reader of the site gets it: by nginx, or where no nginx is by the API.
    pub async fn read(&self, path: &str) -> Answer {
        if self.behind_edge() {
            self.raw("GET", &format!("{}/{path}", self.prefix)).token(MASTER).send().await
        } else {
            self.get(&format!("files/{path}")).await
        }
    }

    /// What a page is answered with: by nginx, or where no nginx is what nginx is told (200 for "yes").
    pub async fn page_status(&self, target: &str) -> u16 {
        if self.behind_edge() {
            return self.raw("GET", target).send().await.status;
        }
        let told = self.raw("GET", "/_auth/private").header(&format!("X-Original-URI: {target}")).send().await;
        if told.status == 204 { 200 } else { told.status }
    }

    /// Writes a file with the master token.
    pub async fn put(&self, path: &str, bytes: &[u8]) -> Answer {
        self.api("PUT", &format!("files/{path}")).token(MASTER).body(bytes).send().await
    }

    /// The same, and it must go well.
    pub async fn must_put(&self, path: &str, bytes: &[u8]) {
        let answer = self.put(path, bytes).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }

    /// Deletes with the master token.
    pub async fn delete(&self, path: &str) -> Answer {
        self.api("DELETE", path).token(MASTER).send().await
    }

    /// Makes a link with the master token.
    pub async fn link(&self, path: &str, target: &str) -> Answer {
        let body = json!({"target": target}).to_string();
        self.api("PUT", &format!("symlinks/{path}")).token(MASTER).body(body.as_bytes()).send().await
    }

    /// Posts JSON with the master token.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.api("POST", path).token(MASTER).body(body.to_string().as_bytes()).send().await
    }

    /// The names in a folder.
    pub async fn names(&self, query: &str) -> Vec<String> {
        let answer = self.get(query).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        let files = answer.json()["files"].clone();
        files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    }

    /// A new access token: its id and text.
    pub async fn token(&self, privilege: &str, duration: Option<i64>) -> (String, String) {
        let body = json!({"label": "test", "privilege": privilege, "duration": duration});
        let answer = self.post("tokens", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&answer.json()["token"]["id"]), text(&answer.json()["value"]))
    }
}

/// One request.
pub struct Call {
    way: Way,
    head: String,
    body: Vec<u8>,
}

impl Call {
    #[must_use]
    pub fn header(mut self, line: &str) -> Self {
        self.head += line;
        self.head += "\r\n";
        self
    }

    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.header(&format!("Authorization: Bearer {token}"))
    }

    /// A session of the stand-in for the login (see [`super::identity`]).
    #[must_use]
    pub fn session(self, person: &str) -> Self {
        self.header(&format!("Cookie: other=1; __Secure-sites-plans={person}"))
    }

    #[must_use]
    pub fn body(mut self, bytes: &[u8]) -> Self {
        bytes.clone_into(&mut self.body);
        self
    }

    pub async fn send(self) -> Answer {
        self.try_send().await.expect("an answer")
    }

    /// `None` when the connection ends without one.
    pub async fn try_send(mut self) -> Option<Answer> {
        if !self.body.is_empty() || !self.head.starts_with("GET") {
            self = {
                let length = self.body.len();
                self.header(&format!("Content-Length: {length}"))
            };
        }
        self.send_as_it_is().await
    }

    /// As it was written, whatever its header says of the body's length.
    pub async fn send_as_it_is(self) -> Option<Answer> {
        let bytes = [self.head.as_bytes(), b"\r\n", &self.body].concat();
        match self.way {
            Way::Process(port) => exchange(TcpStream::connect(("127.0.0.1", port)).await.ok()?, &bytes).await,
            Way::Edge(lab) => exchange(lab.edge().connect(SITES_HOST).await.ok()?, &bytes).await,
        }
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> Option<Answer> {
    // A server that has answered may close before it has read all.
    let _ = stream.write_all(request).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer));
    let _ = reading.await.expect("an answer within a minute");
    Answer::parse(&answer)
}
