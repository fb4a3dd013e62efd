//! Pictures that follow the workspaces.
//!
//! The thread `parallax` runs only while `parallax_enabled` is set and its driver is not off. It
//! hears from the compositor, over the compositor's own socket, which workspace each output shows,
//! and has the host of wal-qt move what is shown there. It starts no program, owns no picture, and
//! what it cannot tell the host in time it lets go: a step that comes late is a wrong one.

mod feed;
mod follower;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/parallax.rs"]
pub mod fuzz;
mod hyprland;
mod sway;

use std::sync::Mutex;
use std::time::Instant;

use crossbeam_channel::{Sender, bounded};

use crate::backends::Backends;
use crate::config::ParallaxDriver;
use crate::sys::{Cancel, CancelOnDrop, lock};
use crate::thread::{Spawner, Thread};
use crate::wallpaper;

use follower::Follower;

/// Starts and ends the follower as the settings say.
pub(crate) struct Parallax {
    spawner: Spawner,
    backends: Backends,
    wallpaper: wallpaper::Handle,
    state: Mutex<FollowerState>,
}

enum FollowerState {
    Off,
    Following(Following),
    /// The daemon ends: nothing is started any more.
    Ended,
}

/// Dropping it cancels and closes, then joins the thread: the order of the fields.
struct Following {
    driver: ParallaxDriver,
    cancel: CancelOnDrop,
    end: Sender<()>,
    thread: Thread,
}

impl Parallax {
    /// Follows nothing before [`Self::on_settings`] is called.
    pub(crate) fn new(spawner: Spawner, backends: Backends, wallpaper: wallpaper::Handle) -> Self {
        Self { spawner, backends, wallpaper, state: Mutex::new(FollowerState::Off) }
    }

    /// Does what the settings say now. The thread that it ends is gone when it returns, at once.
    pub(crate) fn on_settings(&self) {
        let settings = (self.backends.settings)();
        let (enabled, driver) =
            (settings.wal_qt.parallax_enabled, settings.wal_qt.parallax_compositor_driver);
        let desired = (enabled && driver != ParallaxDriver::Off).then_some(driver);
        let mut state = lock(&self.state);
        match &*state {
            FollowerState::Ended => return,
            FollowerState::Following(following) if desired == Some(following.driver) => return,
            FollowerState::Off | FollowerState::Following(_) => *state = FollowerState::Off,
        }
        if let Some(driver) = desired {
            match self.follow(driver) {
                Ok(following) => *state = FollowerState::Following(following),
                Err(error) => log::error!("cannot follow the workspaces: {error}"),
            }
        }
    }

    /// Ends it for good, by the deadline; false where the thread is late.
    pub(crate) fn end(&self, deadline: Instant) -> bool {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, FollowerState::Ended) {
            FollowerState::Following(following) => following.end(deadline),
            FollowerState::Off | FollowerState::Ended => true,
        }
    }

    fn follow(&self, driver: ParallaxDriver) -> std::io::Result<Following> {
        let cancel = Cancel::new()?;
        let (end, ended) = bounded(0);
        let follower = Follower {
            driver,
            backends: self.backends.clone(),
            wallpaper: self.wallpaper.clone(),
            cancel: cancel.clone(),
        };
        let thread = self.spawner.spawn("parallax", move || follower.run(&ended))?;
        Ok(Following { driver, cancel: CancelOnDrop(cancel), end, thread })
    }
}

impl Following {
    fn end(self, deadline: Instant) -> bool {
        drop((self.cancel, self.end));
        self.thread.join_by(deadline)
    }
}
