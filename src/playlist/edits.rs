//! Lists that change while they are played: edited by a client, or other than they were because images
//! left the library or have the content of others now.

use std::sync::Arc;

use super::items::Items;
use super::player::Player;
use super::spec::PlaylistSpec;
use super::state::PlaybackState;
use crate::events::Message;
use crate::random::seed;
use crate::store::{self, Connection, playlists};
use crate::wire::{EventKind, GalleryDomain};

/// Events that may concern a running playlist.
pub(super) const NEWS: &[EventKind] =
    &[EventKind::GalleryChanged, EventKind::ImageOrphanPurged, EventKind::ConfigChanged];

/// What an edit made of a running playlist.
pub(super) enum Edited {
    /// It has no images any more and is stopped.
    Empty,
    /// It goes on, or rests; `lost`: the image that it stood at is gone.
    On { spec: PlaylistSpec, state: Box<PlaybackState>, lost: bool },
}

/// Fits a state to its list, which has been edited, and writes it. `found` is what the source of one
/// that lives finds.
pub(super) fn edit(
    c: &Connection,
    id: i64,
    mut state: PlaybackState,
    found: Option<&Arc<Items>>,
) -> Result<Edited, store::Error> {
    let spec = PlaylistSpec::read(c, id)?;
    let with_found = |mut spec: PlaylistSpec| {
        if let Some(found) = found.filter(|_| spec.is_living()) {
            spec.items = Arc::clone(found);
        }
        spec
    };
    let has_future = |spec: &PlaylistSpec| spec.is_living() || !spec.items.is_empty();
    let Some(spec) = spec.map(with_found).filter(has_future) else {
        playlists::save(c, id, false, &state)?;
        return Ok(Edited::Empty);
    };
    let lost = !spec.rests() && state.edit(&spec, seed());
    playlists::save(c, id, true, &state)?;
    Ok(Edited::On { spec, state: Box::new(state), lost })
}

impl Player {
    /// Something that others did may concern a running playlist.
    pub(super) fn on_event(&mut self, message: &Message) {
        let all = message.lost > 0;
        if all || message.kind == EventKind::ConfigChanged {
            self.fill_all_monitors();
        }
        // Of the gallery only these: history changes with every picture.
        let lists = message.kind == EventKind::ImageOrphanPurged
            || matches!(message.domain, Some(GalleryDomain::Images | GalleryDomain::Playlists));
        if all || lists {
            self.running_ids().into_iter().for_each(|id| self.reload_if_changed(id));
        }
        self.renew_living(message);
    }

    /// An image that left the library has left its playlists, too; or another is in its place, which
    /// has its content now.
    pub(super) fn reload_if_changed(&mut self, id: i64) {
        let Some(one) = self.running.get(&id).filter(|one| !one.spec.is_living()) else { return };
        let before = one.spec.ids();
        // Mostly nothing has changed, and there is nothing to write.
        if self.store.read(|c| playlists::image_ids(c, id)).is_ok_and(|now| now == before) {
            return;
        }
        let mut state = one.state.clone();
        let edited = self.store.write(|c| {
            state.follow_replaced(&before, &playlists::image_ids(c, id)?);
            edit(c, id, state, None)
        });
        match edited {
            Ok(edited) => self.go_on(id, edited),
            Err(error) => log::error!("playlist {id} cannot be read anew: {error}"),
        }
    }

    /// Goes on with an edited list.
    pub(super) fn go_on(&mut self, id: i64, edited: Edited) {
        let Edited::On { spec, state, lost } = edited else { return self.drop_stopped(id) };
        let now = self.now();
        let Some(one) = self.running.get_mut(&id) else { return };
        (one.spec, one.state) = (spec, *state);
        if lost {
            one.lost = true;
            one.state.changed(now.boot, &now);
        }
        if self.run_if_due(id, true) || lost {
            self.save(&[id]);
        }
        if self.running.get(&id).is_some_and(|one| one.nothing_compatible) {
            self.fill_monitors(id);
        }
    }
}
