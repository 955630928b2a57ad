//! From the server's refusal to a [`CallError`].
//!
//! Owns which HTTP answer is which error, and takes every echoed value out of the server's words: the API
//! server repeats what was sent (`Invalid value: "…"`), and with it master tokens and cookie secrets.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::error::{Call, CallError};
use crate::telemetry::masking::{cut_to, is_secret_name, secret_texts};

/// Longest message kept, in characters.
const LONGEST: usize = 400;
/// Most causes named.
const CAUSES: usize = 3;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    message: String,
    reason: String,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Vec<Cause>,
    retry_after_seconds: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

/// The error of an answer with status `code`; `sent` is the body of the request.
pub(super) fn refusal(call: Call, code: u16, header_wait: Option<Duration>, answer: &[u8], sent: &[u8]) -> CallError {
    let refusal: Refusal = serde_json::from_slice(answer).unwrap_or_default();
    let body_wait =
        (refusal.details.retry_after_seconds > 0).then(|| Duration::from_secs(refusal.details.retry_after_seconds));
    let retry_after = header_wait.or(body_wait);
    let message = || safe_message(&call, &refusal, sent);
    match (code, refusal.reason.as_str()) {
        (404, _) => CallError::NotFound { call },
        (409, "AlreadyExists") => CallError::AlreadyExists { call },
        (409, _) => CallError::Conflict { call },
        (410, _) => CallError::Gone { call },
        (422, _) => {
            let field = refusal.details.causes.iter().map(|cause| &cause.field).find(|field| !field.is_empty());
            CallError::Invalid { message: message(), field: field.map(|field| cut_to(field, 120)), call }
        }
        (401, _) => CallError::Unauthorized { call },
        (403, _) => CallError::Forbidden { message: message(), call },
        (413, _) | (_, "RequestEntityTooLarge") => CallError::TooLarge { call },
        (_, _) if refusal.message.contains("etcdserver: request is too large") => CallError::TooLarge { call },
        (429, _) => CallError::TooMany { call, retry_after },
        (500 | 502 | 503 | 504, _) => CallError::Unavailable { message: message(), code, retry_after, call },
        _ => CallError::Other { message: message(), code, call },
    }
}

fn safe_message(call: &Call, refusal: &Refusal, sent: &[u8]) -> String {
    if call.kind() == "Secret" {
        return refusal.reason.clone();
    }
    let causes: Vec<String> = refusal.details.causes.iter().take(CAUSES).map(cause_text).collect();
    let text = if causes.is_empty() { without_values(&refusal.message) } else { causes.join("; ") };
    let text = cut_to(&text, LONGEST);
    let sent: Value = serde_json::from_slice(sent).unwrap_or_default();
    // Whatever form the echo takes, eight characters of a secret are too many.
    if secret_texts(&sent).iter().any(|secret| text.contains(&prefix(secret))) {
        return format!("{} (the server's words are withheld, they repeat a secret)", refusal.reason);
    }
    if text.is_empty() { refusal.reason.clone() } else { text }
}

fn prefix(secret: &str) -> String {
    secret.chars().take(8).collect()
}

fn cause_text(cause: &Cause) -> String {
    let field = cut_to(&cause.field, 120);
    let secret = field.split(['.', '[', ']']).any(is_secret_name);
    let message = if secret { cause.reason.clone() } else { without_value(&cause.message) };
    match (field.is_empty(), message.is_empty()) {
        (true, _) => message,
        (false, true) => format!("{field}: {}", cause.reason),
        (false, false) => format!("{field}: {message}"),
    }
}

/// What stands before a value that the server repeats.
const VALUES: [&str; 4] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: ", "Not found: "];

/// A whole message, in which a value may stand anywhere: an admission rule or a webhook may repeat the object that is
/// stored, which this side has not sent and does not know.
fn without_values(message: &str) -> String {
    let value = VALUES.iter().filter_map(|start| message.find(start)).min().unwrap_or(message.len());
    let (before, value) = message.split_at(value);
    let text = format!("{}{}", without_quoted_values(before), without_value(value));
    match (text.find('{'), text.rfind('}')) {
        (Some(start), Some(end)) if start < end => format!("{}{{…}}{}", &text[..start], &text[end + 1..]),
        _ => text,
    }
}

/// `Invalid value: "ten": must be an integer` without the value. Rules written in CEL and required fields
/// have a message of their own after the value, which stays.
fn without_value(message: &str) -> String {
    for start in VALUES {
        if let Some(rest) = message.strip_prefix(start) {
            let word = start.trim_end_matches(": ");
            let detail = after_value(rest);
            return if detail.is_empty() {
                word.to_owned()
            } else {
                format!("{word}: {}", without_quoted_values(detail))
            };
        }
    }
    without_quoted_values(message)
}

/// What follows the printed value: a Go-quoted text, or anything up to the last `: `.
fn after_value(rest: &str) -> &str {
    let after = if let Some(quoted) = rest.strip_prefix('"') {
        let mut escaped = false;
        let end = quoted.char_indices().find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        end.map_or("", |(at, _)| &quoted[at + 1..])
    } else {
        let closing = rest.rfind(['}', ']']).map_or(0, |at| at + 1);
        rest[closing..].find(": ").map_or("", |at| &rest[closing + at..])
    };
    after.strip_prefix(": ").unwrap_or("")
}

/// Long quoted texts are values; short ones are names of objects, users and types.
fn without_quoted_values(text: &str) -> String {
    let mut parts = text.split('"');
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut inside = true;
    for part in parts {
        if inside {
            let long = part.chars().count() > 64;
            out.push('"');
            out.push_str(if long { "…" } else { part });
            out.push('"');
        } else {
            out.push_str(part);
        }
        inside = !inside;
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(kind: &str) -> Call {
        Call::new("update", kind, Some("ns"), Some("demo"))
    }

    fn answer(code: u16, reason: &str, message: &str, causes: &Value) -> Vec<u8> {
        let status = json!({"kind": "Status", "code": code, "reason": reason, "message": message, "details": {"causes": causes}});
        serde_json::to_vec(&status).unwrap()
    }

    #[test]
    fn answers_become_errors() {
        let cases = [
            (404, "NotFound", "NotFound", false),
            (409, "AlreadyExists", "AlreadyExists", false),
            (409, "Conflict", "Conflict", false),
            (410, "Expired", "Gone", false),
            (422, "Invalid", "Invalid", false),
            (401, "Unauthorized", "Unauthorized", true),
            (403, "Forbidden", "Forbidden", false),
            (413, "RequestEntityTooLarge", "TooLarge", false),
            (429, "TooManyRequests", "TooManyRequests", true),
            (500, "InternalError", "Unavailable", true),
            (503, "ServiceUnavailable", "Unavailable", true),
            (504, "Timeout", "Unavailable", true),
            (400, "BadRequest", "Other", false),
        ];
        for (code, reason, category, transient) in cases {
            let error = refusal(call("Service"), code, None, &answer(code, reason, "m", &json!([])), b"");
            assert_eq!((error.category(), error.is_transient()), (category, transient), "{code} {reason}");
            assert!(error.to_string().starts_with("update Service ns/demo: "), "{error}");
        }
        let html = refusal(call("Service"), 502, Some(Duration::from_secs(3)), b"<html>", b"");
        assert_eq!(html.retry_after(), Some(Duration::from_secs(3)));
        let etcd =
            refusal(call("Site"), 500, None, &answer(500, "", "etcdserver: request is too large", &json!([])), b"");
        assert_eq!(etcd.category(), "TooLarge");
    }

    #[test]
    fn an_invalid_field_is_named_without_its_value() {
        let causes = json!([
            {"reason": "FieldValueInvalid", "field": "spec.quota", "message": "Invalid value: \"marker-\\\"x\": spec.quota in body must be of type integer: \"string\""},
            {"reason": "FieldValueInvalid", "field": "spec", "message": "Invalid value: \"object\": the id cannot change"},
            {"reason": "FieldValueRequired", "field": "spec.owner", "message": "Required value"},
            {"reason": "FieldValueInvalid", "field": "spec.x", "message": "never shown"},
        ]);
        let error = refusal(call("Site"), 422, None, &answer(422, "Invalid", "echo marker-x", &causes), b"");
        assert_eq!(
            error.to_string(),
            "update Site ns/demo: invalid at spec.quota: spec.quota: Invalid value: spec.quota in body must be of type \
             integer: \"string\"; spec: Invalid value: the id cannot change; spec.owner: Required value"
        );
    }

    #[test]
    fn structured_values_are_cut_out() {
        for message in [
            r#"Invalid value: map[string]interface {}{"token":"marker: x"}: must be small"#,
            r#"Invalid value: {"a": "marker: b"}: must be small"#,
            "Invalid value: 12345678: must be small",
        ] {
            assert_eq!(without_value(message), "Invalid value: must be small", "{message}");
        }
        assert_eq!(without_value(r#"Invalid value: "marker unfinished"#), "Invalid value");
    }

    /// Of an edit only what changes is sent: the rest of the object is known to the server alone.
    #[test]
    fn b21_a_stored_secret_that_was_not_sent_never_passes() {
        for (echo, kept) in [
            (
                r#"Site "a" is invalid: spec: Invalid value: {"t":"m4rker"}: too bad"#,
                r#"Site "a" is invalid: spec: Invalid value: too bad"#,
            ),
            (
                r#"Site "a" is invalid: spec.t: Invalid value: "m4rker""#,
                r#"Site "a" is invalid: spec.t: Invalid value"#,
            ),
            (r#"webhook says no: {"a":[{"b":"m4rker"}]} and {"c":"m4rker"}."#, "webhook says no: {…}."),
            (r#"unbalanced } says "no" { here"#, r#"unbalanced } says "no" { here"#),
        ] {
            let error = refusal(call("Site"), 403, None, &answer(403, "Forbidden", echo, &json!([])), b"{}");
            assert_eq!(error.to_string(), format!("update Site ns/demo: forbidden: {kept}"), "{echo}");
        }
    }

    #[test]
    fn secrets_never_pass() {
        let marker = "m4rker-of-a-master-token";
        let sent = json!({"spec": {"configuration": {"tokens": [{"master": marker}]}}}).to_string();
        let echo = format!("admission webhook denied: {{\"master\":\"{}\"}}", &marker[..12]);
        let error = refusal(call("Site"), 403, None, &answer(403, "Forbidden", &echo, &json!([])), sent.as_bytes());
        assert!(!error.to_string().contains("m4rker-o"), "{error}");
        let secret = refusal(
            call("Secret"),
            422,
            None,
            &answer(422, "Invalid", marker, &json!([{"field": "data.x", "message": marker}])),
            b"",
        );
        assert_eq!(secret.to_string(), "update Secret ns/demo: invalid at data.x: Invalid");
        let long = format!("bad \"{}\" here", "v".repeat(100));
        let other = refusal(call("ConfigMap"), 400, None, &answer(400, "BadRequest", &long, &json!([])), b"");
        assert_eq!(other.to_string(), "update ConfigMap ns/demo: failed with 400: bad \"…\" here");
    }
}
