//! The player that the thread `playlist` owns: the running playlists, and the changes that clients
//! wait for.
//!
//! It reads and writes the database and never waits for a backend.

use std::collections::{BTreeMap, VecDeque};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::change::{Action, Attempt, Change, Goal, Moved, WaitingClient};
use super::error::{Error, Reply};
use super::power::SharedPower;
use super::schedule::ClockReading;
use super::slots::tone_at;
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::backends::{Backends, Kind};
use crate::compositor::identities;
use crate::config::SelectionMode;
use crate::events::EventBus;
use crate::store::Store;
use crate::store::playlists::{self, Refusal};
use crate::wallpaper::{self, Applied, Request};
use crate::wire::{Appearance, AppearanceMode, PauseReason};

/// A playlist that runs.
pub(super) struct RunningPlaylist {
    pub(super) spec: PlaylistSpec,
    pub(super) state: PlaybackState,
    /// The round of its changes; reports of earlier rounds are outdated.
    pub(super) round: u64,
    /// An event has reported that none of its images can be shown: `builtin cannot show any image of`
    pub(super) nothing_compatible: Option<String>,
    /// The present image is gone, and its replacement has not been requested.
    pub(super) lost: bool,
}

impl RunningPlaylist {
    pub(super) fn new(spec: PlaylistSpec, state: PlaybackState) -> Self {
        Self {
            spec,
            state,
            round: 0,
            nothing_compatible: None,
            lost: false,
        }
    }

    /// A change of the playlist's own, for which no client waits.
    pub(super) fn own_change(&self, attempt: Attempt) -> Change {
        let change = Change::new(self.spec.clone(), self.state.clone(), Vec::new());
        Change {
            round: self.round,
            attempt,
            ..change
        }
    }
}

/// Commands that may wait for the change on its way, per playlist; one more is refused.
const QUEUE: usize = 64;

/// The result of a change that was sent to the reconciler.
pub(super) struct ApplyReport {
    /// The number of the change.
    pub(super) change: u64,
    pub(super) result: Result<Applied, wallpaper::Error>,
}

/// A command of a client, or its refusal.
pub(super) type Command = Box<dyn FnOnce(Result<&mut Player, Error>) + Send>;

pub(super) struct Player {
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) wallpapers: Box<dyn Wallpapers>,
    time: Box<dyn Fn() -> ClockReading + Send>,
    pub(super) boot_id: String,
    pub(super) running: BTreeMap<i64, RunningPlaylist>,
    /// The changes on their way, by number. A playlist has at most one that clients wait for.
    pub(super) changes: BTreeMap<u64, Change>,
    /// The number of the latest change.
    pub(super) last_change: u64,
    /// Commands that wait for their playlist's change, or for a start that displaces the playlist.
    pub(super) queues: BTreeMap<i64, VecDeque<WaitingClient>>,
    /// Given to the reconciler, which sends one report for each request.
    pub(super) reports: Sender<ApplyReport>,
    /// Decides between light and dark.
    pub(super) mode: AppearanceMode,
    /// The state of the session.
    pub(super) power: SharedPower,
    /// The pause that was last passed to the wallpapers; none before the first.
    pub(super) reported_pause: Option<Option<PauseReason>>,
    /// Light or dark as last published, or as found at the start.
    pub(super) published_appearance: Option<Appearance>,
    /// Whether the log has warned that no place is set.
    pub(super) warned_of_place: bool,
    /// Clients that wait for the pictures of a change of light and dark.
    pub(super) waiting: Vec<Reply<Appearance>>,
}

impl Player {
    /// Also returns the receiver of the reconciler's reports.
    pub(super) fn new(
        store: Store,
        bus: EventBus,
        wallpapers: Box<dyn Wallpapers>,
        time: Box<dyn Fn() -> ClockReading + Send>,
        boot_id: String,
    ) -> (Self, Receiver<ApplyReport>) {
        let (reports, receiver) = unbounded();
        let player = Self {
            store,
            bus,
            wallpapers,
            time,
            boot_id,
            running: BTreeMap::new(),
            changes: BTreeMap::new(),
            last_change: 0,
            queues: BTreeMap::new(),
            reports,
            mode: AppearanceMode::Auto,
            power: SharedPower::default(),
            reported_pause: None,
            published_appearance: None,
            warned_of_place: false,
            waiting: Vec::new(),
        };
        (player, receiver)
    }

    pub(super) fn clock_reading(&self) -> ClockReading {
        let mut now = (self.time)();
        now.tone = tone_at(self.mode, &now.wall, now.place);
        now
    }

    pub(super) fn running_ids(&self) -> Vec<i64> {
        self.running.keys().copied().collect()
    }

    /// Writes the states of playlists, without waiting for the disk.
    pub(super) fn save(&self, ids: &[i64]) {
        let states: Vec<_> = ids
            .iter()
            .filter_map(|id| Some((*id, &self.running.get(id)?.state)))
            .collect();
        if states.is_empty() {
            return;
        }
        let noted = self.store.note(|c| {
            states
                .iter()
                .try_for_each(|(id, state)| playlists::save(c, *id, true, state))
        });
        if let Err(error) = noted {
            log::error!("cannot save the state of playlists {ids:?}: {error}");
        }
    }

    /// The change that clients of a playlist wait for.
    pub(super) fn clients_change(&self, id: i64) -> Option<&Change> {
        self.changes
            .values()
            .find(|change| change.playlist == id && !change.is_own())
    }

    /// The monitors of a playlist's present round that the reconciler has not answered for yet.
    pub(super) fn asked(&self, id: i64) -> Vec<String> {
        let Some(one) = self.running.get(&id) else {
            return Vec::new();
        };
        let present = |change: &&Change| {
            change.playlist == id && change.is_own() && change.round == one.round
        };
        let changes = self.changes.values().filter(present);
        changes
            .flat_map(|change| change.monitors.iter().cloned())
            .collect()
    }

    /// Whether a playlist's own changes have to wait: for a change that a client waits for, or for a
    /// start on its monitors.
    pub(super) fn has_pending_change(&self, id: i64) -> bool {
        self.clients_change(id).is_some() || self.is_being_displaced(id)
    }

    /// Whether another playlist's start is on its way to monitors of this running one. A request
    /// now would cover the picture of that start.
    pub(super) fn is_being_displaced(&self, id: i64) -> bool {
        self.changes.iter().any(|(_, change)| {
            change.is_start() && change.playlist != id && self.shares_monitor(id, &change.state)
        })
    }

    /// Whether a running playlist uses one of these monitors; one that plays on all uses each.
    pub(super) fn shares_monitor(&self, id: i64, state: &PlaybackState) -> bool {
        let Some(one) = self.running.get(&id) else {
            return false;
        };
        one.state.everywhere
            || one
                .state
                .monitors
                .iter()
                .any(|name| state.monitors.contains(name))
    }

    /// The playlists that are about to start and are not running yet.
    pub(super) fn starting(&self) -> Vec<i64> {
        let on_way = self.changes.values().filter(|change| change.is_start());
        let queued = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.iter().any(WaitingClient::is_start));
        let ids = on_way
            .map(|change| change.playlist)
            .chain(queued.map(|(id, _)| *id));
        ids.filter(|id| !self.running.contains_key(id)).collect()
    }

    /// Removes a playlist that the database already has as stopped.
    pub(super) fn drop_stopped(&mut self, id: i64) {
        let Some(one) = self.running.remove(&id) else {
            return;
        };
        let name = one.spec.name;
        let error = |_: &Self| Error::NotRunning { name: name.clone() };
        let is_resume = |goal: &Goal| matches!(goal, Goal::Resume { .. });
        self.cancel(id, is_resume, |client| !client.is_start(), &error);
        self.bus.publish(&Action::Stop.event(Some(id), 1));
    }

    /// Cancels the commands of a playlist that was stopped or deleted. A step on its way is kept:
    /// its client is answered with its picture.
    pub(super) fn cancel_pending(&mut self, id: i64, error: &dyn Fn(&Self) -> Error) {
        // A cancelled start is shown nevertheless: the playlists that it covers show their images
        // again.
        if let Some(start) = self.clients_change(id).filter(|change| change.is_start()) {
            let mut covered = self.running_ids();
            covered.retain(|other| *other != id && self.shares_monitor(*other, &start.state));
            for other in covered {
                self.running.entry(other).and_modify(|one| one.lost = true);
            }
        }
        self.cancel(id, |goal| !matches!(goal, Goal::Step(..)), |_| true, error);
    }

    /// Answers clients with an error: those of changes on their way whose goal is `on_way`, and
    /// those in the queue that are `queued`. Such a change becomes one that nobody waits for.
    fn cancel(
        &mut self,
        id: i64,
        on_way: fn(&Goal) -> bool,
        queued: fn(&WaitingClient) -> bool,
        error: &dyn Fn(&Self) -> Error,
    ) {
        let mut cancelled = Vec::new();
        for change in self
            .changes
            .values_mut()
            .filter(|change| change.playlist == id)
        {
            if change.goal().is_some_and(on_way) {
                cancelled.append(&mut change.clients);
            }
        }
        let queue = self.queues.remove(&id).unwrap_or_default();
        let (others, kept): (VecDeque<_>, VecDeque<_>) = queue.into_iter().partition(queued);
        cancelled.extend(others);
        if !kept.is_empty() {
            self.queues.insert(id, kept);
        }
        cancelled
            .into_iter()
            .for_each(|client| (client.done)(Err(error(self))));
    }

    /// Queues a command behind those that the playlist has already.
    pub(super) fn enqueue(&mut self, id: i64, goal: Goal, done: Reply<Moved>) {
        let queue = self.queues.entry(id).or_default();
        if queue.len() >= QUEUE {
            return done(Err(Error::Busy));
        }
        queue.push_back(WaitingClient::new(goal, done));
        self.begin_next(id);
    }

    /// Puts the commands of a change back at the front of the queue.
    pub(super) fn put_back(&mut self, change: Change) {
        let queue = self.queues.entry(change.playlist).or_default();
        change
            .clients
            .into_iter()
            .rev()
            .for_each(|client| queue.push_front(client));
    }

    pub(super) fn not_running(&self, id: i64) -> Error {
        match self.store.read(|c| PlaylistSpec::read(c, id)) {
            Ok(Some(spec)) => Error::NotRunning { name: spec.name },
            Ok(None) => Refusal::NoPlaylist { id }.into(),
            Err(error) => error.into(),
        }
    }
}

pub trait Wallpapers: Send {
    /// Shows a picture. Never blocks; `reply` is called when the picture is shown or has failed.
    fn apply(&self, request: Request, reply: wallpaper::Reply<Applied>);

    /// The kinds of content for which no backend can be used now.
    fn unshowable_kinds(&self) -> Vec<Kind>;

    /// The connected monitors; after the start, waits until they are known.
    fn connected(&self) -> Vec<String>;

    /// The identity of each connected monitor, if it is known.
    fn identities(&self) -> BTreeMap<String, String>;

    /// The identity of the session, if its compositor is known; see
    /// [`crate::compositor::Session::began`].
    fn session(&self) -> Option<String>;

    /// Pauses videos and HTML wallpapers, or lets them play. Never blocks.
    fn pause(&self, reason: Option<PauseReason>);

    /// The backend of the settings, if one backend shows everything; none if each kind of content
    /// has its own.
    fn fixed_backend(&self) -> Option<String>;
}

/// The wallpapers of the daemon.
#[derive(Clone)]
pub struct DaemonWallpapers {
    pub wallpaper: wallpaper::Handle,
    pub backends: Backends,
}

impl Wallpapers for DaemonWallpapers {
    fn apply(&self, request: Request, reply: wallpaper::Reply<Applied>) {
        self.wallpaper.set(request, reply);
    }

    fn unshowable_kinds(&self) -> Vec<Kind> {
        self.wallpaper.unshowable_kinds(&self.backends)
    }

    fn connected(&self) -> Vec<String> {
        self.wallpaper.wait_for_look();
        self.backends
            .outputs
            .list()
            .iter()
            .map(|output| output.name.clone())
            .collect()
    }

    fn identities(&self) -> BTreeMap<String, String> {
        identities(&self.backends.outputs.list())
    }

    fn session(&self) -> Option<String> {
        self.backends.outputs.session()?.began()
    }

    fn pause(&self, reason: Option<PauseReason>) {
        self.wallpaper.pause(reason);
    }

    fn fixed_backend(&self) -> Option<String> {
        let backend = &(self.backends.settings)().backend;
        (backend.selection_mode == SelectionMode::Fixed).then(|| backend.kind.to_string())
    }
}
