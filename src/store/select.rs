//! Builds the SQL of a list of images: a condition with bound values for each filter, and the
//! order. Palettes are compared in [`super::palettes`].

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde_json::json;

use super::derived::FIRST_NEUTRAL;
use super::palettes::WantedColors;
use super::query::Query;
use super::watched::directory_range;
use super::{Error, folders, images};
use crate::wire::collate::folded;
use crate::wire::{MediaFilter, Orientation, SortBy};

/// SQL conditions and the values that they bind, in order.
#[derive(Default)]
struct Conditions {
    all: Vec<String>,
    values: Vec<Value>,
    /// A condition that leaves few images can use an index.
    is_narrow: bool,
}

impl Conditions {
    fn add(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.all.push(condition.to_owned());
        self.values.extend(values);
    }

    /// Adds a condition that leaves few images and can use an index.
    fn narrow(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.add(condition, values);
        self.is_narrow = true;
    }

    fn from_query(connection: &Connection, query: &Query) -> Result<Self, Error> {
        let mut all = Self::default();
        match query.media_type {
            Some(MediaFilter::Gif) => all.add("animated", []),
            Some(kind) => all.add("media_type = ?", [kind.as_str().to_owned().into()]),
            None => {}
        }
        if let Some(animated) = query.animated {
            all.add("animated = ?", [animated.into()]);
        }
        if !query.tags.is_empty() {
            let tags: BTreeSet<String> = query.tags.iter().map(|tag| folded(tag)).collect();
            let tagged = "id IN (SELECT image_id FROM image_tag JOIN tag ON tag.id = tag_id WHERE \
                          folded IN (SELECT value FROM json_each(?)) \
                          GROUP BY image_id HAVING count(DISTINCT folded) = ?)";
            all.narrow(
                tagged,
                [json!(tags).to_string().into(), (tags.len() as i64).into()],
            );
        }
        if !query.hue_groups.is_empty() {
            let groups = query.hue_groups.iter().map(|&group| i64::from(group));
            all.add(
                "hue_group IN (SELECT value FROM json_each(?))",
                [list(groups)],
            );
        }
        match query.orientation {
            Some(Orientation::Landscape) => all.add("width > height", []),
            Some(Orientation::Portrait) => all.add("width < height", []),
            Some(Orientation::Square) => all.add("width = height", []),
            None => {}
        }
        if query.min_width > 0 {
            all.add("width >= ?", [query.min_width.into()]);
        }
        if query.min_height > 0 {
            all.add("height >= ?", [query.min_height.into()]);
        }
        if let Some(name) = &query.name {
            all.narrow(AMONG, [list(images::named(connection, name)?)]);
        }
        if let Some(checksum) = &query.checksum {
            all.narrow("checksum = ?", [checksum.to_vec().into()]);
        }
        all.add_place(query);
        all.add_texts(connection, query)?;
        Ok(all)
    }

    /// Adds conditions for the text to search, which begins with the name. Words may be in the path of
    /// the folder instead.
    fn add_texts(&mut self, connection: &Connection, query: &Query) -> Result<(), Error> {
        let (search, prefix) = (folded(&query.search), folded(&query.name_prefix));
        if !prefix.is_empty() {
            self.add("instr(words, ?) = 1", [prefix.into()]);
        }
        let mut words: Vec<&str> = search.split_whitespace().collect();
        if words.is_empty() {
            return Ok(());
        }
        // The longest is the least likely.
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        let paths = folders::paths(connection)?;
        // In groups, as SQLite limits the depth of an expression.
        for some in words.chunks(100) {
            let mut all = Vec::new();
            let mut values = Vec::new();
            for &word in some {
                let folders = paths.iter().filter(|(_, path)| path.contains(word));
                let folders: Vec<i64> = folders.map(|&(id, _)| id).collect();
                values.push(Value::from(word.to_owned()));
                if folders.is_empty() {
                    all.push("instr(words, ?) > 0");
                } else {
                    all.push(
                        "(instr(words, ?) > 0 OR folder_id IN (SELECT value FROM json_each(?)))",
                    );
                    values.push(list(folders));
                }
            }
            self.add(&format!("({})", all.join(" AND ")), values);
        }
        Ok(())
    }

    /// Adds conditions for folders and directories.
    fn add_place(&mut self, query: &Query) {
        match (query.folder, query.recursive) {
            (None, _) | (Some(None), true) => {}
            (Some(None), false) => self.add("folder_id IS NULL", []),
            (Some(Some(folder)), false) => self.narrow("folder_id = ?", [folder.into()]),
            (Some(Some(folder)), true) => {
                let below = "folder_id IN (WITH RECURSIVE within(id) AS (SELECT ? UNION SELECT \
                             folder.id FROM folder JOIN within ON folder.parent_id = within.id) \
                             SELECT id FROM within)";
                self.narrow(below, [folder.into()]);
            }
        }
        if let Some(directory) = &query.directory {
            let below = "id IN (SELECT image_id FROM watched_file WHERE path > ? AND path < ? \
                         AND image_id NOT NULL AND (? OR instr(substr(path, length(?) + 1), '/') = 0))";
            let (from, to) = directory_range(directory);
            let values = [
                from.clone().into(),
                to.into(),
                query.recursive.into(),
                from.into(),
            ];
            self.narrow(below, values);
        }
    }
}

const AMONG: &str = "id IN (SELECT value FROM json_each(?))";

fn list(numbers: impl IntoIterator<Item = i64>) -> Value {
    json!(numbers.into_iter().collect::<Vec<_>>())
        .to_string()
        .into()
}

/// Returns the matching images in the order of the query; ties are sorted by id.
pub(super) fn ids(connection: &Connection, query: &Query) -> Result<Vec<i64>, Error> {
    let Conditions {
        all,
        values,
        is_narrow,
    } = Conditions::from_query(connection, query)?;
    let colors = WantedColors::from_query(connection, query)?;
    let (columns, is_filtered) = match colors {
        Some(_) => ("id, colors", true),
        None => ("id", !all.is_empty()),
    };
    // The index has all columns that filters read. SQLite on its own would read the rows.
    let index = if is_filtered && !is_narrow {
        "INDEXED BY image_list"
    } else {
        ""
    };
    let up = if query.descending { "DESC" } else { "ASC" };
    let order = match query.sort_by {
        SortBy::Name => "name_key",
        SortBy::ImportedAt => "imported_at",
        SortBy::FileSize => "file_size",
        SortBy::Hue => "hue",
    };
    let parts: &[String] = if query.sort_by == SortBy::Hue && query.descending {
        // Images without a decisive colour are last in either direction.
        &[
            format!("hue < {FIRST_NEUTRAL}"),
            format!("hue >= {FIRST_NEUTRAL}"),
        ]
    } else {
        &["TRUE".to_owned()]
    };
    let mut found = Vec::new();
    for part in parts {
        let filter = all
            .iter()
            .chain([part])
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" AND ");
        let sql = format!(
            "SELECT {columns} FROM image {index} WHERE {filter} ORDER BY {order} {up}, id {up}"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(&values))?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            let distance = match &colors {
                Some(colors) => {
                    let palette = row.get_ref(1)?.as_blob().unwrap_or_default();
                    colors.distance(id, palette.as_chunks().0)
                }
                None => Some(0.0),
            };
            found.extend(distance.map(|distance| (id, distance)));
        }
    }
    if query.by_likeness {
        found.sort_unstable_by(|(a, near), (b, far)| near.total_cmp(far).then(a.cmp(b)));
    }
    Ok(found.into_iter().map(|(id, _)| id).collect())
}
