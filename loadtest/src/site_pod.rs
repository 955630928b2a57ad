//! What the runtime's measures stand on: sites whose pods run, a bare nginx as the comparator, and the credentials that
//! open a private site.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use xtask::cluster::node::{Node, OPENID_HOST, SITES_HOST, image};

use crate::ground::{Ground, NAMESPACE};
use crate::population::SITES;
use crate::server::Prepared;
use crate::web::output;

/// Longest wait for a pod.
const PATIENCE: Duration = Duration::from_secs(180);
/// The client of all sites at the demo's provider; it owns the sites.
const CLIENT: &str = "sites";
const CLIENT_SECRET: &str = "demo-not-a-secret";
/// The first segment of the sites' public paths.
pub const SPACE: &str = "load";
/// The sites' master token.
pub const MASTER: &str = "load-test-master-token-0123456789abcdef";
/// Redirects from the login form to the site.
const REDIRECTS: usize = 10;

/// The comparator's whole configuration: as fast as a plain nginx serves files, and its own `PUT`.
const BARE: &str = "worker_processes 1; pid /tmp/pid; error_log stderr; worker_rlimit_nofile 8192;
events { worker_connections 2048; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 10000; default_type text/html;
  client_body_temp_path /data/.body; proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f; uwsgi_temp_path /tmp/u;
  scgi_temp_path /tmp/s; client_max_body_size 0;
  server { listen 4180; location / { root /data; dav_methods PUT; } } }";

/// Makes a site without applications of its own choice.
pub async fn site(ground: &Ground, name: &str, kind: &str) -> Result<()> {
    let site = json!({
        "apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "id": name, "name": name, "owner": CLIENT, "type": kind,
            "configuration": {
                "space": SPACE, "enabled": true, "quota": 4, "tokens": {"master": MASTER},
                "share": {"view_users": ["alice@example.test"]},
                "applications": [{"name": "site-admin"}, {"name": "site-webdav"}],
            },
        },
    });
    ground.admin.send(&Prepared::post(SITES.to_owned(), &site)).await.map(|_| ())
}

/// Makes the comparator: one nginx with a volume of the same kind, and the limits and system call filter of a site's
/// proxy.
pub async fn bare(ground: &Ground) -> Result<()> {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "bare"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "local-path",
            "resources": {"requests": {"storage": "4Gi"}},
        },
    });
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare"}, "data": {"nginx.conf": BARE},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"},
        "spec": {
            "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "nginx", "image": image("nginx"), "imagePullPolicy": "Never",
                "command": ["nginx", "-e", "/dev/stderr", "-c", "/etc/bare/nginx.conf", "-g", "daemon off;"],
                "readinessProbe": {"tcpSocket": {"port": 4180}, "periodSeconds": 1},
                "resources": {"limits": {"cpu": "1", "memory": "128Mi"}},
                "volumeMounts": [
                    {"name": "data", "mountPath": "/data"}, {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "config", "mountPath": "/etc/bare"},
                ],
            }],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "bare"}}, {"name": "tmp", "emptyDir": {}},
                {"name": "config", "configMap": {"name": "bare"}},
            ],
        },
    });
    for (kind, object) in [("persistentvolumeclaims", claim), ("configmaps", config), ("pods", pod)] {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/{kind}");
        ground.admin.send(&Prepared::post(path, &object)).await?;
    }
    Ok(())
}

/// Waits until a pod is ready, and gives it.
pub async fn ready(ground: &Ground, name: &str) -> Result<Value> {
    let begun = Instant::now();
    loop {
        // There is none at first.
        let pod = ground.admin.get(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}")).await.unwrap_or_default();
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        if conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True") {
            return Ok(pod);
        }
        ensure!(begun.elapsed() < PATIENCE, "{name} is not ready: {}", pod["status"]);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Where a pod's server is reached from inside the box.
pub fn address(pod: &Value) -> Result<String> {
    let ip = pod["status"]["podIP"].as_str().context("a ready pod has an address")?;
    Ok(format!("http://{ip}:4180"))
}

/// A header with the master token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// An access token of a site that reads.
pub fn access_token(node: &Node, address: &str, site: &str) -> Result<String> {
    let mut command = node.command("curl");
    command.args(["-sSf", "-H", &bearer(MASTER), "-H", "Content-Type: application/json"]);
    command.args(["-d", r#"{"label": "load", "privilege": "read"}"#]);
    command.arg(format!("{address}/{SPACE}/{site}/s/api/v2/tokens"));
    let told: Value = serde_json::from_str(&output(command)?)?;
    Ok(told["value"].as_str().context("a new token has a text")?.to_owned())
}

/// A curl that reaches the entrance by its public names, with a cookie jar.
fn browser(ground: &Ground, jar: &Path) -> Result<Command> {
    let edge = ground.node()?.edge();
    let mut command = xtask::process::tied("curl");
    command.arg("-sS").arg("--cacert").arg(ground.ca()).arg("-c").arg(jar).arg("-b").arg(jar);
    for host in [SITES_HOST, OPENID_HOST] {
        command.args(["--resolve", &format!("{host}:{}:{}", edge.port(), edge.ip())]);
    }
    command.args(["-H", "Accept: text/html"]);
    Ok(command)
}

/// A token of the provider for the sites' client.
pub fn provider_token(ground: &Ground) -> Result<String> {
    let mut command = browser(ground, &ground.dir().join("none.txt"))?;
    command.args(["-f", "-u", &format!("{CLIENT}:{CLIENT_SECRET}"), "-d", "grant_type=client_credentials"]);
    command.arg(format!("https://{OPENID_HOST}/token"));
    let told: Value = serde_json::from_str(&output(command)?)?;
    Ok(told["access_token"].as_str().context("the provider gives a token")?.to_owned())
}

/// Logs in at a site by the provider's form, and gives the session as a header.
///
/// No Hub runs here: the one callback of all sites only leads to the site's own, which is gone to at once.
pub fn session(ground: &Ground, site: &str, user: &str) -> Result<String> {
    let jar = ground.dir().join("cookies.txt");
    let page = format!("https://{SITES_HOST}/{SPACE}/{site}/");
    let mut command = browser(ground, &jar)?;
    command.args(["-L", "-o", "/dev/null", "-w", "%{url_effective}", &page]);
    let mut next = output(command)?;
    ensure!(next.contains("/interaction/"), "{page} leads to {next}, not to the login form");
    let form = format!("name={user}&password={user}");
    for redirect in 0..REDIRECTS {
        let mut command = browser(ground, &jar)?;
        if redirect == 0 {
            command.args(["-d", &form]);
        }
        command.args(["-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", &next]);
        let told = output(command)?;
        let (status, to) = told.split_once(' ').unwrap_or_default();
        if next == page {
            ensure!(status == "200", "after the login {page} is answered with {status}");
            return cookies(&jar, site);
        }
        let callback = format!("https://{SITES_HOST}/oauth2/callback?");
        next = match to.strip_prefix(&callback) {
            Some(query) => format!("{page}oauth2/callback?{query}"),
            None => to.to_owned(),
        };
    }
    bail!("the login at {page} leads on and on, at last to {next}")
}

/// The session's cookies in a jar of curl's.
fn cookies(jar: &Path, site: &str) -> Result<String> {
    let text = std::fs::read_to_string(jar)?;
    let lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let ours: Vec<String> = lines
        .filter(|fields| fields.len() == 7 && fields[5] == format!("__Secure-sites-{site}"))
        .map(|fields| format!("{}={}", fields[5], fields[6]))
        .collect();
    ensure!(!ours.is_empty(), "the login left no session");
    Ok(format!("Cookie: {}", ours.join("; ")))
}
