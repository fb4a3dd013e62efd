//! Playlists: decides which change is due, and makes it on a thread of its own.
//!
//! The thread `playlist` owns the running playlists and runs every method of the `player`. The
//! decisions are pure: when a change is due (`schedule`), the place in the list (`state`, `place`), the
//! random order (`shuffle`) and the items that are skipped (`skips`). The player requests pictures from
//! the reconciler (`requests`), for its own changes (`changes`) and for clients (`steps`, `starts`), and
//! never waits for a backend: the result of a picture arrives as a message. It sleeps until the next
//! command, report, change of monitors or deadline.

mod changes;
mod commands;
mod edits;
mod error;
mod light;
mod monitors;
mod place;
mod player;
mod power;
mod requests;
mod running;
mod schedule;
mod shuffle;
mod skips;
mod slots;
mod spec;
mod starts;
mod state;
mod steps;
mod wishes;

use std::io;
use std::path::PathBuf;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::clock::{Alarm, boot_id};
use crate::events::EventBus;
use crate::kernel::Kernel;
use crate::store::Store;
use crate::store::playlists::{self, PlaylistChange};
use crate::thread::{OwnedThread, Spawner};
use crate::wire::{
    ActivePlaylist, Appearance, AppearanceMode, DebugQueue, Event, GalleryDomain, Mode, Playlist,
    Power, PutPower,
};

pub(crate) use error::{Error, Reply};
pub use player::DaemonWallpapers;
pub(crate) use player::Wallpapers;
pub(crate) use running::{Action, Moved};
pub(crate) use slots::Location;

use player::{Command, Mailbox, Player};
use power::SharedPower;
use running::Aim;
use schedule::ClockReading;

/// Commands that wait for the player; one more is refused with [`Error::Busy`].
const INBOX: usize = 32;

/// The player's handle.
#[derive(Clone)]
pub struct Playlists {
    store: Store,
    bus: EventBus,
    inbox: Sender<Command>,
    power: SharedPower,
}

/// The owner of the player: dropping it ends the player. The next start continues the running
/// playlists.
pub type PlayerOwner = OwnedThread<Sender<()>>;

/// Starts the player; playlists that ran when the last daemon ended continue. `location` returns the
/// location for sunrise and sunset, `outputs` gets a message when monitors are connected or unplugged,
/// and `session` is the file that keeps the state of the session.
pub fn start(
    (spawner, kernel): (&Spawner, &Kernel),
    store: Store,
    bus: EventBus,
    wallpapers: Box<dyn Wallpapers>,
    location: impl Fn() -> Option<Location> + Send + 'static,
    outputs: Receiver<()>,
    session: PathBuf,
) -> io::Result<(Playlists, PlayerOwner)> {
    let (inbox, commands) = bounded(INBOX);
    // Nothing is ever sent over this channel: it only closes.
    let (end, ended) = bounded(0);
    let (alarm, rings) = Alarm::start(kernel)?;
    let (mut player, reports) = Player::new(
        store.clone(),
        bus.clone(),
        wallpapers,
        Box::new(move || ClockReading::read(location())),
        boot_id(),
    );
    let news = bus.subscribe(edits::NEWS.iter().copied().collect(), || ());
    player.pause.power = SharedPower::kept(session);
    let power = player.pause.power.clone();
    let mailbox = Mailbox {
        commands,
        reports,
        rings,
        outputs,
        news,
        end: ended,
    };
    let thread = spawner.spawn("playlist", move || player.run(&mailbox, &alarm))?;
    Ok((
        Playlists {
            store,
            bus,
            inbox,
            power,
        },
        OwnedThread::new(end, thread),
    ))
}

impl Playlists {
    /// Creates a playlist. Runs on the calling thread.
    pub fn create(&self, new: &PlaylistChange) -> Result<Playlist, Error> {
        let playlist = self.store.write(|c| {
            let id = playlists::insert(c, new)?;
            playlists::get(c, id)?.ok_or(playlists::Refusal::NoPlaylist { id })
        })?;
        self.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Playlists,
        });
        Ok(playlist)
    }

    pub fn change(&self, id: i64, change: PlaylistChange, reply: Reply<Playlist>) {
        self.send(reply, move |player, reply| {
            reply(player.change(id, &change))
        });
    }

    pub fn delete(&self, id: i64, reply: Reply<()>) {
        self.send(reply, move |player, reply| reply(player.delete(id)));
    }

    /// Without `monitors`: on all connected monitors.
    pub fn start(&self, id: i64, monitors: Vec<String>, mode: Mode, reply: Reply<Moved>) {
        self.send(reply, move |player, reply| {
            player.begin(id, Aim::Start { monitors, mode }, reply)
        });
    }

    /// With `on`: fails unless the playlist runs on one of these monitors.
    pub fn act(&self, id: i64, action: Action, on: Vec<String>, reply: Reply<Moved>) {
        self.send(reply, move |player, reply| {
            player.act(id, action, &on, reply)
        });
    }

    /// The same for all running playlists; with `on`: for those that run on one of these monitors.
    pub fn act_on_all(&self, action: Action, on: Vec<String>, reply: Reply<Moved>) {
        self.send(reply, move |player, reply| {
            player.act_on_all(action, &on, reply)
        });
    }

    /// Returns the running playlists.
    pub fn active(&self, reply: Reply<Vec<ActivePlaylist>>) {
        self.send(reply, |player, reply| reply(Ok(player.active())));
    }

    /// The state of the session.
    pub(crate) fn power(&self) -> Power {
        self.power.get()
    }

    /// Sets the state of the session; answered once the playlists follow it.
    pub(crate) fn report_power(&self, change: PutPower, reply: Reply<Power>) {
        self.send(reply, move |player, reply| {
            reply(Ok(player.report_power(change)))
        });
    }

    /// Sets the conditions of a pause.
    pub(crate) fn set_pause_conditions(&self, when_locked: bool, when_idle: bool) {
        self.power.set_conditions(when_locked, when_idle);
        self.apply_pause();
    }

    /// Sets whether the machine runs on battery; none if the battery is not watched.
    pub(crate) fn set_battery(&self, battery: Option<bool>) {
        self.power.set_battery(battery);
        self.apply_pause();
    }

    /// The commands that wait for the player.
    pub(crate) fn queue(&self) -> DebugQueue {
        DebugQueue::new("playlist", &self.inbox)
    }

    /// Whether it is light or dark, and why.
    pub(crate) fn appearance(&self, reply: Reply<Appearance>) {
        self.send(reply, |player, reply| reply(Ok(player.appearance())));
    }

    pub(crate) fn set_appearance(&self, mode: AppearanceMode, reply: Reply<Appearance>) {
        self.send(reply, move |player, reply| {
            player.set_appearance(mode, reply)
        });
    }

    /// Makes the player pause or resume. A refusal by a full inbox does not matter: the player
    /// applies the pause after each command.
    fn apply_pause(&self) {
        self.send::<()>(Box::new(|_| ()), |player, _| player.apply_pause());
    }

    /// Sends a command to the player, or refuses it.
    fn send<T: 'static>(
        &self,
        reply: Reply<T>,
        command: impl FnOnce(&mut Player, Reply<T>) + Send + 'static,
    ) {
        let command: Command = Box::new(move |player| match player {
            Ok(player) => command(player, reply),
            Err(error) => reply(Err(error)),
        });
        match self.inbox.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(command)) => command(Err(Error::Busy)),
            Err(TrySendError::Disconnected(command)) => command(Err(Error::Ending)),
        }
    }
}

#[cfg(test)]
mod tests;
