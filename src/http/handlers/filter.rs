//! Filters in bodies: why one is refused, as an answer.

use serde_json::{Map, Value};

use super::super::nearest::nearest;
use super::Api;
use crate::http::Error;
use crate::store::folders;
use crate::store::index::Query;
use crate::store::index::filter::{self, BadFilter};
use crate::store::playlists::NewSource;

/// The field `filter` of a body.
pub(super) fn read(fields: &Map<String, Value>) -> Result<Query, Error> {
    filter::of_fields(fields).map_err(|bad| refused("filter", &filter::FILTERS, bad))
}

/// The field `source` of a playlist that is written: what it names is there.
pub(super) fn new_source(api: &Api, fields: Map<String, Value>) -> Result<NewSource, Error> {
    let new = source(fields)?;
    if let Some(Some(id)) = new.query.folder
        && !api.store.read(|connection| folders::exists(connection, id))?
    {
        return Err(Error::bad_request(format!("source.folder_id: there is no folder {id}")));
    }
    Ok(new)
}

/// The field `source` of a playlist.
pub(super) fn source(fields: Map<String, Value>) -> Result<NewSource, Error> {
    let read = filter::of_source(&fields);
    let query = read.map_err(|bad| refused("source", &filter::SOURCE, bad))?;
    Ok(NewSource { fields, query: Box::new(query) })
}

fn refused(object: &str, known: &[&str], bad: BadFilter) -> Error {
    match bad {
        BadFilter::Field { name } => {
            let error = Error::bad_request(format!("{object} has no field {name:?}"));
            match nearest(&name, known.iter().copied()) {
                Some(known) => error.details(format!("do you mean {known}?")),
                None => error,
            }
        }
        BadFilter::Type { name, value } => {
            Error::bad_request(format!("{object}.{name} cannot be {value}"))
                .details("it is a text, a number, true or false, or a list of these")
        }
        BadFilter::Value(bad) => bad.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_filter_that_is_refused_says_why() {
        let check = |json: Value, said: &str| {
            let text = read(json.as_object().unwrap()).unwrap_err().into_response("x").text();
            assert!(text.contains(said), "{text}");
        };
        check(json!({ "tag": "a" }), "do you mean tags?");
        check(json!({ "page": 2 }), "no field");
        check(json!({ "tags": null }), "filter.tags cannot be null");
        check(json!({ "min_width": 0 }), "from 1");
    }
}
