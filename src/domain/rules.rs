//! The rules that a Site must keep: each once, as the CEL expression of the resource definition and as the same
//! check in Rust, with one message.
//!
//! Owns the list and its evaluation over a Site that the API server did not refuse (written before the rules, or
//! under a looser definition). How the list becomes a schema is in [`super::crd`], the forms are in [`super::forms`].
//! Must not repair values. Rules with a reason outside the design's table of fields say so.

use std::sync::LazyLock;

use serde_json::Value;

use super::forms;
use super::site::Site;

/// Whom a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binds {
    /// Every Site.
    Always,
    /// Sites that are being created: an older Site that breaks it goes on (`optionalOldSelf`).
    New,
    /// Changes: compares with the old object, so it says nothing about one object alone.
    Change,
}

/// What a schema says of a value without CEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Most characters of a text.
    Length(u32),
    /// Most entries of a list.
    Items(u32),
    /// Most entries of a map.
    Properties(u32),
    /// Least value of a number.
    Least(u32),
    /// A text or a whole number (`cpu: 1`).
    TextOrNumber,
}

/// One rule.
pub struct Rule {
    /// Where it sits: names joined by dots, `[]` for each entry of a list, `{}` for each value of a map; empty
    /// for the whole object.
    pub at: &'static str,
    /// The expression over `self`; `None` where the schema says it in another way (unique names of a keyed list).
    pub cel: Option<String>,
    /// Names the field, the rule and what to do.
    pub message: &'static str,
    /// Whom it binds.
    pub binds: Binds,
    /// The same check over the JSON value found at [`Rule::at`].
    pub holds: fn(&Value) -> bool,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Path as the API server writes it, such as `spec.configuration.share.view_users[3]`.
    pub field: String,
    /// The message of the rule.
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Field that a rule over the whole object is reported at.
pub const ROOT_FIELD: &str = "spec.id";

/// Rules that a Site breaks, whenever it was written. Empty for a valid Site; sorted by field.
#[must_use]
pub fn violations(site: &Site) -> Vec<Violation> {
    broken(site, &[Binds::Always])
}

/// Rules that a Site that is about to be created breaks: those of [`violations`] and the reserved names.
#[must_use]
pub fn violations_of_new(site: &Site) -> Vec<Violation> {
    broken(site, &[Binds::Always, Binds::New])
}

/// What the schema says itself: sizes that keep the cost of the expressions within the API server's budget, and
/// types that older Sites may miss.
///
/// An expression over a value of another type is an error that the API server never forgives, not even in a status
/// write that leaves the value alone; a broken bound is forgiven while the value stays. So the quota has a bound.
pub const BOUNDS: [(&str, Bound); 25] = [
    ("spec.configuration.quota", Bound::Least(1)),
    ("spec.configuration.settings.resource_limits.cpu", Bound::TextOrNumber),
    ("spec.configuration.settings.resource_limits.memory", Bound::TextOrNumber),
    ("spec.configuration.settings.resource_limits.memory", Bound::Length(64)),
    ("spec.id", Bound::Length(253)),
    ("spec.owner", Bound::Length(4096)),
    ("spec.name", Bound::Length(253)),
    ("spec.configuration.space", Bound::Length(253)),
    ("spec.configuration.applications", Bound::Items(32)),
    ("spec.configuration.applications[].name", Bound::Length(253)),
    ("spec.configuration.applications[].image", Bound::Length(1024)),
    ("spec.configuration.headers", Bound::Properties(32)),
    ("spec.configuration.headers{}", Bound::Length(4096)),
    ("spec.configuration.retention_date", Bound::Length(64)),
    ("spec.configuration.registered_date", Bound::Length(64)),
    ("spec.configuration.share.administrator_users", Bound::Items(2000)),
    ("spec.configuration.share.administrator_users[]", Bound::Length(512)),
    ("spec.configuration.share.administrator_groups", Bound::Items(2000)),
    ("spec.configuration.share.administrator_groups[]", Bound::Length(512)),
    ("spec.configuration.share.view_users", Bound::Items(2000)),
    ("spec.configuration.share.view_users[]", Bound::Length(512)),
    ("spec.configuration.share.view_groups", Bound::Items(2000)),
    ("spec.configuration.share.view_groups[]", Bound::Length(512)),
    ("spec.configuration.settings.error_handling.not_found_page", Bound::Length(1024)),
    ("spec.configuration.settings.resource_limits.cpu", Bound::Length(64)),
];

/// All rules, in the order of the fields.
#[must_use]
pub fn rules() -> &'static [Rule] {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        [names(), dates_and_sizes(), headers(), applications(), texts()].into_iter().flatten().collect()
    });
    &RULES
}

fn rule(at: &'static str, cel: impl Into<String>, message: &'static str, holds: fn(&Value) -> bool) -> Rule {
    Rule { at, cel: Some(cel.into()), message, binds: Binds::Always, holds }
}

fn matches(form: &str) -> String {
    format!("self.matches(r'{form}')")
}

fn text(value: &Value, holds: fn(&str) -> bool) -> bool {
    value.as_str().is_none_or(holds)
}

fn names() -> Vec<Rule> {
    const SEGMENT_NAME: &str = "spec.name must be one segment of a URL: 1 to 63 of A-Z a-z 0-9 . _ - beginning with a letter or digit; choose such a name, or leave the field out for a Site without a public path";
    const SEGMENT_SPACE: &str = "spec.configuration.space must be one segment of a URL: 1 to 63 of A-Z a-z 0-9 . _ - beginning with a letter or digit; choose such a space, or leave the field out for a Site without a public path";
    vec![
        Rule {
            binds: Binds::New,
            ..rule(
                "",
                "oldSelf.hasValue() || self.metadata.name == self.spec.id",
                "spec.id must equal metadata.name: set both to the same id",
                |site| site["metadata"]["name"] == site["spec"]["id"],
            )
        },
        rule(
            "spec.id",
            matches(forms::ID),
            "spec.id must be 1 to 52 of a-z 0-9 -, beginning with a letter and ending with a letter or digit; choose a shorter or simpler id",
            |value| text(value, forms::id),
        ),
        Rule {
            binds: Binds::Change,
            ..rule(
                "spec.id",
                "self == oldSelf",
                "spec.id cannot change: create another Site with the new id and move the content",
                |_| true,
            )
        },
        Rule {
            binds: Binds::New,
            ..rule(
                "spec.id",
                "oldSelf.hasValue() || !(self.endsWith('-oauth2') || self.endsWith('-files'))",
                "spec.id must not end in -oauth2 or -files, which are names of another Site's objects; choose another id",
                |value| text(value, |id| !id.ends_with("-oauth2") && !id.ends_with("-files")),
            )
        },
        Rule {
            binds: Binds::New,
            ..rule(
                "spec.id",
                "oldSelf.hasValue() || !(self in ['redis', 'sites'] || self.startsWith('sites-'))",
                "spec.id must not be redis, sites or begin with sites-, which are names of the platform's own objects; choose another id",
                |value| text(value, |id| id != "redis" && id != "sites" && !id.starts_with("sites-")),
            )
        },
        rule("spec.name", matches(forms::SEGMENT), SEGMENT_NAME, |value| text(value, forms::segment)),
        rule("spec.configuration.space", matches(forms::SEGMENT), SEGMENT_SPACE, |value| text(value, forms::segment)),
        rule(
            "spec.configuration.space",
            "!(self in ['hub', 'oauth2', 's'])",
            "spec.configuration.space must not be hub, oauth2 or s, which are paths of the platform; choose another space",
            |value| text(value, |space| !forms::RESERVED_SEGMENTS.contains(&space)),
        ),
    ]
}

fn dates_and_sizes() -> Vec<Rule> {
    const QUANTITY: &str =
        "type(self) == int ? self > 0 : isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))";
    vec![
        rule(
            "spec.configuration.retention_date",
            matches(forms::DAY),
            "spec.configuration.retention_date must be a day that exists, written YYYY-MM-DD, such as 2027-01-31",
            |value| text(value, forms::day),
        ),
        rule(
            "spec.configuration.registered_date",
            matches(forms::DAY),
            "spec.configuration.registered_date must be a day that exists, written YYYY-MM-DD, such as 2027-01-31",
            |value| text(value, forms::day),
        ),
        rule(
            "spec.configuration.settings.resource_limits.cpu",
            QUANTITY,
            "spec.configuration.settings.resource_limits.cpu must be a Kubernetes quantity above 0, such as 500m or 2",
            |value| text(value, forms::positive_quantity),
        ),
        rule(
            "spec.configuration.settings.resource_limits.memory",
            QUANTITY,
            "spec.configuration.settings.resource_limits.memory must be a Kubernetes quantity above 0, such as 512Mi or 2Gi",
            |value| text(value, forms::positive_quantity),
        ),
    ]
}

fn headers() -> Vec<Rule> {
    fn names(value: &Value, holds: fn(&str) -> bool) -> bool {
        value.as_object().is_none_or(|map| map.keys().all(|name| holds(name)))
    }
    vec![
        rule(
            "spec.configuration.headers",
            format!("self.all(name, name.matches(r'{}'))", forms::HEADER_NAME),
            "spec.configuration.headers must have names that are HTTP tokens of 1 to 100 characters: letters, digits and - ; correct the name",
            |value| names(value, forms::header_name),
        ),
        rule(
            "spec.configuration.headers",
            format!(
                "!self.exists(name, name.matches(r'{}') && !name.matches(r'{}'))",
                forms::REFUSED_HEADER,
                forms::ALLOWED_HEADER
            ),
            "spec.configuration.headers must not set headers that belong to the server, the connection or the whole host: Connection, Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade, Set-Cookie, Location, Date, Server, Alt-Svc, Clear-Site-Data, Service-Worker-Allowed, X-Accel-*, and Content-* other than Content-Security-Policy; remove it",
            |value| names(value, |name| !forms::refused_header(name)),
        ),
        rule(
            "spec.configuration.headers{}",
            format!("!self.matches(r'{}')", forms::CONTROL),
            "a value in spec.configuration.headers must not have control characters, as they are or percent-encoded (%0a); remove them",
            |value| text(value, forms::without_control),
        ),
    ]
}

fn applications() -> Vec<Rule> {
    fn unique(value: &Value) -> bool {
        let names = value.as_array().into_iter().flatten().filter_map(|application| application["name"].as_str());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    }
    vec![
        Rule {
            cel: None,
            ..rule(
                "spec.configuration.applications",
                "",
                "spec.configuration.applications must have each name once; remove the duplicate",
                unique,
            )
        },
        rule(
            "spec.configuration.applications[]",
            "self.name != 'site-custom' || has(self.image)",
            "an entry site-custom in spec.configuration.applications needs an image; name one, or remove the entry",
            |value| value["name"] != "site-custom" || value["image"].is_string(),
        ),
        rule(
            "spec.configuration.applications[].name",
            matches(forms::DNS_LABEL),
            "a name in spec.configuration.applications must be a DNS label: 1 to 63 of a-z 0-9 -, beginning and ending with a letter or digit",
            |value| text(value, forms::dns_label),
        ),
        rule(
            "spec.configuration.applications[].image",
            matches(forms::IMAGE),
            "an image in spec.configuration.applications must be a reference such as registry.example.org/team/app:1.2, of 1 to 512 characters without spaces or control characters; leave the field out for the platform's image",
            |value| text(value, forms::image),
        ),
    ]
}

fn texts() -> Vec<Rule> {
    let share = |at: &'static str, message: &'static str| {
        rule(at, format!("!self.matches(r'{}')", forms::CONTROL), message, |value| text(value, forms::without_control))
    };
    vec![
        share(
            "spec.configuration.share.administrator_users[]",
            "an entry of spec.configuration.share.administrator_users must not have control characters, as they are or percent-encoded (%0a); remove them",
        ),
        share(
            "spec.configuration.share.administrator_groups[]",
            "an entry of spec.configuration.share.administrator_groups must not have control characters, as they are or percent-encoded (%0a); remove them",
        ),
        share(
            "spec.configuration.share.view_users[]",
            "an entry of spec.configuration.share.view_users must not have control characters, as they are or percent-encoded (%0a); remove them",
        ),
        share(
            "spec.configuration.share.view_groups[]",
            "an entry of spec.configuration.share.view_groups must not have control characters, as they are or percent-encoded (%0a); remove them",
        ),
        rule(
            "spec.configuration.settings.error_handling.not_found_page",
            format!(
                "self.matches(r'^/[^?#]*$') && !self.matches(r'{}') && !self.matches(r'{}')",
                forms::CONTROL,
                forms::DOT_SEGMENT
            ),
            "spec.configuration.settings.error_handling.not_found_page must be a path of the Site's content such as /404.html: beginning with /, without ? or #, without control characters and without the segments . and .. , as they are or percent-encoded",
            |value| text(value, forms::content_path),
        ),
    ]
}

fn broken(site: &Site, bind: &[Binds]) -> Vec<Violation> {
    // A Site of plain types always has a JSON form.
    let object = serde_json::to_value(site).unwrap_or_default();
    let mut violations = Vec::new();
    for rule in rules().iter().filter(|rule| bind.contains(&rule.binds)) {
        visit(&object, rule.at, &mut Vec::new(), &mut |place, value| {
            if !(rule.holds)(value) {
                let field = if place.is_empty() { ROOT_FIELD.to_owned() } else { written(place) };
                violations.push(Violation { field, message: rule.message.to_owned() });
            }
        });
    }
    for (at, bound) in BOUNDS {
        visit(&object, at, &mut Vec::new(), &mut |place, value| {
            let message = out_of_bounds(|| written(place), value, bound);
            violations.extend(message.map(|message| Violation { field: written(place), message }));
        });
    }
    violations.sort();
    violations
}

fn out_of_bounds(field: impl FnOnce() -> String, value: &Value, bound: Bound) -> Option<String> {
    let (size, most, what) = match bound {
        Bound::Length(most) => (value.as_str().map_or(0, |text| text.chars().count()), most, "characters"),
        Bound::Items(most) => (value.as_array().map_or(0, Vec::len), most, "entries"),
        Bound::Properties(most) => (value.as_object().map_or(0, serde_json::Map::len), most, "entries"),
        Bound::Least(least) => {
            let holds = value.as_u64().is_none_or(|number| number >= u64::from(least));
            // The API server's own words.
            return (!holds).then(|| format!("{} in body should be greater than or equal to {least}", field()));
        }
        Bound::TextOrNumber => return None,
    };
    (size > most as usize).then(|| format!("must have at most {most} {what}, has {size}"))
}

/// One step to a value.
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

/// The way to a value as the API server would write it. Written only for what breaks a rule.
fn written(place: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in place {
        match step {
            Step::Field(name) if path.is_empty() => path.push_str(name),
            Step::Field(name) => path = path + "." + name,
            Step::Index(index) => path = format!("{path}[{index}]"),
            Step::Key(key) => path = format!("{path}[{key}]"),
        }
    }
    path
}

/// Visits the values at a place. Absent ones are left out.
fn visit<'a>(value: &'a Value, at: &'a str, place: &mut Vec<Step<'a>>, judge: &mut impl FnMut(&[Step<'a>], &'a Value)) {
    if at.is_empty() {
        return judge(place, value);
    }
    let (part, rest) = at.split_once('.').unwrap_or((at, ""));
    let name = part.trim_end_matches("[]").trim_end_matches("{}");
    let Some(value) = value.get(name) else { return };
    place.push(Step::Field(name));
    let mut each = |step, value| {
        place.push(step);
        visit(value, rest, place, judge);
        place.pop();
    };
    match (&part[name.len()..], value) {
        ("[]", Value::Array(list)) => {
            list.iter().enumerate().for_each(|(index, value)| each(Step::Index(index), value));
        }
        ("{}", Value::Object(map)) => map.iter().for_each(|(key, value)| each(Step::Key(key), value)),
        ("", value) => visit(value, rest, place, judge),
        _ => {}
    }
    place.pop();
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
