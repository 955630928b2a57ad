//! The body of a request as fields, whatever its form: the one way in for JSON and form data.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde_json::{Map, Value};

use super::super::error::ApiError;
use super::super::state::Hub;
use super::bind;

/// The fields of a body; null without one, so that a form whose fields are needed is not emptied by a lost body.
#[derive(Clone, Debug, Default)]
pub struct Fields(pub Value);

impl Fields {
    /// Takes a text out of the fields: what is about the request, not about the Site.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.0.as_object_mut().and_then(|fields| fields.remove(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(ApiError::field(name, "must be a text")),
        }
    }

    /// Takes a truth value out of the fields.
    pub fn take_bool(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.0.as_object_mut().and_then(|fields| fields.remove(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(ApiError::field(name, "must be true or false")),
        }
    }

    /// An error that names each field which nobody took.
    pub fn nothing_else(&self) -> Result<(), ApiError> {
        let left = self.0.as_object().into_iter().flat_map(Map::keys);
        let errors: Vec<_> =
            left.map(|name| super::FieldError::new(name.clone(), "is no field of this form")).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.into()) }
    }
}

impl FromRequest<Hub> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, hub: &Hub) -> Result<Self, ApiError> {
        let kind =
            request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let body = Bytes::from_request(request, hub).await.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                ApiError::TooLarge(hub.settings.hub.body_limit)
            } else {
                ApiError::BadRequest("the body could not be read".to_owned())
            }
        })?;
        if body.is_empty() {
            return Ok(Self(Value::Null));
        }
        match kind.as_str() {
            "application/json" => Ok(Self(bind::json(&body)?)),
            "application/x-www-form-urlencoded" => Ok(Self(bind::pairs(&body)?)),
            _ => Err(ApiError::MediaType),
        }
    }
}
