//! The stream of events.

use super::Api;
use crate::events::EventFilter;
use crate::http::{Error, Request, Response};
use crate::wire::{BadParameter, EventKind};

/// `GET /events`; `types` is a comma list, absent, empty or `*` means all.
pub(in crate::http) fn stream(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    if query.get("types").is_none_or(|types| types.trim().is_empty()) {
        return Ok(Response::events(&api.events, EventFilter::ALL));
    }
    let types = query.list("types", |item| match item {
        "*" => Ok(EventFilter::ALL),
        word => match word.parse::<EventKind>() {
            Ok(kind) => Ok(EventFilter::from_iter([kind])),
            Err(unknown) => Err(BadParameter::word("types", &unknown)),
        },
    })?;
    let filter = types.into_iter().flatten().reduce(EventFilter::union).unwrap_or(EventFilter::ALL);
    Ok(Response::events(&api.events, filter))
}
