//! The library as a whole.

use serde_json::json;

use super::Api;
use crate::http::{Error, Request, Response};

/// `POST /library/purge-missing`
pub(in crate::http) fn purge_missing(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::json(200, &json!({ "purged": api.library.purge_missing()? }))?)
}
