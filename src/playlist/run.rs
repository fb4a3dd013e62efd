//! The thread `playlist`: waits for messages and deadlines, and makes the changes that are due.
//!
//! It fits the running playlists to the connected monitors when one is plugged in or unplugged. It
//! never waits for a backend.

use crossbeam_channel::{Receiver, select};

use super::change::Attempt;
use super::edits::{Renewed, renew};
use super::error::Error;
use super::player::{ApplyReport, Command, Player, RunningPlaylist};
use super::schedule::{Due, LATE};
use super::slots::tone_changes_at;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::clock::{Alarm, Deadlines};
use crate::events::Subscription;
use crate::random::seed;
use crate::store::{self, playlists};

/// The channels that the thread listens to.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    pub(super) reports: Receiver<ApplyReport>,
    /// The alarm clock.
    pub(super) rings: Receiver<()>,
    pub(super) outputs: Receiver<()>,
    pub(super) news: Subscription,
    /// Closes when the player is to end.
    pub(super) end: Receiver<()>,
}

impl Player {
    pub(super) fn run(mut self, mailbox: &Mailbox, alarm: &Alarm) {
        self.restore();
        self.receive(mailbox, alarm);
        self.changes
            .into_values()
            .for_each(|change| change.fail(&|| Error::Ending));
        let queued = self.queues.into_values().flatten();
        queued.for_each(|client| (client.done)(Err(Error::Ending)));
        self.waiting
            .into_iter()
            .for_each(|reply| reply(Err(Error::Ending)));
    }

    fn receive(&mut self, mailbox: &Mailbox, alarm: &Alarm) {
        loop {
            if let Err(error) = alarm.set(self.deadlines()) {
                log::error!("cannot set a timer, playlists will not change: {error}");
            }
            select! {
                recv(mailbox.commands) -> command => match command {
                    Ok(command) => {
                        // Events that were published before the command take effect before it.
                        let news = mailbox.news.receiver().try_iter();
                        news.for_each(|message| self.on_event(&message));
                        command(Ok(&mut *self));
                    }
                    // All handles are gone: the server has ended, and the daemon is ending.
                    Err(_) => return,
                },
                recv(mailbox.news.receiver()) -> message => if let Ok(message) = message {
                    self.on_event(&message);
                },
                recv(mailbox.reports) -> first => {
                    let reports = first.into_iter().chain(mailbox.reports.try_iter());
                    reports.for_each(|report| self.on_report(report));
                }
                recv(mailbox.outputs) -> _ => self.fill_all_monitors(),
                recv(mailbox.rings) -> _ => {}
                recv(mailbox.end) -> _ => return,
            }
            self.run_all_due();
        }
    }

    /// Continues the playlists that ran when the last daemon ended.
    pub(super) fn restore(&mut self) {
        if let Err(error) = self.load() {
            log::error!("cannot read the running playlists: {error}");
        }
        self.run_all_due();
        self.fill_all_monitors();
    }

    fn load(&mut self) -> Result<(), store::Error> {
        self.mode = self.store.read(store::appearance::mode)?;
        for id in self.store.read(playlists::running)? {
            if let Err(error) = self.restore_playlist(id) {
                log::error!("playlist {id} stopped: {error}");
            }
        }
        Ok(())
    }

    fn restore_playlist(&mut self, id: i64) -> Result<(), store::Error> {
        let state = self
            .store
            .read(|c| playlists::state::<PlaybackState>(c, id))?;
        let spec = PlaylistSpec::find(&self.store, id)?;
        let Some((spec, mut state)) = spec.zip(state) else {
            return Ok(());
        };
        if !spec.items.is_empty() {
            state.edit(&spec, seed());
        } else if !spec.is_dynamic() {
            return self.store.write(|c| playlists::save(c, id, false, &state));
        }
        state.resume_after_restart(&self.clock_reading(), &self.boot_id);
        log::info!("restored playlist {:?}", spec.name);
        self.running.insert(id, RunningPlaylist::new(spec, state));
        Ok(())
    }
}

impl Player {
    /// The next deadlines of all kinds.
    pub(super) fn deadlines(&self) -> Deadlines {
        let now = self.clock_reading();
        let wall = tone_changes_at(self.mode, &now.wall, now.place);
        self.playlist_deadlines().or(Deadlines { boot: None, wall })
    }

    pub(super) fn playlist_deadlines(&self) -> Deadlines {
        let (now, connected) = (self.clock_reading(), self.wallpapers.connected());
        let waits = self.running.iter().filter_map(|(id, one)| {
            if self.has_pending_change(*id) {
                return None;
            }
            // Nothing can change while no monitor is connected.
            one.state
                .monitors
                .iter()
                .find(|name| connected.contains(name))?;
            match one.state.due(&one.spec, &now) {
                Due::Wait(deadlines) => Some(deadlines),
                // It has become due since the last `run_due`.
                Due::Step { due, .. } => Some(Deadlines {
                    boot: Some(due),
                    wall: None,
                }),
                Due::EnterSlot { .. } => Some(Deadlines {
                    boot: None,
                    wall: Some(now.wall.timestamp()),
                }),
            }
        });
        waits.fold(Deadlines::default(), Deadlines::or)
    }

    /// Applies the pause, publishes a change between light and dark, then makes all changes that
    /// are due.
    pub(super) fn run_all_due(&mut self) {
        self.apply_pause();
        self.publish_appearance();
        self.warn_of_lost_place();
        self.run_due();
        self.answer_waiting();
    }

    fn run_due(&mut self) {
        let ids = self.running_ids();
        let changed: Vec<i64> = ids
            .into_iter()
            .filter(|&id| self.run_if_due(id, false))
            .collect();
        // Saved after all requests are sent: a write for one playlist must not delay another's
        // change.
        self.save(&changed);
    }

    /// Requests images for the monitors that lack them; a change that is due comes first.
    pub(super) fn fill_all_monitors(&mut self) {
        let (connected, identities) = (self.wallpapers.connected(), self.wallpapers.identities());
        for id in self.running_ids() {
            let changed = |one: &mut RunningPlaylist| {
                // Before `join`: a monitor that has moved to another connector is not a new one.
                let moved = one.state.follow_identities(&identities);
                one.state.join(&connected) || moved
            };
            if self.running.get_mut(&id).is_some_and(changed) {
                self.save(&[id]);
            }
            if self.run_if_due(id, false) {
                self.save(&[id]);
            } else {
                self.fill_monitors(id);
            }
        }
    }

    /// Makes a playlist's change if one is due or if its present image is gone; returns whether it
    /// did. Does nothing while another change is pending. `fresh`: an edit or a command made the
    /// change due, so it was not missed.
    pub(super) fn run_if_due(&mut self, id: i64, fresh: bool) -> bool {
        let now = self.clock_reading();
        let connected = self.wallpapers.connected();
        if self.has_pending_change(id) {
            return false;
        }
        let Some(one) = self.running.get_mut(&id) else {
            return false;
        };
        if one.state.applied_to(&connected).is_empty() {
            return false;
        }
        let lost = std::mem::take(&mut one.lost);
        let due = one.state.due(&one.spec, &now);
        let renewed = match due {
            Due::Wait(_) if !lost => return false,
            Due::EnterSlot { .. } => Renewed::Ready,
            // A dynamic list is queried only now, which may replace a lost image.
            _ => renew(
                &self.store,
                &mut one.spec,
                &mut one.state,
                Direction::Forward,
            ),
        };
        if renewed == Renewed::Empty {
            self.wait_for_images(id);
            return false;
        }
        let missed = match due {
            Due::Wait(_) => false,
            Due::Step { due, missed } => {
                if renewed != Renewed::Stepped {
                    let stride = one.state.stride(&connected);
                    one.state.step(&one.spec, Direction::Forward, stride);
                }
                // A change in time counts from its deadline, so that delays do not add up.
                let lateness = now.boot.since(due);
                let late = lateness >= LATE || one.spec.rule.is_timer_within(lateness);
                one.state.changed(if late { now.boot } else { due }, &now);
                missed
            }
            Due::EnterSlot { slot, missed } => {
                let before = one.state.image_id;
                one.state.enter_slot(&one.spec, slot);
                // An edit that leaves the same image in the slot needs no request.
                if fresh && !lost && one.state.image_id == before {
                    return true;
                }
                one.state.changed(now.boot, &now);
                missed
            }
        };
        self.apply(
            id,
            Attempt {
                missed: missed && !fresh,
                ..Attempt::default()
            },
        );
        true
    }
}

impl Player {
    /// Pauses or resumes all playlists and wallpapers, as the settings and the session demand.
    pub(super) fn apply_pause(&mut self) {
        if !self.power.is_set() {
            return;
        }
        self.power.enter(self.wallpapers.session());
        let reason = self.power.get().resting;
        let paused = reason.is_some();
        if self.reported_pause.replace(reason) != Some(reason) {
            self.wallpapers.pause(reason);
        }
        if self.running.values().all(|one| one.state.resting == paused) {
            return;
        }
        let (now, mut changed) = (self.clock_reading(), Vec::new());
        for (id, one) in &mut self.running {
            if one.state.resting != paused {
                one.state.set_pause_by_session(paused, &now);
                changed.push(*id);
            }
        }
        self.save(&changed);
    }
}
