//! The Service: one port, the front door. Every other server of the pod listens on loopback or is probed only.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::context::Context;
use super::layout;
use crate::domain::application::Builtin;

/// `<id>`: the address of the pods inside the cluster.
#[must_use]
pub fn service(context: &Context<'_>) -> Service {
    let port = layout::port(Builtin::Proxy);
    Service {
        metadata: context.metadata(context.id),
        spec: Some(ServiceSpec {
            selector: Some(context.selector()),
            ports: Some(vec![ServicePort {
                name: Some("http".to_owned()),
                port,
                target_port: Some(IntOrString::Int(port)),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
