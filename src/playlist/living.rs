//! Playlists that live: before each step, what their source finds takes the place of the list. One
//! that finds nothing rests until something comes.
//!
//! Runs on the thread `playlist`. The index in memory is asked once for each step.

use std::sync::Arc;

use super::attempt::Attempt;
use super::player::Player;
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::events::Message;
use crate::random::seed;
use crate::store::{self, images};
use crate::wire::{EventKind, GalleryDomain};

/// What a look at the source has made of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewed {
    /// The step is still to be made.
    Ready,
    /// The image has left, and another took its place: that was the step.
    Stepped,
    /// Nothing is found.
    Empty,
}

/// Brings list and position up to date for a step.
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
            log::error!("the images of the playlist {:?} cannot be looked up: {error}", spec.name);
            return if spec.rests() { Renewed::Empty } else { Renewed::Ready };
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
    // Where each monitor has its own, the others of this step are over with it.
    let lost = state.image_id != before;
    if lost && direction == Direction::Forward { Renewed::Stepped } else { Renewed::Ready }
}

impl Player {
    /// The library has changed: what rests may go on, what has nothing left rests, and an image that
    /// left the library is not shown until the next step.
    pub(super) fn renew_living(&mut self, message: &Message) {
        let concerned = message.lost > 0
            || message.kind == EventKind::ImageOrphanPurged
            || matches!(message.domain, Some(GalleryDomain::Images | GalleryDomain::Folders));
        if !concerned {
            return;
        }
        for id in self.running_ids() {
            let Some(one) = self.running.get(&id) else { continue };
            let Some(source) = &one.spec.source else { continue };
            match (self.store.finds_any(source), one.spec.rests()) {
                (Ok(true), true) => self.wake(id),
                (Ok(false), false) => self.rest(id),
                (Ok(true), false) => self.leave_deleted(id),
                (Ok(false), true) => {}
                (Err(error), _) => log::error!("the library cannot be asked: {error}"),
            }
        }
    }

    fn leave_deleted(&mut self, id: i64) {
        let now = self.now();
        let Some(one) = self.running.get_mut(&id) else { return };
        let shown = one.state.taken();
        let all_exist = self.store.read(|c| {
            let mut exist = shown.iter().map(|&image| images::exists(c, image));
            exist.try_fold(true, |all, exists| Ok::<_, store::Error>(all && exists?))
        });
        match all_exist {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => return log::error!("the library cannot be asked: {error}"),
        }
        one.lost = true;
        one.state.shown_on.clear();
        one.state.changed(now.boot, &now);
        self.run_if_due(id, true);
        self.save(&[id]);
    }

    /// Nothing is found any more: what is shown stays, and nothing is due.
    pub(super) fn rest(&mut self, id: i64) {
        let Some(one) = self.running.get_mut(&id) else { return };
        if !one.spec.rests() {
            log::info!("the playlist {:?} finds no images and rests", one.spec.name);
        }
        one.spec.items = Default::default();
        one.state.shown_on.clear();
        self.save(&[id]);
    }

    /// Something has come: it is shown at once.
    fn wake(&mut self, id: i64) {
        let now = self.now();
        if self.has_pending_change(id) {
            return;
        }
        let Some(one) = self.running.get_mut(&id) else { return };
        let (spec, state) = (&mut one.spec, &mut one.state);
        if renew(&self.store, spec, state, Direction::Forward) == Renewed::Empty {
            return;
        }
        log::info!("the playlist {:?} goes on", spec.name);
        state.shown_on.clear();
        state.changed(now.boot, &now);
        self.apply(id, Attempt::forward());
        self.save(&[id]);
    }
}
