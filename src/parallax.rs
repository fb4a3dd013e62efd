//! Makes HTML wallpapers follow the workspaces (parallax).
//!
//! The thread `parallax` runs only while `parallax_enabled` is set and the driver is not off. It
//! reads from the compositor's socket which workspace each output shows, and tells the host of
//! wal-qt to shift the wallpaper there. Steps that come too late are dropped.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use crate::backends::{Backends, Error, Placement, WalQtClient};
use crate::compositor::ipc::{
    self, Connection, Following, Protocol, Source, Toggle, Visible, WORKSPACES,
};
use crate::config::{BackendName, ParallaxDirection, ParallaxDriver, WalQt};
use crate::sys::Cancel;
use crate::wallpaper;

/// Starts and stops the follower according to the settings.
pub(crate) struct Parallax {
    backends: Backends,
    wallpaper: wallpaper::Handle,
    toggle: Toggle<ParallaxDriver>,
}

impl Parallax {
    /// Does nothing until [`Self::on_settings`] is called.
    pub(crate) fn new(backends: Backends, wallpaper: wallpaper::Handle) -> Self {
        Self {
            backends,
            wallpaper,
            toggle: Toggle::off(),
        }
    }

    /// Applies the current settings.
    pub(crate) fn on_settings(&self) {
        let settings = (self.backends.settings)();
        let (enabled, driver) = (
            settings.wal_qt.parallax_enabled,
            settings.wal_qt.parallax_compositor_driver,
        );
        let wanted = (enabled && driver != ParallaxDriver::Off).then_some(driver);
        self.toggle.set(wanted, |driver| self.follow(*driver));
    }

    /// Stops for good; returns `false` if the thread has not ended by the deadline.
    pub(crate) fn end(&self, deadline: Instant) -> bool {
        self.toggle.end(deadline)
    }

    fn follow(&self, driver: ParallaxDriver) -> io::Result<Following> {
        let backends = self.backends.clone();
        let wallpaper = self.wallpaper.clone();
        let mut follower = Follower {
            backends,
            wallpaper,
            seen: HashMap::new(),
        };
        let source = Source {
            outputs: self.backends.outputs.clone(),
            env: self.backends.dirs.env().clone(),
            wanted: match driver {
                ParallaxDriver::Auto | ParallaxDriver::Off => None,
                ParallaxDriver::Hyprland => Some(Protocol::Hyprland),
                ParallaxDriver::Sway => Some(Protocol::Sway),
            },
            topics: &WORKSPACES,
            none: Box::new(|| ()),
        };
        ipc::start(
            &self.backends.spawner,
            "parallax",
            source,
            move |connection, cancel| follower.follow(connection, cancel),
        )
    }
}

struct Follower {
    backends: Backends,
    wallpaper: wallpaper::Handle,
    /// The number of the workspace that each output shows.
    seen: HashMap<String, i64>,
}

impl Follower {
    /// Waits for the next report and applies it.
    fn follow(&mut self, connection: &mut Connection, cancel: &Cancel) -> io::Result<()> {
        // A new connection starts without known workspaces.
        let next = connection.next(cancel).inspect_err(|_| self.seen.clear());
        let (_, visible) = next?;
        let mut late = false;
        for Visible { output, place, .. } in visible {
            let before = self.seen.insert(output.clone(), place).unwrap_or(0);
            late |= self.moved(&output, (before, place), cancel).is_err();
        }
        // If the host was slow, drop the reports that came in the meantime.
        while late && connection.is_behind() {
            let Ok((_, missed)) = connection.next(cancel) else {
                break;
            };
            self.seen
                .extend(missed.into_iter().map(|v| (v.output, v.place)));
        }
        Ok(())
    }

    /// Shifts the wallpaper on an output whose workspace has changed.
    fn moved(&self, output: &str, (from, to): (i64, i64), cancel: &Cancel) -> Result<(), Error> {
        let settings = (self.backends.settings)();
        let options = &settings.wal_qt;
        let shown = self.wallpaper.shown_by(BackendName::WalQt);
        let Some(placement) = shown
            .iter()
            .find(|placement| placement.output.name == output)
        else {
            return Ok(());
        };
        let chunk = options.parallax_workspace_chunk_size;
        let Some(word) = direction(from, to, chunk, axis(placement, options)) else {
            return Ok(());
        };
        let client = WalQtClient::open(&self.backends.dirs, options, cancel)?;
        for name in together(placement, &shown) {
            log::debug!("workspace {from} to {to} on {output}: {name} shifts {word}");
            client
                .parallax_move(word, Some(name))
                .inspect_err(|error| match error {
                    Error::Cancelled => {}
                    error => log::warn!("{name} does not follow its workspaces: {error}"),
                })?;
        }
        Ok(())
    }
}

/// Returns the direction of the package, or else that of the settings.
fn axis(placement: &Placement, options: &WalQt) -> ParallaxDirection {
    let own = placement
        .web
        .as_ref()
        .and_then(|web| web.parallax_direction.as_deref());
    match own {
        Some("horizontal") => ParallaxDirection::Horizontal,
        Some("vertical") => ParallaxDirection::Vertical,
        _ => options.parallax_direction,
    }
}

/// Returns the outputs that shift together with this one, as one image spans them.
fn together<'a>(placement: &'a Placement, shown: &'a [Placement]) -> Vec<&'a str> {
    let same = |other: &&Placement| {
        other.output.name == placement.output.name
            || (!placement.extended_over.is_empty()
                && other.image_id == placement.image_id
                && other.extended_over == placement.extended_over)
    };
    shown
        .iter()
        .filter(same)
        .map(|other| other.output.name.as_str())
        .collect()
}

/// Returns the host's name for the direction from workspace `from` to `to` on a ring of `chunk`
/// workspaces. `None` if they are the same, or if one has no number.
fn direction(from: i64, to: i64, chunk: u32, axis: ParallaxDirection) -> Option<&'static str> {
    if from <= 0 || to <= 0 || from == to {
        return None;
    }
    // Over more than half of the ring, the way round is shorter.
    let reversed = from.abs_diff(to) > u64::from(chunk) / 2;
    Some(match (axis, (to > from) != reversed) {
        (ParallaxDirection::Horizontal, true) => "right",
        (ParallaxDirection::Horizontal, false) => "left",
        (ParallaxDirection::Vertical, true) => "down",
        (ParallaxDirection::Vertical, false) => "up",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direction_follows_the_ring_of_workspaces() {
        let check = |from, to, chunk, expected: Option<&'static str>| {
            let along = |axis| direction(from, to, chunk, axis);
            let down = expected.map(|word| if word == "right" { "down" } else { "up" });
            let seen = (
                along(ParallaxDirection::Horizontal),
                along(ParallaxDirection::Vertical),
            );
            assert_eq!(seen, (expected, down), "{from} to {to} of {chunk}");
        };
        check(1, 2, 10, Some("right"));
        check(2, 1, 10, Some("left"));
        check(1, 6, 10, Some("right"));
        check(1, 7, 10, Some("left"));
        check(10, 1, 10, Some("right"));
        check(1, 10, 10, Some("left"));
        // Half of five, rounded down, is two.
        check(1, 3, 5, Some("right"));
        check(1, 4, 5, Some("left"));
        check(1, 2, 1, Some("left"));
        check(3, 3, 10, None);
        check(0, 1, 10, None);
        check(1, -98, 10, None);
        check(i64::MAX, 1, u32::MAX, Some("right"));
    }
}
