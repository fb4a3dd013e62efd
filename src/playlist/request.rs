//! Starts the changes that clients wait for (start, step, resume), and asks the reconciler for
//! pictures.
//!
//! Runs on the thread `playlist`, and never waits there. A change is sent to the reconciler; its
//! client is answered when the picture is shown (`conclude`), and only then does the playlist move
//! on. If the picture fails, nothing changes. The changes of one playlist are made one after the
//! other. Only the picture of the last waiting step is shown: it supersedes the others.

use super::change::{Action, Attempt, Change, Goal, Moved, WaitingClient};
use super::edits::{Renewed, renew};
use super::error::Error;
use super::player::{ApplyReport, Player};
use super::schedule::Due;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::backends::Kind;
use crate::random::seed;
use crate::store::assignments;
use crate::store::playlists::{self, Item, Refusal};
use crate::wallpaper::{Ask, Request, Targets};
use crate::wire::{Mode, Source};

impl Player {
    /// Begins a change of the playlist's own: requests the present item for all connected monitors.
    pub(super) fn apply(&mut self, id: i64, attempt: Attempt) {
        let round = self.last_change + 1;
        let Some(one) = self.running.get(&id) else {
            return;
        };
        let mut change = one.own_change(attempt);
        self.skip_unshowable(&mut change);
        if let Some(one) = self.running.get_mut(&id) {
            one.round = round;
            one.state = change.state;
            one.state.shown_on.clear();
            self.fill(id, change.attempt);
        }
    }

    /// Moves a change past the items that cannot be shown now. False if no item can: then the request
    /// for the present one says why.
    pub(super) fn skip_unshowable(&self, change: &mut Change) -> bool {
        change.attempt.refused = self.wallpapers.unshowable_kinds();
        // The next image of a playlist that follows the clock is for later.
        let missing = if change.spec.has_slots() {
            Default::default()
        } else {
            self.store.missing()
        };
        change.skip(&|image| missing.contains(&image))
    }

    /// Requests the present item for the monitors that lack it: new ones, those that failed, or all
    /// if nothing could be shown before.
    pub(super) fn fill_monitors(&mut self, id: i64) {
        if self.is_being_displaced(id) {
            return;
        }
        // `run_if_due` replaces a lost image on all monitors, once no change is pending.
        let Some(one) = self.running.get(&id).filter(|one| !one.lost) else {
            return;
        };
        if !one.state.shown_on.is_empty() || !self.asked(id).is_empty() {
            return self.fill(id, Attempt::default());
        }
        let index = one.state.index;
        self.apply(id, Attempt::default());
        if self
            .running
            .get(&id)
            .is_some_and(|one| one.state.index != index)
        {
            self.save(&[id]);
        }
    }

    fn fill(&mut self, id: i64, attempt: Attempt) {
        let (connected, asked) = (self.wallpapers.connected(), self.asked(id));
        let refused = self.wallpapers.unshowable_kinds();
        let fits = |item: &Item| !refused.contains(&Kind::of(item.media_type, item.animated));
        let Some(one) = self
            .running
            .get_mut(&id)
            .filter(|one| !one.spec.is_waiting())
        else {
            return;
        };
        let seen_to = |name: &&String| one.state.shown_on.contains(name) || asked.contains(name);
        let applied_to = one.state.applied_to(&connected);
        let owed: Vec<String> = applied_to.iter().filter(|n| !seen_to(n)).cloned().collect();
        if owed.is_empty() {
            return;
        }
        let fresh = one.state.shown_on.is_empty();
        // In mode `extend`, another monitor changes the slices of all.
        let monitors = if one.state.mode == Mode::Extend {
            applied_to
        } else {
            owed
        };
        let none_has_its_own = fresh && asked.is_empty();
        let before = one.state.others.len();
        let more = if none_has_its_own { 0 } else { 1 + before };
        let new = one.state.fill(&one.spec, more + monitors.len(), &fits);
        // Monitors that have an image keep it; the new ones are for the others.
        let each = (!none_has_its_own && !new.is_empty()).then_some(Ask::Each(new));
        let change = one.own_change(Attempt {
            silent: !fresh,
            ..attempt
        });
        self.request(change, monitors, each);
    }

    /// Requests the picture of a change from the reconciler; without `ask`: the images that it takes.
    fn request(&mut self, mut change: Change, monitors: Vec<String>, ask: Option<Ask>) {
        self.last_change += 1;
        let (number, state) = (self.last_change, &change.state);
        let present = || match state.mode {
            Mode::Each => Ask::Each(change.images()),
            _ => Ask::Image(state.image_id),
        };
        let is_asked = |name: &String| monitors.contains(name);
        let all = state.everywhere && self.wallpapers.connected().iter().all(is_asked);
        let named = || Targets::from_names(monitors.iter().cloned());
        let targets = if all { Targets::All } else { named() };
        let (ask, mode) = (ask.unwrap_or_else(present), state.mode);
        let mut request = Request {
            mode,
            ..Request::new(ask, targets, Source::Playlist)
        };
        request.source.playlist_id = Some(change.playlist);
        request.source.playlist_name = Some(change.spec.name.clone());
        if !change.is_own() {
            change.round = number;
        }
        change.monitors = monitors;
        self.changes.insert(number, change);
        let reports = self.reports.clone();
        let reply = move |result| {
            // Fails if the player has ended.
            reports
                .send(ApplyReport {
                    change: number,
                    result,
                })
                .ok();
        };
        self.wallpapers.apply(request, Box::new(reply));
    }
}

impl Player {
    /// Begins the next waiting change, unless one is on its way. While the start of another
    /// playlist takes its monitors, only a start of this one begins.
    pub(super) fn begin_next(&mut self, id: i64) {
        while self.clients_change(id).is_none() {
            let is_held = self.is_being_displaced(id);
            let Some(queue) = self.queues.get_mut(&id) else {
                return;
            };
            if is_held && queue.front().is_some_and(|next| !next.is_start()) {
                return;
            }
            let Some(client) = queue.pop_front() else {
                self.queues.remove(&id);
                return;
            };
            match client.goal {
                Goal::Start { ref monitors, mode } => {
                    match self.plan_start(id, monitors.clone(), mode) {
                        Ok((spec, state)) => self.send(Change::new(spec, state, vec![client])),
                        Err(error) => (client.done)(Err(error)),
                    }
                }
                Goal::Step(direction, ref on) => {
                    let on = on.clone();
                    self.begin_steps(id, direction, on, client);
                }
                Goal::Resume { alone } => self.begin_resume(id, alone, client),
            }
        }
    }

    /// A start has ended or was cancelled: begins the changes that it held back.
    pub(super) fn begin_held(&mut self) {
        let waiting: Vec<i64> = self.queues.keys().copied().collect();
        waiting.into_iter().for_each(|id| self.begin_next(id));
        self.running_ids()
            .into_iter()
            .for_each(|id| self.fill_monitors(id));
    }

    /// Requests the picture of a change that clients wait for.
    pub(super) fn send(&mut self, mut change: Change) {
        self.skip_unshowable(&mut change);
        let connected = self.wallpapers.connected();
        let mut monitors = change.state.applied_to(&connected);
        monitors.retain(|name| change.stepping.is_empty() || change.stepping.contains(name));
        if monitors.is_empty() {
            let declared = change.state.monitors.clone();
            return change.fail(&|| Error::NoMonitor {
                declared: declared.clone(),
                connected: connected.clone(),
            });
        }
        self.request(change, monitors, None);
    }

    /// Makes one change of all steps at the front of the queue that are for the same monitors; only the
    /// last one's picture is shown.
    fn begin_steps(
        &mut self,
        id: i64,
        direction: Direction,
        on: Vec<String>,
        first: WaitingClient,
    ) {
        let Some(one) = self.running.get(&id) else {
            return (first.done)(Err(self.not_running(id)));
        };
        let (mut spec, mut state) = (one.spec.clone(), one.state.clone());
        let applied_to = state.applied_to(&self.wallpapers.connected());
        let stride = state.stride(&applied_to);
        let (stepping, others): (Vec<_>, Vec<_>) =
            applied_to.into_iter().partition(|name| on.contains(name));
        let is_alone = state.mode == Mode::Each && !stepping.is_empty() && !others.is_empty();
        let kept = if is_alone {
            self.images_on(&others, &state.taken())
        } else {
            Vec::new()
        };
        let step = |state: &mut PlaybackState, spec: &PlaylistSpec, direction| {
            if is_alone {
                state.step_alone(spec, direction, &kept, stepping.len());
            } else {
                state.step(spec, direction, stride);
            }
        };
        match renew(&self.store, &mut spec, &mut state, direction) {
            Renewed::Ready => step(&mut state, &spec, direction),
            Renewed::Stepped => {}
            Renewed::Empty => {
                self.wait_for_images(id);
                return (first.done)(Err(Error::NothingFound { name: spec.name }));
            }
        }
        let mut change = Change::new(spec, state, vec![first]);
        if is_alone {
            change.stepping = stepping.clone();
        }
        change.clients[0].step = change.step();
        let mut queue = self.queues.remove(&id).unwrap_or_default();
        while let Some(Goal::Step(direction, theirs)) = queue.front().map(|next| &next.goal)
            && *theirs == on
        {
            step(&mut change.state, &change.spec, *direction);
            let step = change.step();
            change.clients.extend(
                queue
                    .pop_front()
                    .map(|client| WaitingClient { step, ..client }),
            );
        }
        self.queues.insert(id, queue);
        self.send(change);
    }

    /// Those of the playlist's images that these monitors show.
    fn images_on(&self, monitors: &[String], taken: &[i64]) -> Vec<i64> {
        let rows = self.store.read(assignments::all).unwrap_or_else(|error| {
            log::error!("cannot read what the monitors show: {error}");
            Vec::new()
        });
        let theirs = rows.iter().filter(|row| monitors.contains(&row.monitor));
        let shown: Vec<i64> = theirs.map(|row| row.image_id).collect();
        taken
            .iter()
            .copied()
            .filter(|id| shown.contains(id))
            .collect()
    }

    /// Resumes at once or, if another slot is due, once its picture is shown.
    fn begin_resume(&mut self, id: i64, alone: bool, client: WaitingClient) {
        let now = self.clock_reading();
        let connected = self.wallpapers.connected();
        let Some(one) = self.running.get(&id) else {
            return (client.done)(Err(self.not_running(id)));
        };
        if !one.state.is_held() {
            return (client.done)(Ok(Moved::default()));
        }
        let (spec, mut state) = (one.spec.clone(), one.state.clone());
        state.set_paused(false, &now);
        if let Due::EnterSlot { slot, .. } = state.due(&spec, &now) {
            state.enter_slot(&spec, slot);
            if state.image_id != one.state.image_id {
                state.shown_on.clear();
                if !state.applied_to(&connected).is_empty() {
                    return self.send(Change::new(spec, state, vec![client]));
                }
            }
        }
        (client.done)(self.resume(id, alone, state).map(|()| Moved::one()));
    }

    /// Writes that a playlist is resumed; if `alone`, publishes the event.
    pub(super) fn resume(
        &mut self,
        id: i64,
        alone: bool,
        state: PlaybackState,
    ) -> Result<(), Error> {
        self.store.write(|c| playlists::save(c, id, true, &state))?;
        if let Some(one) = self.running.get_mut(&id) {
            one.state = state;
        }
        if alone {
            self.bus.publish(&Action::Resume.event(Some(id), 1));
        }
        Ok(())
    }

    /// Plans a start without changing anything.
    fn plan_start(
        &self,
        id: i64,
        declared: Vec<String>,
        mode: Mode,
    ) -> Result<(PlaylistSpec, PlaybackState), Error> {
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
        let last = self
            .store
            .read(|c| playlists::state::<PlaybackState>(c, id))?;
        let last = self.running.get(&id).map(|one| one.state.clone()).or(last);
        let mut state = PlaybackState::start(&spec, last, &self.clock_reading(), seed());
        state.boot_id.clone_from(&self.boot_id);
        state.shown_on.clear();
        state.everywhere = declared.is_empty();
        state.monitors = if declared.is_empty() {
            self.wallpapers.connected()
        } else {
            declared
        };
        state.identities.clear();
        state.follow_identities(&self.wallpapers.identities());
        state.mode = mode;
        let stride = state.stride(&self.wallpapers.connected());
        state.fill(&spec, stride, &|_| true);
        Ok((spec, state))
    }
}
