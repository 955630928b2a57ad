//! Policies of NGINX Gateway Fabric: uploads of any size, long silences, no buffered answers.
//!
//! It has no policy that switches the buffering of *requests* off: uploads pass through its disk, unless the
//! platform adds a snippet for its Gateway.

use kube::core::DynamicObject;
use serde_json::json;

use super::policy::{PolicyKind, target};
use crate::render::context::Context;
use crate::render::error::RenderError;

const CLIENT_SETTINGS: PolicyKind = PolicyKind {
    group: "gateway.nginx.org",
    version: "v1alpha1",
    kind: "ClientSettingsPolicy",
    plural: "clientsettingspolicies",
};
const PROXY_SETTINGS: PolicyKind = PolicyKind {
    group: "gateway.nginx.org",
    version: "v1alpha1",
    kind: "ProxySettingsPolicy",
    plural: "proxysettingspolicies",
};

/// Kinds of this provider.
pub const KINDS: [PolicyKind; 2] = [CLIENT_SETTINGS, PROXY_SETTINGS];

/// `ClientSettingsPolicy/<id>` and `ProxySettingsPolicy/<id>`.
pub fn policies(context: &Context<'_>, route: &str) -> Result<Vec<DynamicObject>, RenderError> {
    let timeout = nginx_time(&context.settings.routing.gateway.request_timeout)?;
    Ok(vec![
        CLIENT_SETTINGS.object(
            context,
            context.id,
            &json!({ "targetRef": target(route), "body": { "maxSize": "0", "timeout": timeout } }),
        ),
        PROXY_SETTINGS.object(
            context,
            context.id,
            &json!({
                "targetRefs": [target(route)],
                "buffering": { "disable": true },
                "timeout": { "connect": "10s", "read": timeout, "send": timeout },
            }),
        ),
    ])
}

/// A Gateway API duration (`1h30m`) as one number of at most four digits and one unit, rounded up. Zero means no limit
/// there, and "at once" for nginx.
fn nginx_time(duration: &str) -> Result<String, RenderError> {
    let refused = || {
        RenderError::setting("routing.gateway.request_timeout", "must be a Gateway API duration such as 600s or 1h30m")
    };
    let milliseconds = milliseconds(duration).ok_or_else(refused)?;
    for (unit, size) in [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)] {
        let number = milliseconds.div_ceil(size);
        let exact = milliseconds % size == 0 && milliseconds % 1_000 != 0;
        if (1..=9999).contains(&number) && (unit != "ms" || exact) {
            return Ok(format!("{number}{unit}"));
        }
    }
    Ok("9999h".to_owned())
}

fn milliseconds(duration: &str) -> Option<u64> {
    let mut rest = duration;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let (unit, size) = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)]
            .into_iter()
            .find(|(unit, _)| rest[digits..].starts_with(unit))?;
        rest = &rest[digits + unit.len()..];
        sum = sum.checked_add(number.checked_mul(size)?)?;
    }
    (!duration.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_become_nginx_times() {
        for (duration, time) in [
            ("600s", "600s"),
            ("1h30m", "5400s"),
            ("1500ms", "1500ms"),
            ("10m", "600s"),
            ("99999s", "1667m"),
            ("99999h", "9999h"),
            ("0s", "9999h"),
            ("20s1ms", "21s"),
        ] {
            assert_eq!(nginx_time(duration).as_deref(), Ok(time), "{duration}");
        }
        for duration in ["", "600", "1d", "s", "1.5h", "1s; evil"] {
            assert!(nginx_time(duration).is_err(), "{duration}");
        }
    }
}
