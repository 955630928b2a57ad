//! A Site's API keeps the promises of its OpenAPI document in a real pod, over the edge: schemathesis asks every
//! operation through Envoy, nginx and the server, with the Site's master token.

use http::header::AUTHORIZATION;
use http::{Method, Request};
use hyper::body::Bytes;
use serde_json::{Value, json};
use xtask::cluster::node::SITES_HOST;

use crate::support::schema::Schema;
use crate::support::{Edge, LONG, Lab, World, eventually};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Where requests lead: mostly to what there is, without slashes, which a parameter in a path may not have. What goes away is not what the others look at, and nothing is deleted
/// that was not put there for it.
const CONFIG: &str = r#"
[dictionaries]
paths = { values = ["data.json", "a", "page.html", "plain"] }
written = { values = ["page.html", "plain"] }
links = { values = ["link-a", "link-b"] }
targets = { values = ["fdb/develop", "a"] }
going = { values = [GOING] }
moving = { values = [MOVING] }
unlinked = { values = [UNLINKED] }
places = { values = ["there"] }
urls = { values = ["/page.html", "/s/api/v2/files/data.json"] }
signed = { values = ["SIGNED"] }
seconds = { values = [60, 3600] }
tokens = { values = ["TOKEN"] }
tickets = { values = ["TICKET"] }

[parameters]
"path.path" = { dictionary = "paths", probability = 0.6 }
"path.id" = { dictionary = "tokens", probability = 0.6 }
"query.ticket" = { dictionary = "tickets", probability = 0.6 }
"body.target" = { dictionary = "targets", probability = 0.6 }
"body.duration" = { dictionary = "seconds", probability = 0.6 }

# What is named JSON stays JSON: it is read as such.
[[operations]]
include-operation-id = "put_file"
parameters = { "path.path" = { dictionary = "written", probability = 0.6 } }

[[operations]]
include-operation-id = "delete_files"
parameters = { "path.path" = { dictionary = "going" } }

[[operations]]
include-operation-id = "get_symlink"
parameters = { "path.path" = { dictionary = "links", probability = 0.6 } }

[[operations]]
include-operation-id = "put_symlink"
parameters = { "path.path" = { dictionary = "places", probability = 0.3 }, "body.target" = { dictionary = "targets", probability = 0.8 } }

[[operations]]
include-operation-id = "delete_symlink"
parameters = { "path.path" = { dictionary = "unlinked", probability = 0.8 } }

[[operations]]
include-operation-id = "copy"
parameters = { "body.source" = { dictionary = "paths", probability = 0.8 } }

[[operations]]
include-operation-id = "move"
parameters = { "body.source" = { dictionary = "moving", probability = 0.8 } }

[[operations]]
include-operation-id = "create_signed_url"
parameters = { "body.url" = { dictionary = "urls", probability = 0.8 }, "body.duration" = { dictionary = "seconds", probability = 0.8 } }

[[operations]]
include-operation-id = "verify_signed_url"
parameters = { "body.url" = { dictionary = "signed", probability = 0.5 } }
"#;

/// A site's API as a program with the master token calls it.
struct Api {
    edge: Edge,
    base: String,
}

impl Api {
    async fn call(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<Value, String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/{path}", self.base))
            .header(AUTHORIZATION, format!("Bearer {TOKEN}"))
            .body(body.into())
            .map_err(|error| error.to_string())?;
        let answer = self.edge.send(SITES_HOST, request).await?;
        let told = String::from_utf8_lossy(answer.body()).into_owned();
        if answer.status() == 200 {
            serde_json::from_str(&told).map_err(|error| format!("{error}: {told}"))
        } else {
            Err(format!("{}: {told}", answer.status()))
        }
    }

    async fn must(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Value {
        self.call(method, path, body).await.unwrap_or_else(|reason| panic!("{path}: {reason}"))
    }

    async fn link(&self, path: &str) {
        let target = json!({"target": "fdb/develop"}).to_string();
        self.must(Method::PUT, &format!("symlinks/{path}"), target).await;
    }
}

/// Content of each kind, and names for what goes away, as TOML lists.
async fn fill(api: &Api) -> [(&'static str, String); 3] {
    for (path, content) in [
        ("data.json", r#"{"a": 1}"#),
        ("a/b.txt", "text"),
        ("page.html", "<h1>page</h1>"),
        ("plain", "x"),
        ("fdb/develop", "x"),
        ("drafts/report.html", "x"),
    ] {
        api.must(Method::PUT, &format!("files/{path}"), content).await;
    }
    let names = |kind: &str| (0..40).map(|number| format!("{kind}-{number}")).collect::<Vec<_>>();
    for path in names("going").into_iter().chain(names("moving")) {
        api.must(Method::PUT, &format!("files/{path}"), "x").await;
    }
    for path in names("unlinked").iter().map(String::as_str).chain(["link-a", "link-b"]) {
        api.link(path).await;
    }
    [("GOING", "going"), ("MOVING", "moving"), ("UNLINKED", "unlinked")].map(|(word, kind)| {
        let quoted: Vec<_> = names(kind).iter().map(|name| format!("{name:?}")).collect();
        (word, quoted.join(", "))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn real_site_schema_holds_for_every_operation_over_the_edge() {
    let Some(lab) = Lab::node("real_site_schema").await else { return };
    let world = World::on_node(lab, "schema").await;
    let _operator = world.start_operator().await;
    let configuration = json!({"space": world.namespace, "applications": [], "tokens": {"master": TOKEN}});
    world.site("page", json!({"type": "private", "configuration": configuration})).await;
    world.pod_is_ready("page").await;
    let edge = lab.edge();
    let api = Api { edge: edge.clone(), base: format!("/{}/page/s/api/v2", world.namespace) };
    eventually("the API answers", LONG, || api.call(Method::GET, "whoami", "")).await;

    let lists = fill(&api).await;
    let token = json!({"label": "seen", "privilege": "read"}).to_string();
    let token = api.must(Method::POST, "tokens", token).await["token"]["id"].as_str().unwrap().to_owned();
    let signed = json!({"url": "/page.html", "duration": 3600}).to_string();
    let signed = api.must(Method::POST, "signed-urls", signed).await["url"].as_str().unwrap().to_owned();
    let session = api.must(Method::POST, "session-urls", json!({"duration": 3600}).to_string()).await;
    let ticket = session["url"].as_str().unwrap().split_once("ticket=").expect("a ticket").1.to_owned();
    let mut config = CONFIG.to_owned();
    for (word, text) in
        lists.into_iter().chain([("\"TOKEN", format!("\"{token}")), ("SIGNED", signed), ("TICKET", ticket)])
    {
        config = config.replace(word, &text);
    }

    let base = format!("https://{SITES_HOST}{}", api.base);
    let schema = Schema {
        document: format!("{base}/openapi.json"),
        base,
        token: TOKEN,
        examples: 25,
        config: &config,
        arguments: &[],
        edge: Some((edge.address, edge.ca)),
    };
    let seen = schema.run().await;
    assert!(seen.good, "{}\n{:#?}", seen.text, seen.answers);
    assert!(seen.never().is_empty(), "{:?} never went well: {:#?}\n{}", seen.never(), seen.answers, seen.text);
    assert!(seen.answers.len() > 20, "{:#?}", seen.answers);
    world.end().await;
}
