//! Fills columns of an image that are derived from other columns, for lists: `words`, the text to
//! search; `name_key` and `hue`, the keys to sort by; and the rows of its tags.
//!
//! They are written in the transaction that changes their sources. A migration leaves `name_key`
//! empty, and the next start fills the derived columns of these rows.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;

use super::Error;
use super::row::{self, Columns, json};
use crate::color::{self, NEUTRAL, Rgb};
use crate::wire::collate::{folded, sort_key};

/// The columns from which others are derived.
pub(super) const SOURCES: [&str; 5] = ["name", "web_meta", "tags", "colors", "description"];
/// Separates the parts of `words`; search terms never contain it.
const BETWEEN: &str = "\n";
/// `hue` is the group times this, and the saturation in thousandths.
const GROUP: i64 = 10_000;
/// Images without a decisive colour have a `hue` from here on: they are last in either direction.
pub(super) const FIRST_NEUTRAL: i64 = NEUTRAL as i64 * GROUP;

/// The parts of an HTML package's metadata that are searched.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Package {
    title: String,
    description: String,
}

/// Rewrites the derived columns of an image, if it exists.
pub(super) fn renew(connection: &Connection, id: i64) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(
        "SELECT name, web_meta, tags, colors, hue_group, description, words, name_key, hue \
         FROM image WHERE id = ?1",
    )?;
    let read = |row: &Row<'_>| {
        // A damaged value differs from any other.
        let before = [6, 7, 8].map(|column| row.get::<_, Value>(column).ok());
        Ok((Source::read(row), before))
    };
    let Some((source, before)) = statement.query_row([id], read).optional()? else {
        return Ok(());
    };
    // Equal values are not written again, which would rewrite the indexes.
    let pairs = source.derived().into_iter().zip(before);
    let changed = pairs.filter(|((_, value), before)| before.as_ref() != Some(value));
    let columns: Columns = changed.map(|(column, _)| column).collect();
    if !columns.is_empty() {
        row::update(connection, "image", id, columns)?;
    }
    connection
        .prepare_cached(
            "DELETE FROM image_tag WHERE image_id = ?1 AND tag_id NOT IN \
             (SELECT id FROM tag WHERE name IN (SELECT value FROM json_each(?2)))",
        )?
        .execute(params![id, serde_json::json!(source.tags).to_string()])?;
    for tag in &source.tags {
        connection
            .prepare_cached("INSERT OR IGNORE INTO tag (name, folded) VALUES (?1, ?2)")?
            .execute([tag, &folded(tag)])?;
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO image_tag SELECT id, ?2 FROM tag WHERE name = ?1",
            )?
            .execute(params![tag, id])?;
    }
    Ok(())
}

/// Fills the derived columns of all rows without a `name_key`; returns their number.
pub(super) fn renew_missing(connection: &Connection) -> Result<usize, Error> {
    let mut statement = connection.prepare("SELECT id FROM image WHERE name_key = x''")?;
    let ids: Vec<i64> = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for &id in &ids {
        renew(connection, id)?;
    }
    Ok(ids.len())
}

/// Whether there are rows without a `name_key`.
pub(super) fn is_any_missing(connection: &Connection) -> Result<bool, Error> {
    Ok(connection
        .prepare("SELECT 1 FROM image WHERE name_key = x''")?
        .exists([])?)
}

/// The values of [`SOURCES`]. A column that cannot be read is empty; lists omit such a row anyway.
struct Source {
    name: String,
    own_description: String,
    package: Package,
    tags: Vec<String>,
    colors: Vec<Rgb>,
    hue_group: u8,
}

impl Source {
    fn read(row: &Row<'_>) -> Self {
        let colors: Vec<u8> = row.get(3).unwrap_or_default();
        Self {
            name: row.get(0).unwrap_or_default(),
            own_description: row.get(5).unwrap_or_default(),
            package: json(row, 1).ok().flatten().unwrap_or_default(),
            tags: json(row, 2).ok().flatten().unwrap_or_default(),
            colors: colors.as_chunks().0.to_vec(),
            hue_group: row.get(4).unwrap_or(NEUTRAL),
        }
    }

    /// The text to search, NFC and in lower case; it begins with the name.
    fn words(&self) -> String {
        let Package { title, description } = &self.package;
        let tags = self.tags.iter().map(String::as_str);
        let parts = [&self.name, title, description, &self.own_description].map(String::as_str);
        let parts = parts.into_iter().chain(tags);
        folded(
            &parts
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(BETWEEN),
        )
    }

    /// Returns the derived columns, in the order in which [`renew`] reads them.
    fn derived(&self) -> Columns {
        vec![
            ("words", self.words().into()),
            ("name_key", sort_key(&self.name).into()),
            ("hue", self.hue().into()),
        ]
    }

    fn hue(&self) -> i64 {
        // The first colour that is not grey has decided the group.
        let colored = self
            .colors
            .iter()
            .find(|&&rgb| !color::is_grey(color::lab(rgb)));
        let saturation = colored.map_or(0.0, |&rgb| color::hsl(rgb).saturation);
        i64::from(self.hue_group) * GROUP + (saturation * 1000.0) as i64
    }
}
