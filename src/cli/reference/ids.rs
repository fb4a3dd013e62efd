//! Checks ids on the command line: each is unambiguous, and all of several images exist.

use std::collections::HashSet;

use serde_json::Value;

use super::super::Error;
use super::super::call::Call;
use super::super::connection::RequestPath;
use super::super::verb::{Kind, Verb};
use super::candidates;
use super::names::{self, Named};
use crate::wire::Ids;

/// The id in a value of the command line, if it is one.
fn id(kind: Kind, value: &Value) -> Option<i64> {
    match kind {
        Kind::Item => value["image_id"].as_i64(),
        kind if kind.is_reference() => value.as_i64(),
        _ => None,
    }
}

/// Refuses digits that are the id of one record and the name of another.
pub(super) fn say_which(verb: &Verb, call: &Call) -> Result<(), Error> {
    for (name, value) in &call.values {
        let Some((kind, id)) = verb.kind(name).and_then(|kind| Some((kind, id(kind, value)?)))
        else {
            continue;
        };
        let (connection, word) = (&call.connect()?, id.to_string());
        let (_, mut known) = candidates(kind, &word, connection)?;
        known.retain(|one| one.id == id || one.name == word);
        if known.iter().all(|one| one.id == id) {
            continue;
        }
        if kind_is_image(kind) {
            let own = connection.get(&RequestPath::new(&[&"images", &id]));
            known.extend(own.and_then(|own| own.read()).ok());
        }
        if known.iter().any(|one| one.id == id) {
            known.sort_by_key(|one| one.id);
            let known: Vec<&Named> = known.iter().collect();
            return Err(
                names::several(&word, &known).hint(format!("id:{id} or name:{id} says which"))
            );
        }
    }
    Ok(())
}

fn kind_is_image(kind: Kind) -> bool {
    matches!(kind, Kind::Image | Kind::Picture | Kind::PictureOrPlaylist | Kind::Item)
}

/// Refuses ids of images that do not exist, before anything is done to one of several images.
pub(super) fn see_all(verb: &Verb, call: &Call) -> Result<(), Error> {
    let Some(many) = verb.list().filter(|it| kind_is_image(it.kind)) else { return Ok(()) };
    let wanted: Vec<i64> =
        call.all(many.name).into_iter().filter_map(|value| id(many.kind, value)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let known: Ids = call.connect()?.get(&RequestPath::new(&[&"images", &"ids"]))?.read()?;
    let known: HashSet<i64> = known.ids.into_iter().collect();
    let missing: Vec<String> =
        wanted.iter().filter(|id| !known.contains(id)).map(i64::to_string).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::not_found(format!("no image with ID {}", missing.join(", ")))),
    }
}
