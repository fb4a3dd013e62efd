//! The library in memory: what is filtered and sorted, as columns.
//!
//! SQL is fast for rows by id and slow for everything that a gallery asks: words, colours, several
//! tags, deep pages. So each image has a slot here with what filters and sorts look at; a query
//! gives ids, and the rows come from the database. The store keeps it in step: after every commit
//! it puts or removes the images that the transaction touched, before anybody else can write.

mod bits;
mod cells;
mod colors;
mod order;
mod postings;
mod query;
mod words;

pub use colors::Near;
pub use query::{Found, Query, SortBy};

use crate::color::{self, Rgb};
use crate::wire::MediaType;

use bits::Bits;
use colors::Palettes;
use order::Orders;
use postings::Postings;
use words::Words;

/// What the index keeps of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: i64,
    pub name: String,
    pub media_type: MediaType,
    pub animated: bool,
    pub folder_id: Option<i64>,
    pub tags: Vec<String>,
    pub colors: Vec<Rgb>,
    pub file_size: u64,
    /// Microseconds since 1970.
    pub imported_at: i64,
}

/// All images. Slots are given in the order of ids, which only grow, and are not used again until
/// the index is built anew.
#[derive(Debug, Default)]
pub struct Index {
    entries: Vec<Option<Entry>>,
    ids: Vec<i64>,
    alive: Bits,
    orders: Orders,
    postings: Postings,
    words: Words,
    palettes: Palettes,
}

/// The place of an image in every column.
type Slot = u32;

impl Index {
    /// From all images, in the order of their ids.
    pub fn build(entries: impl Iterator<Item = Entry>) -> Self {
        let mut index = Self::default();
        for entry in entries {
            index.append(entry);
        }
        index.orders.build(&index.entries);
        index
    }

    /// Takes in an image, or what has become of it.
    pub fn put(&mut self, entry: Entry) {
        match self.slot(entry.id) {
            // What is not kept here has changed.
            Some(slot) if self.entries[slot as usize].as_ref() == Some(&entry) => {}
            Some(slot) => {
                self.clear(slot);
                self.fill(slot, entry);
                self.orders.insert(&self.entries, slot);
            }
            None => {
                let slot = self.append(entry);
                self.orders.insert(&self.entries, slot);
            }
        }
    }

    pub fn remove(&mut self, id: i64) {
        if let Some(slot) = self.slot(id) {
            self.clear(slot);
        }
    }

    pub fn len(&self) -> usize {
        self.alive.count()
    }

    fn slot(&self, id: i64) -> Option<Slot> {
        self.ids.binary_search(&id).ok().map(|slot| slot as Slot)
    }

    fn append(&mut self, entry: Entry) -> Slot {
        debug_assert!(self.ids.last().is_none_or(|&last| last < entry.id), "ids only grow");
        let slot = self.ids.len() as Slot;
        self.ids.push(entry.id);
        self.entries.push(None);
        self.palettes.grow();
        self.fill(slot, entry);
        slot
    }

    /// Everything but the orders, which `build` makes at once.
    fn fill(&mut self, slot: Slot, entry: Entry) {
        self.alive.set(slot);
        let hue = entry.hue();
        self.orders.set_hue(slot, hue);
        self.postings.add(slot, &entry, hue.0);
        self.words.add(slot, &entry);
        self.palettes.set(slot, &entry.colors);
        self.entries[slot as usize] = Some(entry);
    }

    fn clear(&mut self, slot: Slot) {
        if self.entries[slot as usize].is_none() {
            return;
        }
        // While the entry is there: its keys say where it stands.
        self.orders.remove(&self.entries, slot);
        if let Some(entry) = self.entries[slot as usize].take() {
            self.alive.unset(slot);
            self.postings.remove(slot, &entry, self.orders.hue_group(slot));
            self.words.remove(slot, &entry);
            self.palettes.set(slot, &[]);
        }
    }
}

impl Entry {
    /// How `hue` sorts.
    fn hue(&self) -> order::Hue {
        let group = color::hue_group(&self.colors);
        let decides = self.colors.iter().find(|&&rgb| color::hue_group(&[rgb]) == group);
        let saturation = decides.map_or(0.0, |&rgb| color::hsl(rgb).saturation);
        (group, (saturation * 1000.0) as u16)
    }
}

#[cfg(test)]
mod tests;
