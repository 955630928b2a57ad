//! Probes. All servers of ours listen on loopback, where the kubelet cannot reach them: nginx's probe port asks for it.
//! No probe executes a command.

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::domain::application::{Builtin, PROBE_PORT};
use crate::render::layout;

/// Probes of one container.
#[derive(Default)]
pub struct Probes {
    /// Holds the others back until the first success.
    pub startup: Option<Probe>,
    /// Whether requests may come.
    pub readiness: Option<Probe>,
    /// Whether a restart is the only cure.
    pub liveness: Option<Probe>,
}

/// Path on nginx's probe port that asks an optional application of ours.
#[must_use]
pub fn path(builtin: Builtin) -> String {
    format!("/readyz/{}", builtin.name())
}

/// nginx itself.
#[must_use]
pub fn front() -> Probes {
    Probes {
        startup: Some(Probe { period_seconds: Some(1), failure_threshold: Some(60), ..http("/healthz") }),
        readiness: Some(Probe { period_seconds: Some(5), timeout_seconds: Some(2), ..http("/healthz") }),
        liveness: Some(Probe {
            period_seconds: Some(10),
            timeout_seconds: Some(3),
            failure_threshold: Some(6),
            ..http("/healthz")
        }),
    }
}

/// A server behind nginx's probe port. It is restarted late: a probe that fails because nginx is down restarts it too.
#[must_use]
pub fn behind(path: &str) -> Probes {
    Probes {
        startup: None,
        readiness: Some(Probe { period_seconds: Some(5), timeout_seconds: Some(3), ..http(path) }),
        liveness: Some(Probe {
            initial_delay_seconds: Some(15),
            period_seconds: Some(10),
            timeout_seconds: Some(3),
            failure_threshold: Some(6),
            ..http(path)
        }),
    }
}

/// The custom application: ready when it accepts connections. It may warm up as long as it wants, and is never
/// restarted for being slow.
#[must_use]
pub fn custom() -> Probes {
    Probes {
        readiness: Some(Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::Int(layout::port(Builtin::Custom)),
                ..TCPSocketAction::default()
            }),
            period_seconds: Some(5),
            timeout_seconds: Some(3),
            ..Probe::default()
        }),
        ..Probes::default()
    }
}

fn http(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(PROBE_PORT.into()),
            ..HTTPGetAction::default()
        }),
        ..Probe::default()
    }
}
