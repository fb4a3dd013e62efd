//! The images in the order of each key that a list can be sorted by.

use std::cmp::Ordering;

use super::query::SortBy;
use super::{Columns, DocId};
use crate::color::NEUTRAL;
use crate::wire::collate::sort_bytes;

/// Ascending; ties by id. Images that are dead stay where they were.
#[derive(Debug, Default)]
pub(super) struct Orders([Vec<DocId>; SortBy::ALL.len()]);

impl Orders {
    /// All at once.
    pub(super) fn build(columns: &Columns) -> Self {
        let mut orders = Self::default();
        for &sort in SortBy::ALL {
            orders.0[sort as usize] = match sort {
                SortBy::Name => sorted(columns, sort, |doc| beginning(columns.names.of(doc))),
                SortBy::ImportedAt => sorted(columns, sort, |doc| columns.imported[doc as usize]),
                SortBy::FileSize => sorted(columns, sort, |doc| columns.file_sizes[doc as usize]),
                SortBy::Hue => sorted(columns, sort, |doc| columns.hues[doc as usize]),
            };
        }
        orders
    }

    /// Takes in images, each with the number that it had before. Where the key is the same, it takes
    /// the place of the old one, and nothing else moves.
    pub(super) fn take_in(&mut self, columns: &Columns, changes: &[(Option<DocId>, DocId)]) {
        for &sort in SortBy::ALL {
            let order = &mut self.0[sort as usize];
            let mut moved = Vec::new();
            for &(before, doc) in changes {
                match before.and_then(|old| place(order, columns, sort, (old, doc))) {
                    Some(at) => order[at] = doc,
                    None => moved.push(doc),
                }
            }
            insert(order, columns, sort, moved);
        }
    }

    /// The images in one of the orders: of an image that was moved, more than once.
    pub(super) fn len(&self, sort: SortBy) -> usize {
        self.0[sort as usize].len()
    }

    /// All images in the order asked for; those that no colour decides stand last in `hue`, in
    /// either direction.
    pub(super) fn walk(
        &self,
        columns: &Columns,
        sort: SortBy,
        descending: bool,
    ) -> impl DoubleEndedIterator<Item = DocId> {
        let order = &self.0[sort as usize];
        let (up, down) = order.split_at(if descending { 0 } else { order.len() });
        let neutral = match sort {
            SortBy::Hue => down.partition_point(|&doc| !columns.is_neutral(doc)),
            _ => down.len(),
        };
        let (down, last) = down.split_at(neutral);
        up.iter().chain(down.iter().rev()).chain(last.iter().rev()).copied()
    }
}

impl Columns {
    /// The order of [`Orders::walk`] for a few images.
    pub(super) fn sort(&self, sort: SortBy, descending: bool, docs: &mut [DocId]) {
        docs.sort_unstable_by(|&one, &other| {
            let ascending = self.compare(sort, one, other);
            let both_neutral = self.is_neutral(one) == self.is_neutral(other);
            match (sort, descending) {
                (_, false) => ascending,
                (SortBy::Hue, true) if !both_neutral => ascending,
                (_, true) => ascending.reverse(),
            }
        });
    }

    fn compare(&self, sort: SortBy, one: DocId, other: DocId) -> Ordering {
        let (a, b) = (one as usize, other as usize);
        let by_key = match sort {
            SortBy::Name => sort_bytes(self.names.of(one)).cmp(sort_bytes(self.names.of(other))),
            SortBy::ImportedAt => self.imported[a].cmp(&self.imported[b]),
            SortBy::FileSize => self.file_sizes[a].cmp(&self.file_sizes[b]),
            SortBy::Hue => self.hues[a].cmp(&self.hues[b]),
        };
        by_key.then_with(|| self.ids[a].cmp(&self.ids[b]))
    }

    fn is_neutral(&self, doc: DocId) -> bool {
        self.hues[doc as usize].0 == NEUTRAL
    }
}

/// Where an image stands whose number is another now, if that is where it belongs.
fn place(
    order: &[DocId],
    columns: &Columns,
    sort: SortBy,
    (old, doc): (DocId, DocId),
) -> Option<usize> {
    let compare = |other| columns.compare(sort, other, doc);
    if compare(old).is_ne() {
        return None;
    }
    let from = order.partition_point(|&other| compare(other).is_lt());
    let equal = order[from..].iter().take_while(|&&other| compare(other).is_eq());
    equal.copied().position(|other| other == old).map(|at| from + at)
}

/// Sorts more images in.
fn insert(order: &mut Vec<DocId>, columns: &Columns, sort: SortBy, mut docs: Vec<DocId>) {
    let compare = |one: DocId, other: DocId| columns.compare(sort, one, other);
    docs.sort_unstable_by(|&one, &other| compare(one, other));
    let mut end = order.len();
    order.resize(end + docs.len(), 0);
    // From the last on: what stands behind it moves once, and far enough for all before it.
    for (before, &doc) in docs.iter().enumerate().rev() {
        let at = order[..end].partition_point(|&other| compare(other, doc).is_lt());
        order.copy_within(at..end, at + before + 1);
        order[at + before] = doc;
        end = at;
    }
}

/// All images by a key that orders as `compare` does, or by less: columns lie scattered in memory,
/// and most comparisons are made without a look at them.
fn sorted<K: Ord>(columns: &Columns, sort: SortBy, key: impl Fn(DocId) -> K) -> Vec<DocId> {
    let docs = 0..columns.ids.len() as DocId;
    let mut keyed: Vec<(K, DocId)> = docs.map(|doc| (key(doc), doc)).collect();
    keyed.sort_unstable_by(|(one, a), (other, b)| {
        one.cmp(other).then_with(|| columns.compare(sort, *a, *b))
    });
    keyed.into_iter().map(|(_, doc)| doc).collect()
}

fn beginning(name: &[u8]) -> u128 {
    let mut key = [0; 16];
    key.iter_mut().zip(sort_bytes(name)).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(key)
}
