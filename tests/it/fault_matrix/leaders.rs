//! Whether only the leader wrote: the accepted writes of the audit log by user agent, against the terms of the Lease.
//!
//! What a replica had sent before its term ended may arrive after it (the fault proxy holds requests back): such a
//! write is guarded by a version or uid, or is a deterministic POST. It counts as of the moment it came to the proxy.

use jiff::Timestamp;

use crate::support::audit::{Call, Calls};
use crate::support::proxy::Passed;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub terms: usize,
    pub writes: usize,
    /// Sent within a term and arrived after it.
    pub on_the_wire: usize,
}

/// Judges the writes of all replicas. `passed` is what came by the proxies.
pub fn judge(calls: Calls, mut passed: Vec<Passed>) -> Result<Verdict, String> {
    let mut writes = calls.writes().accepted().0;
    writes.sort_by_key(|call| call.at);
    let mut verdict = Verdict::default();
    let mut holder: Option<(String, Timestamp)> = None;
    for call in &writes {
        let leads = holder.as_ref().is_some_and(|(agent, _)| *agent == call.user_agent);
        if call.resource == "leases" {
            // A release belongs to the term that it ends.
            if !leads {
                verdict.terms += 1;
                holder = Some((call.user_agent.clone(), call.at));
            }
            continue;
        }
        verdict.writes += 1;
        if leads {
            continue;
        }
        let Some((agent, since)) = &holder else { return Err(format!("{call:?} before anybody led")) };
        let sent = passed.iter().position(|passed| is_of(passed, call) && passed.at < *since);
        let Some(sent) = sent else {
            let came = passed.iter().filter(|passed| is_of(passed, call)).map(|passed| passed.at).collect::<Vec<_>>();
            return Err(format!("{call:?}\nalthough {agent} led since {since}; such requests came by at {came:?}"));
        };
        passed.swap_remove(sent);
        verdict.on_the_wire += 1;
    }
    Ok(verdict)
}

/// Whether a request may be a call of the log. A create names its object in the body, so not on the way.
fn is_of(passed: &Passed, call: &Call) -> bool {
    let asked = &passed.asked;
    passed.user_agent == call.user_agent
        && (&asked.verb, &asked.resource, &asked.subresource) == (&call.verb, &call.resource, &call.subresource)
        && (asked.name.is_empty() || asked.name == call.name)
        && passed.code == Some(call.code)
}
