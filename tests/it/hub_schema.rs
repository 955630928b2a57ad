//! The Hub keeps the promises of its OpenAPI document: schemathesis asks every route, as a platform administrator and
//! as a user, of a Hub with everything around it: control plane, operator, Redis, provider, mail server, and a Site
//! whose own API answers.

use serde_json::json;
use xtask::process::{Process, free_port, tied};

use crate::support::runs::{Administrator, UPGRADE};
use crate::support::schema::{Schema, Seen};
use crate::support::{HubProcess, LONG, MASTER, OpenId, Operator, Redis, RunningSite, SOON, Start, World, eventually};

const API: &str = "/hub/api/v2";

/// Operations that cannot go well here: the simulated pods have no logs.
const NEVER_WELL: [&str; 2] = ["GET /sites/-/{site_id}/logs/", "GET /sites/{space}/{site}/logs/"];

/// Where requests lead: mostly to what there is. What is changed and deleted is not what the others look at.
const CONFIG: &str = r#"
max-stream-events = 20

[dictionaries]
spaces = { values = ["team", "docs"] }
sites = { values = ["plans"] }
runs = { values = ["RUN"] }
reports = { values = ["REPORT"] }
templates = { values = ["course"] }
tokens = { values = ["TOKEN"] }

[parameters]
"path.space" = { dictionary = "spaces", probability = 0.8 }
"path.site" = { dictionary = "sites", probability = 0.9 }
"path.site_id" = { dictionary = "sites", probability = 0.8 }
"path.id" = { dictionary = "runs", probability = 0.8 }
"path.name" = { dictionary = "templates", probability = 0.8 }
"path.token_id" = { dictionary = "tokens", probability = 0.8 }

[[operations]]
include-path-regex = "^/reports/"
parameters = { "path.id" = { dictionary = "reports", probability = 0.8 } }
"#;

/// Sites that are changed: what is done to them, by method and path. Each has a pair, one for either address.
const CHANGED: [(&str, &str, &str); 6] = [
    ("edited", "PUT|PATCH", "/$"),
    ("acted", "POST|PATCH", "/(restart|upgrade|retention-date|master-token/regenerate)/$"),
    ("toggled", "POST", "/toggle/$"),
    ("foreign", "POST", "/access/$"),
    ("old", "GET", "/logs/$"),
    ("gone", "DELETE", "/$"),
];

/// The configuration for a caller whose Sites end in `mark`.
fn config(values: [(&str, &str); 3], mark: &str) -> String {
    let text = values.iter().fold(CONFIG.to_owned(), |text, (name, value)| text.replace(name, value));
    CHANGED.iter().fold(text, |text, (site, methods, pattern)| {
        text + &format!(
            r#"
[[operations]]
include-name-regex = '^({methods}) /sites/(-/\{{site_id\}}|\{{space\}}/\{{site\}}){pattern}'
parameters = {{ "path.space" = "docs", "path.site" = "{site}-{mark}", "path.site_id" = "{site}-id-{mark}" }}
"#
        )
    })
}

/// Makes what one caller's requests change.
async fn make_sites(world: &World, mark: &str) {
    for (site, ..) in CHANGED {
        for id in [format!("{site}-{mark}"), format!("{site}-id-{mark}")] {
            let owner = if site == "foreign" { "bob" } else { "alice" };
            let configuration = json!({"space": "docs", "enabled": site != "old"});
            world.site(&id, json!({"owner": owner, "configuration": configuration})).await;
        }
    }
}

/// A mail server that forgets what it takes.
async fn mail_server(dir: &std::path::Path) -> (Process, u16) {
    let port = free_port().unwrap();
    let python = tokio::task::spawn_blocking(xtask::clients::python).await.unwrap().unwrap();
    let mut command = tied("python3");
    command
        .args(["-m", "aiosmtpd", "--nosetuid", "--class", "aiosmtpd.handlers.Sink", "--listen"])
        .arg(format!("127.0.0.1:{port}"))
        .env("PYTHONPATH", python);
    let process = Process::start("aiosmtpd", command, &dir.join("mail.log")).expect("the mail server starts");
    eventually("the mail server listens", SOON, || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    (process, port)
}

/// A volume that a Site of this namespace has left.
async fn left_volume(world: &World) -> String {
    let name = format!("left-{}", world.namespace);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"sites.ecmwf.int/app": "site", "sites.ecmwf.int/id": "left"}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nowhere"},
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "",
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": world.namespace, "name": "left",
                "uid": "5b0d4a4e-6d0f-4f58-9f5a-0d7f7f6a4c11",
            },
        },
    });
    world.api.create("", &volume).await.unwrap();
    eventually("the volume is released", SOON, || async {
        let volume = world.api.get("PersistentVolume", "", &name).await.ok_or("there is none")?;
        if volume["status"]["phase"] == "Released" { Ok(()) } else { Err(volume["status"].to_string()) }
    })
    .await;
    name
}

/// Asks for a report and waits until it is made.
async fn report(hub: &HubProcess, token: &str) -> String {
    let told = hub.json("POST", &format!("{API}/reports/"), token, &json!({"kind": "inventory"})).await;
    assert_eq!(told.status, 202, "{}", told.text());
    let id = told.json()["id"].as_str().unwrap().to_owned();
    eventually("the report is made", LONG, || async {
        let told = hub.get(&format!("{API}/reports/{id}/"), token).await.json();
        if told["state"] == "done" { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    id
}

/// A bulk run that cannot end: its Sites wait for an operator that is held.
async fn held_run(operator: &Operator, administrator: &Administrator<'_>) -> String {
    // What was asked at random may have left a Site without a pod: a run waits ten minutes for it.
    eventually("no run is under way", 3 * LONG, || async {
        let told = administrator.get(&format!("{API}/runs/")).await.json();
        let running = told["runs"].as_array().unwrap().iter().filter(|run| run["state"] == "running").count();
        if running == 0 { Ok(()) } else { Err(format!("{running} run")) }
    })
    .await;
    operator.pause();
    administrator.begin(&format!("{UPGRADE}?force=true")).await
}

fn good(seen: &Seen) {
    assert!(seen.good, "{}\n{:#?}", seen.text, seen.answers);
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_schema_holds_for_every_route_and_caller() {
    let mut world = World::new("hub-schema").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let own_api = RunningSite::private().await;
    let dir = tempfile::tempdir().unwrap();
    let (_mail, port) = mail_server(dir.path()).await;
    let smtp = json!({"host": "127.0.0.1", "port": port, "security": "plain", "from": "sites@example.test", "default_domain": "example.test"});
    // One API answers for all Sites: addresses must differ by the id, and these do not in the end.
    let settings = json!({
        "hub": {
            "site_address": format!("http://127.0.0.1:{}/{{id}}/..", own_api.port),
            "bulk": {"unavailable_percent": 100},
        },
        "notifications": {"smtp": smtp},
        "jobs": {"notification_default_assignee": "desk@example.test"},
    });
    let openid = OpenId::get().await;
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let (alice, carol) = (openid.token("alice"), openid.token("carol-admin"));

    // The Site whose API answers, one of somebody else, and something of each noun.
    let configuration = json!({"space": "team", "tokens": {"master": MASTER}, "settings": {"monitored": true}});
    world.site("plans", json!({"owner": "alice", "configuration": configuration})).await;
    for mark in ["alice", "carol"] {
        make_sites(&world, mark).await;
    }
    world.settled(&operator, "plans").await;
    let template = json!({"quota": 3, "description": "for a course"});
    for name in ["course", "spare"] {
        let told = hub.json("PUT", &format!("{API}/templates/{name}/"), &carol, &template).await;
        assert_eq!(told.status, 200, "{}", told.text());
    }
    let administrator = Administrator::of(&hub, openid);
    let run = administrator.ended(&administrator.begin(UPGRADE).await, LONG).await;
    let run = run["id"].as_str().unwrap().to_owned();
    let report = report(&hub, &carol).await;
    let volume = left_volume(&world).await;
    let mut tokens = Vec::new();
    for _ in 0..30 {
        tokens.push(own_api.token("read", Some(3600)).await.0);
    }
    let tokens = tokens.join("\", \"");

    let base = format!("http://{}{API}", hub.address());
    let document = format!("http://{}/hub/api/openapi.json", hub.address());
    let values = [("RUN", run.as_str()), ("REPORT", report.as_str()), ("TOKEN", tokens.as_str())];
    let ask = async |token: &str, config: &str, arguments: &[&str], examples| {
        let (document, base) = (document.clone(), base.clone());
        Schema { document, base, token, examples, config, arguments, edge: None }.run().await
    };
    // The switch would turn every later change into 503; it is tried alone.
    let switch = ["--exclude-operation-id", "write_state"];
    let volumes = format!(
        "\n[[operations]]\ninclude-path = \"/platform/volumes/{{name}}/\"\nparameters = {{ \"path.name\" = \"{volume}\" }}\n"
    );
    let templates = "\n[[operations]]\ninclude-operation-id = \"delete\"\nparameters = { \"path.name\" = \"spare\" }\n";
    let administrators = config(values, "carol") + &volumes + templates;
    let seen = ask(&carol, &administrators, &switch, 12).await;
    good(&seen);
    let mut both = ask(&alice, &config(values, "alice"), &switch, 6).await;
    good(&both);
    both.join(seen);
    let held = held_run(&operator, &administrator).await;
    let cancelled = format!("[parameters]\n\"path.id\" = \"{held}\"\n");
    let seen = ask(&carol, &cancelled, &["--include-operation-id", "cancel_run"], 6).await;
    good(&seen);
    both.join(seen);
    assert_eq!(both.never(), NEVER_WELL, "{:#?}\n{}", both.answers, both.text);
    assert!(both.answers.len() > 50, "{:#?}", both.answers);
    let seen = ask(&carol, CONFIG, &["--include-operation-id", "write_state"], 20).await;
    good(&seen);
    assert!(seen.never().is_empty(), "{:?}", seen.answers);
    world.end().await;
}
