//! The plan of the chaos: a pure function of seed and length. What is done, when, to whom; nothing is done here.
//!
//! Each timeline draws from a stream of its own, so that a change of one leaves the others as they were.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::{Act, Match};

/// How many Sites there are.
pub const SITES: usize = 20;
/// The first of them are never deleted: only their objects may be left without any owner, because nobody collects
/// such an object if its Site goes before it is repaired.
pub const PERMANENT: usize = 6;
/// Kinds of the objects with the Site's own id as their name.
const KINDS: [&str; 5] = ["Secret", "ConfigMap", "PersistentVolumeClaim", "StatefulSet", "Service"];

/// Something at a moment after the beginning.
#[derive(Debug, Clone)]
pub struct Step<T> {
    pub at: Duration,
    pub what: T,
}

/// What people do to a Site, its objects and its pods.
#[derive(Debug, Clone)]
pub enum Deed {
    Create {
        id: String,
        spec: Value,
    },
    Delete {
        id: String,
    },
    /// Deleted and created again in the same moment.
    Replace {
        id: String,
        spec: Value,
    },
    /// A merge patch of the Site.
    Edit {
        id: String,
        patch: Value,
    },
    /// A merge patch of one of its objects.
    Spoil {
        kind: &'static str,
        name: String,
        patch: Value,
    },
    /// A value at a JSON pointer of one of its objects.
    SpoilAt {
        kind: &'static str,
        name: String,
        pointer: &'static str,
        value: Value,
    },
    /// Its route, whatever its name is: an annotation, a path, or gone.
    SpoilRoute {
        id: String,
        how: RouteHarm,
    },
    DeleteChild {
        kind: &'static str,
        name: String,
    },
    /// The claim; its pod as well, or it would stay for ever.
    DeleteClaim {
        id: String,
    },
    DeletePods {
        id: String,
    },
    /// The pods show an outcome.
    Show {
        id: String,
        outcome: &'static str,
    },
}

#[derive(Debug, Clone, Copy)]
pub enum RouteHarm {
    Annotation,
    Host,
    Delete,
}

/// What happens to a replica: it is away for a time, and comes back.
#[derive(Debug, Clone, Copy)]
pub struct Upset {
    pub how: How,
    pub away: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Kill,
    Term,
    Pause,
}

/// A fault on a replica's road to the API server.
#[derive(Debug, Clone)]
pub struct Fault {
    pub replica: usize,
    pub matching: Match,
    pub act: Act,
    pub count: usize,
}

pub struct Plan {
    pub born: Vec<Deed>,
    pub deeds: Vec<Step<Deed>>,
    pub upsets: [Vec<Step<Upset>>; 2],
    pub faults: Vec<Step<Fault>>,
}

pub fn id_of(number: usize) -> String {
    format!("m{number:02}")
}

impl Plan {
    pub fn of(seed: u64, length: Duration) -> Self {
        let stream = |number: u64| StdRng::seed_from_u64(seed.wrapping_mul(8).wrapping_add(number));
        let mut rng = stream(0);
        let mut alive = [false; SITES];
        let mut born = Vec::new();
        for (number, alive) in alive.iter_mut().enumerate() {
            if number < PERMANENT || rng.random_bool(0.7) {
                *alive = true;
                born.push(Deed::Create { id: id_of(number), spec: spec(&mut rng) });
            }
        }
        let deeds = timeline(&mut rng, length, 80..400, |rng| deed(rng, &mut alive));
        let upsets = [1, 2].map(|number| {
            let mut rng = stream(number);
            let mut steps = timeline(&mut rng, length, 3000..14000, upset);
            // A replica is upset again only after it has come back.
            let mut shift = Duration::ZERO;
            for step in &mut steps {
                step.at += shift;
                shift += step.what.away;
            }
            steps.retain(|step| step.at < length);
            steps
        });
        let faults = timeline(&mut stream(3), length, 200..2000, fault);
        Self { born, deeds, upsets, faults }
    }
}

fn timeline<T>(
    rng: &mut StdRng,
    length: Duration,
    gap: std::ops::Range<u64>,
    mut next: impl FnMut(&mut StdRng) -> T,
) -> Vec<Step<T>> {
    let mut steps = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        at += Duration::from_millis(rng.random_range(gap.clone()));
        if at >= length {
            return steps;
        }
        steps.push(Step { at, what: next(rng) });
    }
}

fn one<T: Clone>(rng: &mut StdRng, of: &[T]) -> T {
    of.choose(rng).expect("something to choose from").clone()
}

fn word(rng: &mut StdRng) -> String {
    format!("w{:04x}", rng.random_range(0..0xffff_u32))
}

fn spec(rng: &mut StdRng) -> Value {
    json!({
        "owner": format!("{}@example.test", word(rng)),
        "type": one(rng, &["private", "public"]),
        "configuration": {"quota": rng.random_range(1..3), "enabled": rng.random_bool(0.9)},
    })
}

fn deed(rng: &mut StdRng, alive: &mut [bool; SITES]) -> Deed {
    let number = rng.random_range(0..SITES);
    let id = id_of(number);
    let fleeting = number >= PERMANENT;
    if !alive[number] {
        alive[number] = true;
        return Deed::Create { id, spec: spec(rng) };
    }
    match rng.random_range(0..100) {
        0..6 if fleeting => {
            alive[number] = false;
            Deed::Delete { id }
        }
        6..10 if fleeting => Deed::Replace { id, spec: spec(rng) },
        0..45 => Deed::Edit { patch: edit(rng, &id), id },
        45..65 => spoil(rng, id, fleeting),
        65..68 => Deed::SpoilRoute { id, how: one(rng, &[RouteHarm::Annotation, RouteHarm::Host, RouteHarm::Delete]) },
        68..77 => {
            let (kind, suffix) = one(
                rng,
                &[
                    ("Secret", ""),
                    ("Secret", "-oauth2"),
                    ("ConfigMap", ""),
                    ("ConfigMap", "-files"),
                    ("StatefulSet", ""),
                    ("Service", ""),
                ],
            );
            Deed::DeleteChild { kind, name: format!("{id}{suffix}") }
        }
        77..79 => Deed::DeleteClaim { id },
        79..84 => Deed::DeletePods { id },
        _ => Deed::Show { id, outcome: one(rng, &["ok", "ok", "hang", "crash", "init-crash", "unready", "fail"]) },
    }
}

/// An edit of the Site; a few ask for no work.
fn edit(rng: &mut StdRng, id: &str) -> Value {
    let configuration = |value: Value| json!({"spec": {"configuration": value}});
    match rng.random_range(0..14) {
        0..3 => configuration(json!({"share": {"view_users": [word(rng)]}})),
        3 => configuration(json!({"share": {"administrator_groups": [word(rng), word(rng)]}})),
        4 => configuration(json!({"headers": {"X-Matrix": word(rng)}})),
        5 => configuration(json!({"quota": rng.random_range(1..4)})),
        6 => json!({"spec": {"type": one(rng, &["private", "public"])}}),
        7 => json!({"spec": {"owner": format!("{}@example.test", word(rng))}}),
        // Another public path, or none.
        8 => json!({"spec": {"name": one(rng, &[json!(id), json!(format!("{id}-b")), Value::Null])}}),
        9 => configuration(json!({"enabled": rng.random_bool(0.6)})),
        10 => {
            let custom = json!({"name": "site-custom", "image": format!("registry.example.test/app:{}", word(rng))});
            let more = [json!([{"name": "site-admin"}]), json!([{"name": "site-webdav"}, custom])];
            configuration(json!({"applications": one(rng, &more)}))
        }
        11 => configuration(json!({"tokens": {"master": word(rng).repeat(6)}})),
        12 => configuration(json!({"description": word(rng)})),
        _ => json!({"metadata": {"annotations": {"sites.ecmwf.int/upgrade-request": word(rng)}}}),
    }
}

/// What somebody does by hand to an object of a Site.
fn spoil(rng: &mut StdRng, id: String, fleeting: bool) -> Deed {
    let kind = one(rng, &KINDS);
    match rng.random_range(0..9) {
        0 => Deed::Spoil {
            kind: "ConfigMap",
            name: format!("{id}-files"),
            patch: json!({"data": {"nginx.conf": word(rng)}}),
        },
        1 => Deed::Spoil { kind: "ConfigMap", name: id, patch: json!({"data": {word(rng): "1"}}) },
        2 => Deed::Spoil { kind: "Secret", name: id, patch: json!({"data": {"MASTER_TOKEN": "bm90LWEtdG9rZW4="}}) },
        3 => {
            let labels = one(rng, &[json!({"sites.ecmwf.int/owner": "nobody"}), json!({"sites.ecmwf.int/name": null})]);
            Deed::Spoil { kind, name: id, patch: json!({"metadata": {"labels": labels}}) }
        }
        4 if !fleeting => Deed::Spoil { kind, name: id, patch: json!({"metadata": {"ownerReferences": null}}) },
        // A dead owner: the garbage collector deletes it.
        4 => {
            let uid = format!("00000000-0000-4000-8000-{:012x}", rng.random_range(0..u64::from(u32::MAX)));
            let owner = json!([{"apiVersion": "sites.ecmwf.int/v1", "kind": "Site", "name": id, "uid": uid}]);
            Deed::Spoil { kind: "ConfigMap", name: id, patch: json!({"metadata": {"ownerReferences": owner}}) }
        }
        5 => {
            let pointer = "/spec/template/spec/containers/0/image";
            Deed::SpoilAt {
                kind: "StatefulSet",
                name: id,
                pointer,
                value: format!("example.test/{}", word(rng)).into(),
            }
        }
        6 => {
            let value = rng.random_range(0..3).into();
            Deed::SpoilAt { kind: "StatefulSet", name: id, pointer: "/spec/replicas", value }
        }
        7 => Deed::SpoilAt { kind: "Service", name: id, pointer: "/spec/ports/0/port", value: 8080.into() },
        _ => Deed::Spoil {
            kind: "Service",
            name: id,
            patch: json!({"spec": {"selector": {"sites.ecmwf.int/id": "nobody"}}}),
        },
    }
}

fn upset(rng: &mut StdRng) -> Upset {
    let how = one(rng, &[How::Kill, How::Term, How::Pause, How::Pause]);
    // Around the validity of the Lease.
    Upset { how, away: Duration::from_millis(rng.random_range(100..5000)) }
}

fn fault(rng: &mut StdRng) -> Fault {
    const WATCHED: [&str; 7] =
        ["sites", "pods", "statefulsets", "persistentvolumeclaims", "secrets", "configmaps", "persistentvolumes"];
    let millis = |rng: &mut StdRng, most| Duration::from_millis(rng.random_range(20..most));
    let replica = rng.random_range(0..2);
    let (matching, act) = match rng.random_range(0..12) {
        0..4 => {
            let verbs = one(rng, &["create", "update", "patch", "delete", "get"]);
            let status = one(rng, &[500, 503, 504, 429, 409, 403, 401]);
            let act = Act::status(status);
            (Match::on(verbs, "*"), if status == 429 { act.retry_after(1) } else { act })
        }
        4..7 => {
            let verbs = one(rng, &["create", "update", "patch", "get"]);
            let pause = millis(rng, 900);
            (Match::on(verbs, "*"), one(rng, &[Act::Delay(pause), Act::Reset, Act::LoseAnswer, Act::LoseAnswer]))
        }
        7 => (Match::on("create|update|patch", "*"), Act::Silence),
        8 => {
            let pause = millis(rng, 1500);
            let acts =
                [Act::status(500), Act::status(409), Act::Reset, Act::LoseAnswer, Act::Silence, Act::Delay(pause)];
            (Match::on("get|update", "leases"), one(rng, &acts))
        }
        9 => {
            let acts = [Act::status(410), Act::status(500), Act::status(403), Act::Reset];
            (Match::on("list|watch", one(rng, &WATCHED)), one(rng, &acts))
        }
        10 => (Match::on("watch", one(rng, &WATCHED)), Act::CutAfter(millis(rng, 2000))),
        _ => (Match::on("watch", one(rng, &WATCHED)), Act::Silence),
    };
    // A silence costs a time limit each time: more than two in a row would only keep the replica from working.
    let most = if matches!(act, Act::Silence) { 2 } else { 5 };
    Fault { replica, matching, act, count: rng.random_range(1..=most) }
}
