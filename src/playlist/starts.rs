//! Starts of playlists: when its picture is shown, a playlist runs and those on its monitors stop.
//!
//! Until then, those playlists are listed as running and change nothing. If the start fails, they go on.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::error::Error;
use super::player::Player;
use super::running::{Action, Moved, Plan, RunningPlaylist, Step};
use super::skips::may_skip;
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use super::wishes::Outcome;
use crate::random::seed;
use crate::store::playlists::{self, Refusal};
use crate::wallpaper;
use crate::wire::{Event, Mode, SetStatus};

impl Player {
    /// Plans a start without changing anything.
    pub(super) fn plan_start(
        &self,
        id: i64,
        declared: Vec<String>,
        mode: Mode,
    ) -> Result<Plan, Error> {
        let spec = PlaylistSpec::find(&self.store, id)?.ok_or(Refusal::NoPlaylist { id })?;
        if spec.is_waiting() {
            return Err(Error::NothingFound { name: spec.name });
        }
        if spec.items.is_empty() {
            return Err(Error::Empty { name: spec.name });
        }
        if mode == Mode::Each && spec.has_slots() {
            return Err(Error::OneForAll {
                name: spec.name,
                kind: spec.kind,
            });
        }
        let last = match self.running.get(&id) {
            Some(one) => Some(one.state.clone()),
            None => self.store.read(|c| playlists::state(c, id))?,
        };
        let connected = self.wallpapers.connected();
        let mut state = PlaybackState::start(&spec, last, &self.clock_reading(), seed());
        state.boot_id.clone_from(&self.boot_id);
        state.shown_on.clear();
        state.everywhere = declared.is_empty();
        state.monitors = if declared.is_empty() {
            connected.clone()
        } else {
            declared
        };
        state.identities.clear();
        state.follow_identities(&self.wallpapers.identities());
        state.mode = mode;
        let stride = state.stride(&connected);
        state.fill(&spec, stride, &|_| true);
        Ok(Plan {
            spec,
            after: state,
            stepping: Vec::new(),
        })
    }

    /// The running playlists whose monitors a start takes.
    fn displaced(&self, start: &Step) -> Vec<i64> {
        let running = self.running.iter();
        let taken = running.filter(|(id, one)| start.takes(**id, &one.state));
        taken.map(|(id, _)| *id).collect()
    }

    /// Whether a start on its way takes the monitors of a running playlist.
    pub(super) fn is_displaced(&self, id: i64) -> bool {
        let one = self.running.get(&id);
        one.is_some_and(|one| {
            self.starts
                .values()
                .any(|start| start.takes(id, &one.state))
        })
    }

    /// The playlists that are about to start and are not running yet.
    pub(super) fn starting(&self) -> Vec<i64> {
        let ids = self.starts.values().map(|start| start.spec.id);
        ids.filter(|id| !self.running.contains_key(id)).collect()
    }

    /// Cancels the starts that `which` selects; their clients get `error`.
    pub(super) fn cancel_starts(
        &mut self,
        which: &dyn Fn(u64, &Step) -> bool,
        error: &dyn Fn(&Step) -> Error,
    ) {
        let starts = std::mem::take(&mut self.starts).into_iter();
        let (cancelled, left): (BTreeMap<_, _>, _) =
            starts.partition(|(number, start)| which(*number, start));
        self.starts = left;
        for start in cancelled.into_values() {
            let error = error(&start);
            self.cancel(start, error);
        }
    }

    /// Cancels a start. Its picture is shown nevertheless, so the playlists on its monitors have to show
    /// their images again. It may have been written together with its picture, so what runs is written
    /// again.
    fn cancel(&mut self, start: Step, error: Error) {
        start.is_cancelled.store(true, Ordering::Relaxed);
        for other in self.displaced(&start) {
            let covered = self.running.entry(other);
            covered.and_modify(|one| one.state.shown_on.clear());
        }
        let mut ids = self.running_ids();
        ids.push(start.spec.id);
        self.save(&ids);
        (start.client)(Err(error));
    }

    pub(super) fn conclude_start(&mut self, number: u64, mut start: Step, result: Outcome) {
        let id = start.spec.id;
        match result {
            Err(error) if !matches!(error, wallpaper::Error::Incompatible { .. }) => {
                // A later start on its monitors must not be covered.
                let takes =
                    |(&other, one): (&u64, &Step)| other > number && one.takes(id, &start.after);
                let found = if self.starts.iter().any(takes) {
                    None
                } else {
                    PlaylistSpec::find(&self.store, id).unwrap_or_default()
                };
                if found.is_some_and(|spec| may_skip(&spec, &mut start.wish, &error)) {
                    self.begin_past(id, start.aim, start.wish.missing, start.client);
                } else {
                    self.fail(vec![start], &error);
                }
            }
            result => self.install(number, start, result),
        }
        // The playlists on its monitors go on, or another one has stopped.
        self.fill_all_monitors();
    }

    /// Makes a playlist run, and stops those whose monitors it takes. It also runs if no backend can
    /// show any of its images: it shows one as soon as one can be shown.
    fn install(&mut self, number: u64, mut start: Step, result: Outcome) {
        let id = start.spec.id;
        // An earlier start that is still on its way is overtaken.
        let is_older = |other, one: &Step| other < number && one.takes(id, &start.after);
        self.cancel_starts(&is_older, &Step::not_running);
        let displaced = self.displaced(&start);
        if let Err(error) = self.write_start(&mut start, &displaced, &result) {
            return self.cancel(start, error);
        }
        for other in displaced {
            self.remove(other);
            if other != id {
                self.bus.publish(&Action::Stop.event(Some(other), 1));
            }
        }
        let (spec, state) = (start.spec, start.after);
        self.bus.publish(&Event::PlaylistStarted {
            playlist_id: id,
            playlist_name: spec.name.clone(),
            monitors: state.monitors.clone(),
            applied_to: state.applied_to(&self.wallpapers.connected()),
            extend: state.mode == Mode::Extend,
        });
        let one = RunningPlaylist::new(spec, state, start.lost);
        self.running.insert(id, one);
        let moved = match result {
            Ok(applied) => {
                self.announce(&start.wish, &applied, &applied.images);
                Moved {
                    images: applied.images,
                    warnings: applied.warnings,
                    ..Moved::one()
                }
            }
            Err(error) => {
                self.announce_failure(&start.wish, &error);
                Moved::without_image(&error)
            }
        };
        (start.client)(Ok(moved));
    }

    /// Writes the rows of a start and of the playlists that it stops, together. The list may have been
    /// edited since the start was planned.
    fn write_start(
        &self,
        start: &mut Step,
        displaced: &[i64],
        result: &Outcome,
    ) -> Result<(), Error> {
        let id = start.spec.id;
        let now = self.clock_reading();
        if let Ok(applied) = result {
            // A later start that has replaced it may still fail.
            let takes = |other: &Step| other.takes(id, &start.after);
            if applied.outcome == SetStatus::Set || !self.starts.values().any(takes) {
                start.after.note_shown(applied);
            }
            start.after.changed(now.boot, &now);
        }
        self.store.write(|c| {
            let mut spec = PlaylistSpec::read(c, id)?.ok_or(Refusal::NoPlaylist { id })?;
            spec.adopt(&start.spec);
            if spec.items.is_empty() {
                return Ok(Err(Error::Empty { name: spec.name }));
            }
            if spec != start.spec {
                start.edit(&spec);
            }
            for other in displaced {
                playlists::save(c, *other, false, &self.running[other].state)?;
            }
            playlists::save(c, id, true, &start.after)?;
            Ok::<_, Refusal>(Ok(()))
        })?
    }
}
