//! Finds the socket over which the compositor that runs tells of its workspaces.
//!
//! Its sockets have the listening process in common, which the kernel tells: that is surer than
//! the environment, which may be that of a session that is over.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::feed::{Feed, Visible};
use super::hyprland::Hyprland;
use super::sway::Sway;
use crate::compositor::Session;
use crate::config::ParallaxDriver;
use crate::paths::Env;
use crate::sys::Cancel;

const EVENTS: &str = ".socket2.sock";
const REQUESTS: &str = ".socket.sock";

/// A compositor that tells of its workspaces.
pub(super) enum Source {
    Hyprland(Hyprland),
    Sway(Sway),
}

impl Source {
    /// The outputs and the workspaces that they show, when that may have changed; waited for.
    pub(super) fn next(&mut self, cancel: &Cancel) -> io::Result<Vec<Visible>> {
        match self {
            Self::Hyprland(hyprland) => hyprland.next(cancel),
            Self::Sway(sway) => sway.next(cancel),
        }
    }

    pub(super) fn is_behind(&self) -> bool {
        match self {
            Self::Hyprland(hyprland) => hyprland.feed.is_behind(),
            Self::Sway(sway) => sway.feed.is_behind(),
        }
    }
}

/// Where one may be.
struct Candidate {
    is_sway: bool,
    socket: PathBuf,
    /// The environment names it.
    named: bool,
}

/// The compositor of this session; none where it is none that we know, or is not up yet.
pub(super) fn source(driver: ParallaxDriver, session: &Session, env: &Env) -> Option<Source> {
    let Session::Wayland { socket } = session else { return None };
    let compositor = Feed::connect(socket).ok()?.peer();
    let mut second = None;
    for candidate in candidates(driver, env) {
        let Ok(feed) = Feed::connect(&candidate.socket) else { continue };
        if feed.peer() == compositor {
            return open(candidate, feed);
        }
        // One that hands its sockets on to another process is believed where it is named.
        if candidate.named && second.is_none() {
            second = Some((candidate, feed));
        }
    }
    second.and_then(|(candidate, feed)| open(candidate, feed))
}

fn open(candidate: Candidate, feed: Feed) -> Option<Source> {
    log::info!("following the workspaces at {}", candidate.socket.display());
    if candidate.is_sway {
        return Sway::over(feed).map(Source::Sway).ok();
    }
    let requests = candidate.socket.with_file_name(REQUESTS);
    Some(Source::Hyprland(Hyprland::over(feed, requests)))
}

/// Those that the environment names first.
fn candidates(driver: ParallaxDriver, env: &Env) -> Vec<Candidate> {
    let set = |name: &str| env.var(name).filter(|value| !value.is_empty());
    let runtime = set("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut candidates = Vec::new();
    let mut add = |is_sway, socket, named| candidates.push(Candidate { is_sway, socket, named });
    let (hyprland, sway) = match driver {
        ParallaxDriver::Auto => (true, true),
        ParallaxDriver::Hyprland => (true, false),
        ParallaxDriver::Sway => (false, true),
        ParallaxDriver::Off => (false, false),
    };
    if let (true, Some(directory)) = (hyprland, runtime.as_ref().map(|run| run.join("hypr"))) {
        if let Some(signature) = set("HYPRLAND_INSTANCE_SIGNATURE") {
            add(false, directory.join(signature).join(EVENTS), true);
        }
        let instances = fs::read_dir(directory).into_iter().flatten().flatten();
        instances.for_each(|instance| add(false, instance.path().join(EVENTS), false));
    }
    if sway {
        if let Some(named) = set("SWAYSOCK") {
            add(true, named.into(), true);
        }
        let entries = runtime.and_then(|run| fs::read_dir(run).ok()).into_iter().flatten();
        for entry in entries.flatten().filter(|entry| is_sway_socket(&entry.file_name())) {
            add(true, entry.path(), false);
        }
    }
    candidates.sort_by_key(|candidate| !candidate.named);
    candidates
}

/// `sway-ipc.UID.PID.sock`
fn is_sway_socket(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"sway-ipc.") && name.ends_with(b".sock")
}
