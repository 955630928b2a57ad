//! The resource definition: the committed copy is what the binary prints, and `kubectl` shows a Site well.

use serde_json::json;

use crate::support::lab::sites;
use crate::support::{Lab, World};

#[tokio::test]
async fn crd_committed_copy_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/helm/sites/crds/sites.ecmwf.int_sites.yaml");
    assert_eq!(std::fs::read_to_string(path).unwrap(), sites(&["crd"]).await, "run `make generated`");
}

async fn kubectl(world: &World, arguments: &[&str]) -> String {
    let binary = Lab::kubectl().await;
    let mut command = tokio::process::Command::new(binary);
    command.arg("--kubeconfig").arg(world.lab().kubeconfig()).args(["--namespace", &world.namespace]).args(arguments);
    let out = command.output().await.unwrap();
    assert!(out.status.success(), "kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[tokio::test]
async fn crd_is_shown_by_kubectl() {
    let world = World::new("kubectl").await;
    let _operator = world.start_operator().await;
    world.site("alpha", json!({"type": "public", "configuration": {"quota": 3}})).await;
    world.wait_ready("alpha").await;
    world.wait_phase("alpha", "Running").await;
    let table = kubectl(&world, &["get", "sites"]).await;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = table.lines();
    assert_eq!(words(lines.next().unwrap()), ["NAME", "SPACE", "NAME", "OWNER", "TYPE", "PHASE", "QUOTA", "AGE"]);
    let line = words(lines.next().unwrap());
    assert_eq!(line[..7], ["alpha", "lab", "alpha", "ada@example.test", "public", "Running", "3"]);
    for name in ["ws", "site", "sites.sites.ecmwf.int", "ecmwf"] {
        assert!(kubectl(&world, &["get", name]).await.contains("alpha"), "{name}");
    }
    assert!(kubectl(&world, &["get", "ws", "-o", "wide"]).await.contains("READY"));
    let wait = ["wait", "--for=jsonpath={.status.phase}=Running", "--timeout=10s", "ws/alpha"];
    assert!(kubectl(&world, &wait).await.contains("condition met"));
    let explained = kubectl(&world, &["explain", "site.spec.configuration.quota"]).await;
    assert!(explained.contains("integer") && explained.contains("Gi"), "{explained}");
    world.end().await;
}
