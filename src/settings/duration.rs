//! A length of time as people write it in the settings file: `300s`, `5m`, `500ms`, `0`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A non-negative length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

impl Period {
    /// So many seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// As the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Period {
    /// In whole seconds or milliseconds: `300s`, `500ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_millis() == 0 {
            write!(f, "{}s", self.0.as_secs())
        } else {
            write!(f, "{}ms", self.0.as_millis())
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Period {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"], "format": "period"})
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Seconds(u64),
            Text(String),
        }
        const EXPECTED: &str = "a length of time such as \"300s\", \"5m\" or \"500ms\"";
        match Form::deserialize(deserializer).map_err(|_| D::Error::custom(format!("expected {EXPECTED}")))? {
            Form::Seconds(seconds) => Ok(Self::seconds(seconds)),
            Form::Text(text) => match text.trim().parse::<u64>() {
                Ok(seconds) => Ok(Self::seconds(seconds)),
                Err(_) => text
                    .parse::<jiff::SignedDuration>()
                    .ok()
                    .and_then(|signed| Duration::try_from(signed).ok())
                    .map(Self)
                    .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &EXPECTED)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lengths_of_time() {
        for (value, expected) in [
            (json!("300s"), Some(300_000)),
            (json!("5m"), Some(300_000)),
            (json!("500ms"), Some(500)),
            (json!("1h 30m"), Some(5_400_000)),
            (json!("0"), Some(0)),
            (json!(7), Some(7000)),
            (json!("-1s"), None),
            (json!(-1), None),
            (json!("soon"), None),
            (json!(""), None),
            (json!(true), None),
        ] {
            let period = serde_json::from_value::<Period>(value.clone()).ok();
            assert_eq!(period.map(|period| period.get().as_millis()), expected, "{value}");
        }
    }

    #[test]
    fn written_as_read() {
        for text in ["300s", "0s", "1500ms"] {
            let period: Period = serde_json::from_value(Value::from(text)).unwrap();
            assert_eq!(period.to_string(), text);
        }
    }
}
