//! What a gallery can ask, and the answer.

use super::bits::Bits;
use super::colors::Near;
use super::order::Orders;
use super::{Entry, Index, Slot};
use crate::color::Rgb;
use crate::wire::{MediaType, words};

words! {
    /// What a list is sorted by.
    SortBy { Name = "name", ImportedAt = "imported_at", FileSize = "file_size", Hue = "hue" }
}

/// Filters combine by AND; what is empty or none does not filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub media_type: Option<MediaType>,
    /// Words; each must be in the name or a tag.
    pub search: String,
    /// The image has all of them.
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

    /// All ids that match, in the order of the query, whatever its page.
    pub fn find_all(&self, query: &Query) -> Vec<i64> {
        self.find(&Query { offset: 0, limit: u64::MAX, ..query.clone() }).ids
    }

    /// All tags in use, sorted.
    pub fn tags(&self) -> Vec<String> {
        self.postings.tags()
    }

    /// How many images lie in a folder itself; none is the root.
    pub fn in_folder(&self, folder: Option<i64>) -> u64 {
        self.postings.folder(folder).len() as u64
    }

    /// None where nothing filters.
    fn matching(&self, query: &Query) -> Option<Bits> {
        let mut sets: Vec<Bits> =
            self.listed(query).map(|list| list.iter().copied().collect()).collect();
        let words = query.search.to_lowercase();
        sets.extend(words.split_whitespace().map(|word| self.texts.with(word)));
        // What needs a look at every palette comes last, and looks only at what is left.
        let colourful =
            !query.colors.is_empty() || !query.colors_near.is_empty() || query.similar_to.is_some();
        if sets.is_empty() && !colourful {
            return None;
        }
        let mut matching = self.alive.clone();
        sets.iter().for_each(|set| matching.and(set));
        if colourful {
            matching = self.by_color(query, matching);
        }
        Some(matching)
    }

    /// The lists of slots that the query names.
    fn listed(&self, query: &Query) -> impl Iterator<Item = &[Slot]> {
        let media = query.media_type.map(|media_type| self.postings.media(media_type));
        let folder = query.folder.map(|folder| self.postings.folder(folder));
        let hue = query.hue_group.map(|group| self.postings.hue(group));
        let tags: Vec<&[Slot]> = query.tags.iter().map(|tag| self.postings.tag(tag)).collect();
        media.into_iter().chain(folder).chain(hue).chain(tags)
    }

    fn by_color(&self, query: &Query, mut matching: Bits) -> Bits {
        for &color in &query.colors {
            matching = self.palettes.exactly(color, &matching);
        }
        for &near in &query.colors_near {
            matching = self.palettes.near(near, &matching);
        }
        if let Some((id, within)) = query.similar_to {
            let reference: Option<(Slot, &Entry)> =
                self.slot(id).and_then(|slot| Some((slot, self.entries[slot as usize].as_ref()?)));
            matching = match reference {
                Some((slot, entry)) => {
                    let mut similar = self.palettes.similar(entry, within, &matching);
                    similar.unset(slot);
                    similar
                }
                None => Bits::default(),
            };
        }
        matching
    }

    fn page(&self, query: &Query, matching: Option<&Bits>, total: usize) -> Vec<Slot> {
        let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        if offset >= total {
            return Vec::new();
        }
        let (sort, descending) = (query.sort_by, query.descending);
        match matching {
            // Few among many are sorted; otherwise the order that is kept is walked.
            Some(few) if total < self.entries.len() / 16 => {
                let mut slots: Vec<Slot> = few.iter().collect();
                Orders::sort(&self.entries, sort, descending, &mut slots);
                slots.into_iter().skip(offset).take(limit).collect()
            }
            Some(many) => {
                let walk = self.orders.walk(&self.entries, sort, descending);
                walk.filter(|&slot| many.has(slot)).skip(offset).take(limit).collect()
            }
            None => {
                let walk = self.orders.walk(&self.entries, sort, descending);
                walk.skip(offset).take(limit).collect()
            }
        }
    }
}
