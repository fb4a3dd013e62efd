//! Playlists: their records, and the commands to their player. A request waits for the player.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::images::{new_playlist_source, page, playlist_source};
use super::library::checked_name;
use super::session::distinct_names;
use super::{Api, PLAYED_PATIENCE, PLAYER_PATIENCE, respond};
use crate::color;
use crate::http::{Error, Paging, Request, Response};
use crate::playlist::{self, Action, Moved};
use crate::store::images;
use crate::store::playlists::{self, ITEMS_MAX, Item, PlaylistChange, Refusal};
use crate::store::query::Query;
use crate::wallpaper::{self, HookRequest};
use crate::wire::{
    ActivePlaylist, CreatePlaylist, Difference, Ids, Image, ListChange, Mode, NewConfiguration,
    NewPlaylistItem, NoFields, Object, PatchPlaylist, Playlist, PlaylistItem, StartPlaylist,
    StepPlaylists, id_or_color,
};

/// `GET /playlists`
pub(in crate::http) fn list(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let mut all = api.store.read(playlists::list)?;
    for playlist in &mut all {
        complete(api, playlist)?;
    }
    respond(200, &all)
}

/// `POST /playlists`
pub(in crate::http) fn create(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let body: CreatePlaylist = request.json()?;
    if body.images.is_some() && body.source.is_some() {
        return Err(Error::bad_request("images and source cannot be combined"));
    }
    let new = PlaylistChange {
        name: Some(checked_name(&body.name)?),
        configuration: body.configuration,
        images: body.images.map(|images| items(images).into()),
        source: body
            .source
            .map(|source| new_playlist_source(api, source))
            .transpose()?,
        located: located(api),
    };
    let mut playlist = api.playlists.create(&new)?;
    complete(api, &mut playlist)?;
    respond(201, &playlist)
}

fn items<T: Into<NewPlaylistItem>>(objects: Vec<Object<T>>) -> Vec<NewPlaylistItem> {
    objects
        .into_iter()
        .map(|Object(item)| item.into())
        .collect()
}

/// Adds the images that the source of a dynamic playlist finds now to its record.
fn complete(api: &Api, playlist: &mut Playlist) -> Result<(), Error> {
    let Some(source) = &playlist.source else {
        return Ok(());
    };
    let query = playlist_source(source.clone())?.query;
    let found = api.store.find_items(&query)?.into_iter();
    let record = |item: Item| PlaylistItem {
        image_id: item.image_id,
        color: None,
        media_type: item.media_type,
        time: None,
        at: None,
        when: None,
    };
    playlist.images = found.take(ITEMS_MAX).map(record).collect();
    Ok(())
}

/// `GET /playlists/{id}`
pub(in crate::http) fn get(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let mut playlist = find(api, request.record()?)?;
    complete(api, &mut playlist)?;
    respond(200, &playlist)
}

/// `PATCH /playlists/{id}`
pub(in crate::http) fn patch(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let body: PatchPlaylist = request.json()?;
    let images = body.images.map(|images| match images {
        ListChange::All(all) => ListChange::All(items(all)),
        ListChange::Some(Difference { add, remove }) => {
            let add = items(add);
            ListChange::Some(Difference { add, remove })
        }
    });
    let change = PlaylistChange {
        name: body.name.as_deref().map(checked_name).transpose()?,
        configuration: body
            .configuration
            .map(NewConfiguration::from)
            .unwrap_or_default(),
        // The record of a dynamic playlist has both: its images are those that match.
        images: images.filter(|_| body.source.is_none()),
        source: body
            .source
            .map(|source| new_playlist_source(api, source))
            .transpose()?,
        located: located(api),
    };
    let mut playlist = request.wait(PLAYER_PATIENCE, |reply| {
        api.playlists.change(id, change, reply)
    })?;
    complete(api, &mut playlist)?;
    respond(200, &playlist)
}

/// Whether the location for sunrise and sunset is configured.
fn located(api: &Api) -> bool {
    let location = &api.config.current().location;
    location.latitude.is_some() && location.longitude.is_some()
}

/// `GET /playlists/{id}/images`: a page of the records of its images.
pub(in crate::http) fn images(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let paging = Paging::read(request.query())?;
    let (offset, limit) = (paging.offset(), paging.per_page);
    let playlist = find(api, id)?;
    let thumbnails = api.library.thumbnails();
    let write = |row: Image, json: &mut Vec<u8>| thumbnails.write(row, json);
    page(paging, |json| match &playlist.source {
        Some(source) => {
            let query = Query {
                offset,
                limit,
                ..*playlist_source(source.clone())?.query
            };
            Ok(api.store.write_page(&query, json, write)?)
        }
        None => {
            let ids = listed(&playlist);
            let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
            let shown = ids.iter().skip(skipped).take(limit as usize);
            api.store
                .write_rows(&shown.copied().collect::<Vec<_>>(), json, write)?;
            Ok(ids.len() as u64)
        }
    })
}

/// `GET /playlists/{id}/images/ids`: the ids of the same list, without pages.
pub(in crate::http) fn image_ids(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let playlist = find(api, request.record()?)?;
    let ids = match &playlist.source {
        Some(source) => api
            .store
            .find_all(&playlist_source(source.clone())?.query)?,
        None => listed(&playlist),
    };
    respond(200, &Ids { ids })
}

/// The images of a playlist's list, without its plain colours.
fn listed(playlist: &Playlist) -> Vec<i64> {
    let ids = playlist.images.iter().map(|item| item.image_id);
    ids.filter(|id| color::from_image_id(*id).is_none())
        .collect()
}

fn find(api: &Api, id: i64) -> Result<Playlist, Error> {
    let playlist = api
        .store
        .read(|connection| playlists::get(connection, id))?;
    Ok(playlist.ok_or(playlist::Error::Refused(Refusal::NoPlaylist { id }))?)
}

/// `DELETE /playlists/{id}`
pub(in crate::http) fn delete(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    request.wait(PLAYER_PATIENCE, |reply| api.playlists.delete(id, reply))?;
    respond(200, &json!({ "status": "deleted" }))
}

/// `POST /playlists/{id}/start`; the body is optional.
pub(in crate::http) fn start(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let id = request.record()?;
    let body: StartPlaylist = request.json_or_default()?;
    let monitors = named(body.monitors)?;
    let mode = start_mode(body.mode, body.extend)?;
    let _by_hook = by_hook(api, request, Some(id));
    let mut moved: Moved = request.wait(PLAYED_PATIENCE, |reply| {
        api.playlists.start(id, monitors, mode, reply)
    })?;
    if let Some(reason) = api.playlists.power().resting {
        moved.warnings.push(format!(
            "{}, so the playlist is paused; `murald resume` resumes it",
            reason.text()
        ));
    }
    answer(
        api,
        json!({ "status": "started" }),
        Moved {
            images: BTreeMap::new(),
            ..moved
        },
    )
}

/// `extend` is the older form of `mode`.
fn start_mode(mode: Option<Mode>, extend: Option<bool>) -> Result<Mode, Error> {
    match (mode, extend) {
        (None, Some(true)) => Ok(Mode::Extend),
        (None, _) => Ok(Mode::Individual),
        (Some(mode), Some(extend)) if extend != (mode == Mode::Extend) => {
            Err(Error::bad_request("mode and extend differ")
                .details(format!("mode is {mode}, extend is {extend}")))
        }
        (Some(mode), _) => Ok(mode),
    }
}

/// `POST /playlists/{id}/` with `stop`, `pause`, `resume`, `next` or `previous`
pub(in crate::http) fn act(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let (action, on, [done, _]) = asked(api, request)?;
    let id = request.record()?;
    let _by_hook = by_hook(api, request, Some(id));
    let mut moved = request.wait(PLAYED_PATIENCE, |reply| {
        api.playlists.act(id, action, on, reply)
    })?;
    warn_of_pause(api, action, &mut moved);
    answer(api, json!({ "status": done }), moved)
}

/// `POST /playlists/active/` with the same
pub(in crate::http) fn act_on_all(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let (action, on, [_, done]) = asked(api, request)?;
    let _by_hook = by_hook(api, request, None);
    let mut moved: Moved = request.wait(PLAYED_PATIENCE, |reply| {
        api.playlists.act_on_all(action, on, reply)
    })?;
    warn_of_pause(api, action, &mut moved);
    let count = moved.count;
    let playlists = if count == 1 { "playlist" } else { "playlists" };
    let message = format!("{count} {playlists} {done}");
    answer(api, json!({ "message": message, done: count }), moved)
}

/// Warns of what stays paused if playlists were resumed while the power settings pause everything.
fn warn_of_pause(api: &Api, action: Action, moved: &mut Moved) {
    let resting = api.playlists.power().resting;
    if let Some(reason) = resting.filter(|_| action == Action::Resume && moved.count > 0) {
        moved.warnings.push(format!(
            "{}, so videos and HTML wallpapers stay paused",
            reason.text()
        ));
    }
}

/// The action at the end of the path, its monitors, and the words that report it for one playlist
/// and for all.
fn asked(
    api: &Api,
    request: &Request<'_>,
) -> Result<(Action, Vec<String>, [&'static str; 2]), Error> {
    let (action, done) = match request.last_segment() {
        "stop" => (Action::Stop, ["stopped"; 2]),
        "pause" => (Action::Pause, ["paused"; 2]),
        "resume" => (Action::Resume, ["resumed"; 2]),
        "next" => (Action::Next, ["advanced"; 2]),
        "previous" => (Action::Previous, ["rewound", "reversed"]),
        other => unreachable!("no route of these handlers ends with {other:?}"),
    };
    let on = match action {
        Action::Next | Action::Previous => connected(api, request.json_or_default()?)?,
        Action::Stop | Action::Pause | Action::Resume => {
            request.json_or_default::<NoFields>().map(|_| Vec::new())?
        }
    };
    Ok((action, on, done))
}

/// `GET /playlists/active`
pub(in crate::http) fn active(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    respond(200, &running(api, request)?)
}

/// `GET /playlists/active/{monitor}`
pub(in crate::http) fn active_on(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let monitor = request.placeholder();
    let mut running = running(api, request)?.into_iter();
    let one = running.find(|one| one.monitors.iter().any(|name| name == monitor));
    let none = || Error::not_found(format!("no playlist is running on the monitor {monitor:?}"));
    respond(200, &one.ok_or_else(none)?)
}

fn running(api: &Api, request: &Request<'_>) -> Result<Vec<ActivePlaylist>, Error> {
    request.wait(PLAYER_PATIENCE, |reply| api.playlists.active(reply))
}

/// The monitors that a body names; empty means all.
fn named(monitors: Option<Vec<String>>) -> Result<Vec<String>, Error> {
    let names = distinct_names(monitors.unwrap_or_default())?;
    Ok(if names.iter().any(|name| name == "*") {
        Vec::new()
    } else {
        names
    })
}

/// The monitors that a step names; fails if one is not connected. Empty means all.
fn connected(api: &Api, body: StepPlaylists) -> Result<Vec<String>, Error> {
    let on = named(body.monitors)?;
    let outputs = api.backends.outputs.list();
    let is_connected = |name: &&String| outputs.iter().any(|output| output.name == **name);
    let names: Vec<String> = on
        .iter()
        .filter(|name| !is_connected(name))
        .cloned()
        .collect();
    if names.is_empty() {
        return Ok(on);
    }
    let connected = outputs.iter().map(|output| output.name.clone()).collect();
    Err(wallpaper::Error::UnknownMonitors { names, connected }.into())
}

/// Adds the images that a step has shown, and its warnings, in the fields of `POST /wallpaper/set`.
fn answer(api: &Api, mut body: Value, moved: Moved) -> Result<Response, Error> {
    if let Some((_, &id)) = moved.images.first_key_value() {
        body["image_id"] = id.into();
        // A deleted image is known only by its id.
        if let Some(image) = api.store.read(|c| images::assigned(c, id))? {
            body["image_id"] = json!(image.library_id());
            body["image_path"] = json!(image.library_path());
            if let Some(color) = image.color() {
                body["color"] = color.into();
            }
            body["image_name"] = image.name.into();
        }
        let shown = moved.images.iter();
        body["images"] = shown
            .map(|(monitor, id)| (monitor.clone(), id_or_color(*id)))
            .collect();
    }
    if !moved.warnings.is_empty() {
        body["warnings"] = json!(moved.warnings);
    }
    respond(200, &body)
}

/// A hook must not run again for the changes that it requests. While the returned value lives,
/// changes of the playlist (any playlist for `None`) run no hook. `None` if the request is not from
/// a hook.
fn by_hook(api: &Api, request: &Request<'_>, playlist: Option<i64>) -> Option<HookRequest> {
    request
        .by_hook(&api.desktop)
        .then(|| api.wallpaper.status.hook_request(playlist))
}
