//! Defines the query of a list of images: filters, an order and a page. Pure data;
//! [`super::select`] and [`super::palettes`] implement the filters.

use std::path::PathBuf;
use std::sync::Arc;

use crate::color::Rgb;
use crate::digest::Checksum;
use crate::wire::{MediaFilter, Orientation, SortBy};

/// A colour and the maximum distance from it: `#hex~maxDeltaE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub color: Rgb,
    /// The maximum distance as ΔE76.
    pub within: f32,
}

/// Filters combine by AND; an empty or missing filter matches all images.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub media_type: Option<MediaFilter>,
    pub animated: Option<bool>,
    /// Words; each must occur in the name, the title, the description, a tag or the path of
    /// the folder.
    pub search: String,
    /// The image has all these tags, ignoring case.
    pub tags: Vec<String>,
    /// The palette has all these colours.
    pub colors: Vec<Rgb>,
    /// For each, the palette has a colour that is near enough.
    pub colors_near: Vec<Near>,
    /// The image's hue group is one of these.
    pub hue_groups: Vec<u8>,
    pub orientation: Option<Orientation>,
    pub min_width: u32,
    pub min_height: u32,
    /// The exact name, however its letters are composed.
    pub name: Option<String>,
    /// Ignores case.
    pub name_prefix: String,
    pub checksum: Option<Checksum>,
    /// A reference image, and the maximum distance (ΔE76) between the nearest colours of the two
    /// palettes.
    pub similar_to: Option<(i64, f32)>,
    /// A folder; the inner `None` is the root.
    pub folder: Option<Option<i64>>,
    /// The image has a watched file in this directory.
    pub directory: Option<PathBuf>,
    /// Includes subfolders or subdirectories; for the root, all images.
    pub recursive: bool,
    /// Sorts by similarity, the most similar first, instead of `sort_by`.
    pub by_likeness: bool,
    pub sort_by: SortBy,
    pub descending: bool,
    pub offset: u64,
    pub limit: u64,
}

/// All ids of a list, in order.
pub(super) type Hits = Arc<Vec<i64>>;

/// The last list, so that a client that reads one page after the other does not query for each page.
pub(super) struct LastList {
    /// The version of the lists (see the table `library`).
    pub(super) version: i64,
    /// Without its page.
    pub(super) query: Query,
    pub(super) hits: Hits,
}

impl Query {
    /// Whether the query has filters that compare palettes, which SQL cannot do.
    pub(super) fn is_about_colors(&self) -> bool {
        !self.colors.is_empty() || !self.colors_near.is_empty() || self.similar_to.is_some()
    }

    /// Returns the query without its page.
    pub(super) fn without_page(&self) -> Self {
        Self {
            offset: 0,
            limit: 0,
            ..self.clone()
        }
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
