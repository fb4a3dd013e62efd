//! The library in memory: what is filtered and sorted, as columns.
//!
//! SQL is fast for rows by id and slow for everything that a gallery asks: words, colours, several
//! tags, deep pages. So each image has a number here, and a place of that number in each column; a
//! filter is a scan over one of them. A query gives ids, and the rows come from the database.
//!
//! Columns only grow: an image that changes gets another number, and its old one is dead. The store
//! keeps the index in step, under the writer's lock, and builds it anew when too much of it is dead.

mod bitmap;
pub(crate) mod filter;
mod names;
mod nearness;
mod order;
mod palettes;
mod query;
mod tags;

pub(crate) use palettes::Near;
pub(crate) use query::{Found, Known, Query, SortBy};

use std::collections::HashMap;

use crate::color::Rgb;
use crate::wire::MediaType;

use bitmap::Bitmap;
use names::Names;
use order::Orders;
use palettes::{Hue, Palettes};
use tags::Tags;

/// What the index keeps of an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub id: i64,
    pub name: String,
    /// Of a web package; it may have another name.
    pub title: Option<String>,
    pub media_type: MediaType,
    pub animated: bool,
    pub folder_id: Option<i64>,
    pub tags: Vec<String>,
    pub colors: Vec<Rgb>,
    /// Follows from the colours.
    pub hue_group: u8,
    /// Width and height, as shown.
    pub size: (u32, u32),
    pub file_size: u64,
    /// Microseconds since 1970.
    pub imported_at: i64,
}

/// The number of an image in this index.
type DocId = u32;

/// No folder's id.
const ROOT: i64 = i64::MIN;
/// So many dead numbers are no matter.
const DEAD_MIN: usize = 1000;

/// All images.
#[derive(Debug, Default)]
pub(crate) struct Index {
    columns: Columns,
    alive: Bitmap,
    orders: Orders,
    /// The first so many ids are in order, and are found by it.
    built: usize,
    /// Of the others.
    later: HashMap<i64, DocId>,
}

#[derive(Debug, Default)]
struct Columns {
    ids: Vec<i64>,
    kinds: Vec<(MediaType, bool)>,
    /// [`ROOT`] or an id.
    folders: Vec<i64>,
    hues: Vec<Hue>,
    sizes: Vec<(u32, u32)>,
    file_sizes: Vec<u64>,
    imported: Vec<i64>,
    names: Names,
    tags: Tags,
    titles: Tags,
    palettes: Palettes,
}

impl Index {
    /// Adds an image of an index that is being built, in the order of ids; [`Self::finish`] ends it.
    pub(crate) fn append(&mut self, entry: &Entry) {
        let doc = self.columns.push(entry);
        self.alive.set(doc);
    }

    /// Sorts what was appended.
    pub(crate) fn finish(&mut self) {
        self.columns.shrink();
        self.built = self.columns.ids.len();
        self.orders = Orders::build(&self.columns);
    }

    /// Takes in images, or what has become of them.
    pub(crate) fn put(&mut self, entries: &[Entry]) {
        let mut changes = Vec::with_capacity(entries.len());
        for entry in entries {
            let before = self.doc(entry.id);
            self.remove(entry.id);
            let doc = self.columns.push(entry);
            self.alive.set(doc);
            self.later.insert(entry.id, doc);
            changes.push((before, doc));
        }
        self.orders.take_in(&self.columns, &changes);
    }

    pub(crate) fn remove(&mut self, id: i64) {
        if let Some(doc) = self.doc(id) {
            self.alive.unset(doc);
            self.later.remove(&id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.alive.count()
    }

    /// Whether so much is dead that the rest is better built anew.
    pub(crate) fn is_worn(&self) -> bool {
        let dead = self.columns.ids.len() - self.len();
        dead > DEAD_MIN.max(self.len() / 4)
    }

    /// All tags in use, sorted.
    pub(crate) fn tags(&self) -> Vec<String> {
        self.columns.tags.of(&self.alive)
    }

    fn doc(&self, id: i64) -> Option<DocId> {
        let built =
            || self.columns.ids[..self.built].binary_search(&id).ok().map(|doc| doc as DocId);
        self.later.get(&id).copied().or_else(built).filter(|&doc| self.alive.has(doc))
    }
}

impl Columns {
    fn push(&mut self, entry: &Entry) -> DocId {
        let doc = self.ids.len() as DocId;
        self.ids.push(entry.id);
        self.kinds.push((entry.media_type, entry.animated));
        self.folders.push(entry.folder_id.unwrap_or(ROOT));
        self.sizes.push(entry.size);
        self.file_sizes.push(entry.file_size);
        self.imported.push(entry.imported_at);
        self.names.push(&entry.name);
        self.tags.push(doc, &entry.tags);
        self.titles.push(doc, entry.title.as_slice());
        self.hues.push(self.palettes.push(&entry.colors, entry.hue_group));
        doc
    }

    fn shrink(&mut self) {
        self.ids.shrink_to_fit();
        self.kinds.shrink_to_fit();
        self.folders.shrink_to_fit();
        self.hues.shrink_to_fit();
        self.sizes.shrink_to_fit();
        self.file_sizes.shrink_to_fit();
        self.imported.shrink_to_fit();
        self.names.shrink();
        self.tags.shrink();
        self.titles.shrink();
        self.palettes.shrink();
    }
}

#[cfg(test)]
mod tests;
