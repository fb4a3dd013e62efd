//! The slots in the order of each key that a list can be sorted by.

use std::cmp::Ordering;

use super::query::SortBy;
use super::{Entry, Slot};
use crate::color::NEUTRAL;

/// Ascending; ties by id.
#[derive(Debug, Default)]
pub(super) struct Orders {
    name: Vec<Slot>,
    imported_at: Vec<Slot>,
    file_size: Vec<Slot>,
    /// Images that no colour decides stand last, in either direction.
    hue: Vec<Slot>,
}

type Entries = [Option<Entry>];

impl Orders {
    pub(super) fn build(entries: &Entries) -> Self {
        let mut orders = Self::default();
        for &sort in SortBy::ALL {
            let mut order: Vec<Slot> = (0..entries.len() as Slot).collect();
            order.retain(|&slot| entries[slot as usize].is_some());
            order.sort_unstable_by(|&one, &other| compare(entries, sort, one, other));
            *orders.of_mut(sort) = order;
        }
        orders
    }

    pub(super) fn insert(&mut self, entries: &Entries, slot: Slot) {
        for &sort in SortBy::ALL {
            let order = self.of_mut(sort);
            if let Err(at) = order.binary_search_by(|&other| compare(entries, sort, other, slot)) {
                order.insert(at, slot);
            }
        }
    }

    pub(super) fn remove(&mut self, entries: &Entries, slot: Slot) {
        for &sort in SortBy::ALL {
            let order = self.of_mut(sort);
            if let Ok(at) = order.binary_search_by(|&other| compare(entries, sort, other, slot)) {
                order.remove(at);
            }
        }
    }

    /// All slots in the order asked for.
    pub(super) fn walk(
        &self,
        entries: &Entries,
        sort: SortBy,
        descending: bool,
    ) -> Box<dyn Iterator<Item = Slot> + '_> {
        let order = self.of(sort);
        if !descending {
            return Box::new(order.iter().copied());
        }
        let last = match sort {
            SortBy::Hue => order.partition_point(|&slot| !is_neutral(entries, slot)),
            _ => order.len(),
        };
        Box::new(order[..last].iter().rev().chain(order[last..].iter().rev()).copied())
    }

    /// The same order for a few slots.
    pub(super) fn sort(entries: &Entries, sort: SortBy, descending: bool, slots: &mut [Slot]) {
        slots.sort_unstable_by(|&one, &other| {
            let ascending = compare(entries, sort, one, other);
            let both_neutral = is_neutral(entries, one) == is_neutral(entries, other);
            match (sort, descending) {
                (_, false) => ascending,
                (SortBy::Hue, true) if !both_neutral => ascending,
                (_, true) => ascending.reverse(),
            }
        });
    }

    fn of(&self, sort: SortBy) -> &Vec<Slot> {
        match sort {
            SortBy::Name => &self.name,
            SortBy::ImportedAt => &self.imported_at,
            SortBy::FileSize => &self.file_size,
            SortBy::Hue => &self.hue,
        }
    }

    fn of_mut(&mut self, sort: SortBy) -> &mut Vec<Slot> {
        match sort {
            SortBy::Name => &mut self.name,
            SortBy::ImportedAt => &mut self.imported_at,
            SortBy::FileSize => &mut self.file_size,
            SortBy::Hue => &mut self.hue,
        }
    }
}

fn is_neutral(entries: &Entries, slot: Slot) -> bool {
    entries[slot as usize].as_ref().is_some_and(|entry| entry.hue().0 == NEUTRAL)
}

fn compare(entries: &Entries, sort: SortBy, one: Slot, other: Slot) -> Ordering {
    let (Some(a), Some(b)) = (&entries[one as usize], &entries[other as usize]) else {
        return one.cmp(&other);
    };
    let by_key = match sort {
        SortBy::Name => names(&a.name, &b.name),
        SortBy::ImportedAt => a.imported_at.cmp(&b.imported_at),
        SortBy::FileSize => a.file_size.cmp(&b.file_size),
        SortBy::Hue => a.hue().cmp(&b.hue()),
    };
    by_key.then(one.cmp(&other))
}

/// Without regard to case, as people look for names; then with it, so that no two are equal.
fn names(one: &str, other: &str) -> Ordering {
    let lower = |name: &str| name.chars().flat_map(char::to_lowercase).collect::<String>();
    if one.is_ascii() && other.is_ascii() {
        let folded = one.bytes().map(|b| b.to_ascii_lowercase());
        return folded.cmp(other.bytes().map(|b| b.to_ascii_lowercase())).then(one.cmp(other));
    }
    lower(one).cmp(&lower(other)).then(one.cmp(other))
}
