//! S3 clients: requests signed here byte by byte, and other people's programs.

use std::path::Path;
use std::process::Output;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::http::Answer;
use super::site::{MASTER, PREFIX, Role, RunningSite};
use super::site_client::SiteClient;

const STRICT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PATH: AsciiSet = STRICT.remove(b'/');

/// An access key.
#[derive(Clone)]
pub struct Key {
    pub id: String,
    pub secret: String,
}

impl Key {
    /// The master token as a key.
    pub fn master() -> Self {
        Self { id: "master".to_owned(), secret: MASTER.to_owned() }
    }

    /// The key of a new access token, and the token's text.
    pub async fn made(site: &SiteClient, privilege: &str, duration: Option<i64>) -> (Self, String) {
        let body = json!({"label": "test", "privilege": privilege, "duration": duration});
        let answer = site.post("tokens", &body).await.json();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        assert_eq!(answer["s3"]["access_key_id"], answer["token"]["id"]);
        let key = Self { id: text(&answer["token"]["id"]), secret: text(&answer["s3"]["secret_access_key"]) };
        (key, text(&answer["value"]))
    }

    /// The `Authorization` header of a request without a body that is signed, and the two headers that go with it.
    pub fn sign(&self, method: &str, path: &str, query: &[(&str, &str)], headers: &[(&str, &str)]) -> Vec<String> {
        self.sign_as("UNSIGNED-PAYLOAD", method, path, query, headers)
    }

    /// The same, with a word on the body.
    pub fn sign_as(
        &self,
        payload: &str,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Vec<String> {
        self.sign_for("sites.example.org", payload, method, path, query, headers)
    }

    fn sign_for(
        &self,
        host: &str,
        payload: &str,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Vec<String> {
        let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let date = &now[..8];
        let encode = |text: &str| utf8_percent_encode(text, &STRICT).to_string();
        let decoded = percent_decode_str(path).decode_utf8_lossy().into_owned();
        let mut pairs: Vec<_> =
            query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        pairs.sort();
        let mut signed = vec![("host", host), ("x-amz-content-sha256", payload), ("x-amz-date", &now)];
        signed.extend(headers);
        signed.sort_unstable();
        let lines = signed.iter().map(|(name, value)| [name, ":", value, "\n"].concat()).collect::<String>();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let path = utf8_percent_encode(&decoded, &PATH);
        let request = format!("{method}\n{path}\n{}\n{lines}\n{names}\n{payload}", pairs.join("&"));
        let scope = format!("{date}/us-east-1/s3/aws4_request");
        let text = format!("AWS4-HMAC-SHA256\n{now}\n{scope}\n{}", hexadecimal(&Sha256::digest(request)));
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for step in [date, "us-east-1", "s3", "aws4_request"] {
            key = mac(&key, step);
        }
        let signature = hexadecimal(&mac(&key, &text));
        let mut lines = vec![
            format!(
                "Authorization: AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
                self.id
            ),
            format!("x-amz-content-sha256: {payload}"),
            format!("x-amz-date: {now}"),
        ];
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines
    }

    /// A signed request to a site's S3 server. `path` is what follows `s/s3`, as it is sent.
    pub async fn send(
        &self,
        site: &RunningSite,
        s3: &Role,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.send_to(&site.client_of(s3), method, path, query, body).await
    }

    /// The same, wherever the server runs.
    pub async fn send_to(
        &self,
        s3: &SiteClient,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let target = format!("{}/s/s3{path}", s3.prefix);
        let encode = |text: &str| utf8_percent_encode(text, &STRICT).to_string();
        let pairs: Vec<_> = query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let sent = if pairs.is_empty() { target.clone() } else { format!("{target}?{}", pairs.join("&")) };
        let mut call = s3.raw(method, &sent);
        for line in self.sign_for(s3.host(), "UNSIGNED-PAYLOAD", method, &target, query, &[]) {
            call = call.header(&line);
        }
        call.body(body).send().await
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Address of a site's bucket for other programs.
pub fn endpoint(s3: &Role) -> String {
    format!("http://127.0.0.1:{}{PREFIX}/s/s3", s3.port)
}

/// A program; with a file of names as `HOSTS_FILE` among its variables, one that knows these names and no others. Not
/// every machine knows that names below `localhost` are loopback. Needs root, as whatever listens there does.
fn program(name: &str, variables: &[(&str, &str)]) -> Command {
    if !variables.iter().any(|(variable, _)| *variable == "HOSTS_FILE") {
        return Command::new(name);
    }
    let mut command = Command::new("unshare");
    let mount = "mount --bind \"$HOSTS_FILE\" /etc/hosts && exec \"$@\"";
    command.args(["--mount", "--propagation", "private", "--", "sh", "-c", mount, "sh", name]);
    command
}

/// Runs a scene of `tests/clients/s3_boto.py`, which says itself what it expects.
pub async fn boto(scene: &str, endpoint: &str, key: &Key, more: &[(&str, &str)]) {
    let packages = tokio::task::spawn_blocking(xtask::clients::python).await.unwrap().expect("the clients are fetched");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/s3_boto.py");
    let mut command = program("python3", more);
    command.args([script, scene]).kill_on_drop(true).env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("S3_ENDPOINT", endpoint).env("S3_KEY", &key.id).env("S3_SECRET", &key.secret);
    command.env_remove("AWS_CA_BUNDLE").env("AWS_EC2_METADATA_DISABLED", "true");
    command.envs(more.iter().copied());
    let run = command.output().await.expect("python3");
    assert!(run.status.success(), "{scene}: {}\n{}", text(&run.stdout), text(&run.stderr));
}

/// Runs rclone with the bucket as the remote `site:`.
pub async fn rclone(endpoint: &str, key: &Key, folder: &Path, more: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = program("rclone", more);
    command.args(arguments).args(["--retries", "1", "--low-level-retries", "1", "--config", "/dev/null"]);
    command.current_dir(folder).kill_on_drop(true);
    for (name, value) in [
        ("TYPE", "s3"),
        ("PROVIDER", "Other"),
        ("ENDPOINT", endpoint),
        ("ACCESS_KEY_ID", &key.id),
        ("SECRET_ACCESS_KEY", &key.secret),
        ("FORCE_PATH_STYLE", "true"),
    ] {
        command.env(format!("RCLONE_CONFIG_SITE_{name}"), value);
    }
    command.env_remove("AWS_CA_BUNDLE").envs(more.iter().copied());
    command.output().await.expect("rclone: apt-get install rclone")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
