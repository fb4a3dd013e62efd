//! The player that the thread `playlist` owns: the running playlists, and the changes that clients
//! wait for.
//!
//! It reads and writes the database and never waits for a backend.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::attempt::{ApplyReport, Wallpapers};
use super::error::{Error, Reply};
use super::pending::Pending;
use super::power::SharedPower;
use super::schedule::ClockReading;
use super::slots::tone_at;
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::events::EventBus;
use crate::store::Store;
use crate::store::playlists::{self, Refusal};
use crate::sys::lock;
use crate::wire::{Appearance, AppearanceMode, Event};

/// A playlist that runs.
pub(super) struct RunningPlaylist {
    pub(super) spec: PlaylistSpec,
    pub(super) state: PlaybackState,
    /// The change in hand; reports of others are about the past.
    pub(super) change: u64,
    /// Monitors that the reconciler has been asked for and has not answered.
    pub(super) asked: Vec<String>,
    /// Nothing of it can be shown, and that has been told.
    pub(super) nothing_compatible: bool,
    /// The image that it stood at is gone, and what takes its place has not been asked for.
    pub(super) lost: bool,
}

impl RunningPlaylist {
    pub(super) fn new(spec: PlaylistSpec, state: PlaybackState) -> Self {
        let asked = Vec::new();
        Self { spec, state, change: 0, asked, nothing_compatible: false, lost: false }
    }
}

/// Reports that the player has not taken yet. One for each request at most, and the reconciler
/// bounds these.
pub(super) type ReportQueue = Arc<Mutex<Vec<ApplyReport>>>;

pub(super) struct Player {
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) wallpapers: Box<dyn Wallpapers>,
    time: Box<dyn Fn() -> ClockReading + Send>,
    pub(super) boot_id: String,
    pub(super) running: BTreeMap<i64, RunningPlaylist>,
    pub(super) pending: BTreeMap<i64, Pending>,
    pub(super) reports: ReportQueue,
    /// Wakes the thread when there are reports.
    pub(super) waker: Sender<()>,
    /// Changes so far.
    pub(super) changes: u64,
    /// Decides between light and dark.
    pub(super) mode: AppearanceMode,
    /// The state of the session.
    pub(super) power: SharedPower,
    /// Whether the wallpapers were paused.
    pub(super) is_paused: Option<bool>,
    /// Light or dark, as it was reported last.
    pub(super) told: Option<Appearance>,
    /// That there is no place to look at the sun from.
    pub(super) warned_of_place: bool,
    /// Clients that wait for the pictures of light or dark.
    pub(super) waiting: Vec<Reply<Appearance>>,
}

impl Player {
    /// With what tells of reports.
    pub(super) fn new(
        store: Store,
        bus: EventBus,
        wallpapers: Box<dyn Wallpapers>,
        time: Box<dyn Fn() -> ClockReading + Send>,
        boot_id: String,
    ) -> (Self, Receiver<()>) {
        let (waker, woken) = bounded(1);
        let player = Self {
            store,
            bus,
            wallpapers,
            time,
            boot_id,
            running: BTreeMap::new(),
            pending: BTreeMap::new(),
            reports: ReportQueue::default(),
            waker,
            changes: 0,
            mode: AppearanceMode::Auto,
            power: SharedPower::default(),
            is_paused: None,
            told: None,
            warned_of_place: false,
            waiting: Vec::new(),
        };
        (player, woken)
    }

    pub(super) fn clock_reading(&self) -> ClockReading {
        let mut now = (self.time)();
        now.tone = tone_at(self.mode, &now.wall, now.place);
        now
    }

    /// The ids of those that run.
    pub(super) fn running_ids(&self) -> Vec<i64> {
        self.running.keys().copied().collect()
    }

    pub(super) fn take_reports(&self) -> Vec<ApplyReport> {
        std::mem::take(&mut *lock(&self.reports))
    }

    /// Writes where playlists stand, without waiting for the disk.
    pub(super) fn save(&self, ids: &[i64]) {
        let states: Vec<_> =
            ids.iter().filter_map(|id| Some((*id, &self.running.get(id)?.state))).collect();
        if states.is_empty() {
            return;
        }
        let noted = self.store.note(|c| {
            states.iter().try_for_each(|(id, state)| playlists::save(c, *id, true, state))
        });
        if let Err(error) = noted {
            log::error!("cannot save the state of playlists {ids:?}: {error}");
        }
    }

    /// Whether a playlist's own time has to wait: for a change that a client waits for, or for a
    /// start that takes its monitors.
    pub(super) fn has_pending_change(&self, id: i64) -> bool {
        self.pending.get(&id).is_some_and(Pending::has_change) || self.is_being_displaced(id)
    }

    /// Whether the start of another is on its way to monitors of a running playlist: what this asked
    /// for now would cover the other's picture.
    pub(super) fn is_being_displaced(&self, id: i64) -> bool {
        self.pending.iter().any(|(other, pending)| {
            let start = pending.start().filter(|_| *other != id);
            start.is_some_and(|start| self.shares_monitor(id, start))
        })
    }

    /// Whether a running playlist has one of these monitors; one on all has each.
    pub(super) fn shares_monitor(&self, id: i64, state: &PlaybackState) -> bool {
        let Some(one) = self.running.get(&id) else { return false };
        one.state.everywhere || one.state.monitors.iter().any(|name| state.monitors.contains(name))
    }

    /// Takes a playlist off that is stopped in the database already.
    pub(super) fn drop_stopped(&mut self, id: i64) {
        let Some(one) = self.running.remove(&id) else { return };
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.cancel_steps(&|| Error::NotRunning { name: one.spec.name.clone() });
        }
        let (action, stopped) = (None, None);
        self.bus.publish(&Event::PlaylistStopped { playlist_id: Some(id), action, stopped });
    }

    /// Gives up what clients wait for of a playlist that is stopped or gone, but for a step that is on
    /// its way.
    pub(super) fn cancel_pending(&mut self, id: i64, error: &dyn Fn(&Self) -> Error) {
        let Some(mut pending) = self.pending.remove(&id) else { return };
        // Its picture comes up nevertheless: those that it covers show their own again.
        if let Some(start) = pending.start() {
            let mut covered = self.running_ids();
            covered.retain(|other| *other != id && self.shares_monitor(*other, start));
            for other in covered {
                self.running.entry(other).and_modify(|one| one.lost = true);
            }
        }
        if pending.cancel_all_but_step(&|| error(self)) {
            self.pending.insert(id, pending);
        }
    }

    pub(super) fn not_running(&self, id: i64) -> Error {
        match self.store.read(|c| PlaylistSpec::read(c, id)) {
            Ok(Some(spec)) => Error::NotRunning { name: spec.name },
            Ok(None) => Refusal::NoPlaylist { id }.into(),
            Err(error) => error.into(),
        }
    }
}
