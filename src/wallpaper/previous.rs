//! Finds what a monitor showed before, for a step back, and for a monitor whose picture was deleted.
//!
//! Runs on the thread `reconciler`, and only reads.

use std::slice;

use super::missing_file;
use crate::store::assignments::Assignment;
use crate::store::{self, Connection, Store, history, images};
use crate::wire::{Fit, HistoryEntry, Image, Mode, Position};

/// A picture of a monitor's history.
pub(super) struct Before {
    /// The assignment that shows it again.
    pub(super) row: Assignment,
    pub(super) image: Image,
    /// The history entry.
    pub(super) entry: i64,
}

/// Goes back by `steps` pictures in the history of a monitor, or as far as it goes. Skips missing images
/// and entries that would change nothing. Without a step, it is the picture of the row.
pub(super) fn shown_before(
    store: &Store,
    monitor: &str,
    row: Option<&Assignment>,
    steps: u32,
) -> Result<Option<Before>, store::Error> {
    store.read(|connection| {
        let mut found: Option<Before> = None;
        if let (0, Some(row)) = (steps, row) {
            let place = history_place(connection, monitor, Some(row))?;
            found = step_back(connection, monitor, place.saturating_add(1), None)?;
        }
        for _ in 0..steps {
            let place = match &found {
                Some(before) => before.entry,
                None => history_place(connection, monitor, row)?,
            };
            let shown = found.as_ref().map(|before| &before.row).or(row);
            let Some(next) = step_back(connection, monitor, place, shown)? else {
                break;
            };
            found = Some(next);
        }
        Ok(found)
    })
}

/// The visible properties of a picture: the image, the fit, the position, and the monitors that it is
/// stretched over. A plain colour looks the same with any fit, and a stretched picture at any position.
fn look(row: &Assignment) -> (i64, Option<Fit>, Option<Position>, Option<&[String]>) {
    let is_image = row.image_id >= 0;
    let is_stretched = is_image && row.mode == Mode::Extend;
    (
        row.image_id,
        row.fit.filter(|_| is_image),
        row.position.filter(|_| is_image && !is_stretched),
        is_stretched.then_some(&row.together),
    )
}

/// The assignment of a monitor that shows an entry of its history again.
fn from_entry(monitor: &str, entry: HistoryEntry) -> Assignment {
    Assignment {
        monitor: monitor.to_owned(),
        image_id: entry.image_id,
        mode: entry.mode,
        together: entry.monitors,
        backend: entry.backend,
        set_at: entry.set_at,
        fit: entry.fit,
        position: entry.position,
        sound: None,
    }
}

/// A monitor's position in the history: the entry that it has gone back to, otherwise the entry of what
/// it shows, otherwise the end.
fn history_place(
    connection: &Connection,
    monitor: &str,
    row: Option<&Assignment>,
) -> Result<i64, store::Error> {
    if let Some(entry) = history::cursor(connection, monitor)? {
        return Ok(entry);
    }
    let of_row = row
        .map(|row| history::at(connection, monitor, row.set_at))
        .transpose()?;
    Ok(of_row.flatten().map_or(i64::MAX, |entry| entry.id))
}

fn step_back(
    connection: &Connection,
    monitor: &str,
    mut place: i64,
    shown: Option<&Assignment>,
) -> Result<Option<Before>, store::Error> {
    while let Some(entry) = history::before(connection, monitor, place)? {
        place = entry.id;
        let row = from_entry(monitor, entry);
        if shown.is_some_and(|shown| look(shown) == look(&row)) {
            continue;
        }
        let image = images::assigned(connection, row.image_id)?;
        let is_there =
            |image: &Image| missing_file::without_file(slice::from_ref(image)).is_empty();
        if let Some(image) = image.filter(is_there) {
            let entry = place;
            return Ok(Some(Before { row, image, entry }));
        }
    }
    Ok(None)
}
