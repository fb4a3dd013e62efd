//! Finds what a monitor showed before, for a step back, and for a monitor whose picture was deleted.
//!
//! Runs on the thread `reconciler`, and only reads.

use super::missing_file;
use crate::store::assignments::Assignment;
use crate::store::{self, Connection, Store, history, images};
use crate::wire::{Fit, HistoryEntry, Image, Mode, Position};

/// Goes back by `steps` pictures in the history of a monitor, or as far as it goes. Skips missing images
/// and entries that would change nothing. Without a step, it is the picture of the row.
pub(super) fn shown_before(
    store: &Store,
    monitor: &str,
    row: Option<&Assignment>,
    steps: u32,
) -> Result<Option<(HistoryEntry, Image)>, store::Error> {
    store.read(|connection| {
        let mut found: Option<(HistoryEntry, Image)> = None;
        if let (0, Some(row)) = (steps, row) {
            found = step_back(
                connection,
                monitor,
                history_place(connection, monitor, Some(row))?.saturating_add(1),
                None,
            )?;
        }
        for _ in 0..steps {
            let place = match &found {
                Some((entry, _)) => entry.id,
                None => history_place(connection, monitor, row)?,
            };
            let shown = match &found {
                Some((entry, _)) => Some(ShownPicture::of_entry(entry)),
                None => row.map(ShownPicture::of_row),
            };
            let Some(next) = step_back(connection, monitor, place, shown.as_ref())? else {
                break;
            };
            found = Some(next);
        }
        Ok(found)
    })
}

/// The visible properties of a picture.
#[derive(PartialEq)]
struct ShownPicture {
    image_id: i64,
    fit: Option<Fit>,
    position: Option<Position>,
    extended_over: Vec<String>,
}

impl ShownPicture {
    fn of_row(row: &Assignment) -> Self {
        Self::new(
            (row.image_id, row.fit, row.position),
            row.mode,
            &row.together,
        )
    }

    fn of_entry(entry: &HistoryEntry) -> Self {
        Self::new(
            (entry.image_id, entry.fit, entry.position),
            entry.mode,
            &entry.monitors,
        )
    }

    fn new(
        (image_id, fit, position): (i64, Option<Fit>, Option<Position>),
        mode: Mode,
        together: &[String],
    ) -> Self {
        // A plain colour looks the same with any fit, and a stretched picture at any position.
        let (is_color, extends) = (image_id < 0, mode == Mode::Extend);
        let (fit, position) = (
            fit.filter(|_| !is_color),
            position.filter(|_| !is_color && !extends),
        );
        let extended_over = if extends && !is_color {
            together.to_vec()
        } else {
            Vec::new()
        };
        Self {
            image_id,
            fit,
            position,
            extended_over,
        }
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
    shown: Option<&ShownPicture>,
) -> Result<Option<(HistoryEntry, Image)>, store::Error> {
    while let Some(entry) = history::before(connection, monitor, place)? {
        place = entry.id;
        if shown == Some(&ShownPicture::of_entry(&entry)) {
            continue;
        }
        let image = images::assigned(connection, entry.image_id)?;
        if let Some(image) = image.filter(|image| !missing_file::lacks_file(image)) {
            return Ok(Some((entry, image)));
        }
    }
    Ok(None)
}
