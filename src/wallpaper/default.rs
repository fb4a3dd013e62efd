//! The picture for monitors that were never seen before. Runs on the thread that asks: nothing on the
//! screens changes by it.

use super::orphan;
use super::{Error, Handle};
use crate::events::EventBus;
use crate::store::assignments::Assignment;
use crate::store::{self, Store};
use crate::wire::{Fit, Image, Mode, Timestamp};

impl Handle {
    /// Makes an image the one that new monitors show.
    pub(crate) fn set_default(
        &self,
        store: &Store,
        bus: &EventBus,
        image_id: i64,
        (mode, fit): (Mode, Option<Fit>),
    ) -> Result<Image, Error> {
        let image = store
            .read(|connection| store::images::get(connection, image_id))?
            .ok_or(Error::NoImage { id: image_id })?;
        if orphan::file_is_missing(&image.path) {
            let error = Error::FileGone { id: image.id, away: image.in_place, path: image.path };
            orphan::purge_if_gone(store, bus, &error);
            return Err(error);
        }
        let meant = Assignment {
            // The one that is looked at when a monitor comes takes these places.
            monitor: String::new(),
            backend: String::new(),
            together: Vec::new(),
            image_id,
            mode,
            fit,
            set_at: Timestamp::now(),
        };
        store.write(|transaction| store::assignments::put_default(transaction, &meant))?;
        Ok(image)
    }
}
