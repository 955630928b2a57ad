//! Templates of new Sites.

use serde_json::Value;

use super::error::ApiError;
use super::state::Hub;

/// The fields of a template.
pub fn load(_: &Hub, _: &str) -> Result<Value, ApiError> {
    Err(ApiError::NotFound("the template"))
}
