//! The stream of events.

use super::Api;
use crate::events::Kinds;
use crate::http::{Error, Request, Response};
use crate::wire::EventKind;

/// `GET /events`; `types` is a comma list, absent or `*` means all.
pub(in crate::http) fn stream(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let types = request.query().list("types", |item| match item {
        "*" => Ok(Kinds::ALL),
        word => match word.parse::<EventKind>() {
            Ok(kind) => Ok(Kinds::from_iter([kind])),
            Err(unknown) => Err(Error::word("types", &unknown)),
        },
    })?;
    let kinds = types
        .map_or(Kinds::ALL, |types| types.into_iter().reduce(Kinds::union).unwrap_or(Kinds::ALL));
    Ok(Response::events(&api.events, kinds))
}
