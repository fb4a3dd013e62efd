//! The daemon itself: its health, its version and host, its stop, its stream of events, and the snapshot
//! for bug reports.

use std::fs;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Api, Stop, respond};
use crate::color;
use crate::events::EventFilter;
use crate::http::{Error, Request, Response};
use crate::process::Identity;
use crate::store;
use crate::store::assignments::{self, Assignment};
use crate::transcode;
use crate::wire::{BadParameter, EventKind, Timestamp};

/// `GET /healthz`
pub(in crate::http) fn healthz(_: &Api, _: &Request<'_>) -> Result<Response, Error> {
    respond(200, &json!({ "status": "ok" }))
}

/// `GET /info`
pub(in crate::http) fn info(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let names = rustix::system::uname();
    let mut info = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "hostname": names.nodename().to_string_lossy(),
        "uptime": api.started.elapsed().as_secs(),
        "runtime_version": env!("MURALD_RUSTC"),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "paths": api.paths,
        // Null while no compositor is found.
        "session": api.session().map(|session| session.record()),
        "library": api.library.health(),
    });
    let warnings = api.warnings();
    if !warnings.is_empty() {
        info["warnings"] = warnings.into();
    }
    respond(200, &info)
}

/// `GET /capabilities`
pub(in crate::http) fn capabilities(_: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let available = transcode::is_available();
    let body = json!({ "transcoder_available": available, "ffmpeg_available": available });
    respond(200, &body)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shutdown {
    clear: bool,
}

/// `POST /shutdown`; with the optional body `{"clear": true}`, the wallpapers are removed, too.
pub(in crate::http) fn shutdown(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let Shutdown { clear } = request.json_or_default()?;
    log::info!(target: "http", request_id = request.id(); "a client asks the daemon to stop");
    // Fails if the daemon is stopping already.
    api.stop.try_send(Stop { clear }).ok();
    respond(200, &json!({ "status": "shutting_down" }))
}

/// `GET /events`; `types` is a comma-separated list. All events if it is absent, empty or contains `*`.
pub(in crate::http) fn events(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let query = request.query();
    if query
        .get("types")
        .is_none_or(|types| types.trim().is_empty())
    {
        return Ok(Response::events(&api.events, EventFilter::ALL));
    }
    let types = query.list("types", |item| match item {
        "*" => Ok(EventFilter::ALL),
        word => match word.parse::<EventKind>() {
            Ok(kind) => Ok(EventFilter::from_iter([kind])),
            Err(unknown) => Err(BadParameter::word("types", &unknown)),
        },
    })?;
    let filter = types
        .into_iter()
        .flatten()
        .reduce(EventFilter::union)
        .unwrap_or(EventFilter::ALL);
    Ok(Response::events(&api.events, filter))
}

/// The snapshot must be answered even if the thread of the playlists hangs.
const DEBUG_PATIENCE: Duration = Duration::from_secs(2);

/// `GET /debug`
pub(in crate::http) fn debug(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let threads = threads();
    let streams = threads
        .iter()
        .filter(|name| name.starts_with("sse-"))
        .count();
    let rows = api.store.read::<_, store::Error>(assignments::all)?;
    let queues = [api.wallpaper.queue(), api.playlists.queue()].into_iter();
    let queues = queues
        .chain(api.desktop.queue())
        .chain(api.library.queues());
    // Null if the thread of its owner does not answer.
    let workspaces = request
        .wait(DEBUG_PATIENCE, |reply| api.wallpaper.workspaces(reply))
        .ok();
    let playlists = request
        .wait(DEBUG_PATIENCE, |reply| api.playlists.active(reply))
        .ok();
    let debug = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": api.started.elapsed().as_secs(),
        "threads": threads.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
        "assignments": rows.iter().map(assignment).collect::<Vec<_>>(),
        "workspaces": workspaces,
        "playlists": playlists,
        "children": children(api, &rows),
        "power": api.playlists.power(),
        "failures": api.wallpaper.status.failures(),
        "hook_failure": api.desktop.hook_failure(),
        "clients": request.clients() + streams,
    });
    respond(200, &debug)
}

fn assignment(row: &Assignment) -> Value {
    let color = color::from_image_id(row.image_id).map(color::hex);
    let mut shown = json!({
        "monitor": row.monitor,
        "image_id": color.is_none().then_some(row.image_id),
        "mode": row.mode,
        "backend": row.backend,
        "set_at": row.set_at,
        "fit": row.fit,
        "position": row.position,
    });
    if let Some(color) = color {
        shown["color"] = color.into();
    }
    shown
}

/// The names of the threads that the kernel lists, so that a leaked thread is among them.
fn threads() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let name = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).ok();
    let names = entries
        .filter_map(name)
        .map(|name| name.trim_end().to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// The processes of backends, and the monitors that each is assigned to.
fn children(api: &Api, assignments: &[Assignment]) -> Vec<Value> {
    let mut running = api.backends.records.all_running();
    running.sort_by_key(|(_, _, who)| who.pid);
    let child = |(backend, output, who): &(String, Option<String>, Identity)| {
        let shows = |one: &&Assignment| {
            one.backend == *backend && output.as_ref().is_none_or(|output| *output == one.monitor)
        };
        let monitors = assignments.iter().filter(shows).map(|one| &one.monitor);
        json!({
            "pid": who.pid,
            "backend": backend,
            "monitors": monitors.collect::<Vec<_>>(),
            "started_at": started(*who),
            // Null if it has just exited.
            "memory_kb": who.memory_kb(),
        })
    };
    running.iter().map(child).collect()
}

fn started(who: Identity) -> Option<Timestamp> {
    let age = i64::try_from(who.age()?.as_micros()).ok()?;
    Some(Timestamp::from_micros(Timestamp::now().as_micros() - age))
}
