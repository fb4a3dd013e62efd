//! Lists that change while they are played: a client edits them, images leave the library or are
//! replaced, or a dynamic playlist's source finds others.
//!
//! Runs on the thread `playlist`. A dynamic playlist takes what its source finds before each step,
//! with one query of the index in memory; it waits if nothing is found.

use std::sync::Arc;

use super::player::Player;
use super::running::RunningPlaylist;
use super::spec::{Direction, Items, PlaylistSpec};
use super::state::PlaybackState;
use crate::events::Message;
use crate::random::seed;
use crate::store::{self, Connection, images, playlists};
use crate::wire::{EventKind, GalleryDomain};

/// Events that may concern a running playlist.
pub(super) const NEWS: &[EventKind] = &[
    EventKind::GalleryChanged,
    EventKind::ImageOrphanPurged,
    EventKind::ConfigChanged,
];

/// Fits a state to its edited list, and writes it. `found` are the items that the source of a dynamic
/// playlist finds. Returns the playlist as it continues, or waits for images; none if its list has no
/// images left, so that it is stopped.
pub(super) fn edit(
    c: &Connection,
    id: i64,
    mut state: PlaybackState,
    found: Option<&Arc<Items>>,
) -> Result<Option<RunningPlaylist>, store::Error> {
    let spec = PlaylistSpec::read(c, id)?;
    let with_found = |mut spec: PlaylistSpec| {
        if let Some(found) = found.filter(|_| spec.is_dynamic()) {
            spec.items = Arc::clone(found);
        }
        spec
    };
    let has_future = |spec: &PlaylistSpec| spec.is_dynamic() || !spec.items.is_empty();
    let Some(spec) = spec.map(with_found).filter(has_future) else {
        playlists::save(c, id, false, &state)?;
        return Ok(None);
    };
    let lost = !spec.is_waiting() && state.edit(&spec, seed());
    playlists::save(c, id, true, &state)?;
    Ok(Some(RunningPlaylist::new(spec, state, lost)))
}

impl Player {
    /// Handles an event that may concern a running playlist.
    pub(super) fn on_event(&mut self, message: &Message) {
        let all = message.lost > 0;
        if all || message.kind == EventKind::ConfigChanged {
            self.fill_all_monitors();
        }
        // History changes with every picture, and concerns no list.
        let is_history = message.kind == EventKind::GalleryChanged
            && message.domain == Some(GalleryDomain::History);
        if all || message.kind != EventKind::ConfigChanged && !is_history {
            for id in self.running_ids() {
                self.reload_if_changed(id);
                self.renew_dynamic(id);
            }
        }
    }

    /// Reloads a list whose images may have left the library, or were replaced by others with the
    /// same content.
    pub(super) fn reload_if_changed(&mut self, id: i64) {
        let Some(one) = self.running.get(&id).filter(|one| !one.spec.is_dynamic()) else {
            return;
        };
        let before = one.spec.ids();
        // Usually nothing has changed, and nothing is written.
        let found = self.store.read(|c| playlists::image_ids(c, id));
        if found.as_ref().is_ok_and(|now| *now == before) {
            return;
        }
        let mut state = one.state.clone();
        let edited = found.and_then(|now| {
            state.follow_replaced(&before, &now);
            let edited = self.store.write(|c| edit(c, id, state, None))?;
            Ok((now, edited))
        });
        match edited {
            Ok((now, edited)) => {
                if let Some(one) = self.running.get_mut(&id) {
                    one.change_states(|state| state.follow_replaced(&before, &now));
                }
                self.go_on(id, edited);
            }
            Err(error) => log::error!("cannot read playlist {id} again: {error}"),
        }
    }

    /// Continues with an edited list.
    pub(super) fn go_on(&mut self, id: i64, edited: Option<RunningPlaylist>) {
        let Some(edited) = edited else {
            return self.drop_stopped(id);
        };
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        let steps = one.steps.iter_mut();
        steps.for_each(|step| step.edit(&edited.spec));
        (one.spec, one.state) = (edited.spec, edited.state);
        // A request on its way may be for an image that cannot be shown.
        let shows_nothing = one.nothing_compatible.is_some();
        if edited.lost {
            self.replace_lost(id);
        } else if self.run_if_due(id, true) {
            self.save(&[id]);
        } else if shows_nothing && self.is_free(id) {
            self.apply(id, false, Vec::new());
            self.save(&[id]);
        }
    }
}

/// The part of a step that remains after `renew`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewed {
    /// The step is still to be made.
    Ready,
    /// The image has left the list, and another replaced it: that was the step.
    Stepped,
    /// The source finds no image.
    Empty,
}

/// Brings the list of a dynamic playlist, and the place in it, up to date for a step.
pub(super) fn renew(
    store: &store::Store,
    spec: &mut PlaylistSpec,
    state: &mut PlaybackState,
    direction: Direction,
) -> Renewed {
    let found = match spec.look_up(store) {
        Ok(Some(found)) => found,
        Ok(None) => return Renewed::Ready,
        Err(error) => {
            log::error!(
                "cannot look up the images of playlist {:?}: {error}",
                spec.name
            );
            return if spec.is_waiting() {
                Renewed::Empty
            } else {
                Renewed::Ready
            };
        }
    };
    if found.is_empty() {
        return Renewed::Empty;
    }
    let changed = !Arc::ptr_eq(&found, &spec.items);
    spec.items = found;
    let before = state.image_id;
    if changed {
        state.edit(spec, seed());
    }
    // Ignores the other images of mode `each`: the step replaces them.
    let lost = state.image_id != before;
    if lost && direction == Direction::Forward {
        Renewed::Stepped
    } else {
        Renewed::Ready
    }
}

impl Player {
    /// The library has changed: a waiting playlist may continue, an empty one waits, and a deleted
    /// image is replaced.
    fn renew_dynamic(&mut self, id: i64) {
        let Some(one) = self.running.get(&id) else {
            return;
        };
        let Some(source) = &one.spec.source else {
            return;
        };
        match (self.store.finds_any(source), one.spec.is_waiting()) {
            (Ok(true), true) => self.wake(id),
            (Ok(false), false) => self.wait_for_images(id),
            (Ok(true), false) => self.leave_deleted(id),
            (Ok(false), true) => {}
            (Err(error), _) => log::error!("cannot search the library: {error}"),
        }
    }

    fn leave_deleted(&mut self, id: i64) {
        let Some(one) = self.running.get(&id) else {
            return;
        };
        let shown = one.state.taken();
        let all_exist = self.store.read(|c| {
            let mut exist = shown.iter().map(|&image| images::exists(c, image));
            exist.try_fold(true, |all, exists| Ok::<_, store::Error>(all && exists?))
        });
        match all_exist {
            Ok(true) => {}
            Ok(false) => self.replace_lost(id),
            Err(error) => log::error!("cannot search the library: {error}"),
        }
    }

    /// The present image is gone: replaces it, once no step is on its way.
    fn replace_lost(&mut self, id: i64) {
        let now = self.clock_reading();
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        one.lost = true;
        one.state.shown_on.clear();
        one.state.changed(now.boot, &now);
        self.run_if_due(id, true);
        self.save(&[id]);
    }

    /// The source finds no image: the picture on the screen stays, and no change is due.
    pub(super) fn wait_for_images(&mut self, id: i64) {
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        if !one.spec.is_waiting() {
            log::info!(
                "playlist {:?} is paused: no image matches its filters",
                one.spec.name
            );
        }
        one.spec.items = Default::default();
        one.state.shown_on.clear();
        self.save(&[id]);
    }

    /// The source finds images again: shows one at once.
    fn wake(&mut self, id: i64) {
        let now = self.clock_reading();
        if !self.is_free(id) {
            return;
        }
        let Some(one) = self.running.get_mut(&id) else {
            return;
        };
        let (spec, state) = (&mut one.spec, &mut one.state);
        if renew(&self.store, spec, state, Direction::Forward) == Renewed::Empty {
            return;
        }
        log::info!("playlist {:?} resumed", spec.name);
        state.changed(now.boot, &now);
        self.apply(id, false, Vec::new());
        self.save(&[id]);
    }
}
