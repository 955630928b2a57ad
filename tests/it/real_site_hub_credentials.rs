//! Credentials by the Hub against a site's real pod, over the edge: each is made at the Hub and used at the site, and
//! nothing of it is logged or kept by the Hub. Then the pod is down, and at last it lies.

use std::collections::BTreeSet;
use std::path::PathBuf;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use hyper::body::Bytes;
use serde_json::{Value, json};
use xtask::cluster::node::{OPENID_HOST, SITES_HOST, image};
use xtask::process::Process;

use crate::support::api::name_of;
use crate::support::visitor::Visitor;
use crate::support::{Edge, LONG, Lab, World, eventually};

const MASTER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// The user id of the client that asks.
const CLIENT: &str = "sites";
const REDIS: &str = "redis.sites-services.svc";

/// A program that talks to the Hub and the site over the edge.
struct Program {
    edge: Edge,
    /// Its token of the provider.
    token: String,
    /// Public path of the site, with a slash at both ends.
    path: String,
}

impl Program {
    /// Gets a token of the provider for the client itself.
    async fn known(edge: Edge, path: &str) -> Self {
        let form = Bytes::from_static(b"grant_type=client_credentials&client_id=sites&client_secret=demo-not-a-secret");
        let request = || {
            let request = Request::post("/token").header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            request.body(form.clone()).unwrap()
        };
        let token = eventually("the provider gives a token", LONG, || async {
            let answer = edge.send(OPENID_HOST, request()).await?;
            let told: Value = serde_json::from_slice(answer.body()).map_err(|error| error.to_string())?;
            told["access_token"].as_str().map(str::to_owned).ok_or_else(|| told.to_string())
        })
        .await;
        Self { edge, token, path: path.to_owned() }
    }

    async fn send(&self, method: &Method, path: &str, bearer: &str, body: Bytes) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        if !bearer.is_empty() {
            request = request.header(AUTHORIZATION, format!("Bearer {bearer}"));
        }
        let answer = self.edge.send(SITES_HOST, request.body(body).unwrap()).await;
        let answer = answer.unwrap_or_else(|reason| panic!("{method} {path}: {reason}"));
        (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())
    }

    /// Asks the Hub about the site; every answer is JSON. Only a `POST` has a body.
    async fn hub(&self, method: Method, below: &str, body: Value) -> (u16, Value) {
        let bytes = if method == Method::POST && !body.is_null() { body.to_string().into() } else { Bytes::new() };
        let path = format!("/hub/api/v2/sites{}{below}", self.path);
        let (status, text) = self.send(&method, &path, &self.token, bytes).await;
        let told = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {below}: {error}: {text}"));
        (status, told)
    }

    /// As [`Program::hub`], and it must go well.
    async fn done(&self, method: Method, below: &str, body: Value) -> Value {
        let (status, told) = self.hub(method.clone(), below, body).await;
        assert_eq!((status, &told["status"]), (200, &json!("OK")), "{method} {below}: {told}");
        told
    }

    /// Waits until the Hub reaches the site; its Service follows the pod after the entrance does.
    async fn reached(&self) {
        eventually("the Hub reaches the site", LONG, || async {
            let (status, told) = self.hub(Method::GET, "tokens/", Value::Null).await;
            if status == 200 { Ok(()) } else { Err(told.to_string()) }
        })
        .await;
    }

    /// The status of the site's answer.
    async fn site(&self, method: Method, below: &str, bearer: &str) -> u16 {
        let body = if method == Method::PUT { Bytes::from_static(b"written") } else { Bytes::new() };
        self.send(&method, &format!("{}{below}", self.path), bearer, body).await.0
    }

    /// A new access token: id and text.
    async fn token(&self, privilege: &str) -> (String, String) {
        let body = json!({"label": "of the test", "privilege": privilege, "duration": 3600});
        let made = self.done(Method::POST, "tokens/", body).await;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        (text(&made["token"]["id"]), text(&made["value"]))
    }
}

/// Everything that Redis is told, from now on.
fn redis_log(lab: &Lab, world: &World) -> (Process, PathBuf) {
    let file = std::env::temp_dir().join(format!("{}-redis.log", world.namespace));
    let mut command = lab.the_node().command("redis-cli");
    command.args(["-h", REDIS, "monitor"]);
    (Process::start("redis-monitor", command, &file).expect("redis-cli (`cargo xtask setup`)"), file)
}

/// What every container of the pods with a label has written.
async fn logs(world: &World, selector: &str) -> String {
    let mut all = String::new();
    for pod in world.api.list("Pod", &world.namespace, selector).await {
        for container in pod["spec"]["containers"].as_array().unwrap() {
            let container = container["name"].as_str().unwrap();
            let path =
                format!("/api/v1/namespaces/{}/pods/{}/log?container={container}", world.namespace, name_of(&pod));
            // One that has not started yet has written nothing.
            all += &world.client.request_text(Request::get(path).body(Vec::new()).unwrap()).await.unwrap_or_default();
        }
    }
    all
}

/// A site whose pod is ready and whose route is served, and a program that administers it.
async fn opened(lab: &Lab, world: &World) -> Program {
    let tokens = json!({"master": MASTER});
    let configuration = json!({"space": world.namespace, "applications": [], "tokens": tokens});
    world.site("page", json!({"type": "private", "owner": CLIENT, "configuration": configuration})).await;
    world.pod_is_ready("page").await;
    let program = Program::known(lab.edge(), &format!("/{}/page/", world.namespace)).await;
    for file in ["plan.html", "open/index.html", "closed/index.html"] {
        eventually(&format!("{file} is written"), LONG, || async {
            let status = program.site(Method::PUT, &format!("s/api/v2/files/{file}"), MASTER).await;
            if status == 200 { Ok(()) } else { Err(status) }
        })
        .await;
    }
    eventually("the Hub is served", LONG, || async {
        let path = format!("/hub/api/v2/sites{}", program.path);
        let (status, text) = program.send(&Method::GET, &path, &program.token, Bytes::new()).await;
        if status == 200 { Ok(()) } else { Err(text) }
    })
    .await;
    program.reached().await;
    program
}

#[tokio::test]
async fn real_site_hub_credentials() {
    let Some(lab) = Lab::node("real_site_hub_credentials").await else { return };
    let mut world = World::on_node(lab, "credentials").await;
    world.settings["redis"] = json!({"url": format!("redis://{REDIS}:6379")});
    world.settings["hub"] = json!({"site_api_timeout": "2s"});
    let operator = world.start_operator().await;
    let _hub = world.start_hub().await;
    let (monitor, redis) = redis_log(lab, &world);
    let program = opened(lab, &world).await;

    let mut secrets = BTreeSet::from([MASTER.to_owned(), program.token.clone()]);
    let reader = access_tokens(&program, &mut secrets).await;
    let (signed, visitor) = urls(&program, &mut secrets).await;
    let written = logs(&world, "sites.ecmwf.int/id=page").await;
    let master = another_master_token(&program, &reader, &signed).await;
    secrets.insert(master.clone());
    let folder = format!("https://{SITES_HOST}{}open/", program.path);
    let seen = visitor.open(&folder).await.unwrap();
    assert_ne!(seen.address, folder, "a session URL ends with the master token it hangs on: {seen:?}");

    archived(&world, &program, &master).await;
    operator.kill();
    without_pod(&world, &program, &mut secrets).await;

    let hub = logs(&world, "app=sites-hub").await;
    assert!(hub.contains("/master-token/regenerate/"), "the Hub says what it was asked: {hub}");
    let told = std::fs::read_to_string(&redis).unwrap();
    assert!(told.contains(&world.namespace), "Redis is used: {told}");
    for secret in &secrets {
        assert!(!hub.contains(secret), "the Hub's log has {secret}");
        assert!(!written.contains(secret), "the site's log has {secret}");
        assert!(!told.contains(secret), "Redis was told {secret}");
    }
    drop(monitor);
    std::fs::remove_file(redis).unwrap();
    world.end().await;
}

/// Access tokens do what their privilege says until they are revoked; gives one that reads.
async fn access_tokens(program: &Program, secrets: &mut BTreeSet<String>) -> String {
    let (reader_id, reader) = program.token("read").await;
    let (writer_id, writer) = program.token("read-write").await;
    let (lost_id, lost) = program.token("read-write").await;
    secrets.extend([reader.clone(), writer.clone(), lost.clone()]);
    let (read, write) = ("plan.html", "s/api/v2/files/new.txt");
    assert_eq!(program.site(Method::GET, read, "").await, 401);
    for (token, may_write) in [(&reader, 403), (&writer, 200), (&lost, 200)] {
        assert_eq!(program.site(Method::GET, read, token).await, 200);
        assert_eq!(program.site(Method::PUT, write, token).await, may_write);
        assert_eq!(program.site(Method::GET, "s/api/v2/tokens", token).await, 403, "no token manages tokens");
    }
    let revoked = program.done(Method::DELETE, &format!("tokens/{lost_id}/"), Value::Null).await;
    assert_eq!(revoked["token"]["state"], "revoked");
    for (method, path) in [(Method::GET, read), (Method::PUT, write)] {
        assert_eq!(program.site(method, path, &lost).await, 403);
    }

    let one = program.done(Method::GET, &format!("tokens/{reader_id}/"), Value::Null).await;
    assert_eq!((&one["token"]["privilege"], &one["token"]["state"]), (&json!("read"), &json!("active")));
    let all = program.done(Method::GET, "tokens/", Value::Null).await;
    let listed = all["tokens"].as_array().unwrap().iter();
    let listed: BTreeSet<_> =
        listed.map(|token| (token["id"].clone().to_string(), token["state"].to_string())).collect();
    let expected = [(&reader_id, "active"), (&writer_id, "active"), (&lost_id, "revoked")];
    assert_eq!(listed, expected.map(|(id, state)| (format!("{id:?}"), format!("{state:?}"))).into());
    let history = program.done(Method::GET, "tokens/history/", Value::Null).await;
    let events = history["history"].as_array().unwrap().iter();
    let events: Vec<_> = events.map(|event| (event["event"].clone(), event["token_id"].clone())).collect();
    let expected = [("revoked", &lost_id), ("created", &lost_id), ("created", &writer_id), ("created", &reader_id)];
    assert_eq!(events, expected.map(|(event, id)| (json!(event), json!(id))));
    for told in [one, all, history] {
        assert!([&reader, &writer, &lost].iter().all(|text| !told.to_string().contains(*text)), "{told}");
    }

    // The site's own words for what it does not have or take.
    assert_eq!(program.hub(Method::GET, "tokens/none/", Value::Null).await.0, 404);
    let (status, told) = program.hub(Method::POST, "tokens/", json!({"label": "x", "privilege": "own"})).await;
    assert_eq!((status, &told["status"]), (400, &json!("error")), "{told}");
    reader
}

/// Signed URLs open one thing to anybody, session URLs a folder in one browser; gives a signed path and the browser.
async fn urls(program: &Program, secrets: &mut BTreeSet<String>) -> (String, Visitor) {
    let sign = async |url: &str, method: &str| {
        let body = json!({"url": url, "duration": 3600, "method": method});
        let made = program.done(Method::POST, "signed-urls/", body).await;
        made["url"].as_str().unwrap().to_owned()
    };
    let host = format!("https://{SITES_HOST}{}", program.path);
    let read = sign("plan.html", "GET").await;
    let write = sign("s/api/v2/files/signed.txt", "PUT").await;
    secrets.extend([&read, &write].map(|url| url.rsplit_once('=').unwrap().1.to_owned()));
    let (reads, writes) = (read.strip_prefix(&host).unwrap(), write.strip_prefix(&host).unwrap());
    assert_eq!(program.site(Method::GET, reads, "").await, 200, "{read}");
    assert_eq!(program.site(Method::PUT, writes, "").await, 200, "{write}");
    assert_eq!(program.site(Method::GET, writes, "").await, 403, "another method");
    assert_eq!(program.site(Method::GET, &reads.replace("plan.html", "closed/index.html"), "").await, 403);
    let verdict = async |url: &str| {
        let told = program.done(Method::POST, "signed-urls/verify/", json!({"url": url})).await;
        told["valid"].as_bool().unwrap()
    };
    assert!(verdict(&read).await && verdict(&write).await);
    // One letter of the signature is another.
    let at = read.len() - 10;
    let letter = if read.as_bytes()[at] == b'A' { "B" } else { "A" };
    let changed = format!("{}{letter}{}", &read[..at], &read[at + 1..]);
    assert_eq!(program.site(Method::GET, changed.strip_prefix(&host).unwrap(), "").await, 403);
    assert!(!verdict(&changed).await);

    let made = program.done(Method::POST, "session-urls/", json!({"path": "open", "duration": 3600})).await;
    let session = made["url"].as_str().unwrap();
    secrets.insert(session.rsplit_once('=').unwrap().1.to_owned());
    let visitor = Visitor::at(program.edge.clone());
    let seen = visitor.open(session).await.unwrap();
    assert_eq!((seen.status, seen.address, seen.text.as_str()), (200, format!("{host}open/"), "written"));
    assert_eq!(visitor.open(&format!("{host}open/")).await.unwrap().status, 200, "the browser remembers");
    let closed = visitor.open(&format!("{host}closed/")).await.unwrap();
    assert!(!closed.text.contains("written"), "another folder: {closed:?}");
    let other = Visitor::at(program.edge.clone()).open(&format!("{host}open/")).await.unwrap();
    assert!(other.address.starts_with(&format!("https://{OPENID_HOST}/")), "another browser: {other:?}");
    (reads.to_owned(), visitor)
}

/// The master token is shown and replaced; gives the new one.
async fn another_master_token(program: &Program, reader: &str, signed: &str) -> String {
    let shown = program.done(Method::GET, "master-token/", Value::Null).await;
    assert_eq!(shown["token"], MASTER);
    let made = program.done(Method::POST, "master-token/regenerate/", Value::Null).await;
    let master = made["token"].as_str().unwrap().to_owned();
    assert_ne!(master, MASTER);
    assert_eq!(program.done(Method::GET, "master-token/", Value::Null).await["token"], master.as_str());
    eventually("the pod follows", LONG, || async {
        let status = program.site(Method::GET, "s/api/v2/tokens", &master).await;
        if status == 200 { Ok(()) } else { Err(status) }
    })
    .await;
    assert_eq!(program.site(Method::GET, "s/api/v2/tokens", MASTER).await, 401, "nobody has the old one any more");
    assert_eq!(program.site(Method::GET, "plan.html", reader).await, 200, "access tokens stay");
    assert_eq!(program.site(Method::GET, signed, "").await, 403, "signed URLs end");
    program.reached().await;
    master
}

const CALLS: &[(&str, &str)] = &[
    ("GET", "tokens/"),
    ("POST", "tokens/"),
    ("GET", "tokens/history/"),
    ("GET", "tokens/x/"),
    ("DELETE", "tokens/x/"),
    ("POST", "signed-urls/"),
    ("POST", "signed-urls/verify/"),
    ("POST", "session-urls/"),
];

/// An archived site has none of it, and keeps its master token.
async fn archived(world: &World, program: &Program, master: &str) {
    world.edit_site("page", json!({"spec": {"configuration": {"enabled": false}}})).await;
    for (method, path) in CALLS {
        let (status, told) = program.hub(method.parse().unwrap(), path, json!({})).await;
        assert_eq!((status, &told["status"]), (410, &json!("error")), "{method} {path}: {told}");
    }
    let kept = program.done(Method::POST, "master-token/regenerate/", Value::Null).await;
    assert_eq!(kept["token"], Value::Null);
    assert!(kept["message"].as_str().unwrap().contains("archived"), "{kept}");
    assert_eq!(program.done(Method::GET, "master-token/", Value::Null).await["token"], master);
    // Until it has ended the old pod would answer too.
    eventually("the pod is gone", LONG, || async { world.get("Pod", "page-0").await.is_none() }).await;
    world.edit_site("page", json!({"spec": {"configuration": {"enabled": true}}})).await;
    program.reached().await;
}

/// Scales the site's pods with no operator to mind it.
async fn scale(world: &World, replicas: u8) {
    let patch = json!({"spec": {"replicas": replicas}});
    world.api.merge("StatefulSet", &world.namespace, "page", "", &patch).await.unwrap();
    if replicas > 0 {
        return world.pod_is_ready("page").await;
    }
    eventually("the pod is gone", LONG, || async { world.get("Pod", "page-0").await.is_none() }).await;
}

/// A pod that is down makes nothing, and one that lies is not believed.
async fn without_pod(world: &World, program: &Program, secrets: &mut BTreeSet<String>) {
    let before = program.done(Method::GET, "tokens/history/", Value::Null).await;
    scale(world, 0).await;
    let body = json!({"label": "in vain", "privilege": "read", "url": "plan.html", "path": "", "duration": 60});
    for (method, path) in CALLS {
        let method: Method = method.parse().unwrap();
        // The last connections to the old pod may still be there.
        eventually(&format!("{method} {path} says that the site is down"), LONG, || async {
            let (status, told) = program.hub(method.clone(), path, body.clone()).await;
            let clear = told["message"].as_str().is_some_and(|text| text.starts_with("the site's API"));
            if status == 503 && clear { Ok(()) } else { Err(format!("{status} {told}")) }
        })
        .await;
    }
    liar(world).await;
    for (method, path, status, text) in [
        ("GET", "tokens/history/", 500, "its answer is too long"),
        ("GET", "tokens/", 500, "it answered 307 Temporary Redirect"),
        ("POST", "tokens/", 500, "it answered 307 Temporary Redirect"),
        ("POST", "signed-urls/", 500, "it answered 302 Found"),
        ("POST", "session-urls/", 500, "its answer is no JSON"),
        ("GET", "tokens/slow/", 503, "no answer within"),
        ("GET", "tokens/mean/", 500, "you sent Bearer …"),
    ] {
        eventually(&format!("{method} {path} is refused"), LONG, || async {
            let (seen, told) = program.hub(method.parse().unwrap(), path, body.clone()).await;
            let message = told["message"].as_str().unwrap_or_default();
            if seen == status && message.starts_with("the site's API") && message.contains(text) {
                Ok(())
            } else {
                Err(format!("{seen} {told}"))
            }
        })
        .await;
    }
    let heard = logs(world, "lies=true").await;
    assert!(heard.contains("GET /first"), "the pod says what it was asked: {heard}");
    assert!(!heard.contains("/second"), "a redirect was followed: {heard}");
    world.api.delete("Pod", &world.namespace, "liar").await;
    eventually("the liar is gone", LONG, || async { world.get("Pod", "liar").await.is_none() }).await;

    scale(world, 1).await;
    program.reached().await;
    let after = program.done(Method::GET, "tokens/history/", Value::Null).await;
    assert_eq!(after["history"], before["history"], "nothing was made meanwhile");
    let (_, late) = program.token("read").await;
    assert_eq!(program.site(Method::GET, "plan.html", &late).await, 200);
    secrets.insert(late);
}

/// A pod behind the site's Service that answers what no site does.
async fn liar(world: &World) {
    let config = r#"pid /tmp/pid; error_log stderr; events {} http { log_format asked '$request_method $uri';
        access_log off; client_body_temp_path /tmp/b; proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f;
        uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s; default_type application/json;
        server { listen 4180;
        location = /first { access_log /dev/stdout asked; return 200 '{}'; }
        location = /second { access_log /dev/stdout asked; return 200 '{"status":"OK","token":null,"tokens":[]}'; }
        location ~ /history$ { root /tmp; try_files /long.json =404; }
        location ~ /slow$ { limit_rate 10; root /tmp; try_files /long.json =404; }
        location ~ /mean$ { return 500 '{"status":"error","message":"you sent $http_authorization"}'; }
        location ~ /tokens$ { return 307 /second; }
        location ~ /signed-urls$ { return 302 /second; }
        location ~ /session-urls$ { return 200 'OK'; } } }"#;
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "liar"}, "data": {"nginx.conf": config}});
    world.api.apply(&world.namespace, &map).await.unwrap();
    let mut labels = world.service("page").await["spec"]["selector"].clone();
    labels["lies"] = json!("true");
    let start = "(printf '\"'; head -c 5000000 /dev/zero | tr '\\0' x; printf '\"') > /tmp/long.json; \
                 exec nginx -e /dev/stderr -c /etc/liar/nginx.conf -g 'daemon off;'";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "liar", "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "nginx", "image": image("nginx"), "imagePullPolicy": "Never", "command": ["sh", "-c", start],
                "readinessProbe": {"httpGet": {"path": "/first", "port": 4180}, "periodSeconds": 1},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/liar"}, {"name": "tmp", "mountPath": "/tmp"}],
            }],
            "volumes": [{"name": "config", "configMap": {"name": "liar"}}, {"name": "tmp", "emptyDir": {}}],
        },
    });
    world.api.create(&world.namespace, &pod).await.unwrap();
}
