//! From what a provider says to a person.
//!
//! Owns the reading of claims. A name that the provider has not checked is no name.

use serde_json::Value;

use super::token::{Claims, Fault};
use crate::domain::people::Person;

/// The person that claims speak of; `groups_claim` names the claim with the groups: a list, or one group as a text.
/// Without it there are none.
pub fn person(claims: &Claims, groups_claim: &str) -> Result<Person, Fault> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let user = text("sub");
    if user.is_empty() {
        return Err(Fault::Subject);
    }
    let unchecked = matches!(claims.get("email_verified"), Some(Value::Bool(false)))
        || claims.get("email_verified").and_then(Value::as_str) == Some("false");
    let email = if unchecked { String::new() } else { text("email") };
    let groups = match claims.get(groups_claim) {
        Some(Value::String(group)) => vec![group.clone()],
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let groups = groups.into_iter().filter(|group| !group.is_empty()).collect();
    Ok(Person { user, email, preferred_username: text("preferred_username"), groups })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_come_as_a_list_or_a_text_or_not_at_all() {
        for (claim, groups) in [
            (json!(["a", "b", "", 7]), &["a", "b"][..]),
            (json!("a,b"), &["a,b"]),
            (json!(""), &[]),
            (json!({"a": 1}), &[]),
            (json!(null), &[]),
        ] {
            let claims = json!({"sub": "ana", "roles": claim}).as_object().unwrap().clone();
            assert_eq!(person(&claims, "roles").unwrap().groups, groups, "{claim}");
            assert_eq!(person(&claims, "groups").unwrap().groups, [""; 0]);
        }
    }

    #[test]
    fn an_address_that_nobody_checked_names_nobody() {
        for (verified, email) in [
            (json!(true), "a@x"),
            (json!("true"), "a@x"),
            (json!(null), "a@x"),
            (json!(false), ""),
            (json!("false"), ""),
        ] {
            let claims = json!({"sub": "ana", "email": "a@x", "email_verified": verified});
            assert_eq!(person(claims.as_object().unwrap(), "groups").unwrap().email, email);
        }
        for sub in [json!(""), json!(7), json!(null)] {
            let claims = json!({"sub": sub});
            assert_eq!(person(claims.as_object().unwrap(), "groups"), Err(Fault::Subject));
        }
    }
}
