//! The source: another site's API, read only.
//!
//! Owns how it is listed (folder by folder, so that no answer is too large), how a download is tried again, and how
//! one that broke off goes on where it stopped. No redirect is followed: the token is for this address only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rand::RngExt;
use reqwest::header::{
    CONTENT_RANGE, ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tracing::debug;

use crate::runtime::content::{Content, SitePath, Upload};

/// Entries of one folder that are asked for; a folder with as many counts as not listed completely.
const LIMIT: usize = 64_000;
/// Largest answer of a listing, in bytes.
const MAX_LISTING: usize = 64 << 20;
/// Deepest folder.
const MAX_DEPTH: usize = 128;
/// Attempts of one request, and of one download.
const ATTEMPTS: u32 = 5;
/// Longest time without a byte.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait that a source may ask for.
const PATIENCE: Duration = Duration::from_secs(120);
/// What stays readable in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One entry of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub folder: bool,
    /// Bytes, where the source says.
    pub size: Option<u64>,
    /// Last change, where the source says.
    pub modified: Option<Timestamp>,
    /// Entity tag, where the source says.
    pub version: Option<String>,
    /// Of a link, where the source says.
    pub target: Option<String>,
}

/// By path.
pub type Entries = BTreeMap<String, Found>;

/// Everything that the source has.
#[derive(Debug, Default)]
pub struct Tree {
    pub entries: Entries,
    /// Why something may be missing.
    pub incomplete: Option<String>,
}

/// A file to download.
pub struct Wanted<'a> {
    pub path: &'a SitePath,
    /// The version that is here.
    pub known: Option<&'a str>,
}

/// What came.
pub enum Downloaded {
    /// The version that is here.
    Same,
    /// All of the file, not in place yet.
    File { upload: Upload, version: Option<String> },
}

/// The source's Site API.
pub struct Source {
    client: Client,
    files: String,
    token: Option<SecretString>,
}

#[derive(Deserialize)]
struct Listing {
    files: Vec<Listed>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct Listed {
    path: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    modified: Option<String>,
    #[serde(default)]
    etag: Option<String>,
    #[serde(default)]
    target: Option<String>,
}

impl Source {
    /// `address` is the site's public address, such as `https://old.example.org/team/plans`.
    pub fn new(address: &str, token: Option<SecretString>) -> anyhow::Result<Self> {
        // One of the process; somebody else may have chosen it already.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("sites-mirror/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build()
            .context("SITE_MIRROR_SOURCE: no client")?;
        Ok(Self { client, files: format!("{}/s/api/v2/files", address.trim_end_matches('/')), token })
    }

    /// Lists everything. What cannot be listed is missing, and the tree says so.
    pub async fn tree(&self) -> Tree {
        let mut tree = Tree::default();
        let mut folders = vec![SitePath::root()];
        while let Some(folder) = folders.pop() {
            match self.folder(&folder).await {
                Ok((entries, complete)) => {
                    if !complete {
                        tree.incomplete = Some(format!("'{folder}' has more entries than one answer holds"));
                    }
                    for (name, found) in entries {
                        let Ok(path) = SitePath::from_text(&format!("{folder}/{name}")) else {
                            tree.incomplete = Some(format!("'{folder}' has a name that is not allowed here"));
                            continue;
                        };
                        if found.folder && found.target.is_none() {
                            if path.segments().len() >= MAX_DEPTH {
                                tree.incomplete = Some(format!("'{path}' is too deep"));
                                continue;
                            }
                            folders.push(path.clone());
                        }
                        tree.entries.insert(path.to_string(), found);
                    }
                }
                Err(error) => tree.incomplete = Some(format!("'{folder}': {error:#}")),
            }
        }
        tree
    }

    async fn folder(&self, folder: &SitePath) -> anyhow::Result<(Vec<(String, Found)>, bool)> {
        let listing = self.list(folder, "").await?;
        let mut complete = !listing.truncated && listing.files.len() < LIMIT;
        // An older source does not say what is a folder: it is asked for those alone.
        let folders = if listing.files.iter().all(|listed| listed.kind.is_some()) {
            None
        } else {
            let only = self.list(folder, "&type=d").await?;
            complete &= !only.truncated && only.files.len() < LIMIT;
            Some(only.files.into_iter().map(|listed| listed.path).collect::<Vec<_>>())
        };
        let found = listing.files.into_iter().filter_map(|listed| {
            let name = listed.path.trim_matches('/').to_owned();
            let folder = match (&listed.kind, &folders) {
                (Some(kind), _) => kind == "directory",
                (None, Some(folders)) => folders.iter().any(|folder| folder.trim_matches('/') == name),
                (None, None) => false,
            };
            let broken = matches!(listed.kind.as_deref(), Some("broken" | "other"));
            let found = Found {
                folder,
                size: listed.size,
                modified: listed.modified.and_then(|time| time.parse().ok()),
                version: listed.etag,
                target: listed.target,
            };
            (!broken && !name.is_empty() && !name.contains('/')).then_some((name, found))
        });
        Ok((found.collect(), complete))
    }

    async fn list(&self, folder: &SitePath, more: &str) -> anyhow::Result<Listing> {
        let url = format!("{}?list=true&limit={LIMIT}{more}", self.url(folder));
        let mut answer = self.get(&url, &HeaderMap::new()).await?;
        anyhow::ensure!(answer.status() == StatusCode::OK, "the source answered {}", answer.status());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.context("the listing broke off")? {
            anyhow::ensure!(body.len() + chunk.len() <= MAX_LISTING, "the listing is too large");
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).context("the source's answer is no listing")
    }

    /// Downloads a file into the staging area.
    pub async fn download(&self, wanted: &Wanted<'_>, content: &Arc<Content>) -> anyhow::Result<Downloaded> {
        let url = self.url(wanted.path);
        let mut attempt = 0;
        let mut begun: Option<(Upload, Option<String>)> = None;
        loop {
            let mut headers = HeaderMap::new();
            if let Some((upload, Some(version))) = &begun {
                headers.insert(RANGE, format!("bytes={}-", upload.written()).parse()?);
                headers.insert(IF_RANGE, version.parse()?);
            } else {
                begun = None;
                if let Some(known) = wanted.known {
                    let name = if known.contains('"') { IF_NONE_MATCH } else { IF_MODIFIED_SINCE };
                    headers.insert(name, known.parse()?);
                }
            }
            let mut answer = self.get(&url, &headers).await?;
            let version = version(answer.headers());
            let upload = match (answer.status(), begun.take()) {
                (StatusCode::NOT_MODIFIED, None) => return Ok(Downloaded::Same),
                (StatusCode::PARTIAL_CONTENT, Some((upload, _))) if continues(answer.headers(), upload.written()) => {
                    upload
                }
                // Another version meanwhile: from the beginning.
                (StatusCode::OK, _) => {
                    let length = answer.content_length();
                    tokio::task::block_in_place(|| content.write(wanted.path.clone(), length))?
                }
                (status, _) => bail!("the source answered {status}"),
            };
            let (upload, broken) = receive(&mut answer, upload).await?;
            match broken {
                None => return Ok(Downloaded::File { upload, version }),
                Some(error) => {
                    attempt += 1;
                    anyhow::ensure!(attempt < ATTEMPTS, "the download broke off {attempt} times: {error}");
                    debug!(path = %wanted.path, bytes = upload.written(), %error, "a download broke off");
                    begun = Some((upload, version));
                    pause(attempt, None).await;
                }
            }
        }
    }

    /// One request, again when the source is busy or away.
    async fn get(&self, url: &str, headers: &HeaderMap) -> anyhow::Result<Response> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut request = self.client.get(url).headers(headers.clone());
            if let Some(token) = &self.token {
                request = request.bearer_auth(token.expose_secret());
            }
            let wait = match request.send().await {
                Ok(answer) if !busy(answer.status()) || attempt >= ATTEMPTS => return Ok(answer),
                Ok(answer) => asked_to_wait(answer.headers()),
                Err(error) if attempt >= ATTEMPTS => {
                    return Err(error.without_url()).context("the source does not answer");
                }
                Err(_) => None,
            };
            pause(attempt, wait).await;
        }
    }

    fn url(&self, path: &SitePath) -> String {
        let segments = path.segments().iter().map(|segment| utf8_percent_encode(segment, PATH).to_string());
        format!("{}/{}", self.files, segments.collect::<Vec<_>>().join("/"))
    }
}

/// Writes what comes. A connection that breaks off is no failure of the upload.
async fn receive(answer: &mut Response, mut upload: Upload) -> anyhow::Result<(Upload, Option<String>)> {
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => tokio::task::block_in_place(|| upload.append(&chunk))?,
            Ok(None) => return Ok((upload, None)),
            Err(error) => return Ok((upload, Some(error.without_url().to_string()))),
        }
    }
}

fn busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

fn asked_to_wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(PATIENCE))
}

/// The entity tag, else the date of change: what the next request can ask by.
fn version(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    // A weak tag stands for several versions, byte by byte.
    text(ETAG).filter(|tag| !tag.starts_with("W/")).or_else(|| text(LAST_MODIFIED))
}

/// Whether a part begins where the upload ends.
fn continues(headers: &HeaderMap, written: u64) -> bool {
    let range = headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {written}-")))
}

/// Waits 1, 2, 4, … s, half of it by chance, or as long as the source asks.
async fn pause(attempt: u32, asked: Option<Duration>) {
    let own = Duration::from_secs(1 << attempt.saturating_sub(1).min(5)).mul_f64(rand::rng().random_range(0.5..1.0));
    tokio::time::sleep(asked.unwrap_or(own)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let source = Source::new("https://old.example.org/team/plans/", None).unwrap();
        let path = SitePath::from_text("a b/c+d#é%.txt").unwrap();
        assert_eq!(source.url(&path), "https://old.example.org/team/plans/s/api/v2/files/a%20b/c%2Bd%23%C3%A9%25.txt");
        assert_eq!(source.url(&SitePath::root()), "https://old.example.org/team/plans/s/api/v2/files/");
    }

    #[test]
    fn versions() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
        };
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(version(&headers(&[("etag", "\"a\""), ("last-modified", date)])).as_deref(), Some("\"a\""));
        assert_eq!(version(&headers(&[("etag", "W/\"a\""), ("last-modified", date)])).as_deref(), Some(date));
        assert_eq!(version(&headers(&[])), None);
        assert!(continues(&headers(&[("content-range", "bytes 10-19/20")]), 10));
        assert!(!continues(&headers(&[("content-range", "bytes 100-199/200")]), 10));
        assert_eq!(asked_to_wait(&headers(&[("retry-after", "9999")])), Some(PATIENCE));
    }
}
