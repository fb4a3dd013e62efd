//! Playlists: their records, and what the conductor is told to do. It answers; no worker waits.

use std::time::Duration;

use serde_json::json;

use super::Api;
use super::folders::name;
use super::monitors::named;
use crate::http::{Answer, Failure, Request};
use crate::playlist::{self, Act, Reply};
use crate::store::playlists::{self, PlaylistChange, Refusal};
use crate::wire::{
    ActivePlaylist, CreatePlaylist, NewConfiguration, NewPlaylistItem, PatchPlaylist, Playlist,
    StartPlaylist,
};

/// The conductor waits for nothing but the disk.
const PATIENCE: Duration = Duration::from_secs(20);

/// `GET /playlists`
pub(in crate::http) fn list(api: &Api, _: &Request<'_>) -> Result<Answer, Failure> {
    Ok(Answer::json(200, &api.store.read(playlists::list)?)?)
}

/// `POST /playlists`
pub(in crate::http) fn create(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let body: CreatePlaylist = request.json()?;
    let new = PlaylistChange {
        name: Some(name(&body.name)?),
        configuration: body.configuration,
        images: Some(body.images),
    };
    Ok(Answer::json(201, &api.playlists.create(&new)?)?)
}

/// `GET /playlists/{id}`
pub(in crate::http) fn get(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let id = request.record()?;
    let playlist = api.store.read(|connection| playlists::get(connection, id))?;
    let playlist = playlist.ok_or(playlist::Failure::Refused(Refusal::NoPlaylist { id }))?;
    Ok(Answer::json(200, &playlist)?)
}

/// `PATCH /playlists/{id}`
pub(in crate::http) fn patch(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let id = request.record()?;
    let body: PatchPlaylist = request.json()?;
    let items = |items: Vec<_>| items.into_iter().map(NewPlaylistItem::from).collect();
    let change = PlaylistChange {
        name: body.name.as_deref().map(name).transpose()?,
        configuration: body.configuration.map(NewConfiguration::from).unwrap_or_default(),
        images: body.images.map(items),
    };
    later(
        request,
        |reply| api.playlists.change(id, change, reply),
        |playlist: Playlist| Ok(Answer::json(200, &playlist)?),
    )
}

/// `DELETE /playlists/{id}`
pub(in crate::http) fn delete(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let id = request.record()?;
    later(request, |reply| api.playlists.delete(id, reply), |()| status("deleted"))
}

/// `POST /playlists/{id}/start`; the body is optional.
pub(in crate::http) fn start(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let id = request.record()?;
    let body: StartPlaylist = request.json_or_default()?;
    let mut monitors = named(body.monitors)?;
    if monitors.iter().any(|name| name == "*") {
        monitors.clear();
    }
    let start = |reply| api.playlists.start(id, monitors, body.extend, reply);
    later(request, start, |()| status("started"))
}

/// `POST /playlists/{id}/stop`
pub(in crate::http) fn stop(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act(api, request, Act::Stop, "stopped")
}

/// `POST /playlists/{id}/pause`
pub(in crate::http) fn pause(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act(api, request, Act::Pause, "paused")
}

/// `POST /playlists/{id}/resume`
pub(in crate::http) fn resume(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act(api, request, Act::Resume, "resumed")
}

/// `POST /playlists/{id}/next`
pub(in crate::http) fn next(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act(api, request, Act::Next, "advanced")
}

/// `POST /playlists/{id}/previous`
pub(in crate::http) fn previous(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act(api, request, Act::Previous, "rewound")
}

/// `GET /playlists/active`
pub(in crate::http) fn active(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let answer = |active: Vec<ActivePlaylist>| Ok(Answer::json(200, &active)?);
    later(request, |reply| api.playlists.active(reply), answer)
}

/// `GET /playlists/active/{monitor}`
pub(in crate::http) fn active_on(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    let monitor = request.placeholder(0).to_owned();
    let answer = move |active: Vec<ActivePlaylist>| {
        let one = active.into_iter().find(|one| one.monitors.contains(&monitor));
        let none = || Failure::not_found(format!("no playlist runs on the monitor {monitor:?}"));
        Ok(Answer::json(200, &one.ok_or_else(none)?)?)
    };
    later(request, |reply| api.playlists.active(reply), answer)
}

/// `POST /playlists/active/stop`
pub(in crate::http) fn stop_all(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act_on_all(api, request, Act::Stop, "stopped")
}

/// `POST /playlists/active/pause`
pub(in crate::http) fn pause_all(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act_on_all(api, request, Act::Pause, "paused")
}

/// `POST /playlists/active/resume`
pub(in crate::http) fn resume_all(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act_on_all(api, request, Act::Resume, "resumed")
}

/// `POST /playlists/active/next`
pub(in crate::http) fn next_all(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act_on_all(api, request, Act::Next, "advanced")
}

/// `POST /playlists/active/previous`
pub(in crate::http) fn previous_all(api: &Api, request: &Request<'_>) -> Result<Answer, Failure> {
    act_on_all(api, request, Act::Previous, "reversed")
}

fn act(api: &Api, request: &Request<'_>, act: Act, done: &'static str) -> Result<Answer, Failure> {
    let id = request.record()?;
    later(request, |reply| api.playlists.act(id, act, reply), move |()| status(done))
}

fn act_on_all(
    api: &Api,
    request: &Request<'_>,
    act: Act,
    done: &'static str,
) -> Result<Answer, Failure> {
    let answer = move |count: usize| {
        let playlists = if count == 1 { "playlist" } else { "playlists" };
        let message = format!("{count} {playlists} {done}");
        Ok(Answer::json(200, &json!({ "message": message, done: count }))?)
    };
    later(request, |reply| api.playlists.act_on_all(act, reply), answer)
}

fn status(done: &str) -> Result<Answer, Failure> {
    Ok(Answer::json(200, &json!({ "status": done }))?)
}

/// Hands a command over; the conductor's thread answers.
fn later<T: 'static>(
    request: &Request<'_>,
    command: impl FnOnce(Reply<T>),
    answer: impl FnOnce(T) -> Result<Answer, Failure> + Send + 'static,
) -> Result<Answer, Failure> {
    let (promise, giver) = request.promise(PATIENCE)?;
    command(Box::new(move |result| giver.give(result.map_err(Failure::from).and_then(answer))));
    Ok(Answer::Later(promise))
}
