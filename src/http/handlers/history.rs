//! What was shown where, newest first.

use serde_json::json;

use super::Api;
use crate::http::{Error, Request, Response};
use crate::store::{self, history};
use crate::wire::{Event, GalleryDomain};

const LIMIT: u64 = 50;
const LIMIT_MOST: u64 = 1000;

/// `GET /images/history`
pub(in crate::http) fn list(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    let limit = query.integer("limit", 1, u64::MAX)?.unwrap_or(LIMIT).min(LIMIT_MOST);
    let query = history::HistoryQuery {
        monitor: query.get("monitor").map(str::to_owned),
        since_id: query.value("since_id", "since_id is an integer")?,
        before_id: query.value("before_id", "before_id is an integer")?,
        limit: u32::try_from(limit).expect("at most a thousand"),
    };
    let entries = api.store.read(|connection| history::list(connection, &query))?;
    Ok(Response::json(200, &entries)?)
}

/// `DELETE /images/history`
pub(in crate::http) fn clear(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let deleted = api.store.write::<_, store::Error>(|transaction| history::clear(transaction))?;
    if deleted > 0 {
        api.events.publish(&Event::GalleryChanged { domain: GalleryDomain::History });
    }
    Ok(Response::json(200, &json!({"status": "cleared", "deleted": deleted}))?)
}
