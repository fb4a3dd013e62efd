//! What a gallery can ask, and the answer.

use memchr::memmem::Finder;

use super::bitmap::Bitmap;
use super::palettes::Near;
use super::{Columns, DocId, Index, ROOT};
use crate::color::Rgb;
use crate::digest::Checksum;
use crate::wire::{MediaFilter, MediaType, Orientation, words};

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
    /// One of these.
    pub hue_groups: Vec<u8>,
    pub orientation: Option<Orientation>,
    pub min_width: u32,
    pub min_height: u32,
    /// Exactly this.
    pub name: Option<String>,
    /// In upper or lower case.
    pub name_prefix: String,
    pub checksum: Option<Checksum>,
    /// An image, and how near (ΔE76) two colours of the two palettes must come.
    pub similar_to: Option<(i64, f32)>,
    /// A folder, or within it none: the root.
    pub folder: Option<Option<i64>>,
    /// The folders in that one count, too; for the root, all.
    pub recursive: bool,
    /// The most alike come first, whatever `sort_by` says.
    pub by_likeness: bool,
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
            hue_groups: Vec::new(),
            orientation: None,
            min_width: 0,
            min_height: 0,
            name: None,
            name_prefix: String::new(),
            checksum: None,
            similar_to: None,
            folder: None,
            recursive: false,
            by_likeness: false,
            sort_by: SortBy::ImportedAt,
            descending: true,
            offset: 0,
            limit: 50,
        }
    }
}

/// One page of what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub ids: Vec<i64>,
    /// On all pages.
    pub total: u64,
}

/// Of the images a part as small as this is looked at one by one.
const FEW: usize = 8;

/// What of a query only the database knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The images of its name and of its checksum.
    pub only: Option<Vec<i64>>,
    /// The folders that count.
    pub folders: Option<Vec<i64>>,
}

impl Index {
    pub(crate) fn find(&self, query: &Query, known: &Known) -> Found {
        let matching = self.matching(query, known);
        let docs = self.page(query, &matching, (query.offset, query.limit));
        let ids = docs.into_iter().map(|doc| self.columns.ids[doc as usize]).collect();
        Found { ids, total: matching.count() as u64 }
    }

    /// Hands over all that match, in their order: ids, and what decides who can show them.
    pub(crate) fn each(
        &self,
        query: &Query,
        known: &Known,
        mut hand: impl FnMut(i64, (MediaType, bool)),
    ) {
        let matching = self.matching(query, known);
        let Columns { ids, kinds, .. } = &self.columns;
        for doc in self.page(query, &matching, (0, u64::MAX)) {
            hand(ids[doc as usize], kinds[doc as usize]);
        }
    }

    /// Whether anything matches.
    pub(crate) fn has_any(&self, query: &Query, known: &Known) -> bool {
        !self.matching(query, known).is_empty()
    }

    /// What is quick and leaves little comes first, what must look at palettes looks only at what is
    /// left.
    fn matching(&self, query: &Query, known: &Known) -> Bitmap {
        let mut among = self.alive.clone();
        let Columns { kinds, folders, hues, tags, palettes, sizes, names, .. } = &self.columns;
        if let Some(ids) = &known.only {
            let mut found = Bitmap::default();
            ids.iter().filter_map(|&id| self.doc(id)).for_each(|doc| found.set(doc));
            among.and(&found);
        }
        for tag in &query.tags {
            let (tag, mut found) = (tag.to_lowercase(), Bitmap::default());
            tags.having(|other| other == tag, &mut found);
            among.and(&found);
        }
        if let Some(within) = &known.folders {
            among.retain(|doc| within.contains(&folders[doc as usize]));
        } else if let (Some(folder), false) = (query.folder, query.recursive) {
            among.retain(|doc| folders[doc as usize] == folder.unwrap_or(ROOT));
        }
        if let Some(filter) = query.media_type {
            among.retain(|doc| is_of(filter, kinds[doc as usize]));
        }
        if let Some(animated) = query.animated {
            among.retain(|doc| kinds[doc as usize].1 == animated);
        }
        if !query.hue_groups.is_empty() {
            among.retain(|doc| query.hue_groups.contains(&hues[doc as usize].0));
        }
        if let Some(orientation) = query.orientation {
            among.retain(|doc| Orientation::of(sizes[doc as usize]) == orientation);
        }
        let least = (query.min_width, query.min_height);
        if least != (0, 0) {
            let is_large = |(width, height)| width >= least.0 && height >= least.1;
            among.retain(|doc| is_large(sizes[doc as usize]));
        }
        if !query.name_prefix.is_empty() {
            let prefix = query.name_prefix.to_lowercase();
            among.retain(|doc| names.of(doc).starts_with(prefix.as_bytes()));
        }
        self.search(&query.search.to_lowercase(), &mut among);
        query.colors.iter().for_each(|&color| palettes.exactly(color, &mut among));
        query.colors_near.iter().for_each(|&near| palettes.near(near, &mut among));
        if let Some((id, within)) = query.similar_to {
            match self.doc(id) {
                Some(doc) => {
                    palettes.similar(doc, within, &mut among);
                    among.unset(doc);
                }
                None => among = Bitmap::default(),
            }
        }
        among
    }

    /// Leaves the images that have each of these words, in lower case, in name or tags.
    fn search(&self, words: &str, among: &mut Bitmap) {
        let Columns { names, tags, .. } = &self.columns;
        let mut words: Vec<&str> = words.split_whitespace().collect();
        if words.len() > 1 {
            // What is left by the rare ones is soon looked at.
            words.sort_by_cached_key(|word| names.frequency(word));
        }
        for word in words {
            let finder = Finder::new(word);
            let fits = |tag: &str| finder.find(tag.as_bytes()).is_some();
            if among.count() < self.columns.ids.len() / FEW {
                let tagged = tags.fitting(fits);
                let has = |doc| finder.find(names.of(doc)).is_some() || tags.has(doc, &tagged);
                among.retain(has);
                continue;
            }
            let mut found = Bitmap::default();
            names.containing(&finder, &mut found);
            tags.having(fits, &mut found);
            among.and(&found);
        }
    }

    /// Those of a page in the order of the query, whose own page counts for nothing.
    fn page(&self, query: &Query, matching: &Bitmap, (offset, limit): (u64, u64)) -> Vec<DocId> {
        let total = matching.count();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset >= total {
            return Vec::new();
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(total - offset);
        if limit == 0 {
            return Vec::new();
        }
        let (columns, sort, descending) = (&self.columns, query.sort_by, query.descending);
        let all = columns.ids.len();
        if let Some(reference) = query.similar_to.filter(|_| query.by_likeness) {
            let docs = self.by_likeness(reference.0, matching, offset + limit);
            return docs.into_iter().skip(offset).collect();
        }
        if total == all {
            return cut(self.orders.walk(columns, sort, descending), offset, limit, total);
        }
        if is_better_sorted(total, all, (offset + limit).min(total - offset)) {
            let mut docs: Vec<DocId> = matching.iter().collect();
            columns.sort(sort, descending, &mut docs);
            return docs.into_iter().skip(offset).take(limit).collect();
        }
        let walk = self.orders.walk(columns, sort, descending).filter(|&doc| matching.has(doc));
        cut(walk, offset, limit, total)
    }
}

impl Index {
    /// The first of those that match, the most alike first; of equal ones in the order of their ids.
    fn by_likeness(&self, reference: i64, matching: &Bitmap, wanted: usize) -> Vec<DocId> {
        let Columns { ids, palettes, .. } = &self.columns;
        let Some(reference) = self.doc(reference) else { return Vec::new() };
        let reference = palettes.reference(reference);
        let order = |&(a, one): &(f32, DocId), &(b, other): &(f32, DocId)| {
            a.total_cmp(&b).then_with(|| ids[one as usize].cmp(&ids[other as usize]))
        };
        // As soon as there are enough, what is less alike than all of them is not kept.
        let (mut best, mut most) = (Vec::new(), f32::INFINITY);
        for doc in matching.iter() {
            let unlikeness = palettes.unlikeness(&reference, doc);
            if unlikeness > most {
                continue;
            }
            best.push((unlikeness, doc));
            if best.len() / 2 >= wanted {
                let (_, &mut (last, _), _) = best.select_nth_unstable_by(wanted - 1, order);
                best.truncate(wanted);
                most = last;
            }
        }
        best.sort_unstable_by(order);
        best.truncate(wanted);
        best.into_iter().map(|(_, doc)| doc).collect()
    }
}

fn is_of(filter: MediaFilter, (media_type, animated): (MediaType, bool)) -> bool {
    match filter {
        MediaFilter::Image => media_type == MediaType::Image,
        MediaFilter::Video => media_type == MediaType::Video,
        MediaFilter::Web => media_type == MediaType::Web,
        MediaFilter::Gif => animated,
    }
}

/// The page of a walk over `total` images, from whichever end is nearer.
fn cut(
    walk: impl DoubleEndedIterator<Item = DocId>,
    offset: usize,
    limit: usize,
    total: usize,
) -> Vec<DocId> {
    let after = total - offset - limit;
    if offset <= after {
        return walk.skip(offset).take(limit).collect();
    }
    let mut page: Vec<DocId> = walk.rev().skip(after).take(limit).collect();
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
