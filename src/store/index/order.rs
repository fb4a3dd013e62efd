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
    /// What `hue` sorts by, of each slot.
    hues: Vec<Hue>,
}

/// Group, and saturation in thousandths.
pub(super) type Hue = (u8, u16);

type Entries = [Option<Entry>];

impl Orders {
    /// All at once, of slots whose hues are set.
    pub(super) fn build(&mut self, entries: &Entries) {
        for &sort in SortBy::ALL {
            let there = entries.iter().enumerate().filter_map(|(slot, entry)| {
                Some((self.key(sort, slot as Slot, entry.as_ref()?), slot as Slot))
            });
            let mut keyed: Vec<(u128, Slot)> = there.collect();
            // Entries lie scattered in memory: most comparisons are made without a look at them.
            keyed.sort_unstable_by(|&(one, a), &(other, b)| {
                one.cmp(&other).then_with(|| match sort {
                    SortBy::Name => self.compare(entries, sort, a, b),
                    _ => a.cmp(&b),
                })
            });
            *self.of_mut(sort) = keyed.into_iter().map(|(_, slot)| slot).collect();
        }
    }

    /// What orders as [`Self::compare`] does; of a name only its beginning.
    fn key(&self, sort: SortBy, slot: Slot, entry: &Entry) -> u128 {
        match sort {
            SortBy::Name => {
                let lower = entry.name.chars().take(16).flat_map(char::to_lowercase);
                let bytes: String = lower.collect();
                let mut key = [0; 16];
                key.iter_mut().zip(bytes.bytes()).for_each(|(to, from)| *to = from);
                u128::from_be_bytes(key)
            }
            SortBy::ImportedAt => u128::from(entry.imported_at.cast_unsigned() ^ 1 << 63),
            SortBy::FileSize => u128::from(entry.file_size),
            SortBy::Hue => {
                let (group, saturation) = self.hues[slot as usize];
                u128::from(group) << 16 | u128::from(saturation)
            }
        }
    }

    /// Before the slot is sorted in.
    pub(super) fn set_hue(&mut self, slot: Slot, hue: Hue) {
        if self.hues.len() <= slot as usize {
            self.hues.resize(slot as usize + 1, (NEUTRAL, 0));
        }
        self.hues[slot as usize] = hue;
    }

    pub(super) fn hue_group(&self, slot: Slot) -> u8 {
        self.hues[slot as usize].0
    }

    pub(super) fn insert(&mut self, entries: &Entries, slot: Slot) {
        for &sort in SortBy::ALL {
            if let Err(at) = self.find(entries, sort, slot) {
                self.of_mut(sort).insert(at, slot);
            }
        }
    }

    pub(super) fn remove(&mut self, entries: &Entries, slot: Slot) {
        for &sort in SortBy::ALL {
            if let Ok(at) = self.find(entries, sort, slot) {
                self.of_mut(sort).remove(at);
            }
        }
    }

    /// All slots in the order asked for.
    pub(super) fn walk(
        &self,
        sort: SortBy,
        descending: bool,
    ) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        let order = self.of(sort);
        let (up, down) = order.split_at(if descending { 0 } else { order.len() });
        let neutral = match sort {
            SortBy::Hue => down.partition_point(|&slot| !self.is_neutral(slot)),
            _ => down.len(),
        };
        let (down, last) = down.split_at(neutral);
        up.iter().chain(down.iter().rev()).chain(last.iter().rev()).copied()
    }

    /// The same order for a few slots.
    pub(super) fn sort(
        &self,
        entries: &Entries,
        sort: SortBy,
        descending: bool,
        slots: &mut [Slot],
    ) {
        slots.sort_unstable_by(|&one, &other| {
            let ascending = self.compare(entries, sort, one, other);
            let both_neutral = self.is_neutral(one) == self.is_neutral(other);
            match (sort, descending) {
                (_, false) => ascending,
                (SortBy::Hue, true) if !both_neutral => ascending,
                (_, true) => ascending.reverse(),
            }
        });
    }

    fn find(&self, entries: &Entries, sort: SortBy, slot: Slot) -> Result<usize, usize> {
        self.of(sort).binary_search_by(|&other| self.compare(entries, sort, other, slot))
    }

    fn is_neutral(&self, slot: Slot) -> bool {
        self.hue_group(slot) == NEUTRAL
    }

    fn compare(&self, entries: &Entries, sort: SortBy, one: Slot, other: Slot) -> Ordering {
        let (Some(a), Some(b)) = (&entries[one as usize], &entries[other as usize]) else {
            return one.cmp(&other);
        };
        let by_key = match sort {
            SortBy::Name => names(&a.name, &b.name),
            SortBy::ImportedAt => a.imported_at.cmp(&b.imported_at),
            SortBy::FileSize => a.file_size.cmp(&b.file_size),
            SortBy::Hue => self.hues[one as usize].cmp(&self.hues[other as usize]),
        };
        by_key.then(one.cmp(&other))
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

/// Without regard to case, as people look for names; then with it, so that no two are equal.
fn names(one: &str, other: &str) -> Ordering {
    let lower = |name: &str| name.chars().flat_map(char::to_lowercase).collect::<String>();
    if one.is_ascii() && other.is_ascii() {
        let folded = one.bytes().map(|b| b.to_ascii_lowercase());
        return folded.cmp(other.bytes().map(|b| b.to_ascii_lowercase())).then(one.cmp(other));
    }
    lower(one).cmp(&lower(other)).then(one.cmp(other))
}
