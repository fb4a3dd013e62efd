//! The stream of events.

use super::Api;
use crate::events::Kinds;
use crate::http::{Error, Request, Response};
use crate::wire::EventKind;

/// `GET /events`; `types` is a comma list, absent, empty or `*` means all.
pub(in crate::http) fn stream(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    if query.get("types").is_none_or(|types| types.trim().is_empty()) {
        return Ok(Response::events(&api.events, Kinds::ALL));
    }
    let types = query.list("types", |item| match item {
        "*" => Ok(Kinds::ALL),
        word => match word.parse::<EventKind>() {
            Ok(kind) => Ok(Kinds::from_iter([kind])),
            Err(unknown) => Err(Error::word("types", &unknown)),
        },
    })?;
    let kinds = types.into_iter().flatten().reduce(Kinds::union).unwrap_or(Kinds::ALL);
    Ok(Response::events(&api.events, kinds))
}
