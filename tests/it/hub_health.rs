//! The health of the watched Sites: status and probe, bounded and without a redirect followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::runs::Administrator;
use crate::support::{OpenId, Redis, SOON, Start, World, eventually};

const HEALTH: &str = "/hub/api/v2/health/";
const PROBE: &str = "/hub/api/v2/health/probe/";

/// Stands for the Sites' pods: the first segment of the path says how to answer.
async fn pods() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let followed = Arc::new(AtomicUsize::new(0));
    let (count, own) = (followed.clone(), address.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (count, own) = (count.clone(), own.clone());
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let close = "connection: close\r\n";
                let head = match path.split('/').nth(1).unwrap_or_default() {
                    "well" => format!("HTTP/1.1 200 OK\r\n{close}content-length: 2\r\n\r\nok"),
                    "login" => format!("HTTP/1.1 302 Found\r\n{close}location: {own}/followed/\r\n\r\n"),
                    "broken" => format!("HTTP/1.1 503 Unavailable\r\n{close}content-length: 0\r\n\r\n"),
                    "followed" => {
                        count.fetch_add(1, Ordering::Relaxed);
                        format!("HTTP/1.1 200 OK\r\n{close}content-length: 0\r\n\r\n")
                    }
                    "endless" => {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
                        return;
                    }
                    // The connection stays open without a word, until the Hub has had enough.
                    _ => {
                        let _ = stream.read(&mut [0; 16]).await;
                        return;
                    }
                };
                let _ = stream.write_all(head.as_bytes()).await;
            });
        }
    });
    (address, followed)
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_health_probes_are_bounded_and_follow_nothing() {
    let mut world = World::new("hub-health").await;
    let redis = Redis::start().await;
    world.with_redis(&redis);
    let operator = world.start_operator().await;
    let watched = json!({"configuration": {"settings": {"monitored": true}}});
    for id in ["well", "login", "broken", "endless", "silent"] {
        world.site(id, watched.clone()).await;
    }
    world.site("plain", json!({})).await;
    world.site("archived", json!({"configuration": {"enabled": false, "settings": {"monitored": true}}})).await;
    for id in ["well", "login", "broken", "endless", "silent"] {
        world.running(&operator, id).await;
    }
    let (address, followed) = pods().await;
    let openid = OpenId::get().await;
    let settings = json!({"hub": {"site_address": format!("{address}/{{id}}")}});
    let hub = world.start_hub_process_with(openid, Start { settings, ..Start::default() }).await;
    let admin = Administrator::of(&hub, openid);
    for (token, status) in [(String::new(), 401), (openid.token("alice"), 403)] {
        assert_eq!(hub.get(HEALTH, &token).await.status, status);
        assert_eq!(hub.json("POST", PROBE, &token, &Value::Null).await.status, status);
    }
    let report = eventually("all run", SOON, || async {
        let report = admin.get(HEALTH).await.json();
        if report["healthy"] == 5 { Ok(report) } else { Err(report.to_string()) }
    })
    .await;
    assert_eq!((&report["count"], &report["sites"][0]["probe"]), (&json!(5), &Value::Null), "{report}");

    let told = admin.post(PROBE, &Value::Null).await;
    assert_eq!((told.status, &told.json()["sites"]), (202, &json!(5)), "{}", told.text());
    // The silent one takes its five seconds: a second round may not begin beside the first.
    let again = admin.post(PROBE, &Value::Null).await;
    assert_eq!(again.status, 409, "{}", again.text());
    let report = eventually("all were asked", SOON, || async {
        let report = admin.get(HEALTH).await.json();
        let asked = report["sites"].as_array().unwrap().iter().filter(|site| !site["probe"].is_null()).count();
        if asked == 5 { Ok(report) } else { Err(report.to_string()) }
    })
    .await;
    let outcome = |id: &str| {
        let site = report["sites"].as_array().unwrap().iter().find(|site| site["id"] == id).unwrap();
        (site["healthy"].as_bool().unwrap(), site["probe"]["outcome"].as_str().unwrap().to_owned())
    };
    assert_eq!(outcome("well"), (true, "200".to_owned()));
    assert_eq!(outcome("login"), (true, "302".to_owned()));
    assert_eq!(outcome("broken"), (false, "503".to_owned()));
    assert_eq!(outcome("endless"), (true, "an answer of more than 65536 bytes".to_owned()));
    assert_eq!(outcome("silent"), (false, "no answer within 5 s".to_owned()));
    assert_eq!(report["sites"][0]["healthy"], false, "those with problems first");
    assert_eq!(followed.load(Ordering::Relaxed), 0, "a redirect is an answer");
    world.end().await;
}
