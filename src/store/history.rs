//! Stores the history: which image was shown on which monitors, when, and what set it. Also stores
//! how far monitors have gone back in it. The newest [`KEPT`] entries are kept.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use serde_json::json;

use super::Error;
use super::row::{self, optional_word, word};
use crate::color;
use crate::wire::{Fit, HistoryEntry, HistorySource, Mode, Position, Timestamp};

const COLUMNS: &str = "id, image_id, image_name, monitors, mode, set_at, source, playlist_id, \
                       playlist_name, backend, fit, images, position";
/// Whether the entry's monitors include `:monitor`.
const NAMED: &str = "EXISTS (SELECT 1 FROM json_each(iif(json_valid(monitors), monitors, '[]')) \
                     WHERE value = :monitor)";
/// Maximum number of entries.
const KEPT: i64 = 10_000;

/// An entry to insert.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry<'a> {
    pub image_id: i64,
    pub image_name: &'a str,
    pub monitors: &'a [String],
    pub mode: Mode,
    pub set_at: Timestamp,
    pub source: &'a HistorySource,
    pub backend: &'a str,
    pub fit: Option<Fit>,
    pub position: Option<Position>,
    /// In mode `each`: the image of each monitor that the same call has set.
    pub images: &'a BTreeMap<String, i64>,
}

/// Filters entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryQuery {
    /// Only entries that name this monitor.
    pub monitor: Option<String>,
    /// Only entries newer than this one.
    pub since_id: Option<i64>,
    /// Only entries older than this one, for the next page.
    pub before_id: Option<i64>,
    pub limit: u32,
}

pub(crate) fn insert(connection: &Connection, entry: &NewEntry<'_>) -> Result<(), Error> {
    let columns = vec![
        ("image_id", entry.image_id.into()),
        ("image_name", entry.image_name.to_owned().into()),
        ("monitors", json!(entry.monitors).to_string().into()),
        ("mode", entry.mode.as_str().to_owned().into()),
        ("set_at", entry.set_at.as_micros().into()),
        ("source", entry.source.kind.as_str().to_owned().into()),
        ("playlist_id", entry.source.playlist_id.into()),
        ("playlist_name", entry.source.playlist_name.clone().into()),
        ("backend", entry.backend.to_owned().into()),
        ("fit", entry.fit.map(|fit| fit.as_str().to_owned()).into()),
        (
            "position",
            entry.position.map(|position| position.to_string()).into(),
        ),
        (
            "images",
            (!entry.images.is_empty())
                .then(|| json!(entry.images).to_string())
                .into(),
        ),
    ];
    let newest = row::insert(connection, "history", columns)?;
    // Ids only grow, possibly with gaps, so this keeps the newest entries and at most KEPT.
    connection
        .prepare_cached("DELETE FROM history WHERE id <= ?1")?
        .execute(params![newest - KEPT])?;
    Ok(())
}

/// Newest first.
pub(crate) fn list(
    connection: &Connection,
    query: &HistoryQuery,
) -> Result<Vec<HistoryEntry>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM history WHERE id > :since_id AND id < :before_id \
         AND (:monitor IS NULL OR {NAMED}) ORDER BY id DESC LIMIT :limit"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query(named_params! {
        ":since_id": query.since_id.unwrap_or(0),
        ":before_id": query.before_id.unwrap_or(i64::MAX),
        ":monitor": query.monitor,
        ":limit": query.limit,
    })?;
    row::all(rows, from_row)
}

/// Returns the newest entry of a monitor before `entry` whose image is a colour or still in the
/// library.
pub(crate) fn before(
    connection: &Connection,
    monitor: &str,
    entry: i64,
) -> Result<Option<HistoryEntry>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM history WHERE id < :before AND {NAMED} \
         AND (image_id < 0 OR EXISTS (SELECT 1 FROM image WHERE image.id = image_id)) ORDER BY id DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query(named_params! { ":before": entry, ":monitor": monitor })?;
    Ok(row::all(rows, from_row)?.pop())
}

/// Returns the entry of the wallpaper that was set on a monitor at this time.
pub(crate) fn at(
    connection: &Connection,
    monitor: &str,
    time: Timestamp,
) -> Result<Option<HistoryEntry>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM history WHERE set_at = :time AND {NAMED} ORDER BY id DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let values = named_params! { ":time": time.as_micros(), ":monitor": monitor };
    Ok(row::all(statement.query(values)?, from_row)?.pop())
}

/// Whether a client has set what a monitor shows since `set_at`, and a playlist has not changed since.
pub(crate) fn is_by_hand(
    connection: &Connection,
    (monitor, set_at): (&str, Timestamp),
    playlist: Option<i64>,
) -> Result<bool, Error> {
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM history WHERE set_at = :time AND source <> 'playlist' AND {NAMED}) \
         AND NOT EXISTS (SELECT 1 FROM history WHERE set_at > :time AND playlist_id = :playlist)"
    );
    let values = named_params! {
        ":time": set_at.as_micros(),
        ":monitor": monitor,
        ":playlist": playlist,
    };
    Ok(connection
        .prepare_cached(&sql)?
        .query_row(values, |row| row.get(0))?)
}

/// Removes all entries and returns their number.
pub(crate) fn clear(connection: &Connection) -> Result<usize, Error> {
    connection.execute("DELETE FROM walk", [])?;
    Ok(connection.execute("DELETE FROM history", [])?)
}

/// Removes the entries of a deleted image.
pub(crate) fn purge_image(connection: &Connection, image_id: i64) -> Result<usize, Error> {
    let mut statement = connection.prepare_cached("DELETE FROM history WHERE image_id = ?1")?;
    Ok(statement.execute([image_id])?)
}

/// Returns the entry that a monitor has gone back to; any other change of the wallpaper removes it.
pub(crate) fn cursor(connection: &Connection, monitor: &str) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT entry FROM walk WHERE monitor = ?1")?;
    Ok(statement
        .query_row([monitor], |row| row.get(0))
        .optional()?)
}

pub(crate) fn put_cursor(connection: &Connection, monitor: &str, entry: i64) -> Result<(), Error> {
    let sql = "INSERT INTO walk (monitor, entry) VALUES (?1, ?2) \
               ON CONFLICT (monitor) DO UPDATE SET entry = excluded.entry";
    connection.prepare_cached(sql)?.execute((monitor, entry))?;
    Ok(())
}

pub(crate) fn end_cursor(connection: &Connection, monitor: &str) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM walk WHERE monitor = ?1")?
        .execute([monitor])?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> Result<HistoryEntry, Error> {
    let mode: Mode = word(row, 4)?;
    let image_id = row.get(1)?;
    Ok(HistoryEntry {
        id: row.get(0)?,
        image_id,
        image_name: row.get(2)?,
        color: color::from_image_id(image_id).map(color::hex),
        monitors: row::json(row, 3)?.unwrap_or_default(),
        mode,
        set_at: Timestamp::from_micros(row.get(5)?),
        source: HistorySource {
            kind: word(row, 6)?,
            playlist_id: row.get(7)?,
            playlist_name: row.get(8)?,
        },
        backend: row.get(9)?,
        fit: optional_word(row, 10)?,
        position: optional_word(row, 12)?,
        images: row::json(row, 11)?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::scratch;
    use crate::wire::Source;

    #[test]
    fn newest_entries_are_kept_and_found_by_monitor() {
        let (_directory, store) = scratch();
        let source = HistorySource {
            kind: Source::Manual,
            playlist_id: None,
            playlist_name: None,
        };
        let monitors = ["DP-1".to_owned()];
        let none = BTreeMap::new();
        let entry = |image_id| NewEntry {
            image_id,
            image_name: "x",
            monitors: &monitors,
            mode: Mode::Individual,
            set_at: Timestamp::now(),
            source: &source,
            backend: "feh",
            fit: None,
            position: None,
            images: &none,
        };
        store
            .write(|c| (0..KEPT + 5).try_for_each(|number| insert(c, &entry(number))))
            .unwrap();
        let of = |monitor: &str, limit| {
            let monitor = Some(monitor.to_owned());
            let query = HistoryQuery {
                monitor,
                limit,
                ..HistoryQuery::default()
            };
            store.read(|c| list(c, &query)).unwrap()
        };
        assert_eq!(of("DP-1", 1)[0].image_id, KEPT + 4);
        assert_eq!(of("DP-1", u32::MAX).len() as i64, KEPT);
        assert!(of("DP-2", 50).is_empty());
        // Pages contain each entry once.
        let mut pages = vec![of("DP-1", 999)];
        while let Some(last) = pages.last().and_then(|page| page.last()) {
            let query = HistoryQuery {
                before_id: Some(last.id),
                limit: 999,
                ..Default::default()
            };
            pages.push(store.read(|c| list(c, &query)).unwrap());
        }
        let ids: Vec<i64> = pages.iter().flatten().map(|entry| entry.image_id).collect();
        assert_eq!(ids, (5..KEPT + 5).rev().collect::<Vec<_>>());
        assert_eq!(store.write(clear_all).unwrap() as i64, KEPT);
    }

    #[test]
    fn entry_before_another_has_an_existing_image() {
        let (_directory, store) = scratch();
        let image = crate::store::images::tests::picture("a", 1);
        let there = store
            .write(|c| crate::store::images::insert(c, &image))
            .unwrap();
        let source = HistorySource {
            kind: Source::Playlist,
            playlist_id: Some(4),
            playlist_name: Some("p".to_owned()),
        };
        let both = ["DP-1".to_owned(), "DP-2".to_owned()];
        let images = BTreeMap::from([("DP-1".to_owned(), there)]);
        let entry = |image_id, monitors, time, images| NewEntry {
            image_id,
            image_name: "x",
            monitors,
            mode: Mode::Each,
            set_at: Timestamp::from_micros(time),
            source: &source,
            backend: "feh",
            fit: Some(Fit::Contain),
            position: Some("top".parse().unwrap()),
            images,
        };
        let none = BTreeMap::new();
        let entries = [
            entry(there, &both[..], 10, &images),
            entry(99, &both[..1], 20, &none),
            entry(there, &both[1..], 30, &none),
        ];
        for one in &entries {
            store.write(|c| insert(c, one)).unwrap();
        }
        let before = |monitor, id| store.read(|c| before(c, monitor, id)).unwrap();
        let at = |monitor, time| {
            store
                .read(|c| at(c, monitor, Timestamp::from_micros(time)))
                .unwrap()
        };
        let first = before("DP-1", i64::MAX).unwrap();
        assert_eq!(
            (first.id, &first.source, first.fit),
            (1, &source, Some(Fit::Contain))
        );
        assert_eq!(first.position, entries[0].position);
        assert_eq!((&first.monitors[..], &first.images), (&both[..], &images));
        assert_eq!(before("DP-1", 1), None);
        assert_eq!(before("DP-2", i64::MAX).unwrap().id, 3);
        assert_eq!(before("DP-2", 3).unwrap().id, 1);
        assert_eq!(at("DP-1", 20).unwrap().image_id, 99);
        assert_eq!((at("DP-2", 20), at("DP-1", 21)), (None, None));
        assert_eq!(at("DP-1", 10), Some(first));
    }

    fn clear_all(transaction: &rusqlite::Transaction<'_>) -> Result<usize, Error> {
        clear(transaction)
    }
}
