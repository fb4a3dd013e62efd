//! The body of every answer that is not a success.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::names::words;

words! {
    /// Failures of wallpaper routes that a client can act upon.
    ErrorCode { IncompatibleBackend = "incompatible_backend", NoBackend = "no_backend" }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorBody {
    pub error: String,
    /// Equals the HTTP status.
    pub code: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}
