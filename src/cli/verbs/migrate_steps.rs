//! Carries the steps of `murald migrate` out over the API.
//!
//! Each step looks at what exists first, so that the same step again changes nothing. It overwrites
//! nothing of the user's but a setting.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::Error;
use super::super::connection::{Connection, RequestPath};
use super::super::edit_lock;
use super::super::error::Exit;
use super::super::migrate::{NewPlaylist, Pictures, Source, Step};
use super::super::reference::travelling;
use super::config_change::in_effect;
use super::config_section::{Section, settings};
use super::migrate_images::{Taken, below, ids};
use super::{slideshow, watch};
use crate::wire::Image;

/// For the first picture of a directory that has some.
const WITHIN: Duration = Duration::from_secs(60);

/// What has become of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Planned,
    Now,
    /// It was so already.
    Before,
}

impl Done {
    /// For scripts.
    pub(super) fn word(self, step: &Step) -> &'static str {
        match self {
            _ if matches!(step, Step::NotTaken { .. }) => "not_taken",
            Self::Planned => "planned",
            Self::Now => "done",
            Self::Before => "as_before",
        }
    }
}

/// Returns the step, or why it is not taken; and before it what of it is not.
pub(super) fn carry_out(connection: &Connection, step: &Step) -> Result<Vec<(Step, Done)>, Error> {
    let mut told = Vec::new();
    let done = match step {
        Step::Watch(directory) => watched(connection, directory),
        Step::Setting { section, key, value } => setting(connection, section, key, value),
        Step::Tag(tag, pictures) => tagged(connection, tag, pictures, &mut told),
        Step::Playlist(playlist) => made(connection, playlist, &mut told),
        Step::NotTaken { .. } => Ok(Done::Now),
    };
    match done {
        Ok(done) => told.push((step.clone(), done)),
        // It is this step that the daemon does not want; the others may be as they should.
        Err(error) if error.exit == Exit::Refused => {
            let key = match step {
                Step::Watch(_) | Step::Setting { .. } => step.subject(),
                _ => format!("{} {}", step.kind(), step.subject()),
            };
            told.push((Step::NotTaken { key, why: error.reason() }, Done::Now));
        }
        Err(error) => return Err(error),
    }
    Ok(told)
}

fn watched(connection: &Connection, directory: &Path) -> Result<Done, Error> {
    let is_new = watch::ensure(connection, &travelling(directory)?, &real(directory)?)?;
    Ok(if is_new { Done::Now } else { Done::Before })
}

/// Where its links lead.
fn real(path: &Path) -> Result<String, Error> {
    let unread = |error| Error::refused("it cannot be read").because(error);
    travelling(&std::fs::canonicalize(path).map_err(unread)?)
}

fn setting(
    connection: &Connection,
    section: &str,
    key: &str,
    value: &Value,
) -> Result<Done, Error> {
    let now = settings(connection, section, true)?;
    let changes = Map::from_iter([(key.to_owned(), value.clone())]);
    if now.contains_key(key) && in_effect(section, &changes, &now).is_ok() {
        return Ok(Done::Before);
    }
    let has = now.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let ("hooks", Some(command)) = (section, has) {
        return Err(Error::refused(format!("there is a hook already: {command}")));
    }
    let at = Section::of(section, true);
    let answer = connection.patch(&at.place, &at.wrap(changes.clone().into()))?;
    in_effect(section, &changes, &at.unwrap(answer.read()?))?;
    Ok(Done::Now)
}

/// What of these files did not get into the library.
fn left_out(key: &str, taken: &Taken) -> Vec<(Step, Done)> {
    let step = |(file, why): &(std::path::PathBuf, String)| {
        let why = format!("{}: {why}", file.display());
        (Step::NotTaken { key: key.to_owned(), why }, Done::Now)
    };
    taken.failed.iter().map(step).collect()
}

fn tagged(
    connection: &Connection,
    tag: &str,
    pictures: &Pictures,
    told: &mut Vec<(Step, Done)>,
) -> Result<Done, Error> {
    let files = match pictures {
        Pictures::Below(directory) => below(directory),
        Pictures::Files(files) => files.clone(),
    };
    let taken = ids(connection, &files)?;
    told.extend(left_out(&format!("tag {tag}"), &taken));
    if taken.ids.is_empty() {
        return Err(Error::refused("there are no pictures that it would be on"));
    }
    let mut done = Done::Before;
    for id in taken.ids.values() {
        let place = RequestPath::new(&[&"images", id]);
        edit_lock::hold(connection, || {
            let Image { mut tags, .. } = connection.get(&place)?.read()?;
            if !tags.iter().any(|one| one == tag) {
                tags.push(tag.to_owned());
                connection.patch(&place, &json!({ "tags": tags }))?;
                done = Done::Now;
            }
            Ok(())
        })?;
    }
    Ok(done)
}

fn made(
    connection: &Connection,
    playlist: &NewPlaylist,
    told: &mut Vec<(Step, Done)>,
) -> Result<Done, Error> {
    let mut body = Map::from_iter([
        ("name".to_owned(), playlist.name.clone().into()),
        ("configuration".to_owned(), playlist.configuration.clone().into()),
    ]);
    let (field, what) = shown(connection, playlist, told)?;
    body.insert(field.to_owned(), what);
    let place = RequestPath::new(&[&"playlists"]);
    let all: Vec<Value> = connection.get(&place)?.read()?;
    match all.iter().find(|one| one["name"] == body["name"]) {
        None => connection.post(&place, &Value::Object(body)).map(|_| Done::Now),
        Some(there) if is_same(there, &body) => Ok(Done::Before),
        Some(_) => Err(Error::refused("there is another playlist of this name")),
    }
}

/// What it shows, under the name of its field.
fn shown(
    connection: &Connection,
    playlist: &NewPlaylist,
    told: &mut Vec<(Step, Done)>,
) -> Result<(&'static str, Value), Error> {
    match &playlist.source {
        Source::Library => Ok(("source", json!({}))),
        Source::Directory { path, recursive, descending } => {
            if below(path).is_empty() {
                return Err(Error::refused(format!("there is no picture in {}", path.display())));
            }
            let real = real(path)?;
            watch::ensure(connection, &real, &real)?;
            slideshow::first_pictures(connection, &real, &real, WITHIN)?;
            let mut source = json!({ "directory": real });
            if !recursive {
                source["recursive"] = false.into();
            }
            if *descending {
                source["sort_order"] = "desc".into();
            }
            Ok(("source", source))
        }
        Source::Items(items) => {
            let files: Vec<_> = items.iter().map(|item| item.file.clone()).collect();
            let taken = ids(connection, &files)?;
            told.extend(left_out(&format!("playlist {}", playlist.name), &taken));
            let one = |item: &super::super::migrate::Item| {
                let mut image = json!({ "image_id": taken.ids.get(&item.file)? });
                if let Some(time) = item.time {
                    image["time"] = time.into();
                }
                Some(image)
            };
            Ok(("images", items.iter().filter_map(one).collect()))
        }
    }
}

/// Whether a playlist has what a body asks for.
fn is_same(there: &Value, body: &Map<String, Value>) -> bool {
    let configuration = body["configuration"].as_object().into_iter().flatten();
    let is_set = |(key, value): (&String, &Value)| there["configuration"][key] == *value;
    let items = |list: &Value| -> Vec<(Value, Option<i64>)> {
        let items = list.as_array().into_iter().flatten();
        items.map(|item| (item["image_id"].clone(), item["time"].as_i64())).collect()
    };
    let shows = match (body.get("source"), body.get("images")) {
        (Some(source), _) => there["source"] == *source,
        (None, Some(images)) => {
            there["source"].is_null() && items(&there["images"]) == items(images)
        }
        (None, None) => false,
    };
    shows && configuration.into_iter().all(is_set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_playlist_that_is_there_is_known_again() {
        let there = json!({"name": "p", "source": {"folder_id": 3},
            "configuration": {"type": "timer", "interval": 60, "order": "random", "other": 1}});
        let check = |body: Value, expected: bool| {
            let Value::Object(body) = body else { panic!("an object") };
            assert_eq!(is_same(&there, &body), expected, "{body:?}");
        };
        let timer = json!({"type": "timer", "interval": 60});
        check(json!({"source": {"folder_id": 3}, "configuration": timer}), true);
        check(json!({"source": {}, "configuration": timer}), false);
        check(json!({"images": [], "configuration": timer}), false);
        check(json!({"source": {"folder_id": 3}, "configuration": {"interval": 61}}), false);
        let listed = json!({"images": [{"image_id": 1, "media_type": "image", "time": 7}]});
        let body = |time: i64| {
            let Value::Object(body) =
                json!({"images": [{"image_id": 1, "time": time}], "configuration": {}})
            else {
                panic!("an object")
            };
            body
        };
        assert!(is_same(&listed, &body(7)));
        assert!(!is_same(&listed, &body(8)));
    }
}
