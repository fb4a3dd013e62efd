//! Brings the assignments up to date before they are read: moves those of monitors that have changed
//! connectors. Removes files of plain colours that are not used any more.
//!
//! Runs on the thread `reconciler`.

use crate::backends::Backends;
use crate::compositor::{Output, alike, identities};
use crate::media::PlainColors;
use crate::store::{self, Store};

pub(super) fn upkeep(store: &Store, backends: &Backends) -> Result<(), store::Error> {
    follow_monitors(store, &backends.outputs.list())?;
    let mut images = store.read(|connection| {
        let ids = store::assignments::image_ids(connection)?;
        store::images::all_assigned(connection, &ids)
    })?;
    let colors = PlainColors::new(&backends.dirs.cache());
    for image in &mut images {
        colors.locate(image);
    }
    colors.tidy(images.iter());
    Ok(())
}

fn follow_monitors(store: &Store, outputs: &[Output]) -> Result<(), store::Error> {
    let (identities, alike) = (identities(outputs), alike(outputs));
    let known = store.read(store::monitors::identities)?;
    let is_new = |(name, identity)| known.get(name) != Some(identity);
    if identities.iter().any(is_new) || alike.iter().any(|name| known.contains_key(name)) {
        store.write(|transaction| store::monitors::follow(transaction, &identities, &alike))?;
    }
    Ok(())
}
