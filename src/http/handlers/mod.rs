//! The handlers, a file for each resource: parse the request, call a handle, wait for it, answer.
//! They run in the threads of connections.

pub(super) mod config;
pub(super) mod daemon;
pub(super) mod images;
pub(super) mod library;
pub(super) mod playlists;
pub(super) mod session;
pub(super) mod wallpaper;
pub(super) mod why;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use serde::Serialize;

use crate::backends::Backends;
use crate::compositor::{Output, Session};
use crate::config::ConfigHandle;
use crate::desktop;
use crate::events::EventBus;
use crate::http::{Error, Response};
use crate::library::Library;
use crate::paths::Dirs;
use crate::playlist::Playlists;
use crate::store::Store;
use crate::wire::{InfoPaths, Timestamp};

/// How long a request waits for a wallpaper to be shown. The time limits of the backends end earlier.
const SHOW_PATIENCE: Duration = Duration::from_secs(90);
/// The same for pictures of playlists, which may have to wait for the pictures before.
const PLAYED_PATIENCE: Duration = SHOW_PATIENCE.saturating_mul(2);
/// The player of the playlists waits only for the disk.
const PLAYER_PATIENCE: Duration = Duration::from_secs(20);

fn respond(status: u16, record: &impl Serialize) -> Result<Response, Error> {
    Ok(Response::json(status, record)?)
}

/// The parts of the daemon that the handlers call.
pub struct Api {
    pub events: EventBus,
    /// Asks `main` to stop; a full channel means that it was asked already.
    pub stop: Sender<Stop>,
    /// When the daemon started.
    pub started: Instant,
    /// The same by the clock.
    pub started_at: Timestamp,
    pub config: ConfigHandle,
    pub store: Store,
    pub backends: Backends,
    pub wallpaper: crate::wallpaper::Handle,
    pub playlists: Playlists,
    pub library: Library,
    pub desktop: desktop::Handle,
    pub dirs: Dirs,
    pub paths: InfoPaths,
}

impl Api {
    /// The monitors that are connected. After the start, waits for the first look at them.
    fn outputs(&self) -> Arc<[Output]> {
        self.wallpaper.wait_for_look();
        self.backends.outputs.list()
    }

    /// The error for a monitor that is not connected, in the words of a request that sets a wallpaper.
    fn no_monitor(&self, name: &str) -> Error {
        let outputs = self.outputs();
        let unknown = crate::wallpaper::Error::UnknownMonitors {
            names: vec![name.to_owned()],
            connected: outputs.iter().map(|output| output.name.clone()).collect(),
        };
        Error::not_found(unknown.to_string())
    }

    /// The session in which wallpapers are drawn. After the start, waits for the first look at it.
    fn session(&self) -> Option<Session> {
        self.wallpaper.wait_for_look();
        self.backends.outputs.session()
    }

    /// The warnings of all parts of the daemon, as sentences.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.config.warnings();
        warnings.extend(self.library.warning());
        warnings.extend(self.library.watching.warnings());
        warnings.extend(self.store.warnings());
        warnings
    }
}

/// A client's request to stop the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Whether to remove the wallpapers, too.
    pub clear: bool,
}
