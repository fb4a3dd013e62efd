//! What the monitors show, read from the database. Never writes.

use crate::compositor::Outputs;
use crate::store::{self, Store, assignments, images};
use crate::wire::{Image, Timestamp};

/// A picture on a monitor that is connected.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) monitor: String,
    pub(super) image: Image,
    pub(super) set_at: Timestamp,
}

/// Sorted by monitor; none while there is no compositor, whose monitors may all come back.
pub(super) fn read(store: &Store, outputs: &Outputs) -> Result<Option<Vec<Shown>>, store::Error> {
    if outputs.session().is_none() {
        return Ok(None);
    }
    let connected = outputs.list();
    store.read(|connection| {
        let mut rows = assignments::all(connection)?;
        rows.retain(|row| connected.iter().any(|output| output.name == row.monitor));
        let ids: Vec<i64> = rows.iter().map(|row| row.image_id).collect();
        let images = images::by_ids(connection, &ids)?;
        let shown = rows.into_iter().filter_map(|row| {
            let image = images.iter().find(|image| image.id == row.image_id)?.clone();
            Some(Shown { monitor: row.monitor, image, set_at: row.set_at })
        });
        Ok(Some(shown.collect()))
    })
}
