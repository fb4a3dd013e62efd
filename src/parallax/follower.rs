//! The thread `parallax`: hears which workspace each output shows, and has the pictures moved.
//!
//! It searches for the socket of Hyprland or sway. Without either it waits for one. A connection that
//! breaks is tried again a few times, ever further apart, and then when the outputs change.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};

use crossbeam_channel::{Receiver, at, never, select};

use super::feed::{Feed, Visible};
use super::hyprland::Hyprland;
use super::sway::Sway;
use crate::backends::{Backends, Error, Placement, WalQtClient};
use crate::compositor::Session;
use crate::config::{BackendName, ParallaxDirection, ParallaxDriver, WalQt};
use crate::paths::Env;
use crate::sys::Cancel;
use crate::wallpaper;

/// The first pause between tries; each one after is twice as long: 6 s in all.
const PAUSE: Duration = Duration::from_millis(100);
const TRIES: u32 = 6;
/// A connection that lasts is a sound one.
const SOUND: Duration = Duration::from_secs(5);

pub(super) struct Follower {
    pub(super) driver: ParallaxDriver,
    pub(super) backends: Backends,
    pub(super) wallpaper: wallpaper::Handle,
    pub(super) cancel: Cancel,
}

impl Follower {
    /// Ends when it is cancelled and `end` is closed.
    pub(super) fn run(&self, end: &Receiver<()>) {
        let outputs = self.backends.outputs.subscribe();
        let mut tries = 0;
        loop {
            let began = Instant::now();
            if let Some(mut source) = self.connect() {
                self.follow(&mut source);
                if began.elapsed() > SOUND {
                    tries = 0;
                }
            }
            let again = (tries < TRIES).then(|| at(Instant::now() + PAUSE * (1 << tries)));
            let again = again.unwrap_or_else(never);
            select! {
                recv(end) -> _ => return,
                recv(outputs) -> _ => tries = 0,
                recv(again) -> _ => tries += 1,
            }
        }
    }

    fn connect(&self) -> Option<WorkspaceSource> {
        let session = self.backends.outputs.session()?;
        source(self.driver, &session, self.backends.dirs.env())
    }

    /// Until the connection breaks, or it is cancelled.
    fn follow(&self, source: &mut WorkspaceSource) {
        let mut seen = HashMap::new();
        let error = loop {
            let visible = match source.next(&self.cancel) {
                Ok(visible) => visible,
                Err(error) => break error,
            };
            let mut late = false;
            for Visible { output, workspace } in visible {
                let before = seen.insert(output.clone(), workspace).unwrap_or(0);
                late |= self.moved(&output, before, workspace).is_err();
            }
            // A host that hangs has missed what came in between.
            while late && source.is_behind() {
                let Ok(missed) = source.next(&self.cancel) else { break };
                seen.extend(missed.into_iter().map(|v| (v.output, v.workspace)));
            }
        };
        if !self.cancel.is_cancelled() {
            log::info!("lost the connection to the compositor's workspaces: {error}");
        }
    }

    /// Moves what is shown on an output whose workspace has changed.
    fn moved(&self, output: &str, from: i64, to: i64) -> Result<(), Error> {
        let settings = (self.backends.settings)();
        let options = &settings.wal_qt;
        let shown = self.wallpaper.shown_by(BackendName::WalQt);
        let Some(placement) = shown.iter().find(|placement| placement.output.name == output) else {
            return Ok(());
        };
        let chunk = options.parallax_workspace_chunk_size;
        let Some(word) = direction(from, to, chunk, axis(placement, options)) else {
            return Ok(());
        };
        let client = WalQtClient::open(&self.backends.dirs, options, &self.cancel)?;
        for name in together(placement, &shown) {
            log::debug!("workspace {from} to {to} on {output}: {name} shifts {word}");
            client.parallax_move(word, Some(name)).inspect_err(|error| match error {
                Error::Cancelled => {}
                error => log::warn!("{name} does not follow its workspaces: {error}"),
            })?;
        }
        Ok(())
    }
}

/// The direction: the package's own goes before the setting.
fn axis(placement: &Placement, options: &WalQt) -> ParallaxDirection {
    let own = placement.web.as_ref().and_then(|web| web.parallax_direction.as_deref());
    match own {
        Some("horizontal") => ParallaxDirection::Horizontal,
        Some("vertical") => ParallaxDirection::Vertical,
        _ => options.parallax_direction,
    }
}

/// The outputs that move with this one: those over which one picture is stretched.
fn together<'a>(placement: &'a Placement, shown: &'a [Placement]) -> Vec<&'a str> {
    let same = |other: &&Placement| {
        other.output.name == placement.output.name
            || (!placement.extended_over.is_empty()
                && other.image_id == placement.image_id
                && other.extended_over == placement.extended_over)
    };
    shown.iter().filter(same).map(|other| other.output.name.as_str()).collect()
}

/// The host's word for the way from workspace `from` to `to` on a ring of `chunk` workspaces; none
/// where they are the same, or where one of them has no place in the order.
pub(super) fn direction(
    from: i64,
    to: i64,
    chunk: u32,
    axis: ParallaxDirection,
) -> Option<&'static str> {
    if from <= 0 || to <= 0 || from == to {
        return None;
    }
    // Over half of the ring the way round is the shorter one.
    let reversed = from.abs_diff(to) > u64::from(chunk) / 2;
    Some(match (axis, (to > from) != reversed) {
        (ParallaxDirection::Horizontal, true) => "right",
        (ParallaxDirection::Horizontal, false) => "left",
        (ParallaxDirection::Vertical, true) => "down",
        (ParallaxDirection::Vertical, false) => "up",
    })
}

const EVENTS: &str = ".socket2.sock";
const REQUESTS: &str = ".socket.sock";

/// A compositor that tells of its workspaces.
pub(super) enum WorkspaceSource {
    Hyprland(Hyprland),
    Sway(Sway),
}

impl WorkspaceSource {
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

/// A socket at which a compositor may be.
struct Candidate {
    is_sway: bool,
    socket: PathBuf,
    /// The environment names it.
    named: bool,
}

/// The compositor of this session; none where it is none that we know, or is not up yet.
pub(super) fn source(
    driver: ParallaxDriver,
    session: &Session,
    env: &Env,
) -> Option<WorkspaceSource> {
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

fn open(candidate: Candidate, feed: Feed) -> Option<WorkspaceSource> {
    log::info!("following the workspaces at {}", candidate.socket.display());
    if candidate.is_sway {
        return Sway::over(feed).map(WorkspaceSource::Sway).ok();
    }
    let requests = candidate.socket.with_file_name(REQUESTS);
    Some(WorkspaceSource::Hyprland(Hyprland::over(feed, requests)))
}

/// The sockets to try; first those that the environment names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direction_follows_the_ring_of_workspaces() {
        let check = |from, to, chunk, expected: Option<&'static str>| {
            let along = |axis| direction(from, to, chunk, axis);
            let down = expected.map(|word| if word == "right" { "down" } else { "up" });
            let seen = (along(ParallaxDirection::Horizontal), along(ParallaxDirection::Vertical));
            assert_eq!(seen, (expected, down), "{from} to {to} of {chunk}");
        };
        check(1, 2, 10, Some("right"));
        check(2, 1, 10, Some("left"));
        check(1, 6, 10, Some("right"));
        check(1, 7, 10, Some("left"));
        check(10, 1, 10, Some("right"));
        check(1, 10, 10, Some("left"));
        // Half of five is two and a half.
        check(1, 3, 5, Some("right"));
        check(1, 4, 5, Some("left"));
        check(1, 2, 1, Some("left"));
        check(3, 3, 10, None);
        check(0, 1, 10, None);
        check(1, -98, 10, None);
        check(i64::MAX, 1, u32::MAX, Some("right"));
    }
}
