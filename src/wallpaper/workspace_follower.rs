//! The thread `workspaces`: reports which workspace each monitor shows to the reconciler.
//!
//! It runs only while the section `[workspaces]` has entries, and wakes only when the compositor reports
//! a change.

use std::io;
use std::time::Instant;

use super::Handle;
use crate::backends::Backends;
use crate::compositor::ipc::{self, Following, Source, Toggle, WORKSPACES};

/// Starts and ends the thread as the settings say.
pub(crate) struct WorkspaceFollower {
    backends: Backends,
    wallpaper: Handle,
    toggle: Toggle<()>,
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

    /// Starts or ends the thread according to the settings.
    pub(crate) fn on_settings(&self) {
        let wanted = (!(self.backends.settings)().workspaces.is_empty()).then_some(());
        self.toggle.set(wanted, |()| self.follow());
        if wanted.is_none() {
            self.wallpaper.show_workspaces(true, Vec::new());
        }
        self.wallpaper.workspaces_changed();
    }

    /// Ends the thread for good; returns false if it misses the deadline.
    pub(crate) fn end(&self, deadline: Instant) -> bool {
        self.toggle.end(deadline)
    }

    fn follow(&self) -> io::Result<Following> {
        self.wallpaper.expect_workspaces();
        let (wallpaper, none) = (self.wallpaper.clone(), self.wallpaper.clone());
        let source = Source {
            outputs: self.backends.outputs.clone(),
            env: self.backends.dirs.env().clone(),
            wanted: None,
            topics: &WORKSPACES,
            none: Box::new(move || none.show_workspaces(true, Vec::new())),
        };
        ipc::start(
            &self.backends.spawner,
            "workspaces",
            source,
            move |connection, cancel| {
                let (are_all, visible) = connection.next(cancel)?;
                wallpaper.show_workspaces(are_all, visible);
                Ok(())
            },
        )
        // Nothing waits for a follower that did not start.
        .inspect_err(|_| self.wallpaper.show_workspaces(true, Vec::new()))
    }
}
