//! Stores playlists, their images and their playback state. The rules of playlists are in `rules`,
//! and are checked within the transaction that writes.

mod rows;
mod rules;

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::unless_taken;
use super::query::Query;
use super::row::{self, Columns, word};
use super::{Error, Store, filter};
use crate::color;
use crate::wire::collate::sort_key;
use crate::wire::{
    DayTime, Difference, ListChange, MediaType, Mode, NewConfiguration, NewPlaylistItem, Playback,
    Playlist, PlaylistConfiguration, PlaylistItem, Timestamp, Tone,
};

pub(crate) use rules::{ITEMS_MAX, Refusal};

/// A playlist's new values; `None` keeps the old value.
#[derive(Clone, Debug, Default)]
pub struct PlaylistChange {
    pub name: Option<String>,
    pub configuration: NewConfiguration,
    /// Images by their ids are removed; a list of all removes a source.
    pub images: Option<ListChange<NewPlaylistItem, i64>>,
    /// Replaces the source and removes the images.
    pub source: Option<NewSource>,
    /// Whether the settings include a location, which sunrise and sunset require.
    pub located: bool,
}

/// The source of a dynamic playlist's images.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSource {
    /// The filters as given, for display.
    pub fields: Map<String, Value>,
    /// Parsed `fields`.
    pub query: Box<Query>,
}

/// An image of a playlist, with the properties that decide which backend can show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub image_id: i64,
    pub media_type: MediaType,
    pub animated: bool,
    /// Minutes since midnight, in a playlist of type `time_of_day`.
    pub time: Option<i64>,
    /// A time of day, possibly relative to the sun; an alternative to `time`.
    pub at: Option<DayTime>,
    /// In a playlist of type `appearance`: light or dark.
    pub when: Option<Tone>,
}

impl Item {
    /// Returns the time of day from `at` or `time`, if there is one.
    pub(crate) fn day_time(&self) -> Option<DayTime> {
        let clock = || {
            self.time
                .and_then(|time| u16::try_from(time).ok())
                .map(DayTime::Clock)
        };
        self.at.or_else(clock)
    }
}

/// Returns the index of an image in a list that may have been edited: the one nearest to `index`,
/// or else `index` itself, limited to the last. `ids` is not empty.
pub(crate) fn nearest_index(
    ids: impl ExactSizeIterator<Item = i64>,
    image_id: i64,
    index: usize,
) -> usize {
    let last = ids.len().saturating_sub(1);
    let same = ids.enumerate().filter(|&(_, id)| id == image_id);
    let nearest = same.map(|(at, _)| at).min_by_key(|at| at.abs_diff(index));
    nearest.unwrap_or(index.min(last))
}

const SELECT: &str = "SELECT id, name, type, interval, play_order, start_first, created_at, \
    updated_at, source, running, state FROM playlist LEFT JOIN playback ON playlist_id = id";
const ITEMS: &str = "SELECT playlist_id, ifnull(image_id, color_id), ifnull(media_type, 'image'), \
    ifnull(animated, 0), time, at, tone FROM playlist_image LEFT JOIN image ON image.id = image_id";

/// Returns all playlists sorted by name, in natural order.
pub(crate) fn list(connection: &Connection) -> Result<Vec<Playlist>, Error> {
    let sql = format!("{SELECT} ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = row::all(statement.query([])?, head)?;
    found.sort_by_cached_key(|(playlist, _)| sort_key(&playlist.name));
    found
        .into_iter()
        .map(|(playlist, state)| complete(connection, playlist, state))
        .collect()
}

pub(crate) fn get(connection: &Connection, id: i64) -> Result<Option<Playlist>, Error> {
    let found = find(connection, id)?;
    found
        .map(|(playlist, state)| complete(connection, playlist, state))
        .transpose()
}

/// Returns a playlist without its images, and its items separately.
pub(crate) fn with_items(
    connection: &Connection,
    id: i64,
) -> Result<Option<(Playlist, Vec<Item>)>, Error> {
    let Some((playlist, _)) = find(connection, id)? else {
        return Ok(None);
    };
    Ok(Some((
        playlist,
        items(connection, id)?
            .into_iter()
            .map(|(item, _)| item)
            .collect(),
    )))
}

/// Returns the ids of a playlist's images in order; empty if it does not exist.
pub(crate) fn image_ids(connection: &Connection, id: i64) -> Result<Vec<i64>, Error> {
    let sql = "SELECT ifnull(image_id, color_id) FROM playlist_image WHERE playlist_id = ?1 \
               ORDER BY position";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map([id], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Inserts a playlist and returns its id.
pub(crate) fn insert(connection: &Connection, change: &PlaylistChange) -> Result<i64, Refusal> {
    let name = change.name.as_deref().unwrap_or_default();
    let configuration = rules::configuration(rules::DEFAULT, &change.configuration)?;
    rules::source(configuration.kind, change.source.is_some())?;
    let source = change.source.as_ref().map(|source| &source.fields);
    let now = Timestamp::now().as_micros();
    let mut columns = columns(name, &configuration, source, now);
    columns.push(("created_at", now.into()));
    let inserted = row::insert(connection, "playlist", columns);
    let id = unless_taken(inserted, || Refusal::Taken {
        name: name.to_owned(),
    })?;
    let rows = match &change.images {
        Some(images) => edited(connection, id, images)?,
        None => Vec::new(),
    };
    rules::fit(connection, configuration.kind, &rows, change.located)?;
    rows::put(connection, id, &rows)?;
    Ok(id)
}

/// Changes a playlist; returns whether anything changed.
pub(crate) fn update(
    connection: &Connection,
    id: i64,
    change: &PlaylistChange,
) -> Result<bool, Refusal> {
    let (before, _) = find(connection, id)?.ok_or(Refusal::NoPlaylist { id })?;
    let name = change.name.as_deref().unwrap_or(&before.name);
    let configuration = rules::configuration(before.configuration.clone(), &change.configuration)?;
    let source = match (&change.source, &change.images) {
        (Some(source), _) => Some(source.fields.clone()),
        (None, Some(ListChange::All(_))) => None,
        (None, Some(ListChange::Some(_))) if before.source.is_some() => {
            return Err(Refusal::Dynamic { name: before.name });
        }
        (None, _) => before.source.clone(),
    };
    rules::source(configuration.kind, source.is_some())?;
    let other_images = match (&change.images, &change.source) {
        (Some(images), _) => {
            let rows = edited(connection, id, images)?;
            rules::fit(connection, configuration.kind, &rows, change.located)?;
            rows::put(connection, id, &rows)?
        }
        (None, Some(_)) => rows::put(connection, id, &[])?,
        (None, None) => {
            // A location is required only if the images or the type change.
            let located = change.located || configuration.kind == before.configuration.kind;
            rules::fit(
                connection,
                configuration.kind,
                &rows::get(connection, id)?,
                located,
            )?;
            false
        }
    };
    let same = source == before.source && configuration == before.configuration;
    if !other_images && name == before.name && same {
        return Ok(false);
    }
    let now = Timestamp::now().as_micros();
    let columns = columns(name, &configuration, source.as_ref(), now);
    let updated = row::update(connection, "playlist", id, columns);
    unless_taken(updated, || Refusal::Taken {
        name: name.to_owned(),
    })?;
    Ok(true)
}

/// Returns the rows of a playlist after a change of its images.
fn edited(
    connection: &Connection,
    id: i64,
    change: &ListChange<NewPlaylistItem, i64>,
) -> Result<Vec<rows::Row>, Refusal> {
    let (mut rows, add) = match change {
        ListChange::All(items) => (Vec::new(), items),
        ListChange::Some(Difference { add, remove }) => {
            let remove: HashSet<&i64> = remove.iter().collect();
            let mut rows = rows::get(connection, id)?;
            rows.retain(|row| !remove.contains(&row.image_id));
            (rows, add)
        }
    };
    rules::number(rows.len() + add.len())?;
    rows.extend(rules::images(connection, add)?);
    Ok(rows)
}

/// Returns the columns that a new or changed playlist writes.
fn columns(
    name: &str,
    configuration: &PlaylistConfiguration,
    source: Option<&Map<String, Value>>,
    now: i64,
) -> Columns {
    vec![
        ("name", name.to_owned().into()),
        ("type", configuration.kind.as_str().to_owned().into()),
        ("interval", configuration.interval.into()),
        ("play_order", configuration.order.as_str().to_owned().into()),
        (
            "start_first",
            configuration.always_start_on_first_image.into(),
        ),
        ("updated_at", now.into()),
        (
            "source",
            source
                .map(|source| serde_json::json!(source).to_string())
                .into(),
        ),
    ]
}

/// Deletes a playlist and its state. Its images stay in the library.
pub(crate) fn delete(connection: &Connection, id: i64) -> Result<(), Refusal> {
    let gone = connection.execute("DELETE FROM playlist WHERE id = ?1", [id])?;
    if gone == 0 {
        Err(Refusal::NoPlaylist { id })
    } else {
        Ok(())
    }
}

/// Saves the state of a playlist; does nothing if the playlist was deleted.
pub(crate) fn save(
    connection: &Connection,
    id: i64,
    running: bool,
    state: &impl Serialize,
) -> Result<(), Error> {
    let state = serde_json::to_string(state).map_err(|error| Error::Damaged {
        what: format!("a state cannot be written: {error}"),
    })?;
    connection
        .prepare_cached(
            "INSERT INTO playback (playlist_id, running, state) \
             SELECT id, :running, :state FROM playlist WHERE id = :id ON CONFLICT (playlist_id) \
             DO UPDATE SET running = excluded.running, state = excluded.state",
        )?
        .execute(named_params! {":id": id, ":running": running, ":state": state})?;
    Ok(())
}

/// Writes that a playlist does not run; its state stays.
pub(crate) fn stop(connection: &Connection, id: i64) -> Result<(), Error> {
    let sql = "UPDATE playback SET running = 0 WHERE playlist_id = ?1";
    connection.prepare_cached(sql)?.execute([id])?;
    Ok(())
}

/// Returns a playlist's last saved state; `None` if it never ran or the state cannot be read.
pub(crate) fn state<T: DeserializeOwned>(
    connection: &Connection,
    id: i64,
) -> Result<Option<T>, Error> {
    let sql = "SELECT state FROM playback WHERE playlist_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let text: Option<String> = statement.query_row([id], |row| row.get(0)).optional()?;
    Ok(text.and_then(|text| read(id, &text)))
}

/// Returns the playlist of this name.
pub(crate) fn named(connection: &Connection, name: &str) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT id FROM playlist WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Returns the image that a playlist shows; `None` if it is not running.
pub(crate) fn current_image(connection: &Connection, id: i64) -> Result<Option<i64>, Error> {
    let sql = "SELECT iif(json_valid(state), state ->> '$.image_id', NULL) FROM playback \
               WHERE playlist_id = ?1 AND running";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement
        .query_row([id], |row| row.get(0))
        .optional()?
        .flatten())
}

pub(crate) fn running(connection: &Connection) -> Result<Vec<i64>, Error> {
    let sql = "SELECT playlist_id FROM playback WHERE running ORDER BY playlist_id";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Whether a playlist that runs on all monitors, including later ones, shows an image; `None` if no
/// such playlist runs.
pub(crate) fn shows_everywhere(connection: &Connection) -> Result<Option<bool>, Error> {
    let sql = "SELECT max(coalesce(json_array_length(state, '$.shown_on'), 0) > 0) FROM playback \
               WHERE running AND iif(json_valid(state), state ->> '$.everywhere', 0)";
    Ok(connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))?)
}

/// Whether a running playlist is about to show an image on this monitor: its present one was deleted,
/// or is not shown there yet.
pub(crate) fn is_about_to_show(store: &Store, monitor: &str) -> Result<bool, Error> {
    let sql = "SELECT playlist_id, source FROM playlist JOIN \
               (SELECT playlist_id, iif(json_valid(state), state, '{}') AS state FROM playback \
               WHERE running) ON playlist_id = id WHERE (state ->> '$.everywhere' \
               OR EXISTS (SELECT 1 FROM json_each(state, '$.monitors') WHERE value = ?1)) \
               AND NOT (EXISTS (SELECT 1 FROM json_each(state, '$.shown_on') WHERE value = ?1) \
               AND (state ->> '$.image_id' < 0 \
               OR EXISTS (SELECT 1 FROM image WHERE image.id = state ->> '$.image_id')))";
    let found: Vec<(i64, Option<String>)> = store.read(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let found = statement.query_map([monitor], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok::<_, Error>(found.collect::<Result<_, _>>()?)
    })?;
    for (id, text) in found {
        let has_images = match source(text)?.map(|fields| filter::from_source(&fields)) {
            Some(Ok(query)) => store.finds_any(&query)?,
            Some(Err(_)) => false,
            None => !store
                .read(|connection| image_ids(connection, id))?
                .is_empty(),
        };
        if has_images {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the items with the text of `at` as it was given.
fn items(connection: &Connection, id: i64) -> Result<Vec<(Item, Option<String>)>, Error> {
    let sql = format!("{ITEMS} WHERE playlist_id = ?1 ORDER BY playlist_image.position");
    let mut statement = connection.prepare_cached(&sql)?;
    row::all(statement.query([id])?, |row| {
        let media_type = word(row, 2)?;
        let time = row.get(4)?;
        let text: Option<String> = row.get(5)?;
        let at = text.as_deref().and_then(|text| text.parse().ok());
        let tone: Option<String> = row.get(6)?;
        let when = tone.and_then(|tone| tone.parse().ok());
        Ok((
            Item {
                image_id: row.get(1)?,
                media_type,
                animated: row.get(3)?,
                time,
                at,
                when,
            },
            text,
        ))
    })
}

/// A record without its images, whether it was running, and its state as JSON.
type Head = (Playlist, Option<(bool, String)>);

fn find(connection: &Connection, id: i64) -> Result<Option<Head>, Error> {
    let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE id = ?1"))?;
    statement
        .query_row([id], |row| Ok(head(row)))
        .optional()?
        .transpose()
}

fn head(row: &Row<'_>) -> Result<Head, Error> {
    let playlist = Playlist {
        id: row.get(0)?,
        name: row.get(1)?,
        configuration: PlaylistConfiguration {
            kind: word(row, 2)?,
            interval: row.get(3)?,
            order: word(row, 4)?,
            always_start_on_first_image: row.get(5)?,
        },
        images: Vec::new(),
        source: source(row.get(8)?)?,
        created_at: Timestamp::from_micros(row.get(6)?),
        updated_at: Timestamp::from_micros(row.get(7)?),
        playback: None,
    };
    let running: Option<bool> = row.get(9)?;
    Ok((playlist, running.zip(row.get(10)?)))
}

fn source(text: Option<String>) -> Result<Option<Map<String, Value>>, Error> {
    let unreadable = |error| Error::Damaged {
        what: format!("a source cannot be read: {error}"),
    };
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(unreadable)
}

/// The fields of a state that records show; the player stores more.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown {
    index: usize,
    image_id: i64,
    paused: bool,
    monitors: Vec<String>,
    mode: Mode,
}

fn complete(
    connection: &Connection,
    mut playlist: Playlist,
    state: Option<(bool, String)>,
) -> Result<Playlist, Error> {
    let record = |(item, at): (Item, Option<String>)| PlaylistItem {
        image_id: item.image_id,
        color: color::from_image_id(item.image_id).map(color::hex),
        media_type: item.media_type,
        time: item.time,
        at,
        when: item.when,
    };
    playlist.images = items(connection, playlist.id)?
        .into_iter()
        .map(record)
        .collect();
    let ids = playlist.images.iter().map(|item| item.image_id);
    playlist.playback = state.and_then(|(was_running, text)| {
        let Shown {
            index,
            image_id,
            paused,
            monitors,
            mode,
        } = read(playlist.id, &text)?;
        let is_dynamic = playlist.source.is_some();
        let current_index = if is_dynamic {
            index
        } else {
            nearest_index(ids, image_id, index)
        };
        let extend = mode == Mode::Extend;
        Some(Playback {
            was_running,
            current_index,
            paused,
            monitors,
            extend,
        })
    });
    Ok(playlist)
}

/// Parses a state; if it cannot be read, only the place is lost, not the playlist.
fn read<T: DeserializeOwned>(id: i64, text: &str) -> Option<T> {
    let unreadable = |error: &serde_json::Error| {
        log::error!("the state of playlist {id} cannot be read: {error}");
    };
    serde_json::from_str(text).inspect_err(unreadable).ok()
}

#[cfg(test)]
mod tests;
