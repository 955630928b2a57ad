//! A length of time as people write it in the settings file: `300s`, `5m`, `500ms`, `0`.

use std::time::Duration;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

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
