//! Pictures that follow the workspaces.
//!
//! The thread `parallax` runs only while `parallax_enabled` is set and its driver is not off. It
//! hears from the compositor, over the compositor's own socket, which workspace each output shows,
//! and has the host of wal-qt move what is shown there. It starts no program, owns no picture, and
//! what it cannot tell the host in time it lets go: a step that comes late is a wrong one.

mod follower;

use std::time::Instant;

use crate::backends::Backends;
use crate::compositor::ipc::{Following, Protocol, Source, Toggle, WORKSPACES};
use crate::config::ParallaxDriver;
use crate::thread::Spawner;
use crate::wallpaper;

use follower::Follower;

/// Starts and ends the follower as the settings say.
pub(crate) struct Parallax {
    spawner: Spawner,
    backends: Backends,
    wallpaper: wallpaper::Handle,
    toggle: Toggle<ParallaxDriver>,
}

impl Parallax {
    /// Follows nothing before [`Self::on_settings`] is called.
    pub(crate) fn new(spawner: Spawner, backends: Backends, wallpaper: wallpaper::Handle) -> Self {
        Self { spawner, backends, wallpaper, toggle: Toggle::off() }
    }

    /// Does what the settings say now.
    pub(crate) fn on_settings(&self) {
        let settings = (self.backends.settings)();
        let (enabled, driver) =
            (settings.wal_qt.parallax_enabled, settings.wal_qt.parallax_compositor_driver);
        let wanted = (enabled && driver != ParallaxDriver::Off).then_some(driver);
        self.toggle.set(wanted, |driver| self.follow(*driver));
    }

    /// Ends it for good, by the deadline; false if the thread is late.
    pub(crate) fn end(&self, deadline: Instant) -> bool {
        self.toggle.end(deadline)
    }

    fn follow(&self, driver: ParallaxDriver) -> std::io::Result<Following> {
        let follower =
            Follower { backends: self.backends.clone(), wallpaper: self.wallpaper.clone() };
        let source = Source {
            outputs: self.backends.outputs.clone(),
            env: self.backends.dirs.env().clone(),
            wanted: match driver {
                ParallaxDriver::Auto | ParallaxDriver::Off => None,
                ParallaxDriver::Hyprland => Some(Protocol::Hyprland),
                ParallaxDriver::Sway => Some(Protocol::I3),
            },
            topics: &WORKSPACES,
            none: Box::new(|| ()),
        };
        Following::start(&self.spawner, "parallax", source, move |connection, cancel| {
            follower.follow(connection, cancel)
        })
    }
}
