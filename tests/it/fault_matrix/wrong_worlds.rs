//! The judges of the matrix are judged: each says yes to a right world and no to each wrong one that it is there for.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use sites::domain::change;
use sites::domain::labels::{RESTARTED_AT, STAMPED_FOR};
use sites::domain::site::Site;
use sites::render::{Observed, Restart, render};
use sites::settings::Settings;

use super::history::Seen;
use super::leaders::{self, Verdict};
use super::oracle::{Truth, truth};
use super::{knows_exactly, nothing_left, objects};
use crate::support::api::{kind_of, merge_into, name_of};
use crate::support::audit::{Call, Calls};
use crate::support::proxy::{Asked, Passed};
use crate::support::world::base_settings;

/// A Site and everything that carries its label.
struct Scene {
    settings: Settings,
    site: Value,
    objects: Vec<Value>,
}

impl Scene {
    /// A Site that runs, as its operator would have left it.
    fn right() -> Self {
        let settings = Settings::parse(&base_settings().to_string(), std::iter::empty()).unwrap();
        let mut site = json!({
            "apiVersion": "sites.ecmwf.int/v1", "kind": "Site",
            "metadata": {"name": "m00", "namespace": "matrix", "uid": "u-1", "generation": 3,
                "annotations": {"sites.ecmwf.int/upgrade-request": "r-1"}},
            "spec": {"id": "m00", "name": "m00", "owner": "ada", "type": "private", "configuration": {"space": "lab"}},
        });
        let typed: Site = serde_json::from_value(site.clone()).unwrap();
        let trigger = change::trigger(&typed);
        site["status"] = json!({
            "observedGeneration": 3, "phase": "Running", "all_steps_started": true,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "handled": {"digest": trigger.digest, "upgrade_request": trigger.upgrade_request},
        });
        let restart = Restart { restarted_at: "2026-01-01T00:00:00Z".to_owned(), stamped_for: change::stamp(&trigger) };
        let observed = Observed { namespace: "matrix".to_owned(), restart, ..Observed::default() };
        let desired = render(&typed, &settings, &observed).unwrap();
        let mut objects: Vec<Value> = objects::wanted(desired)
            .into_iter()
            .map(|(kind, mut object)| {
                object["kind"] = kind.into();
                object
            })
            .collect();
        objects.push(pod("m00-0", true));
        objects.push(json!({"kind": "PersistentVolume", "metadata": {"name": "pv-1"}}));
        let mut scene = Self { settings, site, objects };
        scene.of("PersistentVolumeClaim", "m00")["status"] = json!({"phase": "Bound"});
        scene
    }

    fn of(&mut self, kind: &str, name: &str) -> &mut Value {
        let found = self.objects.iter_mut().find(|object| kind_of(object) == kind && name_of(object) == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    fn route(&mut self) -> &mut Value {
        self.objects.iter_mut().find(|object| kind_of(object) == "Ingress").unwrap()
    }

    fn at(&mut self, kind: &str, pointer: &str) -> &mut Value {
        let object = if kind == "Ingress" { self.route() } else { self.of(kind, "m00") };
        object.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer} in the {kind}"))
    }

    fn judged(&self) -> Result<(), String> {
        objects::compare(&self.settings, &self.site, self.objects.clone())
    }
}

fn pod(name: &str, ready: bool) -> Value {
    let steps = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let truth = |step: &str| if ready || step == "PodScheduled" || step == "Initialized" { "True" } else { "False" };
    json!({
        "kind": "Pod", "metadata": {"name": name},
        "status": {
            "phase": "Running",
            "conditions": steps.map(|step| json!({"type": step, "status": truth(step)})),
            "containerStatuses": [{"name": "site-proxy", "ready": ready, "state": {"running": {}}}],
        },
    })
}

type Spoil = fn(&mut Scene);

#[test]
fn fault_matrix_judge_of_objects_finds_each_wrong_object() {
    Scene::right().judged().expect("the right world");
    let wrong: &[(&str, Spoil)] = &[
        ("there is no Service m00", |scene| scene.objects.retain(|object| kind_of(object) != "Service")),
        ("no StatefulSet", |scene| scene.objects.retain(|object| kind_of(object) != "StatefulSet")),
        ("which nobody renders", |scene| {
            let mut more = scene.of("ConfigMap", "m00").clone();
            more["metadata"]["name"] = "m00-old".into();
            scene.objects.push(more);
        }),
        ("label sites.ecmwf.int/owner", |scene| {
            scene.of("Secret", "m00")["metadata"]["labels"]["sites.ecmwf.int/owner"] = "bob".into();
        }),
        ("has the owners", |scene| scene.of("Service", "m00")["metadata"]["ownerReferences"] = Value::Null),
        ("has the owners", |scene| *scene.at("ConfigMap", "/metadata/ownerReferences/0/uid") = "u-0".into()),
        ("has the owners", |scene| {
            let owners = scene.at("Secret", "/metadata/ownerReferences").as_array_mut().unwrap();
            owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u-9"}));
        }),
        ("it is being deleted", |scene| scene.route()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into()),
        ("data differ", |scene| scene.of("Secret", "m00")["data"]["MORE"] = "eA==".into()),
        ("data differ", |scene| scene.of("Secret", "m00-oauth2")["data"] = json!({})),
        ("data differ", |scene| scene.of("ConfigMap", "m00-files")["data"]["nginx.conf"] = "".into()),
        ("spec.replicas", |scene| *scene.at("StatefulSet", "/spec/replicas") = 0.into()),
        ("image", |scene| *scene.at("StatefulSet", "/spec/template/spec/containers/0/image") = "other".into()),
        ("containers", |scene| {
            scene.at("StatefulSet", "/spec/template/spec/containers").as_array_mut().unwrap().pop();
        }),
        (STAMPED_FOR, |scene| {
            scene.at("StatefulSet", "/spec/template/metadata/annotations")[STAMPED_FOR] = "v1:0/".into();
        }),
        ("spec.ports", |scene| *scene.at("Service", "/spec/ports/0/port") = 81.into()),
        ("host", |scene| *scene.at("Ingress", "/spec/rules/0/host") = "elsewhere.example.test".into()),
        ("location-snippets", |scene| {
            scene.at("Ingress", "/metadata/annotations")["nginx.org/location-snippets"] = "return 418;".into();
        }),
        ("not bound", |scene| *scene.at("PersistentVolumeClaim", "/status/phase") = "Pending".into()),
        ("not Ready", |scene| scene.site["status"]["conditions"][0]["status"] = "False".into()),
        ("not Ready", |scene| scene.site["status"]["observedGeneration"] = 2.into()),
        ("not handled", |scene| scene.site["spec"]["owner"] = "bob".into()),
        ("not handled", |scene| {
            scene.site["metadata"]["annotations"]["sites.ecmwf.int/upgrade-request"] = "r-2".into();
        }),
    ];
    for (number, (reason, spoil)) in wrong.iter().enumerate() {
        let mut scene = Scene::right();
        spoil(&mut scene);
        let found = scene.judged().expect_err(&format!("wrong world {number} ({reason})"));
        assert!(found.contains(reason), "wrong world {number}: {found} says nothing of {reason}");
    }
    // What may differ.
    let mut scene = Scene::right();
    scene.at("StatefulSet", "/spec/template/metadata/annotations")[RESTARTED_AT] = "2026-02-02T00:00:00Z".into();
    scene.at("Service", "/spec")["clusterIP"] = "10.0.0.1".into();
    scene.judged().expect("a restart by hand and what the server assigns");
}

#[test]
fn fault_matrix_judge_of_statuses_finds_each_lie() {
    let wrong: &[Spoil] = &[
        |scene| scene.site["status"]["phase"] = "Pending".into(),
        |scene| scene.site["status"]["all_steps_started"] = false.into(),
        |scene| scene.site["status"]["container_problems"] = json!([{"name": "site-proxy", "kind": "waiting"}]),
        |scene| *scene.of("Pod", "m00-0") = pod("m00-0", false),
        |scene| scene.of("Pod", "m00-0")["status"]["phase"] = "Failed".into(),
        |scene| scene.of("Pod", "m00-0")["status"]["conditions"][3]["status"] = "Unknown".into(),
        |scene| scene.objects.retain(|object| kind_of(object) != "Pod"),
        |scene| scene.objects.push(pod("m00-1", false)),
        |scene| {
            let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
            scene.of("Pod", "m00-0")["status"]["initContainerStatuses"] =
                json!([{"name": "site-initializer", "state": waits}]);
        },
    ];
    for (number, spoil) in wrong.iter().enumerate() {
        let mut scene = Scene::right();
        spoil(&mut scene);
        let found = scene.judged().expect_err(&format!("lie {number}"));
        assert!(found.contains("m00 tells"), "lie {number}: {found}");
    }
    // A pod that goes does not count beside one that stays.
    let mut scene = Scene::right();
    let mut going = pod("m00-1", false);
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    scene.objects.push(going);
    scene.judged().expect("a pod that goes");
}

/// The oracle itself, by the words of LIFE-10.
#[test]
fn fault_matrix_oracle_knows_the_reference_page() {
    let crash = json!({"name": "site-api", "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    let waits = json!({"name": "site-api", "state": {"waiting": {"reason": "PodInitializing"}}});
    let died = json!({"name": "site-initializer", "state": {"terminated": {"exitCode": 1}}});
    let rows = [
        (json!({}), "Running", true, &[][..]),
        (json!({"containerStatuses": [crash]}), "Pending", false, &["site-api"]),
        (
            json!({"phase": "Pending", "initContainerStatuses": [died], "containerStatuses": [waits]}),
            "Pending",
            false,
            &["site-initializer"],
        ),
        (json!({"phase": "Pending", "conditions": [], "containerStatuses": []}), "Pending", false, &[]),
        (
            json!({"phase": "Pending", "containerStatuses": [], "conditions": [{"type": "PodScheduled", "status": "False"}]}),
            "Pending",
            false,
            &["p"],
        ),
        (json!({"phase": "Failed", "containerStatuses": []}), "Failed", false, &[]),
        (json!({"phase": "Succeeded", "containerStatuses": []}), "Succeeded", false, &[]),
        (json!({"reason": "NodeLost"}), "Unknown", false, &[]),
        (json!({"conditions": []}), "Running", false, &[]),
    ];
    for (status, phase, all_steps_started, problems) in rows {
        let mut pod = pod("p", true);
        merge_into(&mut pod["status"], &status);
        let problems: Vec<String> = problems.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Truth { phase: phase.to_owned(), all_steps_started, problems };
        assert_eq!(truth(&json!({}), std::slice::from_ref(&pod)), wanted, "{status}");
        let archived = json!({"spec": {"configuration": {"enabled": false}}});
        assert_eq!(truth(&archived, &[pod]).phase, "Disabled");
    }
    assert_eq!(truth(&json!({}), &[]).phase, "Pending");
}

fn second(number: i64) -> Timestamp {
    Timestamp::from_second(number).unwrap()
}

fn call(at: i64, agent: &str, verb: &str, resource: &str, code: u16) -> Call {
    Call {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        subresource: String::new(),
        namespace: "matrix".to_owned(),
        name: "m00".to_owned(),
        code,
        user: "system:serviceaccount:matrix:sites".to_owned(),
        user_agent: agent.to_owned(),
        at: second(at),
        request_uri: String::new(),
    }
}

fn passed(at: i64, agent: &str, verb: &str, resource: &str) -> Passed {
    let asked = Asked { verb: verb.to_owned(), resource: resource.to_owned(), ..Asked::default() };
    Passed { at: second(at), asked, user_agent: agent.to_owned(), fault: None, code: Some(200), abandoned: None }
}

#[test]
fn fault_matrix_judge_of_leaders_finds_a_second_one() {
    let lease = |at, agent| call(at, agent, "update", "leases", 200);
    let write = |at, agent| call(at, agent, "update", "secrets", 200);
    let judge = |calls: &[Call], passed: &[Passed]| leaders::judge(Calls(calls.to_vec()), passed.to_vec());
    let right = [lease(1, "a"), write(2, "a"), lease(3, "a"), write(4, "a"), lease(5, "b"), write(6, "b")];
    assert_eq!(judge(&right, &[]), Ok(Verdict { terms: 2, writes: 3, on_the_wire: 0 }));
    // Both write in the term of one.
    let two = [lease(1, "a"), write(2, "a"), lease(5, "b"), write(6, "b"), write(7, "a")];
    assert!(judge(&two, &[]).unwrap_err().contains("although b led"));
    // It was on its way before the term of the other began; one request excuses one write.
    let on_its_way = passed(4, "a", "update", "secrets");
    assert_eq!(judge(&two, std::slice::from_ref(&on_its_way)), Ok(Verdict { terms: 2, writes: 3, on_the_wire: 1 }));
    let thrice = [two.as_slice(), &[write(8, "a")]].concat();
    assert!(judge(&thrice, &[on_its_way]).is_err());
    for other in [
        passed(6, "a", "update", "secrets"),
        passed(4, "b", "update", "secrets"),
        passed(4, "a", "create", "secrets"),
        passed(4, "a", "update", "services"),
    ] {
        assert!(judge(&two, std::slice::from_ref(&other)).is_err(), "{other:?}");
    }
    // Nobody leads yet.
    assert!(judge(&[write(1, "a"), lease(2, "a")], &[]).unwrap_err().contains("before anybody led"));
    // What the server refused was not written, and what is read harms nobody.
    let refused = [lease(1, "a"), call(2, "b", "update", "secrets", 409), call(3, "b", "get", "secrets", 200)];
    assert_eq!(judge(&refused, &[]), Ok(Verdict { terms: 1, writes: 0, on_the_wire: 0 }));
}

/// The history of one Site: what it asked for and the templates of its set, as (set, what for, restarted at).
fn history(owners: &[&str], templates: &[(&str, &str, &str)]) -> Result<usize, String> {
    let mut seen = Seen::default();
    let site = |owner: &str| -> Site {
        serde_json::from_value(json!({
            "metadata": {"name": "m00", "uid": "u-1"},
            "spec": {"id": "m00", "owner": owner, "type": "private"},
        }))
        .unwrap()
    };
    for owner in owners {
        seen.site(&site(owner));
    }
    for (set, owner, at) in templates {
        let stamp = change::stamp(&change::trigger(&site(owner)));
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "m00", "uid": set, "ownerReferences": [
                {"apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "name": "m00", "uid": "u-1"}]},
            "spec": {"selector": {}, "serviceName": "m00", "template": {"metadata": {"annotations": {
                STAMPED_FOR: stamp, RESTARTED_AT: at}}}},
        }))
        .unwrap();
        seen.set(&set);
    }
    seen.judge()
}

#[test]
fn fault_matrix_judge_of_the_history_finds_a_second_restart_and_a_way_back() {
    assert_eq!(history(&["a", "b"], &[("s", "a", "1"), ("s", "a", "1"), ("s", "b", "2")]), Ok(1));
    assert_eq!(history(&["a", "b", "a"], &[("s", "a", "1"), ("s", "b", "2"), ("s", "a", "3")]), Ok(2));
    // A set that was deleted is made again for the same change.
    assert_eq!(history(&["a"], &[("s", "a", "1"), ("t", "a", "2")]), Ok(0));
    let twice = history(&["a", "b"], &[("s", "a", "1"), ("s", "b", "2"), ("s", "b", "3")]);
    assert!(twice.unwrap_err().contains("restarted twice"));
    let back = history(&["a", "b"], &[("s", "a", "1"), ("s", "b", "2"), ("s", "a", "3")]);
    assert!(back.unwrap_err().contains("nobody asked for"));
    assert!(history(&["a"], &[("s", "a", "1"), ("s", "c", "2")]).unwrap_err().contains("nobody asked for"));
}

#[test]
fn fault_matrix_judges_of_what_is_left_find_an_actor_and_an_object() {
    let told = |keys: &[&str]| json!({"objects": keys.iter().map(|key| json!({"key": key})).collect::<Vec<_>>()});
    let wanted: BTreeSet<String> = ["n/a", "n/b"].map(str::to_owned).into();
    knows_exactly(&told(&["n/a", "n/b"]), &wanted).expect("the right world");
    for wrong in [told(&["n/a", "n/b", "n/gone"]), told(&["n/a"]), told(&[]), json!({"status": "error"})] {
        knows_exactly(&wrong, &wanted).expect_err("a wrong world");
    }
    assert!(knows_exactly(&json!({"status": "error"}), &BTreeSet::new()).is_err());

    nothing_left(vec![json!({"kind": "PersistentVolume"})]).expect("a volume stays");
    nothing_left(vec![json!({"kind": "PersistentVolume"}), json!({"kind": "Secret"})]).expect_err("a Secret");
}
