//! Requests that people decide: who may ask, and what a real mail server and an issue tracker are told, with nothing of
//! what people write becoming more than text.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::{Value, json};

use crate::support::{HubProcess, MailServer, OpenId, SOON, Start, Told, World, eventually};

const PASSWORD: &str = "marker-of-a-mail-password";
const SECRET: &str = "marker-of-a-webhook-secret";

/// A Hub with these ways to tell people.
async fn hub(world: &World, openid: &OpenId, notifications: Value, assignee: Option<&str>) -> HubProcess {
    let settings = json!({
        "hub": {"log_level": "DEBUG", "dependency_log_level": "DEBUG"},
        "notifications": notifications, "jobs": {"notification_default_assignee": assignee},
    });
    world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await
}

fn smtp(port: u16) -> Value {
    json!({"host": "127.0.0.1", "port": port, "security": "plain", "from": "Sites <sites@example.test>",
        "default_domain": "example.test", "user": "sites", "password": PASSWORD})
}

/// Asks for something about a Site.
async fn ask(hub: &HubProcess, token: &str, site: &str, what: &str, body: Value) -> Told {
    hub.json("POST", &format!("/hub/api/v2/sites/docs/{site}/{what}/"), token, &body).await
}

#[track_caller]
fn is(told: &Told, status: u16, text: &str) {
    assert_eq!(told.status, status, "{}", told.text());
    assert!(told.text().contains(text), "{text:?}: {}", told.text());
}

/// The Sites of a test: alice's private one that bob may read, a public one, and what else is asked for.
async fn sites(world: &World, more: &[(&str, Value)]) {
    let private = json!({"owner": "alice", "configuration": {"space": "docs", "share": {"view_users": ["bob"]}}});
    world.site("fdb", private).await;
    world.site("open", json!({"owner": "alice", "type": "public", "configuration": {"space": "docs"}})).await;
    for (id, spec) in more {
        world.site(id, spec.clone()).await;
    }
}

async fn known(hub: &HubProcess, openid: &OpenId, names: &[&str]) {
    let admin = openid.token("carol-admin");
    eventually("the Hub knows the Sites", SOON, || async {
        for name in names {
            let told = hub.get(&format!("/hub/api/v2/sites/docs/{name}/"), &admin).await;
            if told.status != 200 {
                return Err(told.text());
            }
        }
        Ok(())
    })
    .await;
}

/// So many requests were handed over and so many not, as the log says; and no line has a secret, its beginning, or the
/// form in which it goes over a connection.
async fn keeps_quiet(hub: &HubProcess, handed: usize, refused: usize) {
    eventually("each request has its line", SOON, || async {
        let lines = |text: &str| hub.process.logs_with(text).len();
        let seen = (lines("a request was handed over"), lines("a request could not be handed over"));
        if seen == (handed, refused) { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
    let log = hub.process.log_text();
    let login = STANDARD.encode(format!("\0sites\0{PASSWORD}"));
    for secret in [&PASSWORD[..8], &STANDARD.encode(PASSWORD)[..12], &login[..12], &STANDARD.encode(SECRET)[..12]] {
        assert!(!log.contains(secret), "{secret}");
    }
}

fn md5(parts: [&str; 4]) -> String {
    Md5::digest(parts.join("\n")).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The value of a header of a mail, unfolded.
fn header(mail: &Value, name: &str) -> String {
    let head = mail["head"].as_str().unwrap().replace("\r\n ", " ").replace("\r\n\t", " ");
    let lines: Vec<&str> = head.split("\r\n").filter_map(|line| line.strip_prefix(&format!("{name}: "))).collect();
    assert!(lines.len() < 2, "{name} came twice: {head}");
    lines.first().copied().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_requests_go_to_people_by_mail() {
    let world = World::new("hub-requests-mail").await;
    let mail = MailServer::start("sites", PASSWORD).await;
    let openid = OpenId::get().await;
    let two = json!({"owner": "alice@example.test, eve@evil.test", "configuration": {"space": "docs"}});
    let refused = json!({"owner": "refused@example.test", "configuration": {"space": "docs"}});
    sites(&world, &[("two", two), ("refused", refused)]).await;
    let hub = hub(&world, openid, json!({"smtp": smtp(mail.port())}), Some("desk")).await;
    known(&hub, openid, &["fdb", "open", "two", "refused"]).await;
    let [alice, bob, dave, carol] = ["alice", "bob", "dave", "carol-admin"].map(|user| openid.token(user));

    // Who may not, and what is no request.
    let why = json!({"comment": "please"});
    is(&ask(&hub, "", "fdb", "access", json!({})).await, 401, "log in");
    for token in [&alice, &bob, &carol] {
        is(&ask(&hub, token, "fdb", "access", json!({})).await, 403, "you have access to this site already");
    }
    is(&ask(&hub, &dave, "open", "access", json!({})).await, 403, "already");
    is(&ask(&hub, &dave, "nothing", "access", json!({})).await, 404, "not found");
    for what in ["requests/publish", "requests/storage"] {
        is(&ask(&hub, "", "fdb", what, why.clone()).await, 401, "log in");
        is(&ask(&hub, &bob, "fdb", what, why.clone()).await, 403, "only administrators of the site");
        is(&ask(&hub, &dave, "fdb", what, why.clone()).await, 404, "not found");
        for empty in [json!({}), json!({"comment": " "}), json!({"comment": null})] {
            is(&ask(&hub, &alice, "fdb", what, empty).await, 400, "[comment] is required");
        }
        is(&ask(&hub, &alice, "fdb", what, json!({"comment": "x".repeat(4001)})).await, 400, "[comment] must be at");
        is(&ask(&hub, &alice, "fdb", what, json!({"comment": "x", "priority": 1})).await, 400, "[priority] ");
    }
    is(&ask(&hub, &alice, "open", "requests/publish", why.clone()).await, 400, "the site is public already");
    for quota in [json!(0), json!(1_000_001), json!("much"), json!(-1), json!(1.5), json!([5])] {
        let told = ask(&hub, &alice, "fdb", "requests/storage", json!({"comment": "x", "quota": quota})).await;
        is(&told, 400, "[quota] must be a number of GB from 1 to 1000000");
    }
    assert!(mail.mails().is_empty(), "{:?}", mail.mails());

    // Access: to the owner, from whoever asks.
    is(&ask(&hub, &dave, "fdb", "access", json!({})).await, 200, "the request was sent");
    let [told] = &mail.mails()[..] else { panic!("{:?}", mail.mails()) };
    assert_eq!((&told["sender"], &told["recipients"]), (&json!("sites@example.test"), &json!(["alice@example.test"])));
    let subject = "Access to /docs/fdb asked for by dave";
    let key = md5([subject, "/docs/fdb", "alice", "dave"]);
    for (name, value) in [
        ("From", "Sites <sites@example.test>".to_owned()),
        ("To", "alice@example.test".to_owned()),
        ("Reply-To", "dave@example.test".to_owned()),
        ("Subject", subject.to_owned()),
        ("References", format!("<{key}@sites>")),
    ] {
        assert_eq!(header(told, name).replace("\"Sites\"", "Sites"), value, "{name}: {}", told["head"]);
    }
    assert!(told["body"].as_str().unwrap().contains("https://sites.example.test/docs/fdb/"), "{}", told["body"]);
    assert_eq!(mail.logins().len(), 1, "{:?}", mail.logins());
    assert!(mail.logins()[0]["good"].as_bool().unwrap(), "{:?}", mail.logins());

    // Publication and room: to the desk; form data does as well. What people write is text and nothing more.
    let hostile = "line\r\n.\r\nMAIL FROM:<eve@evil.test>\r\nBcc: eve@evil.test\r\n{{ 7 * 7 }} <b>";
    is(&ask(&hub, &alice, "fdb", "requests/publish", json!({"comment": hostile})).await, 200, "sent");
    let bearer = format!("Bearer {alice}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let path = "/hub/api/v1/sites/-/fdb/requests/storage/";
    is(&hub.ask("POST", path, &headers, "comment=large&quota=900").await, 200, "sent");
    is(&ask(&hub, &alice, "fdb", "requests/storage", json!({"comment": "more"})).await, 200, "sent");
    let mails = mail.mails();
    assert_eq!(mails.len(), 4, "each request is one mail: {mails:?}");
    let subjects = ["Publication of /docs/fdb", "Storage of /docs/fdb: 900 GB", "Storage of /docs/fdb: 600 GB"];
    for (mail, subject) in mails[1..].iter().zip(subjects) {
        assert_eq!(mail["recipients"], json!(["desk@example.test"]));
        assert_eq!((header(mail, "Subject").as_str(), header(mail, "Bcc").as_str()), (subject, ""));
    }
    let body = mails[1]["body"].as_str().unwrap();
    assert!(body.contains("MAIL FROM:<eve@evil.test>") && body.contains("{{ 7 * 7 }} <b>"), "{body}");

    // Names of people cannot begin a header, nor add a recipient.
    let forged = json!({"sub": "dave\r\nBcc: eve@evil.test", "email": "dave@example.test\r\nBcc: eve@evil.test"});
    is(&ask(&hub, &openid.token_with("dave", &forged), "fdb", "access", json!({})).await, 200, "sent");
    let forged = mail.mails().pop().unwrap();
    assert_eq!(forged["recipients"], json!(["alice@example.test"]));
    assert_eq!((header(&forged, "Bcc"), header(&forged, "Reply-To")), (String::new(), String::new()), "{forged}");
    assert_eq!(header(&forged, "Subject"), "Access to /docs/fdb asked for by daveBcc: eve@evil.test");
    for site in ["two", "refused"] {
        let told = ask(&hub, &dave, site, "access", json!({})).await;
        is(&told, 500, "the request could not be handed over: try again later");
        assert!(!told.text().contains(&PASSWORD[..8]), "{}", told.text());
    }
    assert_eq!(mail.mails().len(), 5, "nobody else was told");
    keeps_quiet(&hub, 5, 2).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_requests_are_off_without_a_way_and_fail_when_it_is_broken() {
    let world = World::new("hub-requests-off").await;
    let mail = MailServer::start("sites", PASSWORD).await;
    let openid = OpenId::get().await;
    sites(&world, &[]).await;
    let (alice, dave) = (openid.token("alice"), openid.token("dave"));
    let why = json!({"comment": "please"});
    let off = "Requests are not available";

    // That it is off is said before anything is looked at; who is nobody is told that first.
    let none = hub(&world, openid, Value::Null, Some("desk")).await;
    for what in ["access", "requests/publish", "requests/storage"] {
        is(&ask(&none, &dave, "no-such-site", what, json!({})).await, 503, off);
        is(&ask(&none, "", "fdb", what, json!({})).await, 401, "log in");
    }
    // Without somebody who decides, only owners can be asked.
    let nobody = hub(&world, openid, json!({"smtp": smtp(mail.port())}), None).await;
    known(&nobody, openid, &["fdb", "open"]).await;
    for what in ["requests/publish", "requests/storage"] {
        is(&ask(&nobody, &alice, "fdb", what, why.clone()).await, 503, off);
    }
    is(&ask(&nobody, &alice, "open", "requests/publish", why.clone()).await, 400, "public already");
    is(&ask(&nobody, &dave, "fdb", "access", json!({})).await, 200, "sent");
    assert_eq!(mail.mails().len(), 1);

    // A wrong password; a server that falls silent; a connection that must be encrypted and cannot be, over which
    // nothing goes; and nobody there.
    let mut wrong = smtp(mail.port());
    wrong["password"] = json!("marker-of-a-wrong-password");
    let mut silent = smtp(mail.port());
    silent["user"] = json!("silent");
    let mut encrypted = smtp(mail.port());
    encrypted["security"] = Value::Null;
    let mut gone = smtp(mail.port());
    gone["port"] = json!(1);
    let logins = mail.logins().len();
    for (broken, tried) in [(wrong, 1), (silent, 1), (encrypted, 0), (gone, 0)] {
        let hub = hub(&world, openid, json!({"smtp": broken}), Some("desk")).await;
        known(&hub, openid, &["fdb"]).await;
        let before = mail.logins().len();
        is(&ask(&hub, &dave, "fdb", "access", json!({})).await, 500, "could not be handed over");
        assert!((mail.logins().len() > before) == (tried > 0), "{:?}", mail.logins());
        keeps_quiet(&hub, 0, 1).await;
    }
    assert!(mail.logins()[logins..].iter().all(|login| login["good"] == false), "{:?}", mail.logins());
    assert_eq!(mail.mails().len(), 1);
    world.end().await;
}

/// What an issue tracker was told, in order; the path says how it answers.
#[derive(Clone, Default)]
struct Tracker(Arc<Mutex<Vec<(String, HeaderMap, Value)>>>);

impl Tracker {
    async fn start() -> (Self, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let this = Self::default();
        let own = this.clone();
        let answer = async move |uri: Uri, headers: HeaderMap, Json(body): Json<Value>| -> Response {
            let secret =
                headers.get("x-tracker-key").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            own.0.lock().unwrap().push((uri.path().to_owned(), headers, body));
            match uri.path() {
                "/moved" => Redirect::temporary("/issues").into_response(),
                "/broken" => (StatusCode::INTERNAL_SERVER_ERROR, format!("I know {secret}")).into_response(),
                _ => StatusCode::CREATED.into_response(),
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        (this, address)
    }

    fn told(&self) -> Vec<(String, HeaderMap, Value)> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_requests_go_to_a_tracker_with_its_secret() {
    let world = World::new("hub-requests-hook").await;
    let mail = MailServer::start("", "").await;
    let (tracker, address) = Tracker::start().await;
    let openid = OpenId::get().await;
    sites(&world, &[]).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("access.subject.txt"), "For {{ assignee }}: {{ comment }}\n\n").unwrap();
    let settings = |path: &str| {
        json!({"smtp": smtp(mail.port()), "templates_path": folder.path(),
            "webhook": {"url": format!("{address}{path}"), "header": "X-Tracker-Key", "secret": SECRET}})
    };
    let good = hub(&world, openid, settings("/issues"), Some("service-desk")).await;
    known(&good, openid, &["fdb", "open"]).await;
    let [alice, bob, dave] = ["alice", "bob", "dave"].map(|user| openid.token(user));

    // The same request twice has one key, whatever is said; of somebody else, or about something else, another.
    for (token, what, body) in [
        (&alice, "requests/storage", json!({"comment": "first", "quota": 700})),
        (&alice, "requests/storage", json!({"comment": "again", "quota": 700})),
        (&alice, "requests/publish", json!({"comment": "please"})),
        (&openid.token("carol-admin"), "requests/publish", json!({"comment": "please"})),
        (&dave, "access", json!({"comment": "hello\r\nBcc: eve@evil.test"})),
    ] {
        is(&ask(&good, token, "fdb", what, body).await, 200, "the request was sent");
    }
    is(&ask(&good, &bob, "fdb", "access", json!({})).await, 403, "already");
    let told = tracker.told();
    assert_eq!(told.len(), 5);
    for (path, headers, issue) in &told {
        assert_eq!((path.as_str(), &headers["x-tracker-key"]), ("/issues", &SECRET.parse().unwrap()));
        assert_eq!(headers["content-type"], "application/json");
        let [summary, site, assignee, reporter] =
            ["summary", "site", "assignee", "reporter"].map(|field| issue[field].as_str().unwrap());
        assert_eq!(issue["duplicate_key"], md5([summary, site, assignee, reporter]), "{issue}");
        assert!(!summary.contains(char::is_control), "{summary:?}");
        assert_eq!(issue.as_object().unwrap().len(), 6, "{issue}");
    }
    let issues: Vec<&Value> = told.iter().map(|(.., issue)| issue).collect();
    assert_eq!(
        (&issues[0]["summary"], &issues[0]["assignee"], &issues[0]["reporter"], &issues[0]["site"]),
        (&json!("Storage of /docs/fdb: 700 GB"), &json!("service-desk"), &json!("alice"), &json!("/docs/fdb"))
    );
    assert!(issues[1]["description"].as_str().unwrap().contains("again"), "{}", issues[1]);
    let keys: Vec<&Value> = issues.iter().map(|issue| &issue["duplicate_key"]).collect();
    assert_eq!(keys[0], keys[1]);
    assert!(keys[1] != keys[2] && keys[2] != keys[3] && keys[3] != keys[4], "{keys:?}");
    assert_eq!(
        (&issues[4]["summary"], &issues[4]["assignee"]),
        (&json!("For alice: helloBcc: eve@evil.test"), &json!("alice"))
    );
    assert!(mail.mails().is_empty(), "a tracker wins over mail");
    keeps_quiet(&good, 5, 0).await;

    // A tracker that fails, sends elsewhere, or is not there: the request fails, and its secret goes nowhere else.
    let mut gone = settings("");
    gone["webhook"]["url"] = json!(format!("http://u:{PASSWORD}@127.0.0.1:1/?key={SECRET}"));
    for (broken, asked) in [(settings("/broken"), 1), (settings("/moved"), 1), (gone, 0)] {
        let hub = hub(&world, openid, broken, Some("service-desk")).await;
        known(&hub, openid, &["fdb"]).await;
        let before = tracker.told().len();
        let told = ask(&hub, &alice, "fdb", "requests/publish", json!({"comment": "please"})).await;
        is(&told, 500, "the request could not be handed over: try again later");
        assert_eq!(tracker.told().len(), before + asked);
        assert!(!told.text().contains(&SECRET[..8]) && !told.text().contains(&PASSWORD[..8]), "{}", told.text());
        keeps_quiet(&hub, 0, 1).await;
    }
    world.end().await;
}
