//! The metrics, by their exact exposed names, and their Prometheus text.
//!
//! Owns names, labels and buckets. Nobody else may make an instrument; no Site may appear as a label.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use thiserror::Error;

/// Seconds, from a cache hit to a hanging call.
const SECONDS: [f64; 14] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// Why there are no metrics.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The exporter could not be registered.
    #[error("metrics exporter: {0}")]
    Exporter(String),
}

/// All instruments; cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Instruments>);

struct Instruments {
    registry: Registry,
    provider: SdkMeterProvider,
    reconcile_total: Counter<u64>,
    reconcile_duration: Histogram<f64>,
    queue_depth: Gauge<u64>,
    objects: Gauge<u64>,
    slot_wait: Histogram<f64>,
    slots_in_use: Gauge<u64>,
    kube_call: Histogram<f64>,
    watch_restarts: Counter<u64>,
    actor_restarts: Counter<u64>,
    status_lag: Histogram<f64>,
    leader: Gauge<u64>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// A fresh set with a registry of its own.
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Registry::new();
        // Names are exposed as they are written here: the exporter would otherwise append `_total` and units
        // to names that have them.
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .without_counter_suffixes()
            .without_units()
            .without_target_info()
            .scope_info_enabled(false)
            .build()
            .map_err(|error| MetricsError::Exporter(error.to_string()))?;
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        let meter = provider.meter("sites");
        Ok(Self(Arc::new(Instruments::new(registry, provider, &meter))))
    }

    /// A pass of `model` ended with `result` after `duration`.
    pub fn reconciled(&self, model: &str, result: &str, duration: Duration) {
        let model = label("model", model);
        self.0.reconcile_total.add(1, &[model.clone(), label("result", result)]);
        self.0.reconcile_duration.record(duration.as_secs_f64(), &[model]);
    }

    /// Objects of `model` that wait for a slot.
    pub fn queue_depth(&self, model: &str, waiting: usize) {
        self.0.queue_depth.record(whole(waiting), &[label("model", model)]);
    }

    /// Objects of `model` that are known.
    pub fn objects(&self, model: &str, known: usize) {
        self.0.objects.record(whole(known), &[label("model", model)]);
    }

    /// A slot of `class` was granted after `wait`.
    pub fn slot_wait(&self, class: &str, wait: Duration) {
        self.0.slot_wait.record(wait.as_secs_f64(), &[label("class", class)]);
    }

    /// Slots that are taken.
    pub fn slots_in_use(&self, taken: usize) {
        self.0.slots_in_use.record(whole(taken), &[]);
    }

    /// A call was answered (`code` is the HTTP status) or not (`timeout`, `connection`, `held`, `not_leader`).
    pub fn kube_call(&self, verb: &str, kind: &str, code: &str, duration: Duration) {
        let labels = [label("verb", verb), label("kind", kind), label("code", code)];
        self.0.kube_call.record(duration.as_secs_f64(), &labels);
    }

    /// There is a watch of `kind`: its failures are counted from zero, so that the first one is seen as an increase.
    pub fn watches(&self, kind: &str) {
        self.0.watch_restarts.add(0, &[label("kind", kind)]);
    }

    /// There are actors of this name, see [`Self::watches`].
    pub fn actors(&self, actor: &str) {
        self.0.actor_restarts.add(0, &[label("actor", actor)]);
    }

    /// A watch of `kind` failed and began again.
    pub fn watch_restart(&self, kind: &str) {
        self.0.watch_restarts.add(1, &[label("kind", kind)]);
    }

    /// An actor of this name died and was started again.
    pub fn actor_restart(&self, actor: &str) {
        self.0.actor_restarts.add(1, &[label("actor", actor)]);
    }

    /// A status was written `lag` after the fact that it reports.
    pub fn status_lag(&self, lag: Duration) {
        self.0.status_lag.record(lag.as_secs_f64(), &[]);
    }

    /// Whether this process leads.
    pub fn leader(&self, leads: bool) {
        self.0.leader.record(u64::from(leads), &[]);
    }

    /// All of them as Prometheus text.
    #[must_use]
    pub fn render(&self) -> String {
        let families = self.0.registry.gather();
        TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| format!("# {error}\n"))
    }

    /// Where more readers could be attached; keeps the provider alive.
    #[must_use]
    pub fn provider(&self) -> &SdkMeterProvider {
        &self.0.provider
    }
}

impl Instruments {
    fn new(registry: Registry, provider: SdkMeterProvider, meter: &Meter) -> Self {
        let counter = |name: &'static str, text: &'static str| meter.u64_counter(name).with_description(text).build();
        let gauge = |name: &'static str, text: &'static str| meter.u64_gauge(name).with_description(text).build();
        let seconds = |name: &'static str, text: &'static str| {
            let builder = meter.f64_histogram(name).with_description(text).with_unit("s");
            builder.with_boundaries(SECONDS.to_vec()).build()
        };
        Self {
            reconcile_total: counter("reconcile_total", "Passes over an object, by result."),
            reconcile_duration: seconds("reconcile_duration_seconds", "Duration of a pass."),
            queue_depth: gauge("queue_depth", "Objects that wait for a slot."),
            objects: gauge("objects", "Objects that are known."),
            slot_wait: seconds("slot_wait_seconds", "Time from asking for a slot to getting one."),
            slots_in_use: gauge("slots_in_use", "Slots that are taken."),
            kube_call: seconds("kube_call_duration_seconds", "Duration of a call to the API server."),
            watch_restarts: counter("watch_restarts_total", "Watches that failed and began again."),
            actor_restarts: counter("actor_restarts_total", "Actors that died and were started again."),
            status_lag: seconds("status_lag_seconds", "Time from a fact to the status that reports it."),
            leader: gauge("leader", "1 while this process leads."),
            registry,
            provider,
        }
    }
}

fn label(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, value.to_owned())
}

fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_from_zero() {
        let metrics = Metrics::new().unwrap();
        metrics.watches("Pod");
        metrics.actors("object");
        let text = metrics.render();
        for line in ["watch_restarts_total{kind=\"Pod\"} 0", "actor_restarts_total{actor=\"object\"} 0"] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn names_are_exposed_as_written() {
        let metrics = Metrics::new().unwrap();
        let second = Duration::from_secs(1);
        metrics.reconciled("Site", "ok", second);
        metrics.queue_depth("Site", 3);
        metrics.objects("Site", 4);
        metrics.slot_wait("change", second);
        metrics.slots_in_use(2);
        metrics.kube_call("get", "Secret", "200", second);
        metrics.watch_restart("Pod");
        metrics.actor_restart("object");
        metrics.status_lag(second);
        metrics.leader(true);
        let text = metrics.render();
        for line in [
            "reconcile_total{model=\"Site\",result=\"ok\"} 1",
            "reconcile_duration_seconds_count{model=\"Site\"} 1",
            "queue_depth{model=\"Site\"} 3",
            "objects{model=\"Site\"} 4",
            "slot_wait_seconds_sum{class=\"change\"} 1",
            "slots_in_use 2",
            "kube_call_duration_seconds_count{code=\"200\",kind=\"Secret\",verb=\"get\"} 1",
            "watch_restarts_total{kind=\"Pod\"} 1",
            "actor_restarts_total{actor=\"object\"} 1",
            "status_lag_seconds_count 1",
            "leader 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("target_info") && !text.contains("otel_scope"));
    }
}
