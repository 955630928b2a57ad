//! The walk through in `README.md` is true: its blocks run with bash on a real node, one after the other as a new user
//! would type them, and each prints at last what stands below it.

use std::process::Stdio;
use std::time::Duration;

use xtask::cluster::node::{OPENID_HOST, SITES_HOST};

use crate::support::{LONG, Lab, World, eventually};

const README: &str = include_str!("../../README.md");
const SAMPLE: &str = include_str!("../../examples/sites/docs-tree.yaml");
/// The only line that is another one here: where `make up` put things.
const PLACE: &str = "export KUBECONFIG=";
/// The namespace of `make up`.
const NAMESPACE: &str = "-n sites ";
/// Printed between the blocks.
const MARK: &str = "=== end of a block ===";

/// The blocks of the walk, and what each prints at last.
fn blocks() -> Vec<(String, String)> {
    let walk = README.split("<!-- walk: begin -->").nth(1).and_then(|rest| rest.split("<!-- walk: end -->").next());
    let fenced = walk.expect("a walk").split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let told = fenced.map(|block| {
        let (commands, expected) = block.split_once("# -> ").unwrap_or_else(|| panic!("no outcome: {block}"));
        assert_eq!(expected.lines().count(), 1, "the outcome is the end of its block: {block}");
        (commands.to_owned(), expected.trim_end().to_owned())
    });
    told.collect()
}

#[tokio::test]
async fn real_site_readme() {
    let Some(lab) = Lab::node("real_site_readme").await else { return };
    let world = World::on_node(lab, "readme").await;
    let _operator = world.start_operator().await;
    let _hub = world.start_hub().await;
    world.apply(SAMPLE).await;
    eventually("the sample runs", LONG, || async {
        let site = world.must("Site", "docs-fdb").await;
        if site["status"]["phase"] == "Running" { Ok(()) } else { Err(site["status"].to_string()) }
    })
    .await;
    let edge = lab.edge();

    // `make up` has the entrance at 127.0.0.1, where curl looks for names below `localhost`; here it is elsewhere.
    let home = tempfile::tempdir().unwrap();
    let resolve = |host| format!("resolve = \"{host}:443:{}\"\n", edge.address.ip());
    std::fs::write(home.path().join(".curlrc"), resolve(SITES_HOST) + &resolve(OPENID_HOST)).unwrap();
    assert_eq!(edge.address.port(), 443);
    let place = format!(
        "export KUBECONFIG='{}' CURL_CA_BUNDLE='{}' CURL_HOME='{}' PATH='{}':\"$PATH\"",
        lab.kubeconfig().display(),
        edge.ca.display(),
        home.path().display(),
        Lab::kubectl().await.parent().unwrap().display(),
    );
    let blocks = blocks();
    assert!(blocks.len() >= 10, "{blocks:?}");
    let mut script = String::new();
    for (commands, _) in &blocks {
        for line in commands.lines() {
            let line = if line.starts_with(PLACE) { place.clone() } else { line.to_owned() };
            script += &line.replace(NAMESPACE, &format!("-n {} ", world.namespace));
            script += "\n";
        }
        script += "echo '";
        script += MARK;
        script += "'\n";
    }

    let mut command = tokio::process::Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]).current_dir(home.path()).kill_on_drop(true);
    // In files, so that a walk that does not end tells how far it came.
    let [out, err] = ["out", "err"].map(|name| home.path().join(name));
    command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
    let mut run = command.stdin(Stdio::null()).spawn().expect("bash");
    let ended = tokio::time::timeout(Duration::from_secs(540), run.wait()).await;
    let [said, failed] = [out, err].map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned());
    let Ok(ended) = ended else { panic!("the walk does not end within nine minutes:\n{said}\n{failed}") };
    let told: Vec<&str> = said.split(&format!("{MARK}\n")).collect();
    for (number, (commands, expected)) in blocks.iter().enumerate() {
        let told = told.get(number).copied().unwrap_or_default();
        let last = told.trim_end().lines().last().unwrap_or_default();
        assert_eq!(last, expected, "block {number}:\n{commands}\nprinted:\n{told}\n{failed}");
    }
    assert!(ended.unwrap().success(), "{said}\n{failed}");
    world.end().await;
}
