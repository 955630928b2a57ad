//! The part of an address behind the question mark, with the field's name in every message.

use axum::extract::{FromRequestParts, RawQuery};
use axum::http::request::Parts;

use super::super::error::ApiError;

/// The parameters as they came, in order.
#[derive(Clone, Debug, Default)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Takes one parameter; given twice is an error.
    pub fn take(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let (mut given, rest): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(key, _)| key == name);
        self.0 = rest;
        if given.len() > 1 {
            return Err(ApiError::field(name, "is given more than once"));
        }
        Ok(given.pop().map(|(_, text)| text))
    }

    /// Takes a parameter that is `true` or `false`.
    pub fn take_bool(&mut self, name: &str) -> Result<bool, ApiError> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiError::field(name, "must be true or false")),
        }
    }

    /// Takes a whole number.
    pub fn take_number(&mut self, name: &str) -> Result<Option<usize>, ApiError> {
        let number = |text: String| {
            let decimal = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| decimal).ok_or_else(|| ApiError::field(name, "must be a decimal number"))
        };
        self.take(name)?.map(number).transpose()
    }

    /// An error that names each parameter which nobody took.
    pub fn nothing_else(self) -> Result<(), ApiError> {
        use super::super::forms::FieldError;
        let errors: Vec<_> =
            self.0.into_iter().map(|(name, _)| FieldError::new(name, "is no parameter of this address")).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Ok(RawQuery(query)) = RawQuery::from_request_parts(parts, state).await;
        let pairs = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
        Ok(Self(pairs.into_owned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> Parameters {
        Parameters(pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    fn message<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        match result.unwrap_err() {
            ApiError::Invalid(fields) => fields[0].to_string(),
            other => other.to_string(),
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        assert!(parameters(&[("force", "true")]).take_bool("force").unwrap());
        assert!(!parameters(&[]).take_bool("force").unwrap());
        assert_eq!(message(parameters(&[("force", "1")]).take_bool("force")), "[force] must be true or false");
        let twice = parameters(&[("force", "true"), ("force", "true")]).take_bool("force");
        assert_eq!(message(twice), "[force] is given more than once");
        for bad in ["x", "-1", "+1", "1.0", "", "99999999999999999999999"] {
            assert_eq!(message(parameters(&[("limit", bad)]).take_number("limit")), "[limit] must be a decimal number");
        }
        assert_eq!(message(parameters(&[("sort", "x")]).nothing_else()), "[sort] is no parameter of this address");
    }
}
