//! Changes that a playlist makes by itself: when the next is due, and making it.

use super::appearance;
use super::attempt::Attempt;
use super::living::{Renewed, renew};
use super::player::{Player, RunningPlaylist};
use super::schedule::{Due, LATE};
use super::spec::Direction;
use crate::clock::Deadlines;

impl Player {
    /// What to be woken for, all in all.
    pub(super) fn deadlines(&self) -> Deadlines {
        let now = self.now();
        let wall = appearance::changes_at(self.mode, &now.wall, now.place);
        self.playlist_deadlines().or(Deadlines { boot: None, wall })
    }

    pub(super) fn playlist_deadlines(&self) -> Deadlines {
        let (now, connected) = (self.now(), self.wallpapers.connected());
        let waits = self.running.iter().filter_map(|(id, one)| {
            if self.has_pending_change(*id) {
                return None;
            }
            // While no monitor is there nothing can change.
            one.state.monitors.iter().find(|name| connected.contains(name))?;
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

    /// Makes all changes that are due, once everybody knows of light and dark.
    pub(super) fn run_all_due(&mut self) {
        self.align_rest();
        self.tell_appearance();
        self.warn_of_lost_place();
        self.run_due();
        self.answer_waiting();
    }

    fn run_due(&mut self) {
        let ids = self.running_ids();
        let changed: Vec<i64> = ids.into_iter().filter(|&id| self.run_if_due(id, false)).collect();
        // Written when all are on their way: another's write must not make a change late.
        self.save(&changed);
    }

    /// Gives all monitors what they lack; a change that is due comes first.
    pub(super) fn fill_all_monitors(&mut self) {
        let (connected, identities) = (self.wallpapers.connected(), self.wallpapers.identities());
        for id in self.running_ids() {
            let changed = |one: &mut RunningPlaylist| {
                // Before others join: one that has moved is none of these.
                let moved = one.state.follow(&identities);
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

    /// Makes a playlist's change if one is due, or if the image is gone that it stood at; whether there
    /// was one. What an edit or a command brings about was not missed: it is `fresh`. A change that
    /// is on its way comes first, and is all that is to be seen where it succeeds.
    pub(super) fn run_if_due(&mut self, id: i64, fresh: bool) -> bool {
        let now = self.now();
        let connected = self.wallpapers.connected();
        if self.has_pending_change(id) {
            return false;
        }
        let Some(one) = self.running.get_mut(&id) else { return false };
        if one.state.applied_to(&connected).is_empty() {
            return false;
        }
        let lost = std::mem::take(&mut one.lost);
        let missed = match one.state.due(&one.spec, &now) {
            Due::Wait(_) if lost => {
                // In a list that lives another image takes its place only now.
                let direction = Direction::Forward;
                if renew(&self.store, &mut one.spec, &mut one.state, direction) == Renewed::Empty {
                    self.rest(id);
                    return false;
                }
                false
            }
            Due::Wait(_) => return false,
            Due::Step { due, missed } => {
                let stride = one.state.stride(&connected);
                match renew(&self.store, &mut one.spec, &mut one.state, Direction::Forward) {
                    Renewed::Ready => one.state.step(&one.spec, Direction::Forward, stride),
                    Renewed::Stepped => one.state.shown_on.clear(),
                    Renewed::Empty => {
                        self.rest(id);
                        return false;
                    }
                }
                // On the beat, as long as it is not lost.
                let lateness = now.boot.since(due);
                let late = lateness >= LATE || one.spec.rule.is_timer_within(lateness);
                one.state.changed(if late { now.boot } else { due }, &now);
                missed
            }
            Due::EnterSlot { slot, missed } => {
                let shown = std::mem::take(&mut one.state.shown_on);
                let before = one.state.image_id;
                one.state.enter_slot(&one.spec, slot);
                if fresh && !lost && one.state.image_id == before {
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
}
