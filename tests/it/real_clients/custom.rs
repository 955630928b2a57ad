//! An application that a Site brings itself (`tests/cluster/custom-app`), behind the edge and our nginx.

use serde_json::{Value, json};
use xtask::cluster::node::image;

use super::{curl, python};
use crate::support::api::condition;
use crate::support::{LONG, MASTER, SiteClient, eventually, with_pods};

/// What the application says that it was asked.
async fn asked(site: &SiteClient, path: &str) -> Value {
    let answer = site.raw("GET", &format!("{}{path}", site.prefix)).send().await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

#[test]
fn real_client_39_the_application_is_at_its_own_root() {
    with_pods("real_client_39", async |pods| {
        let site = pods.custom().await;
        for (path, seen) in [
            ("/", "/"),
            ("/builds", "/builds"),
            ("/builds?day=a%2Fb&x=%20", "/builds?day=a%2Fb&x=%20"),
            ("/static/base.css", "/static/base.css"),
        ] {
            let told = asked(&site, path).await;
            assert_eq!(told["path"], seen);
            assert_eq!(told["headers"]["x-forwarded-prefix"], site.prefix.as_str());
        }
        // Its headers come once, and win; what it does not say the Site says.
        let own = site.raw("GET", &format!("{}/builds", site.prefix)).send().await;
        assert_eq!(own.header("content-security-policy"), "default-src 'self'; img-src *");
        assert_eq!(
            (own.header("x-frame-options").as_str(), own.header("cache-control").as_str()),
            ("DENY", "no-cache")
        );
        assert_eq!(own.header("x-only-ours"), "1");
        let bare = site.raw("GET", &format!("{}/bare", site.prefix)).send().await;
        assert_eq!(bare.header("x-frame-options"), "SAMEORIGIN");

        let missing = site.raw("GET", &format!("{}/no%2Fsuch", site.prefix)).send().await;
        assert_eq!((missing.status, missing.text().as_str()), (404, "the application has no /no%2Fsuch"));
        let moved = site.raw("GET", &format!("{}/moved", site.prefix)).send().await;
        assert_eq!((moved.status, moved.header("location").as_str()), (302, "/builds"), "as the application wrote it");
        let url = site.page_url("");
        let arguments = ["-o", "/dev/null", "-w", "%{http_code} %{redirect_url}", url.trim_end_matches('/')];
        assert_eq!(curl(&site, &arguments).await.well(), format!("301 {url}"));

        // What is ours stays ours, also what is not on.
        site.must_put("a.txt", b"content").await;
        assert_eq!(site.get("files/a.txt").await.text(), "content");
        let dav =
            site.raw("PROPFIND", &format!("{}/s/dav/", site.prefix)).token(MASTER).header("Depth: 1").send().await;
        assert_eq!(dav.status, 207, "{}", dav.text());
        let admin = site.raw("GET", &format!("{}/s/admin/files/", site.prefix)).token(MASTER).send().await;
        assert_eq!((admin.status, &admin.json()["status"]), (404, &json!("error")), "there is none");
        assert_eq!(site.raw("GET", &format!("{}/.sites/usage", site.prefix)).send().await.status, 404);
    });
}

#[test]
fn real_client_39_a_web_socket_and_no_credential_of_the_platform() {
    with_pods("real_client_39", async |pods| {
        let site = pods.custom().await;
        let path = format!("{}/live", site.prefix);
        let said = python(&site, "web_socket.py", &[site.host(), &path, "one", "zwei", "three"]).await.well();
        assert_eq!(said, "one\nzwei\nthree\n");
        let cookies = "Cookie: a=1; __Secure-sites-team-board=session; b=2";
        let call = site.raw("GET", &format!("{}/", site.prefix)).header(cookies).header("X-Forwarded-User: ana");
        let told = call.token("eyJhbGciOi").send().await.json();
        let cookie = told["headers"]["cookie"].as_str().unwrap();
        assert!(cookie.contains("a=1") && cookie.contains("b=2") && !cookie.contains("__Secure"), "{told}");
        for name in ["authorization", "x-forwarded-user"] {
            assert_eq!(told["headers"][name], Value::Null, "{name}");
        }
    });
}

#[test]
fn real_client_40_a_slow_start_is_waited_for() {
    with_pods("real_client_40", async |pods| {
        // While another one starts, somebody waits for news of the first, in silence.
        let board = pods.custom().await;
        let poll = board.raw("GET", &format!("{}/poll", board.prefix)).send();
        let slow = async {
            slow_start(pods).await;
            let released = board.raw("GET", &format!("{}/release", board.prefix)).send().await;
            assert_eq!(released.status, 200);
        };
        let (news, ()) = tokio::join!(poll, slow);
        assert_eq!((news.status, news.text().as_str()), (200, "released"));
        // A page that is fetched anew all the time.
        for _ in 0..20 {
            assert_eq!(asked(&board, "/builds").await["path"], "/builds");
        }
    });
}

/// A Site whose application warms up: Pending, then Running, and nobody has restarted anything.
async fn slow_start(pods: &'static crate::support::Pods) {
    let (world, id) = (&pods.world, "warms-up-slow");
    let applications = json!([{"name": "site-custom", "image": image("custom-app")}]);
    world.pod_site(id, "public", json!({"applications": applications})).await;
    // Everything but the application is ready.
    let pod = eventually("only the application is waited for", LONG, || async {
        let pod = world.get("Pod", &format!("{id}-0")).await.ok_or("there is no pod")?;
        let containers = pod["status"]["containerStatuses"].as_array().ok_or("no container runs")?;
        let waiting: Vec<_> = containers.iter().filter(|container| container["ready"] == false).collect();
        let only =
            waiting.len() == 1 && waiting[0]["name"] == "site-custom" && !waiting[0]["state"]["running"].is_null();
        if only { Ok(pod) } else { Err(pod["status"].to_string()) }
    })
    .await;
    let pending = world
        .wait_site(id, "the status says what is waited for", |site| {
            let problems = site["status"]["container_problems"].as_array();
            problems.is_some_and(|problems| problems.iter().any(|problem| problem["name"] == "site-custom"))
        })
        .await;
    assert_eq!(pending["status"]["phase"], "Pending", "{}", pending["status"]);
    assert_eq!(pending["status"]["all_steps_started"], false);
    let passes = pods.operator.logs().len();

    std::fs::write(world.content_of(pods.lab, id).await.join("warm"), "").unwrap();
    let running = world.wait_phase(id, "Running").await;
    assert!(condition(&running, "Ready").is_some_and(|ready| ready["status"] == "True"), "{}", running["status"]);
    let site = world.reached(pods.lab, id).await;
    assert_eq!(asked(&site, "/").await["path"], "/");
    let same = world.must("Pod", &format!("{id}-0")).await;
    assert_eq!(same["metadata"]["uid"], pod["metadata"]["uid"], "the same pod");
    for container in same["status"]["containerStatuses"].as_array().unwrap() {
        assert_eq!(container["restartCount"], 0, "{container}");
    }
    assert!(pods.operator.ended().is_none());
    let told = pods.operator.logs().len() - passes;
    assert!(told < 20, "the operator does not go round and round: {told} lines");
    world.delete_site(id).await;
}
