//! What a gallery can ask, and the answer.

use super::bits::Bits;
use super::colors::Near;
use super::{Entry, Index, Slot};
use crate::color::Rgb;
use crate::wire::{MediaFilter, MediaType, words};

words! {
    /// What a list is sorted by.
    SortBy { Name = "name", ImportedAt = "imported_at", FileSize = "file_size", Hue = "hue" }
}

/// Filters combine by AND; what is empty or none does not filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub media_type: Option<MediaFilter>,
    pub animated: Option<bool>,
    /// Words; each must be in the name or a tag.
    pub search: String,
    /// The image has all of them, in upper or lower case.
    pub tags: Vec<String>,
    /// Every one is in the palette.
    pub colors: Vec<Rgb>,
    /// For every one the palette has a colour that is near enough.
    pub colors_near: Vec<Near>,
    pub hue_group: Option<u8>,
    /// An image, and how near (ΔE76) two colours of the two palettes must come.
    pub similar_to: Option<(i64, f32)>,
    /// A folder, or within it none: the root.
    pub folder: Option<Option<i64>>,
    pub sort_by: SortBy,
    pub descending: bool,
    pub offset: u64,
    pub limit: u64,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            media_type: None,
            animated: None,
            search: String::new(),
            tags: Vec::new(),
            colors: Vec::new(),
            colors_near: Vec::new(),
            hue_group: None,
            similar_to: None,
            folder: None,
            sort_by: SortBy::ImportedAt,
            descending: true,
            offset: 0,
            limit: 50,
        }
    }
}

/// One page of what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub ids: Vec<i64>,
    /// On all pages.
    pub total: u64,
}

impl Index {
    pub fn find(&self, query: &Query) -> Found {
        let matching = self.matching(query);
        let total = matching.as_ref().map_or(self.len(), Bits::count);
        let slots = self.page(query, matching.as_ref(), total);
        let ids = slots.into_iter().map(|slot| self.ids[slot as usize]).collect();
        Found { ids, total: total as u64 }
    }

    /// All tags in use, sorted.
    pub fn tags(&self) -> Vec<String> {
        self.postings.tags()
    }

    /// None where nothing filters. What is quick and leaves little comes first, what must look at
    /// palettes looks only at what is left.
    fn matching(&self, query: &Query) -> Option<Bits> {
        let mut matching = None;
        let mut filter = |keep: &dyn Fn(&mut Bits)| {
            keep(matching.get_or_insert_with(|| self.alive.clone()));
        };
        query.tags.iter().for_each(|tag| filter(&|among| self.postings.tag(tag, among)));
        if let Some(folder) = query.folder {
            filter(&|among| self.postings.folder(folder, among));
        }
        if let Some(media_type) = query.media_type {
            filter(&|among| match media_type {
                MediaFilter::Image => self.postings.media(MediaType::Image, among),
                MediaFilter::Video => self.postings.media(MediaType::Video, among),
                MediaFilter::Web => self.postings.media(MediaType::Web, among),
                MediaFilter::Gif => self.postings.animated(true, among),
            });
        }
        if let Some(animated) = query.animated {
            filter(&|among| self.postings.animated(animated, among));
        }
        if let Some(group) = query.hue_group {
            filter(&|among| self.postings.hue(group, among));
        }
        for part in query.search.to_lowercase().split_whitespace() {
            filter(&|among| self.words.with(part, among));
        }
        for &color in &query.colors {
            filter(&|among| self.palettes.exactly(color, among));
        }
        for &near in &query.colors_near {
            filter(&|among| self.palettes.near(near, among));
        }
        if let Some((id, within)) = query.similar_to {
            filter(&|among| self.similar(id, within, among));
        }
        matching
    }

    fn similar(&self, id: i64, within: f32, among: &mut Bits) {
        let reference: Option<(Slot, &Entry)> =
            self.slot(id).and_then(|slot| Some((slot, self.entries[slot as usize].as_ref()?)));
        match reference {
            Some((slot, entry)) => {
                self.palettes.similar(entry, within, among);
                among.unset(slot);
            }
            None => *among = Bits::default(),
        }
    }

    fn page(&self, query: &Query, matching: Option<&Bits>, total: usize) -> Vec<Slot> {
        let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
        if offset >= total {
            return Vec::new();
        }
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).min(total - offset);
        let (sort, descending) = (query.sort_by, query.descending);
        let wanted = (offset + limit).min(total - offset);
        match matching {
            Some(few) if is_better_sorted(total, self.entries.len(), wanted) => {
                let mut slots: Vec<Slot> = few.iter().collect();
                self.orders.sort(&self.entries, sort, descending, &mut slots);
                slots.into_iter().skip(offset).take(limit).collect()
            }
            Some(many) => {
                let walk = self.orders.walk(sort, descending).filter(|&slot| many.has(slot));
                cut(walk, offset, limit, total)
            }
            None => cut(self.orders.walk(sort, descending), offset, limit, total),
        }
    }
}

/// The page of a walk over `total` slots, from whichever end is nearer.
fn cut(
    walk: impl DoubleEndedIterator<Item = Slot>,
    offset: usize,
    limit: usize,
    total: usize,
) -> Vec<Slot> {
    let after = total - offset - limit;
    if offset <= after {
        return walk.skip(offset).take(limit).collect();
    }
    let mut page: Vec<Slot> = walk.rev().skip(after).take(limit).collect();
    page.reverse();
    page
}

/// Whether it is cheaper to sort all that match than to walk the order that is kept until `wanted`
/// of them have been met. A comparison costs about eight steps of the walk.
fn is_better_sorted(matching: usize, all: usize, wanted: usize) -> bool {
    let walk = all * wanted / matching.max(1);
    let sort = matching * (matching.max(2).ilog2() as usize) * 8;
    sort < walk
}
