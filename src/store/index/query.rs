//! What a gallery can ask, and the answer.

use std::cmp::Ordering;
use std::path::PathBuf;

use memchr::memmem::Finder;

use super::bitmap::Bitmap;
use super::palettes::Near;
use super::{Columns, DocId, Index, ROOT};
use crate::color::Rgb;
use crate::digest::Checksum;
use crate::wire::collate::folded;
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
    /// A watched file with its content lies in this directory.
    pub directory: Option<PathBuf>,
    /// What is in a folder or directory inside it counts, too; for the root, all.
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
            directory: None,
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

/// Of the images a part as small as this has its names looked at one by one.
const FEW: usize = 4;

/// What of a query only the database knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// The images of its name, of its checksum and of its directory.
    pub only: Option<Vec<i64>>,
    /// The folders that count.
    pub folders: Option<Vec<i64>>,
}

impl Index {
    pub(crate) fn find(&self, query: &Query, known: &Known) -> Found {
        let (docs, total) = self.docs(query, known, (query.offset, query.limit));
        let ids = docs.into_iter().map(|doc| self.columns.ids[doc as usize]).collect();
        Found { ids, total: total as u64 }
    }

    /// Hands over all that match, in their order: ids, and what decides who can show them.
    pub(crate) fn each(
        &self,
        query: &Query,
        known: &Known,
        mut hand: impl FnMut(i64, (MediaType, bool)),
    ) {
        let Columns { ids, kinds, .. } = &self.columns;
        for doc in self.docs(query, known, (0, u64::MAX)).0 {
            hand(ids[doc as usize], kinds[doc as usize]);
        }
    }

    /// Whether anything matches.
    pub(crate) fn has_any(&self, query: &Query, known: &Known) -> bool {
        !self.matching(query, known, &mut Likest::new(0)).is_empty()
    }

    /// Those of a page in the order of the query, whose own page counts for nothing; and how many
    /// match.
    fn docs(&self, query: &Query, known: &Known, page: (u64, u64)) -> (Vec<DocId>, usize) {
        let (offset, limit) = page;
        let wanted = if query.by_likeness { offset.saturating_add(limit) } else { 0 };
        let mut likest = Likest::new(wanted);
        let matching = self.matching(query, known, &mut likest);
        let total = matching.count();
        let docs = match query.by_likeness {
            true => likest.skip(offset, &self.columns),
            false => self.page(query, (&matching, total), page),
        };
        (docs, total)
    }

    /// What is quick and leaves little comes first, what must look at palettes looks only at what is
    /// left.
    fn matching(&self, query: &Query, known: &Known, likest: &mut Likest) -> Bitmap {
        let mut among = self.alive.clone();
        let Columns { kinds, folders, hues, tags, palettes, sizes, names, .. } = &self.columns;
        if let Some(ids) = &known.only {
            let mut found = Bitmap::default();
            ids.iter().filter_map(|&id| self.doc(id)).for_each(|doc| found.set(doc));
            among.and(&found);
        }
        for tag in &query.tags {
            let tag = folded(tag);
            among.and(&tags.having(|other| other == tag));
        }
        if let Some(within) = &known.folders {
            among.retain_by(folders, |folder| within.contains(&folder));
        } else if let (Some(folder), false) = (query.folder, query.recursive) {
            among.retain_by(folders, |own| own == folder.unwrap_or(ROOT));
        }
        if let Some(filter) = query.media_type {
            among.retain_by(kinds, |kind| is_of(filter, kind));
        }
        if let Some(animated) = query.animated {
            among.retain_by(kinds, |kind| kind.1 == animated);
        }
        if !query.hue_groups.is_empty() {
            among.retain_by(hues, |hue| query.hue_groups.contains(&hue.0));
        }
        if let Some(orientation) = query.orientation {
            among.retain_by(sizes, |size| Orientation::of(size) == orientation);
        }
        let least = (query.min_width, query.min_height);
        if least != (0, 0) {
            let is_large = |(width, height)| width >= least.0 && height >= least.1;
            among.retain_by(sizes, is_large);
        }
        if !query.name_prefix.is_empty() {
            let prefix = folded(&query.name_prefix);
            among.retain(|doc| names.of(doc).starts_with(prefix.as_bytes()));
        }
        self.search(&folded(&query.search), &mut among);
        query.colors.iter().for_each(|&color| palettes.exactly(color, &mut among));
        query.colors_near.iter().for_each(|&near| palettes.near(near, &mut among));
        if let Some((id, within)) = query.similar_to {
            match self.doc(id) {
                Some(doc) => {
                    among.unset(doc);
                    let reference = palettes.reference(doc);
                    palettes.similar(
                        &reference,
                        within,
                        &mut among,
                        likest.most,
                        |doc, unlikeness| likest.take(unlikeness, doc, &self.columns),
                    );
                }
                None => among = Bitmap::default(),
            }
        }
        among
    }

    /// Leaves the images that have each of these words, folded, in name, title or tags.
    fn search(&self, words: &str, among: &mut Bitmap) {
        let Columns { names, tags, titles, .. } = &self.columns;
        let mut words: Vec<&str> = words.split_whitespace().collect();
        if words.len() > 1 {
            // What is left by the rare ones is soon looked at.
            words.sort_by_cached_key(|word| names.frequency(word));
        }
        for word in words {
            let finder = Finder::new(word);
            let has_it = |text: &str| finder.find(text.as_bytes()).is_some();
            let mut found = tags.having(has_it);
            titles.having(has_it).iter().for_each(|doc| found.set(doc));
            if among.count() < self.columns.ids.len() / FEW {
                among.retain(|doc| found.has(doc) || finder.find(names.of(doc)).is_some());
            } else {
                names.containing(&finder, &mut found);
                among.and(&found);
            }
        }
    }

    fn page(
        &self,
        query: &Query,
        (matching, total): (&Bitmap, usize),
        (offset, limit): (u64, u64),
    ) -> Vec<DocId> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset >= total {
            return Vec::new();
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(total - offset);
        if limit == 0 {
            return Vec::new();
        }
        let (columns, sort, descending) = (&self.columns, query.sort_by, query.descending);
        // With one more for each dead image that still stands there.
        let all = self.orders.len(sort);
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

/// The most alike, as many as are wanted; of equal ones in the order of their ids.
struct Likest {
    wanted: usize,
    best: Vec<(f32, DocId)>,
    /// What is less alike is not kept: there are enough.
    most: f32,
}

impl Likest {
    fn new(wanted: u64) -> Self {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let most = if wanted == 0 { f32::NEG_INFINITY } else { f32::INFINITY };
        Self { wanted, best: Vec::new(), most }
    }

    /// Returns how unlike another may be.
    fn take(&mut self, unlikeness: f32, doc: DocId, columns: &Columns) -> f32 {
        if unlikeness > self.most {
            return self.most;
        }
        self.best.push((unlikeness, doc));
        if self.best.len() / 2 >= self.wanted {
            let last = self.wanted - 1;
            let order = |one: &_, other: &_| Self::compare(columns, one, other);
            let (_, &mut (most, _), _) = self.best.select_nth_unstable_by(last, order);
            self.best.truncate(self.wanted);
            self.most = most;
        }
        self.most
    }

    /// The rest behind the first so many, in order.
    fn skip(mut self, offset: u64, columns: &Columns) -> Vec<DocId> {
        self.best.sort_unstable_by(|one, other| Self::compare(columns, one, other));
        let best = self.best.into_iter().take(self.wanted).map(|(_, doc)| doc);
        best.skip(usize::try_from(offset).unwrap_or(usize::MAX)).collect()
    }

    fn compare(
        columns: &Columns,
        &(a, one): &(f32, DocId),
        &(b, other): &(f32, DocId),
    ) -> Ordering {
        let ids = &columns.ids;
        a.total_cmp(&b).then_with(|| ids[one as usize].cmp(&ids[other as usize]))
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
