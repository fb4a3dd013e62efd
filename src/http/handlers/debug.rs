//! The daemon as it is now, for reports of faults.

use std::fs;
use std::time::Duration;

use super::Api;
use crate::http::{Error, Request, Response};
use crate::process::Identity;
use crate::store::{self, assignments};
use crate::wire::{Debug, DebugAssignment, DebugChild, DebugThread, Timestamp};

/// Whoever looks for a fault wants an answer where a thread gives none.
const PATIENCE: Duration = Duration::from_secs(2);

/// `GET /debug`
pub(in crate::http) fn get(api: &Api, request: &Request<'_>) -> Result<Response, Error> {
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
        playlists: request.wait(PATIENCE, |reply| api.playlists.active(reply)).ok(),
        power: api.playlists.power(),
        failures: api.wallpaper.failures(),
        hook_failure: api.desktop.hook_failure(),
        clients: request.clients() + streams,
    };
    Ok(Response::json(200, &debug)?)
}

fn assignment(row: assignments::Assignment) -> DebugAssignment {
    let assignments::Assignment { monitor, image_id, mode, backend, set_at, fit, .. } = row;
    DebugAssignment { monitor, image_id, mode, backend, set_at, fit }
}

/// As the kernel has them, so that one that nobody knows of is there, too.
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
