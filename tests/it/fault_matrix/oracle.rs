//! What a Site's pods come to, judged from their raw JSON by the reference page's words (LIFE-10) alone.
//!
//! An oracle: it shares no code and no type with the product, so that one mistake cannot agree with itself.

use serde_json::Value;

/// What the status must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    pub phase: String,
    pub all_steps_started: bool,
    /// Names of the containers (or of the pod that no node takes) with a problem, in order.
    pub problems: Vec<String>,
}

impl Truth {
    fn bare(phase: &str) -> Self {
        Self { phase: phase.into(), all_steps_started: false, problems: Vec::new() }
    }

    /// What a Site's status says.
    pub fn told(status: &Value) -> Self {
        Self {
            phase: text(&status["phase"]),
            all_steps_started: status["all_steps_started"] == true,
            problems: list(&status["container_problems"]).iter().map(|problem| text(&problem["name"])).collect(),
        }
    }
}

/// Judges all pods of a Site.
pub fn truth(site: &Value, pods: &[Value]) -> Truth {
    if site["spec"]["configuration"]["enabled"] == false {
        return Truth::bare("Disabled");
    }
    let staying: Vec<&Value> = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
    let judged = if staying.is_empty() { pods.iter().collect() } else { staying };
    let mut verdicts: Vec<Truth> = judged.into_iter().map(one).collect();
    // The worst is told.
    verdicts.sort_by_key(|verdict| {
        let order = ["Failed", "Unknown", "Pending", "Succeeded", "Running"];
        let place = order.iter().position(|phase| *phase == verdict.phase);
        (place, verdict.all_steps_started, std::cmp::Reverse(verdict.problems.len()))
    });
    verdicts.into_iter().next().unwrap_or_else(|| Truth::bare("Pending"))
}

fn one(pod: &Value) -> Truth {
    let status = &pod["status"];
    let steps: Vec<&Value> = list(&status["conditions"])
        .iter()
        .filter(|step| match step["type"].as_str() {
            Some("PodScheduled" | "Initialized" | "ContainersReady" | "Ready") => true,
            Some("DisruptionTarget") => step["status"] == "True",
            _ => false,
        })
        .collect();
    let lost = status["phase"] == "Unknown"
        || status["reason"] == "NodeLost"
        || steps.iter().any(|step| step["type"] == "Ready" && step["status"] == "Unknown");
    let mut problems = Vec::new();
    if steps.iter().any(|step| step["type"] == "PodScheduled" && step["status"] == "False") {
        problems.push(text(&pod["metadata"]["name"]));
    }
    let init = list(&status["initContainerStatuses"]);
    let failed_init = init.iter().any(|container| has_problem(container, true) && !waits_for_init(container));
    let all = init.iter().map(|container| (container, true));
    for (container, init) in all.chain(list(&status["containerStatuses"]).iter().map(|container| (container, false))) {
        // Those that only wait for an init container that failed are not the cause.
        if has_problem(container, init) && !(failed_init && waits_for_init(container)) {
            problems.push(text(&container["name"]));
        }
    }
    let phase = match status["phase"].as_str() {
        _ if lost => "Unknown",
        _ if !problems.is_empty() => "Pending",
        Some(phase @ ("Running" | "Succeeded" | "Failed")) => phase,
        _ => "Pending",
    };
    let step_is_good = |step: &&Value| step["type"] != "DisruptionTarget" && step["status"] == "True";
    let started = phase == "Running" && !steps.is_empty() && steps.iter().all(step_is_good);
    Truth { phase: phase.into(), all_steps_started: started, problems }
}

fn has_problem(container: &Value, init: bool) -> bool {
    let state = &container["state"];
    if state["waiting"].is_object() {
        return true;
    }
    if state["terminated"].is_object() {
        return state["terminated"]["exitCode"] != 0;
    }
    state["running"].is_object() && container["ready"] != true && !init
}

fn waits_for_init(container: &Value) -> bool {
    container["state"]["waiting"]["reason"] == "PodInitializing"
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
