//! The thread `workspaces`: reports to the reconciler which workspace each monitor shows, if the section
//! `[workspaces]` has entries, and that a reload of sway has put another background over the wallpaper.
//!
//! It wakes only when the compositor reports a change, and a second after a reload.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::Handle;
use crate::backends::{Backends, is_any_background_newer};
use crate::compositor::ipc::{self, Following, Protocol, Source, Toggle, WORKSPACES};
use crate::sys::{Cancel, poll_until};

/// The time from a reload of sway until its background program has surfaces.
const RELOADED_WITHIN: Duration = Duration::from_secs(1);

/// Starts and ends the thread, and follows what the settings say.
pub(crate) struct WorkspaceFollower {
    backends: Backends,
    wallpaper: Handle,
    /// Whether the workspaces have wallpapers.
    toggle: Toggle<bool>,
}

impl WorkspaceFollower {
    /// Follows nothing before [`Self::on_settings`] is called.
    pub(crate) fn new(backends: Backends, wallpaper: Handle) -> Self {
        Self {
            backends,
            wallpaper,
            toggle: Toggle::off(),
        }
    }

    /// Starts the thread, again if the settings say so.
    pub(crate) fn on_settings(&self) {
        let have_wallpapers = !(self.backends.settings)().workspaces.is_empty();
        self.toggle
            .set(Some(have_wallpapers), |&wanted| self.follow(wanted));
        if !have_wallpapers {
            self.wallpaper.show_workspaces(true, Vec::new());
        }
        self.wallpaper.workspaces_changed();
    }

    /// Ends the thread for good; returns false if it misses the deadline.
    pub(crate) fn end(&self, deadline: Instant) -> bool {
        self.toggle.end(deadline)
    }

    fn follow(&self, have_wallpapers: bool) -> io::Result<Following> {
        if have_wallpapers {
            self.wallpaper.status.expect_workspaces();
        }
        let backends = self.backends.clone();
        let (wallpaper, none) = (self.wallpaper.clone(), self.wallpaper.clone());
        let source = Source {
            outputs: self.backends.outputs.clone(),
            env: self.backends.dirs.env().clone(),
            // Otherwise only reloads are of interest.
            wanted: (!have_wallpapers).then_some(Protocol::Sway),
            topics: &WORKSPACES,
            none: Box::new(move || none.show_workspaces(true, Vec::new())),
        };
        ipc::start(
            &self.backends.spawner,
            "workspaces",
            source,
            move |connection, cancel| {
                let (are_all, visible) = connection.next(cancel)?;
                if have_wallpapers {
                    wallpaper.show_workspaces(are_all, visible);
                }
                if connection.take_reload() {
                    show_above(&wallpaper, &backends, cancel)?;
                }
                Ok(())
            },
        )
        // Nothing waits for a follower that did not start.
        .inspect_err(|_| self.wallpaper.show_workspaces(true, Vec::new()))
    }
}

/// Shows the wallpapers above a background that sway has started at a reload.
fn show_above(wallpaper: &Handle, backends: &Backends, cancel: &Cancel) -> io::Result<()> {
    let until = Instant::now() + RELOADED_WITHIN;
    let is_cancelled = poll_until(&mut [PollFd::new(cancel, PollFlags::IN)], Some(until))?;
    if !is_cancelled && is_any_background_newer(backends) {
        log::info!("sway has started another background: showing the wallpapers above it");
        wallpaper.bury();
    }
    Ok(())
}
