//! What was on a monitor before, by the history. Runs on the thread `reconciler`.

use super::orphan;
use crate::store::assignments::Assignment;
use crate::store::{self, Connection, Store, history, images, way_back};
use crate::wire::{HistoryEntry, Image, Mode};

/// What a monitor showed so many changes before what it shows now, as far as that goes: images that are
/// gone are stepped over, and so is what would change nothing.
pub(super) fn before(
    store: &Store,
    monitor: &str,
    row: Option<&Assignment>,
    steps: u32,
) -> Result<Option<(HistoryEntry, Image)>, store::Error> {
    store.read(|connection| {
        let mut found: Option<(HistoryEntry, Image)> = None;
        for _ in 0..steps {
            let place = match &found {
                Some((entry, _)) => entry.id,
                None => place(connection, monitor, row)?,
            };
            let shown = match &found {
                Some((entry, _)) => Some(Shown::of_entry(entry)),
                None => row.map(Shown::of_row),
            };
            let Some(next) = step(connection, monitor, place, shown.as_ref())? else { break };
            found = Some(next);
        }
        Ok(found)
    })
}

/// What is to be seen of a picture, whoever has put it there.
#[derive(PartialEq)]
struct Shown {
    image_id: i64,
    fit: Option<crate::wire::Fit>,
    extended_over: Vec<String>,
}

impl Shown {
    fn of_row(row: &Assignment) -> Self {
        Self::new(row.image_id, row.fit, row.mode, &row.together)
    }

    fn of_entry(entry: &HistoryEntry) -> Self {
        Self::new(entry.image_id, entry.fit, entry.mode, &entry.monitors)
    }

    fn new(image_id: i64, fit: Option<crate::wire::Fit>, mode: Mode, together: &[String]) -> Self {
        let together = if mode == Mode::Extend { together.to_vec() } else { Vec::new() };
        Self { image_id, fit, extended_over: together }
    }
}

/// Where a monitor stands in the history: at what it has gone back to, else at the entry of what it
/// shows, else at the end.
fn place(
    connection: &Connection,
    monitor: &str,
    row: Option<&Assignment>,
) -> Result<i64, store::Error> {
    if let Some(entry) = way_back::place(connection, monitor)? {
        return Ok(entry);
    }
    let of_row = row.map(|row| history::at(connection, monitor, row.set_at)).transpose()?;
    Ok(of_row.flatten().map_or(i64::MAX, |entry| entry.id))
}

fn step(
    connection: &Connection,
    monitor: &str,
    mut place: i64,
    shown: Option<&Shown>,
) -> Result<Option<(HistoryEntry, Image)>, store::Error> {
    while let Some(entry) = history::before(connection, monitor, place)? {
        place = entry.id;
        if shown == Some(&Shown::of_entry(&entry)) {
            continue;
        }
        let image = images::get(connection, entry.image_id)?;
        if let Some(image) = image.filter(|image| !orphan::file_is_missing(&image.path)) {
            return Ok(Some((entry, image)));
        }
    }
    Ok(None)
}
