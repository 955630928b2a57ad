//! The judges of the fuzz targets on generated inputs and on the committed corpus: the same rules, each time.

#[path = "../../fuzz/judges.rs"]
mod judges;

use std::path::Path;

use proptest::prelude::*;

/// Texts that have broken somebody's configuration before, beside arbitrary ones.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,80}",
        "[;{}$\"'\\\\#%\r\n\t /.a0]{0,40}",
        prop::sample::select(vec!["$host", "${x}", "\"; return 200 x; #", "%0a", "a\\", "*/", "..%2f", "é\u{202e}"])
            .prop_map(str::to_owned),
    ]
}

fn pod() -> impl Strategy<Value = serde_json::Value> {
    let word = prop::sample::select(vec!["Running", "Pending", "Failed", "Succeeded", "Unknown", "", "Other"]);
    let truth = prop::sample::select(vec!["True", "False", "Unknown", "x"]);
    let kind =
        prop::sample::select(vec!["Ready", "ContainersReady", "PodScheduled", "Initialized", "DisruptionTarget", "X"]);
    let state = prop::sample::select(vec![
        serde_json::json!({"running": {}}),
        serde_json::json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        serde_json::json!({"waiting": {}}),
        serde_json::json!({"terminated": {"exitCode": 1, "reason": "Error"}}),
        serde_json::json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
        serde_json::json!({}),
    ]);
    let containers = prop::collection::vec((state, any::<bool>()), 0..3).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(number, (state, ready))| {
                serde_json::json!({"name": format!("c{number}"), "ready": ready, "state": state,
                    "image": "", "imageID": "", "restartCount": 0})
            })
            .collect::<Vec<_>>()
    });
    let conditions = prop::collection::vec((kind, truth), 0..5).prop_map(|all| {
        all.into_iter().map(|(kind, status)| serde_json::json!({"type": kind, "status": status})).collect::<Vec<_>>()
    });
    (word, containers.clone(), containers, conditions, any::<bool>(), 0..4_u8).prop_map(
        |(phase, init, main, conditions, going, uid)| {
            let mut pod = serde_json::json!({
                "metadata": {"name": format!("p{uid}"), "uid": uid.to_string()},
                "status": {"phase": phase, "conditions": conditions, "initContainerStatuses": init, "containerStatuses": main},
            });
            if going {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            pod
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn fuzz_labels(text in hostile()) {
        judges::labels(text.as_bytes());
    }

    #[test]
    fn fuzz_nginx_rendering(text in hostile()) {
        judges::nginx_rendering(text.as_bytes());
    }

    #[test]
    fn fuzz_pod_status(pods in prop::collection::vec(pod(), 0..4)) {
        judges::pod_status(serde_json::to_string(&pods).unwrap().as_bytes());
    }

    #[test]
    fn fuzz_site_decoding(text in hostile(), pointer in 0_usize..12, number in any::<i64>()) {
        let mut site = serde_json::json!({
            "metadata": {"name": "fdb"},
            "spec": {"id": "fdb", "name": "fdb", "owner": "ana", "type": "private", "configuration": {
                "space": "docs", "quota": 1, "enabled": true, "applications": [{"name": "site-s3"}],
                "headers": {"A": "b"}, "retention_date": "2027-01-31", "share": {"view_users": ["x"]},
                "settings": {"resource_limits": {"cpu": "1"}}}},
        });
        let fields = ["/spec/id", "/spec/name", "/spec/owner", "/spec/type", "/spec/configuration/space",
            "/spec/configuration/quota", "/spec/configuration/applications/0/name", "/spec/configuration/headers/A",
            "/spec/configuration/retention_date", "/spec/configuration/share/view_users/0",
            "/spec/configuration/settings/resource_limits/cpu", "/spec/configuration/enabled"];
        for value in [serde_json::json!(text), serde_json::json!(number), serde_json::json!([text])] {
            *site.pointer_mut(fields[pointer]).unwrap() = value;
            judges::site_decoding(site.to_string().as_bytes());
        }
    }
}

type Judge = fn(&[u8]);

#[test]
fn fuzz_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let judges: [(&str, Judge); 4] = [
        ("site_decoding", judges::site_decoding),
        ("nginx_rendering", judges::nginx_rendering),
        ("labels", judges::labels),
        ("pod_status", judges::pod_status),
    ];
    for (target, judge) in judges {
        let inputs: Vec<_> =
            std::fs::read_dir(corpus.join(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "no corpus for {target}");
        for input in inputs {
            judge(&std::fs::read(&input).unwrap());
        }
    }
}
