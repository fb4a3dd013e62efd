//! The library as a whole, and the directories that it watches.

use serde_json::{Map, Value, json};

use super::Api;
use crate::config::Section;
use crate::http::{Error, Request, Response};
use crate::library::WatchSettings;
use crate::wire::{LibraryWatch, PutWatch};

/// `POST /library/purge-missing`
pub(in crate::http) fn purge_missing(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::json(200, &json!({ "purged": api.library.purge_missing()? }))?)
}

/// `POST /library/scan`: it goes on beside whoever asks, as a disk may not answer.
pub(in crate::http) fn scan(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    api.library.scan();
    let directories = settings(api).directories.len();
    Ok(Response::json(202, &json!({ "status": "scanning", "directories": directories }))?)
}

/// `GET /library/watch`
pub(in crate::http) fn watched(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    shown(api)
}

/// `PUT /library/watch`: written to the configuration, which has it done.
pub(in crate::http) fn watch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let PutWatch { watch, in_place, watch_folders, forget } = request.json()?;
    let before = settings(api);
    let mut keys = Map::from_iter([("watch".to_owned(), Value::from(watch))]);
    for (name, value) in [("in_place", in_place), ("watch_folders", watch_folders)] {
        keys.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    api.config.patch_section(Section::Library, &keys)?;
    if forget {
        let now = settings(api);
        for gone in before.directories.iter().filter_map(|one| one.directory.as_ref().ok()) {
            // What lies in one that is watched still is that one's.
            let stays = |one: &crate::library::Wanted| {
                one.directory.as_ref().is_ok_and(|now| gone.starts_with(now))
            };
            if !now.directories.iter().any(stays) {
                api.library.forget_watched(gone)?;
            }
        }
    }
    shown(api)
}

fn shown(api: &Api) -> Result<Response, Error> {
    let settings = settings(api);
    let watch = api.library.watched(&settings)?;
    let (in_place, watch_folders) = (settings.in_place, settings.folders);
    Ok(Response::json(200, &LibraryWatch { watch, in_place, watch_folders })?)
}

fn settings(api: &Api) -> WatchSettings {
    WatchSettings::of(&api.config.current(), &api.dirs)
}
