//! The end of a container's log, from a real kubelet: whose, how much of it, and of which run.

use serde_json::{Value, json};
use xtask::cluster::node::image;

use crate::support::world::ACCOUNT;
use crate::support::{HubProcess, LONG, Lab, OpenId, Told, World, eventually};

/// A pod as one of a Site's, whose containers run these scripts.
async fn pod(world: &World, name: &str, site: &str, scripts: &[(&str, &str)]) {
    let containers: Vec<Value> = scripts
        .iter()
        .map(|(name, script)| {
            json!({"name": name, "image": image("busybox"), "imagePullPolicy": "Never",
                "command": ["/bin/sh", "-c", script], "volumeMounts": [{"name": "kept", "mountPath": "/kept"}]})
        })
        .collect();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"sites.ecmwf.int/app": "site", "sites.ecmwf.int/id": site}},
        "spec": {
            "containers": containers, "volumes": [{"name": "kept", "emptyDir": {}}],
            "serviceAccountName": ACCOUNT, "terminationGracePeriodSeconds": 0,
        },
    });
    world.api.create(&world.namespace, &pod).await.unwrap();
}

async fn log(hub: &HubProcess, token: &str, query: &str) -> Told {
    hub.get(&format!("/hub/api/v2/sites/-/talks/logs/{query}"), token).await
}

#[tokio::test(flavor = "multi_thread")]
async fn real_site_hub_status_shows_the_end_of_a_log() {
    let Some(lab) = Lab::node("real_site_hub_status_shows_the_end_of_a_log").await else { return };
    let world = World::on_node(lab, "hub-logs").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    let alice = openid.token("alice");
    // No operator: the pods are the test's own, and say what it knows.
    for (id, owner) in [("talks", "alice"), ("other", "bob")] {
        world.site(id, json!({"owner": owner})).await;
    }
    let counts =
        "i=1; while [ $i -le 2500 ]; do echo line-$i; i=$((i+1)); done; printf 'bad \\377 byte\\n'; sleep 99999";
    let long = "x=$(printf '%01000d' 7); i=1; while [ $i -le 1800 ]; do echo $x-$i; i=$((i+1)); done; sleep 99999";
    let again = "[ -e /kept/once ] && echo the-second-run && sleep 99999; touch /kept/once; echo the-first-run; exit 3";
    pod(&world, "talks-0", "talks", &[("counts", counts), ("long", long), ("again", again)]).await;
    pod(&world, "other-0", "other", &[("secret", "echo of-another-site; sleep 99999")]).await;
    for name in ["talks-0", "other-0"] {
        eventually(&format!("{name} runs"), LONG, || async {
            let pod = world.must("Pod", name).await;
            if pod["status"]["phase"] == "Running" { Ok(()) } else { Err(pod["status"].to_string()) }
        })
        .await;
    }

    // 200 lines unless they say; at most 2000, and bytes that are no text do no harm.
    let told = eventually("all is counted", LONG, || async {
        let told = log(&hub, &alice, "?container=counts&tail=1").await;
        if told.text().contains("bad") { Ok(told) } else { Err(told.text()) }
    })
    .await;
    assert_eq!((told.status, told.header("content-type").as_str()), (200, "text/plain; charset=utf-8"));
    assert_eq!(told.text(), "bad \u{fffd} byte\n");
    for (query, lines, first) in [("", 200, "line-2302"), ("&tail=3", 3, "line-2499"), ("&tail=2000", 2000, "line-502")]
    {
        let text = log(&hub, &alice, &format!("?pod=talks-0&container=counts{query}")).await.text();
        assert_eq!((text.lines().count(), text.lines().next()), (lines, Some(first)), "{query}");
    }

    // At most a MiB, and of a log with long lines still its end.
    eventually("all is said", LONG, || async {
        let told = log(&hub, &alice, "?container=long&tail=1").await;
        if told.text().ends_with("-1800\n") { Ok(()) } else { Err(told.text()) }
    })
    .await;
    let text = log(&hub, &alice, "?container=long&tail=2000").await.text();
    assert!(text.ends_with("-1800\n") && text.len() <= 1 << 20 && text.len() > 100_000, "{} bytes", text.len());

    // Another Site's pod is none of this one's; a container that has no run before this one has no such log.
    assert_eq!(log(&hub, &alice, "?pod=other-0&container=secret").await.status, 404);
    let told = log(&hub, &alice, "?container=counts&previous=true").await;
    assert_eq!(told.status, 404, "{}", told.text());
    eventually("it was started again", LONG, || async {
        let told = log(&hub, &alice, "?container=again&previous=true").await;
        if told.text() == "the-first-run\n" { Ok(()) } else { Err(told.text()) }
    })
    .await;
    assert_eq!(hub.get("/hub/api/v2/sites/-/talks/logs/?container=counts", &openid.token("bob")).await.status, 404);
    world.end().await;
}
