//! One running `sites runtime api`: a real process on loopback, a volume in a temporary folder, a stand-in for the login.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::identity::{self, Questions};
use super::site_client::{Call, SiteClient};

/// The master token.
pub const MASTER: &str = "the-master-token-of-the-tests";
/// The volume, below a test's folder: so deep that a server that lets `..` pass still destroys nothing outside.
pub const DATA: &str = "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/data";
/// Path of the site.
pub const PREFIX: &str = "/team/plans";

/// A process with all that a [`SiteClient`] can ask it for.
pub struct RunningSite {
    client: SiteClient,
    folder: TempDir,
    identity: u16,
    pub port: u16,
    pub questions: Questions,
    pub log: Arc<Mutex<String>>,
    // Dropped with the site, and killed by the kernel if the test process dies first.
    pub process: Child,
}

/// One more server of a site.
pub struct Role {
    pub port: u16,
    pub log: Arc<Mutex<String>>,
    pub process: Child,
}

/// How it starts.
pub struct Start<'a> {
    pub site_type: &'a str,
    /// Makes the volume's content.
    pub prepare: &'a dyn Fn(&Path),
    /// Variables beside the usual ones; an empty value takes one away.
    pub env: &'a [(&'a str, &'a str)],
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self { site_type: "private", prepare: &|_| {}, env: &[] }
    }
}

impl std::ops::Deref for RunningSite {
    type Target = SiteClient;

    fn deref(&self) -> &SiteClient {
        &self.client
    }
}

impl RunningSite {
    /// A private site without content.
    pub async fn private() -> Self {
        Self::start(Start::default()).await
    }

    /// A public site without content.
    pub async fn public() -> Self {
        Self::start(Start { site_type: "public", ..Start::default() }).await
    }

    pub async fn start(start: Start<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (identity, questions) = identity::start().await;
        std::fs::create_dir_all(folder.path().join(DATA)).unwrap();
        (start.prepare)(&folder.path().join(DATA));
        let Role { port, log, process } = serve("api", folder.path(), identity, &start).await;
        let client = SiteClient::of_process(port, folder.path().join(DATA));
        Self { client, folder, identity, port, questions, log, process }
    }

    /// Starts another server on the same volume.
    pub async fn role(&self, role: &str) -> Role {
        serve(role, self.folder.path(), self.identity, &Start::default()).await
    }

    /// The same for a site of a type.
    pub async fn role_as(&self, role: &str, site_type: &str) -> Role {
        serve(role, self.folder.path(), self.identity, &Start { site_type, ..Start::default() }).await
    }

    /// Starts another server on an empty volume of its own of so many MiB, or says why that cannot be here. Only it
    /// sees the volume, which goes with it.
    pub async fn role_on_small_volume(&self, role: &str, size: u32) -> Result<Role, &'static str> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount a volume");
        }
        let inner = command(role, self.folder.path(), self.identity, &Start::default());
        let inner = inner.as_std();
        let mut outer = Command::new("unshare");
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mount = format!("mount -t tmpfs -o size={size}m tmpfs \"$SITE_CONTENT_DIR\" && exec \"$@\"");
        outer.args(["--mount", "--propagation", "private", "--", "sh", "-c", &mount, "sh"]);
        outer.arg(inner.get_program()).args(inner.get_args());
        Ok(launch(outer).await)
    }

    /// The same site as the clients of another server see it.
    pub fn client_of(&self, role: &Role) -> SiteClient {
        SiteClient::of_process(role.port, self.folder.path().join(DATA))
    }

    /// A request to any path of another server.
    pub fn at(&self, role: &Role, method: &str, path: &str) -> Call {
        self.client_of(role).raw(method, path)
    }

    /// The access file, to be changed.
    pub fn access_file(&self) -> PathBuf {
        self.folder.path().join("access.json")
    }
}

/// Starts a server and waits until it says where it listens.
async fn serve(role: &str, folder: &Path, identity: u16, start: &Start<'_>) -> Role {
    launch(command(role, folder, identity, start)).await
}

async fn launch(mut command: Command) -> Role {
    let mut process =
        command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("setpriv: apt-get install util-linux");
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let log = Arc::new(Mutex::new(String::new()));
    let mut port = None;
    while port.is_none() {
        let reading = tokio::time::timeout(Duration::from_secs(60), lines.next_line());
        let line = reading.await.expect("a start within a minute").unwrap();
        let line = line.expect("the site does not start; its message is above");
        let value: Value = serde_json::from_str(&line).unwrap();
        port = value["address"].as_str().map(|address| address.rsplit(':').next().unwrap().parse().unwrap());
    }
    let kept = log.clone();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            kept.lock().unwrap().push_str(&(line + "\n"));
        }
    });
    Role { port: port.unwrap(), log, process }
}

/// `sites runtime <role>` as the operator would start it. It must not outlive the test.
pub fn command(role: &str, folder: &Path, identity: u16, start: &Start<'_>) -> Command {
    let access = json!({
        "owner": "ana", "type": start.site_type,
        "administrator_users": ["ben"], "administrator_groups": ["ops"],
        "view_users": ["cleo"], "view_groups": ["staff"],
    });
    std::fs::write(folder.join("access.json"), access.to_string()).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_sites"), "runtime", role]).env_clear();
    let path = |name: &str| folder.join(name).display().to_string();
    for (name, value) in [
        ("SITE_ID", "plans".to_owned()),
        ("SITE_PREFIX", PREFIX.to_owned()),
        ("SITE_PUBLIC_URL", format!("https://sites.example.org{PREFIX}/")),
        ("SITE_QUOTA_GI", "1".to_owned()),
        ("SITE_CONTENT_DIR", path(DATA)),
        ("SITE_ACCESS_FILE", path("access.json")),
        ("SITE_IDENTITY_URL", format!("http://127.0.0.1:{identity}{PREFIX}/oauth2/auth")),
        ("SITE_COOKIE_NAME", "__Secure-sites-plans".to_owned()),
        ("SITE_API_LISTEN", "127.0.0.1:0".to_owned()),
        ("SITE_ADMIN_LISTEN", "127.0.0.1:0".to_owned()),
        ("SITE_WEBDAV_LISTEN", "127.0.0.1:0".to_owned()),
        ("SITE_S3_LISTEN", "127.0.0.1:0".to_owned()),
        ("MASTER_TOKEN", MASTER.to_owned()),
        ("SIGNING_KEY", "a signing key of the tests, long enough".to_owned()),
        ("SESSION_URL_KEY", "a session key of the tests, long enough".to_owned()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
    ] {
        command.env(name, value);
    }
    for (name, value) in start.env {
        if value.is_empty() {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    command
}
