//! Carries a plan out: three timelines at once against a world with two replicas, each behind a proxy of its own.
//!
//! Whether a deed succeeds does not matter (its object may be gone): what matters is the world at the end.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::time::Instant;
use xtask::process::{Signal, signal};

use super::plan::{Deed, Fault, How, Plan, RouteHarm, Step, Upset};
use crate::support::api::name_of;
use crate::support::{FaultProxy, Operator, Start, Times, World};

/// What was done, and when; printed if the test fails.
#[derive(Clone)]
pub struct Journal {
    begun: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Journal {
    pub fn begin() -> Self {
        Self { begun: Instant::now(), lines: Arc::default() }
    }

    pub fn note(&self, line: &str) {
        self.lines.lock().unwrap().push(format!(
            "{:9.3} {} {line}",
            self.begun.elapsed().as_secs_f64(),
            jiff::Timestamp::now()
        ));
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what was done ---\n{}\n--- end ---", self.lines.lock().unwrap().join("\n"));
        }
    }
}

/// One of the two operators: a place for a process, and its road.
pub struct Replica {
    pub number: usize,
    kubeconfig: std::path::PathBuf,
    pub operator: Option<Operator>,
    /// Log lines of the processes that ended.
    pub ended: Vec<String>,
}

impl Replica {
    pub async fn start(world: &World, number: usize, proxy: &FaultProxy) -> Self {
        let kubeconfig = proxy.kubeconfig(world).await;
        let mut replica = Self { number, kubeconfig, operator: None, ended: Vec::new() };
        replica.begin(world).await;
        replica
    }

    async fn begin(&mut self, world: &World) {
        let start = Start { kubeconfig: Some(self.kubeconfig.clone()), do_not_wait: true, ..Start::default() };
        self.operator = Some(world.start_operator_with(start).await);
    }

    async fn upset(&mut self, world: &World, upset: Upset, journal: &Journal) {
        let operator = self.operator.take().expect("a replica runs between two upsets");
        let (number, agent) = (self.number, operator.agent());
        journal.note(&format!("replica {number} ({agent}): {upset:?}"));
        match upset.how {
            How::Pause => {
                operator.pause();
                tokio::time::sleep(upset.away).await;
                operator.resume();
                self.operator = Some(operator);
                journal.note(&format!("replica {number}: goes on"));
                return;
            }
            How::Kill => {
                self.keep_log(&operator);
                operator.kill();
            }
            How::Term => {
                let pid = operator.pid();
                signal(pid, Signal::TERM).unwrap();
                let status = operator.wait_end().await;
                self.keep_log(&operator);
                // A request to stop may come before it is ready to hear it.
                let heard = status.success() || operator.logs().len() < 3;
                assert!(heard, "replica {number} ended badly ({status}):\n{}", operator.log_text());
            }
        }
        tokio::time::sleep(upset.away).await;
        self.begin(world).await;
        journal.note(&format!("replica {number}: starts again"));
    }

    fn keep_log(&mut self, operator: &Operator) {
        self.ended.push(operator.log_text());
    }
}

/// Everything at once, to the end of the plan; then the faults are off and both replicas run.
pub async fn run(
    world: &World,
    plan: &Plan,
    replicas: &mut [Replica; 2],
    proxies: &[Arc<FaultProxy>; 2],
    journal: &Journal,
) {
    let begun = Instant::now();
    let [first, second] = replicas;
    let [upsets_of_first, upsets_of_second] = &plan.upsets;
    let people = async {
        for Step { at, what } in &plan.deeds {
            tokio::time::sleep_until(begun + *at).await;
            let done = act(world, what).await;
            journal.note(&format!("{what:?}: {}", done.map_or_else(|error| error, |()| "done".into())));
        }
    };
    let network = async {
        for Step { at, what } in &plan.faults {
            tokio::time::sleep_until(begun + *at).await;
            let Fault { replica, matching, act, count } = what.clone();
            proxies[replica].fault(matching, act, Times::Count(count));
            journal.note(&format!("{what:?}"));
        }
    };
    let machines = async |replica: &mut Replica, upsets: &[Step<Upset>]| {
        for Step { at, what } in upsets {
            tokio::time::sleep_until(begun + *at).await;
            replica.upset(world, *what, journal).await;
        }
    };
    tokio::join!(people, network, machines(first, upsets_of_first), machines(second, upsets_of_second));
    for proxy in proxies {
        proxy.heal();
    }
    journal.note("everything is healed");
}

/// Does one deed; says why it could not.
pub async fn act(world: &World, deed: &Deed) -> Result<(), String> {
    let (api, namespace) = (&world.api, world.namespace.as_str());
    let merge = async |kind: &str, name: &str, patch: &Value| {
        api.merge(kind, namespace, name, "", patch).await.map(drop).map_err(|error| error.to_string())
    };
    match deed {
        Deed::Create { id, spec } => {
            world.try_site(id, spec.clone()).await.map(drop).map_err(|error| error.to_string())
        }
        Deed::Delete { id } => api.delete("Site", namespace, id).await.then_some(()).ok_or_else(|| "not there".into()),
        Deed::Replace { id, spec } => {
            api.delete("Site", namespace, id).await;
            world.try_site(id, spec.clone()).await.map(drop).map_err(|error| error.to_string())
        }
        Deed::Edit { id, patch } => merge("Site", id, patch).await,
        Deed::Spoil { kind, name, patch } => merge(kind, name, patch).await,
        Deed::SpoilAt { kind, name, pointer, value } => {
            let mut object = world.get(kind, name).await.ok_or("not there")?;
            *object.pointer_mut(pointer).ok_or("no such field")? = value.clone();
            api.replace(namespace, &object).await.map(drop).map_err(|error| error.to_string())
        }
        Deed::SpoilRoute { id, how } => {
            let mut route = world.ingresses(id).await.pop().ok_or("no route")?;
            let name = name_of(&route).to_owned();
            match how {
                RouteHarm::Annotation => {
                    let patch = json!({"metadata": {"annotations": {"nginx.org/location-snippets": "return 418;"}}});
                    merge("Ingress", &name, &patch).await
                }
                RouteHarm::Host => {
                    route["apiVersion"] = "networking.k8s.io/v1".into();
                    *route.pointer_mut("/spec/rules/0/host").ok_or("no host")? = "elsewhere.example.test".into();
                    api.replace(namespace, &route).await.map(drop).map_err(|error| error.to_string())
                }
                RouteHarm::Delete => {
                    api.delete("Ingress", namespace, &name).await.then_some(()).ok_or_else(String::new)
                }
            }
        }
        Deed::DeleteChild { kind, name } => {
            api.delete(kind, namespace, name).await.then_some(()).ok_or_else(|| "not there".into())
        }
        Deed::DeleteClaim { id } => {
            api.delete("PersistentVolumeClaim", namespace, id).await;
            delete_pods(world, id).await;
            Ok(())
        }
        Deed::DeletePods { id } => {
            delete_pods(world, id).await;
            Ok(())
        }
        Deed::Show { id, outcome } => {
            let patch = json!({"metadata": {"annotations": {"sites.test/outcome": outcome}}});
            for pod in world.pods(id).await {
                merge("Pod", name_of(&pod), &patch).await?;
            }
            Ok(())
        }
    }
}

async fn delete_pods(world: &World, id: &str) {
    for pod in world.pods(id).await {
        world.api.delete("Pod", &world.namespace, name_of(&pod)).await;
    }
}
