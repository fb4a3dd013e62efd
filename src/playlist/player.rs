//! The thread `playlist`: what wakes it, and what is due when it wakes.
//!
//! It owns the running playlists. It reads and writes the database; it never waits for a backend.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::apply::{ApplyReport, Attempt};
use super::commands::Command;
use super::pending::Pending;
use super::schedule::{Due, LATE};
use super::state::{Direction, PlaybackState, PlaylistSpec};
use super::{Error, Wallpapers};
use crate::clock::{Alarm, Deadlines, Now};
use crate::events::{EventBus, Message, Subscription};
use crate::random::seed;
use crate::store::{self, Connection, Store, playlists};
use crate::wire::{Event, EventKind};

/// Events that may concern a running playlist.
pub(super) const NEWS: &[EventKind] =
    &[EventKind::GalleryChanged, EventKind::ImageOrphanPurged, EventKind::ConfigChanged];

/// What the player listens to.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    pub(super) reports: Receiver<()>,
    /// The alarm clock.
    pub(super) rings: Receiver<()>,
    pub(super) outputs: Receiver<()>,
    pub(super) news: Subscription,
    /// Closes at the end.
    pub(super) end: Receiver<()>,
}

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
}

impl RunningPlaylist {
    pub(super) fn new(spec: PlaylistSpec, state: PlaybackState) -> Self {
        Self { spec, state, change: 0, asked: Vec::new(), nothing_compatible: false }
    }

    /// The declared monitors that are connected.
    pub(super) fn applied_to(&self, connected: &[String]) -> Vec<String> {
        self.state.applied_to(connected)
    }
}

/// Reports that the player has not taken yet. One for each request at most, and the reconciler bounds
/// these.
pub(super) type ReportQueue = Arc<Mutex<Vec<ApplyReport>>>;

pub(super) struct Player {
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) wallpapers: Box<dyn Wallpapers>,
    time: Box<dyn Fn() -> Now + Send>,
    pub(super) boot_id: String,
    pub(super) running: BTreeMap<i64, RunningPlaylist>,
    /// What clients wait for.
    pub(super) pending: BTreeMap<i64, Pending>,
    pub(super) reports: ReportQueue,
    pub(super) ring: Sender<()>,
    /// Changes so far.
    pub(super) changes: u64,
}

impl Player {
    pub(super) fn new(
        store: Store,
        bus: EventBus,
        wallpapers: Box<dyn Wallpapers>,
        time: Box<dyn Fn() -> Now + Send>,
        boot_id: String,
    ) -> (Self, Receiver<()>) {
        let (ring, reports) = bounded(1);
        let player = Self {
            store,
            bus,
            wallpapers,
            time,
            boot_id,
            running: BTreeMap::new(),
            pending: BTreeMap::new(),
            reports: ReportQueue::default(),
            ring,
            changes: 0,
        };
        (player, reports)
    }

    pub(super) fn run(mut self, mailbox: &Mailbox, alarm: &Alarm) {
        self.restore();
        self.follow(mailbox, alarm);
        let ids: Vec<i64> = self.pending.keys().copied().collect();
        ids.into_iter().for_each(|id| self.cancel_pending(id, &|| Error::Ending));
    }

    fn follow(&mut self, mailbox: &Mailbox, alarm: &Alarm) {
        loop {
            if let Err(error) = alarm.set(self.deadlines()) {
                log::error!("the alarm cannot be set, playlists do not change: {error}");
            }
            select! {
                recv(mailbox.commands) -> command => match command {
                    Ok(command) => {
                        // What was told to everybody before is known to whoever asks now.
                        mailbox.news.receiver().try_iter().for_each(|message| self.on_event(&message));
                        self.on_command(command);
                    }
                    // The server has ended, and the daemon is about to.
                    Err(_) => return,
                },
                recv(mailbox.news.receiver()) -> message => if let Ok(message) = message {
                    self.on_event(&message);
                },
                recv(mailbox.reports) -> _ => self.on_reports(),
                recv(mailbox.outputs) -> _ => self.fill_all_monitors(),
                recv(mailbox.rings) -> _ => {}
                recv(mailbox.end) -> _ => return,
            }
            self.run_due();
        }
    }

    pub(super) fn now(&self) -> Now {
        (self.time)()
    }

    /// Goes on with what ran when the daemon ended.
    pub(super) fn restore(&mut self) {
        if let Err(error) = self.load() {
            log::error!("the running playlists cannot be read: {error}");
        }
        self.run_due();
        self.fill_all_monitors();
    }

    fn load(&mut self) -> Result<(), store::Error> {
        for id in self.store.read(playlists::running)? {
            let (score, state) = self.store.read(|c| {
                Ok::<_, store::Error>((
                    playlists::score(c, id)?,
                    playlists::state::<PlaybackState>(c, id)?,
                ))
            })?;
            let Some((score, mut state)) = score.zip(state) else { continue };
            let spec = PlaylistSpec::from(score);
            if spec.items.is_empty() {
                self.store.write(|c| playlists::save(c, id, false, &state))?;
                continue;
            }
            state.edit(&spec, seed());
            state.resume_after_restart(&self.now(), &self.boot_id);
            log::info!("the playlist {:?} runs on", spec.name);
            self.running.insert(id, RunningPlaylist::new(spec, state));
        }
        Ok(())
    }

    /// What to be woken for.
    pub(super) fn deadlines(&self) -> Deadlines {
        let (now, connected) = (self.now(), self.wallpapers.connected());
        let waits = self.running.iter().filter_map(|(id, one)| {
            if self.has_pending_change(*id) {
                return None;
            }
            // While no monitor is there nothing can change.
            one.state.place.monitors.iter().find(|name| connected.contains(name))?;
            match one.state.due(&one.spec, &now) {
                Due::Wait(deadlines) => Some(deadlines),
                // Since the look of a moment ago.
                Due::Step { due, .. } => Some(Deadlines { boot: Some(due), wall: None }),
                Due::EnterSlot { .. } => {
                    Some(Deadlines { boot: None, wall: Some(now.wall.timestamp()) })
                }
            }
        });
        waits.fold(Deadlines::default(), Deadlines::or)
    }

    /// Makes all changes that are due.
    pub(super) fn run_due(&mut self) {
        let ids: Vec<i64> = self.running.keys().copied().collect();
        let changed: Vec<i64> = ids.into_iter().filter(|&id| self.run_if_due(id, false)).collect();
        // Written when all are on their way: another's write must not make a change late.
        self.save(&changed);
    }

    /// Makes a playlist's change if one is due; whether there was one. What an edit or a command
    /// brings about was not missed: it is `fresh`.
    pub(super) fn run_if_due(&mut self, id: i64, fresh: bool) -> bool {
        let now = self.now();
        let connected = self.wallpapers.connected();
        if self.has_pending_change(id) {
            return false;
        }
        let Some(one) = self.running.get_mut(&id) else { return false };
        if one.applied_to(&connected).is_empty() {
            return false;
        }
        let missed = match one.state.due(&one.spec, &now) {
            Due::Wait(_) => return false,
            Due::Step { due, missed } => {
                one.state.step(&one.spec, Direction::Forward);
                // On the beat, as long as it is not lost.
                let lateness = now.boot.since(due);
                let lost = lateness >= LATE || one.spec.rule.is_timer_within(lateness);
                one.state.changed(if lost { now.boot } else { due }, &now);
                missed
            }
            Due::EnterSlot { slot, missed } => {
                let shown = std::mem::take(&mut one.state.shown_on);
                let before = one.state.place.image_id;
                one.state.enter_slot(&one.spec, slot);
                if fresh && one.state.place.image_id == before {
                    // An edit that leaves the picture in its slot changes nothing to be seen.
                    one.state.shown_on = shown;
                    return true;
                }
                one.state.changed(now.boot, &now);
                missed
            }
        };
        self.apply(id, Attempt::new(Direction::Forward, missed && !fresh));
        true
    }

    /// Something that others did may concern a running playlist.
    pub(super) fn on_event(&mut self, message: &Message) {
        let all = message.lost > 0;
        if all || message.kind == EventKind::ConfigChanged {
            self.fill_all_monitors();
        }
        // Of the gallery only images: history changes with every picture.
        let images = match message.kind {
            EventKind::GalleryChanged => message.json.contains(r#""domain":"images""#),
            kind => kind == EventKind::ImageOrphanPurged,
        };
        if all || images {
            let ids: Vec<i64> = self.running.keys().copied().collect();
            ids.into_iter().for_each(|id| self.reload_if_shorter(id));
        }
    }

    /// An image that left the library has left its playlists, too.
    pub(super) fn reload_if_shorter(&mut self, id: i64) {
        let Some(one) = self.running.get(&id) else { return };
        let length = self.store.read(|c| playlists::length(c, id));
        if length.is_ok_and(|length| length == one.spec.items.len()) {
            return;
        }
        let state = one.state.clone();
        match self.store.write(|c| edit(c, id, state)) {
            Ok(Edited::On { spec, state, lost }) => self.go_on(id, spec, *state, lost),
            Ok(Edited::Empty) => self.drop_stopped(id),
            Err(error) => log::error!("playlist {id} cannot be read anew: {error}"),
        }
    }

    /// Goes on with an edited list; `lost`: the image that it stood at is gone.
    pub(super) fn go_on(&mut self, id: i64, spec: PlaylistSpec, state: PlaybackState, lost: bool) {
        let now = self.now();
        let Some(one) = self.running.get_mut(&id) else { return };
        (one.spec, one.state) = (spec, state);
        if lost {
            one.state.changed(now.boot, &now);
        }
        let change = one.change;
        let attended = self.run_if_due(id, true);
        // After the slot that it is time for: only that one is to be seen.
        if lost && self.running.get(&id).is_some_and(|one| one.change == change) {
            self.apply(id, Attempt::new(Direction::Forward, false));
        }
        if attended || lost {
            self.save(&[id]);
        }
        if self.running.get(&id).is_some_and(|one| one.nothing_compatible) {
            self.fill_monitors(id);
        }
    }

    /// Takes a playlist off that is stopped in the database already.
    pub(super) fn drop_stopped(&mut self, id: i64) {
        if let Some(one) = self.running.remove(&id) {
            self.cancel_pending_steps(id, &|| Error::NotRunning { name: one.spec.name.clone() });
            let (action, stopped) = (None, None);
            let event = Event::PlaylistStopped { playlist_id: Some(id), action, stopped };
            self.bus.publish(&event);
        }
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
            log::error!("the place of playlists {ids:?} cannot be written: {error}");
        }
    }

    pub(super) fn take_reports(&self) -> Vec<ApplyReport> {
        std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What an edit made of a running playlist.
pub(super) enum Edited {
    /// It has no images any more and is stopped.
    Empty,
    /// It goes on; `lost`: the image that it stood at is gone.
    On { spec: PlaylistSpec, state: Box<PlaybackState>, lost: bool },
}

/// Fits a place to its list, which has been edited, and writes it.
pub(super) fn edit(
    c: &Connection,
    id: i64,
    mut state: PlaybackState,
) -> Result<Edited, store::Error> {
    let spec =
        playlists::score(c, id)?.map(PlaylistSpec::from).filter(|spec| !spec.items.is_empty());
    let Some(spec) = spec else {
        playlists::save(c, id, false, &state)?;
        return Ok(Edited::Empty);
    };
    let lost = state.edit(&spec, seed());
    playlists::save(c, id, true, &state)?;
    Ok(Edited::On { spec, state: Box::new(state), lost })
}

#[cfg(test)]
mod tests;
