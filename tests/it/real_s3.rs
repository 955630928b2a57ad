//! A Site's bucket as its users meet it, over the edge and nginx: signatures are made over the public address, so that
//! whatever on the way changed a path, a query or a header would break them.

use serde_json::json;
use xtask::cluster::node::SITES_HOST;

use crate::support::s3::{Key, boto, rclone, text};
use crate::support::{LONG, Lab, World, eventually};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn real_site_s3_over_the_edge() {
    let Some(lab) = Lab::node("real_site_s3_over_the_edge").await else { return };
    let world = World::on_node(lab, "s3").await;
    let _operator = world.start_operator().await;
    let configuration = json!({
        "space": world.namespace, "applications": [{"name": "site-s3"}], "tokens": {"master": TOKEN},
    });
    world.site("data", json!({"type": "private", "configuration": configuration})).await;
    world.pod_is_ready("data").await;
    let (edge, path) = (lab.edge(), format!("/{}/data/s/s3", world.namespace));
    eventually("the bucket answers", LONG, || async {
        let answer = edge.get(SITES_HOST, &format!("{path}/content")).await?;
        let told = text(answer.body());
        if answer.status() == 403 && told.contains("<Code>AccessDenied</Code>") { Ok(()) } else { Err(told) }
    })
    .await;

    let endpoint = format!("https://{SITES_HOST}{path}");
    let key = Key { id: "master".to_owned(), secret: TOKEN.to_owned() };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twelve.bin");
    std::fs::write(&file, vec![9; 12 << 20]).unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, format!("{} {SITES_HOST}\n", edge.address.ip())).unwrap();
    let (ca, hosts) = (edge.ca.to_str().unwrap(), hosts.to_str().unwrap());
    boto("edge", &endpoint, &key, &[("S3_FILE", file.to_str().unwrap()), ("S3_CA", ca), ("HOSTS_FILE", hosts)]).await;

    let run = async |arguments: &[&str]| {
        let parts = [("RCLONE_S3_UPLOAD_CUTOFF", "5Mi"), ("RCLONE_S3_CHUNK_SIZE", "5Mi")];
        let more = [&parts[..], &[("RCLONE_CA_CERT", ca), ("HOSTS_FILE", hosts)]].concat();
        let output = rclone(&endpoint, &key, folder.path(), &more, arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout) + &text(&output.stderr)
    };
    std::fs::create_dir_all(folder.path().join("here/deep")).unwrap();
    for (name, content) in [("a b+c ü.txt", "a"), ("deep/x%41&y=z.txt", "x"), ("deep/empty", "")] {
        std::fs::write(folder.path().join("here").join(name), content).unwrap();
    }
    std::fs::rename(&file, folder.path().join("here/big.bin")).unwrap();
    run(&["sync", "here", "site:content/copy"]).await;
    let again = run(&["sync", "here", "site:content/copy", "-v"]).await;
    assert!(again.contains("There was nothing to transfer"), "{again}");
    run(&["copy", "site:content/copy", "back"]).await;
    run(&["check", "here", "back"]).await;

    // The Site API has the same files, and counts them.
    let listed = edge.get(SITES_HOST, &format!("/{}/data/s/api/v2/usage", world.namespace)).await.unwrap();
    assert_eq!(listed.status(), 401, "{listed:?}");
    world.end().await;
}
