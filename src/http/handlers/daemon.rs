//! The daemon itself: its health, its version and host, its stop, its stream of events, and the snapshot
//! for bug reports.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Api, Stop};
use crate::color;
use crate::events::EventFilter;
use crate::http::{Error, Request, Response};
use crate::process::Identity;
use crate::store::{self, assignments};
use crate::transcode;
use crate::wire::{
    BadParameter, DatabaseHealth, Debug, DebugAssignment, DebugChild, DebugThread, EventKind,
    InfoPaths, LibraryHealth, Session, Timestamp,
};

/// `GET /healthz`
pub(in crate::http) fn healthz(_: &Api, _: &Request<'_>) -> Result<Response, Error> {
    Ok(Response::bytes(200, "application/json", br#"{"status":"ok"}"#.as_slice()))
}

#[derive(Serialize)]
struct Info<'a> {
    version: &'static str,
    pid: u32,
    hostname: String,
    /// Seconds.
    uptime: u64,
    runtime_version: &'static str,
    os: &'static str,
    arch: &'static str,
    paths: &'a InfoPaths,
    /// None while no compositor is found.
    session: Option<Session>,
    library: LibraryHealth,
    database: DatabaseHealth,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// `GET /info`
pub(in crate::http) fn info(api: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let names = rustix::system::uname();
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        hostname: names.nodename().to_string_lossy().into_owned(),
        uptime: api.started.elapsed().as_secs(),
        runtime_version: env!("MURALD_RUSTC"),
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
        paths: &api.paths,
        session: api.session().map(|session| session.record()),
        library: api.library.health(),
        database: api.store.health(),
        warnings: api.warnings(),
    };
    Ok(Response::json(200, &info)?)
}

#[derive(Serialize)]
struct Able {
    transcoder_available: bool,
}

/// `GET /capabilities`
pub(in crate::http) fn capabilities(_: &Api, _: &Request<'_>) -> Result<Response, Error> {
    let transcoder_available = transcode::is_available();
    Ok(Response::json(200, &Able { transcoder_available })?)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Shutdown {
    clear: bool,
}

/// `POST /shutdown`; the optional body `{"clear": true}` takes the wallpapers down, too.
pub(in crate::http) fn shutdown(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let Shutdown { clear } = request.json_or_default()?;
    log::info!(target: "http", request_id = request.id(); "a client asks the daemon to stop");
    // Full or closed: the daemon is stopping already.
    api.stop.try_send(Stop { clear }).ok();
    Ok(Response::bytes(200, "application/json", br#"{"status":"shutting_down"}"#.as_slice()))
}

/// `GET /events`; `types` is a comma list, absent, empty or `*` means all.
pub(in crate::http) fn events(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
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

/// The snapshot must be answered even if the thread of the playlists hangs.
const DEBUG_PATIENCE: Duration = Duration::from_secs(2);

/// `GET /debug`
pub(in crate::http) fn debug(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
    let threads = threads();
    let streams = threads.iter().filter(|thread| thread.name.starts_with("sse-")).count();
    let rows = api.store.read::<_, store::Error>(assignments::all)?;
    let assignments: Vec<_> = rows.into_iter().map(assignment).collect();
    let debug = Debug {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime: api.started.elapsed().as_secs(),
        threads,
        queues: [api.wallpaper.queue(), api.playlists.queue()]
            .into_iter()
            .chain(api.desktop.queue())
            .chain(api.library.queues())
            .collect(),
        children: children(api, &assignments),
        assignments,
        workspaces: request.wait(DEBUG_PATIENCE, |reply| api.wallpaper.workspaces(reply)).ok(),
        playlists: request.wait(DEBUG_PATIENCE, |reply| api.playlists.active(reply)).ok(),
        power: api.playlists.power(),
        failures: api.wallpaper.failures(),
        hook_failure: api.desktop.hook_failure(),
        clients: request.clients() + streams,
    };
    Ok(Response::json(200, &debug)?)
}

fn assignment(row: assignments::Assignment) -> DebugAssignment {
    let assignments::Assignment { monitor, image_id, mode, backend, set_at, fit, position, .. } =
        row;
    let color = color::of_image(image_id).map(color::hex);
    DebugAssignment { monitor, image_id, color, mode, backend, set_at, fit, position }
}

/// The threads that the kernel lists, so that a leaked thread is among them.
fn threads() -> Vec<DebugThread> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).ok();
    let mut threads: Vec<DebugThread> = entries
        .filter_map(name)
        .map(|name| DebugThread { name: name.trim_end().to_owned() })
        .collect();
    threads.sort();
    threads
}

fn children(api: &Api, assignments: &[DebugAssignment]) -> Vec<DebugChild> {
    let running = api.backends.records.who_runs().into_iter();
    let mut children: Vec<DebugChild> = running
        .map(|(backend, output, who)| {
            let shows = |one: &&DebugAssignment| {
                one.backend == backend
                    && output.as_ref().is_none_or(|output| *output == one.monitor)
            };
            let monitors =
                assignments.iter().filter(shows).map(|one| one.monitor.clone()).collect();
            let Identity { pid, .. } = who;
            DebugChild {
                pid,
                backend,
                monitors,
                started_at: started(who),
                memory_kb: who.memory_kb(),
            }
        })
        .collect();
    children.sort_by_key(|child| child.pid);
    children
}

fn started(who: Identity) -> Option<Timestamp> {
    let age = i64::try_from(who.age()?.as_micros()).ok()?;
    Some(Timestamp::from_micros(Timestamp::now().as_micros() - age))
}
