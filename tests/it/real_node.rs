//! The tests' real node: pods run, have volumes and names, are reached over the edge, and leave nothing behind.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use xtask::cluster::node::{OPENID_HOST, SITES_HOST, image};
use xtask::process::{Signal, signal};

use crate::support::api::{ApiServer, condition, documents};
use crate::support::{Lab, SOON, World, eventually, node_options};

/// The first use starts the node; a fresh volume takes a pod of its own.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that tells what arrived at it, with a volume that keeps its first words.
fn echo(namespace: &str) -> Vec<Value> {
    let config = "pid /tmp/pid; error_log stderr; events {} http { access_log off; client_body_temp_path /tmp/b;
        proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f; uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s;
        server { listen 8080; location / { return 200 '$request_uri $http_host'; }
        location /NAMESPACE/kept { alias /data/kept; } } }";
    let yaml = format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: echo}}
data: {{nginx.conf: {config:?}}}
---
apiVersion: v1
kind: Service
metadata: {{name: echo}}
spec: {{selector: {{app: echo}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: echo}}
spec:
  serviceName: echo
  selector: {{matchLabels: {{app: echo}}}}
  template:
    metadata: {{labels: {{app: echo}}}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {{runAsNonRoot: true, runAsUser: 1000, seccompProfile: {{type: RuntimeDefault}}}}
      initContainers:
      - name: first
        image: {image}
        command: [sh, -c, 'nslookup kubernetes.default.svc.cluster.local > /data/kept']
        volumeMounts: [{{name: data, mountPath: /data}}]
      containers:
      - name: nginx
        image: {image}
        command: [nginx, -e, /dev/stderr, -c, /etc/echo/nginx.conf, -g, 'daemon off;']
        readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1}}
        securityContext: {{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {{drop: [ALL]}}}}
        volumeMounts:
        - {{name: data, mountPath: /data}}
        - {{name: config, mountPath: /etc/echo}}
        - {{name: tmp, mountPath: /tmp}}
      volumes:
      - {{name: config, configMap: {{name: echo}}}}
      - {{name: tmp, emptyDir: {{}}}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: echo}}
spec:
  hostnames: [{SITES_HOST}]
  parentRefs: [{{name: sites-gateway, namespace: envoy-gateway-system}}]
  rules:
  - matches: [{{path: {{type: PathPrefix, value: /NAMESPACE}}}}]
    backendRefs: [{{name: echo, port: 80}}]
",
        image = image("nginx")
    );
    documents(&yaml.replace("NAMESPACE", namespace))
}

async fn run_echo(api: &ApiServer, namespace: &str) {
    for document in echo(namespace) {
        api.apply(namespace, &document).await.unwrap();
    }
    eventually("the pod is ready", PATIENCE, || async {
        let pod = api.get("Pod", namespace, "echo-0").await.ok_or("there is no pod")?;
        let ready = condition(&pod, "Ready").is_some_and(|ready| ready["status"] == "True");
        if ready { Ok(()) } else { Err(pod["status"].to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_pod_is_reached_over_the_edge() {
    let Some(lab) = Lab::node("a_pod_is_reached_over_the_edge").await else { return };
    let world = World::bare(lab, "edge").await;
    run_echo(&world.api, &world.namespace).await;
    let edge = lab.edge();
    let path = format!("/{}/a%2Fb?c=%20", world.namespace);
    // What arrives is what was sent: an escaped slash stays one.
    let answer = eventually("the route is served", PATIENCE, || async {
        let answer = edge.get(SITES_HOST, &path).await?;
        if answer.status() == 200 { Ok(answer) } else { Err(answer.status().to_string()) }
    })
    .await;
    assert_eq!(answer.body(), format!("{path} {SITES_HOST}").as_bytes());

    let kept = edge.get(SITES_HOST, &format!("/{}/kept", world.namespace)).await.unwrap();
    let kept = String::from_utf8_lossy(kept.body()).into_owned();
    assert!(kept.contains("10.0.0.1"), "the name of a service is known in pods: {kept}");
    let other = edge.get(SITES_HOST, "/nobody/").await.unwrap();
    assert_eq!(other.status(), 404, "no other path leads anywhere");
    world.end().await;
}

#[tokio::test]
async fn the_openid_provider_is_reached_over_the_edge() {
    let Some(lab) = Lab::node("the_openid_provider_is_reached_over_the_edge").await else { return };
    let edge = lab.edge();
    let answer = eventually("the provider answers", PATIENCE, || async {
        let answer = edge.get(OPENID_HOST, "/.well-known/openid-configuration").await?;
        if answer.status() == 200 { Ok(answer) } else { Err(answer.status().to_string()) }
    })
    .await;
    let known: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(known["issuer"], format!("https://{OPENID_HOST}"));
    assert_eq!(known["authorization_endpoint"], format!("https://{OPENID_HOST}/auth"));
    let wrong =
        "/auth?client_id=sites&response_type=code&scope=openid&redirect_uri=https://sites.localhost/oauth2/callback/x";
    let refused = edge.get(OPENID_HOST, wrong).await.unwrap();
    assert_eq!(refused.status(), 400, "only the exact redirect address is taken: {:?}", refused.body());
}

/// The processes that are in the same namespace of a kind as another one, given as its link.
fn inside(kind: &str, namespace: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let same = processes
        .filter(|process| fs::read_link(process.path().join("ns").join(kind)).is_ok_and(|link| link == namespace));
    same.map(|process| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default()).collect()
}

/// Ends a node in one of two ways and looks for what it left.
async fn leaves_nothing(name: &str, kill: bool) {
    if xtask::cluster::node_obstacle().is_some() {
        eprintln!("{name}: skipped: no real node can run here");
        return;
    }
    let lab = Lab::own(node_options()).await;
    let owner = lab.the_node().owner();
    run_echo(&lab.api().await, "default").await;

    let namespaces = ["pid", "mnt", "net", "ipc"].map(|kind| {
        let file = if kind == "pid" { "pid_for_children" } else { kind };
        (kind, fs::read_link(format!("/proc/{owner}/ns/{file}")).unwrap())
    });
    let dir = lab.dir();
    let groups = lab.the_node().groups().to_vec();
    assert!(inside("pid", &namespaces[0].1).len() > 10, "pods and parts run in the box");
    assert!(groups.iter().any(|group| group.join("kubepods").is_dir()), "pods have control groups below {groups:?}");
    assert!(dir.is_dir());

    if kill {
        signal(owner, Signal::KILL).unwrap();
        eventually("everything inside ends with the one process", SOON, || async {
            let left: Vec<_> = namespaces.iter().flat_map(|(kind, link)| inside(kind, link)).collect();
            if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
        })
        .await;
    }
    lab.end().await;
    eventually("nothing is left", SOON, || async {
        let mut left: Vec<_> = namespaces.iter().flat_map(|(kind, link)| inside(kind, link)).collect();
        left.extend(groups.iter().filter(|group| group.exists()).map(|group| group.display().to_string()));
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        left.extend(mounts.lines().filter(|line| line.contains(&*dir.to_string_lossy())).map(str::to_owned));
        left.extend(dir.exists().then(|| dir.display().to_string()));
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    })
    .await;
}

#[tokio::test]
async fn an_ended_node_leaves_nothing() {
    leaves_nothing("an_ended_node_leaves_nothing", false).await;
}

#[tokio::test]
async fn a_killed_node_leaves_nothing() {
    leaves_nothing("a_killed_node_leaves_nothing", true).await;
}
