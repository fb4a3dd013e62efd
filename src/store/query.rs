//! The query of a list of images: filters, an order, a page. Pure data; [`super::select`] and
//! [`super::palettes`] say what each filter means.

use std::path::PathBuf;

use crate::color::Rgb;
use crate::digest::Checksum;
use crate::wire::{MediaFilter, Orientation, words};

words! {
    /// The keys that a list can be sorted by.
    SortBy { Name = "name", ImportedAt = "imported_at", FileSize = "file_size", Hue = "hue" }
}

/// A colour and how far from it counts: `#hex~maxDeltaE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub color: Rgb,
    /// ΔE76
    pub within: f32,
}

/// Filters combine by AND; what is empty or none does not filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub media_type: Option<MediaFilter>,
    pub animated: Option<bool>,
    /// Words; each must be in the name, the title, the description or a tag.
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
    /// Includes what is in folders or directories inside; for the root, all.
    pub recursive: bool,
    /// The most alike come first, whatever `sort_by` says.
    pub by_likeness: bool,
    pub sort_by: SortBy,
    pub descending: bool,
    pub offset: u64,
    pub limit: u64,
}

impl Query {
    /// Whether it filters by palettes, which SQL does not compare.
    pub(super) fn is_about_colors(&self) -> bool {
        !self.colors.is_empty() || !self.colors_near.is_empty() || self.similar_to.is_some()
    }

    /// The same without its page.
    pub(super) fn without_page(&self) -> Self {
        Self { offset: 0, limit: 0, ..self.clone() }
    }

    /// The same without filters by palettes.
    pub(super) fn without_colors(&self) -> Self {
        let (colors, colors_near) = (Vec::new(), Vec::new());
        Self { colors, colors_near, similar_to: None, by_likeness: false, ..self.clone() }
    }
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
