//! A plain colour in the place of an image: its record, and how its id is told.
//!
//! Inside murald a colour is an image with an id below 0 ([`color::of_image`]); outside, its id and path
//! are null, and its name is `#rrggbb`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::image::{Image, ThumbnailPaths, own_path};
use super::{Format, MediaType, Timestamp};
use crate::color::{self, Rgb, hex, hue_group};
use crate::digest::sha256;

/// The pixels of a colour's file: enough for programs that blend the edges of what they scale.
pub(crate) const COLOR_SIZE: (u32, u32) = (960, 540);

impl Image {
    /// The record of a plain colour; its file is at `path`.
    pub(crate) fn of_color(rgb: Rgb, path: &Path) -> Self {
        let name = hex(rgb);
        Self {
            id: color::image_id(rgb),
            path: path.to_owned(),
            media_type: MediaType::Image,
            format: Format::Png,
            width: COLOR_SIZE.0,
            height: COLOR_SIZE.1,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 0,
            checksum: sha256(&name),
            description: String::new(),
            tags: Vec::new(),
            colors: vec![rgb],
            hue_group: hue_group(&[rgb]),
            folder_id: None,
            is_selected: false,
            imported_at: Timestamp::from_micros(0),
            source_path: PathBuf::new(),
            in_place: false,
            position: None,
            thumbnails: ThumbnailPaths::default(),
            preview_path: None,
            web_meta: None,
            wallpaper_config_overrides: None,
            name,
        }
    }

    /// `#rrggbb`; none: it is an image.
    pub(crate) fn color(&self) -> Option<String> {
        color::of_image(self.id).map(hex)
    }

    /// None: it is a plain colour.
    pub(crate) fn library_id(&self) -> Option<i64> {
        color::of_image(self.id).is_none().then_some(self.id)
    }

    /// The path that the image's owner knows; none: it is a plain colour.
    pub(crate) fn library_path(&self) -> Option<PathBuf> {
        self.library_id().map(|_| own_path(&self.path).to_owned())
    }
}

/// An image with its id, for people.
pub(crate) fn labelled(name: &str, id: i64) -> String {
    match color::of_image(id) {
        Some(_) => name.to_owned(),
        None => format!("{name} ({id})"),
    }
}

/// Null for a plain colour.
pub(crate) fn put_id<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    color::of_image(*id).is_none().then_some(id).serialize(serializer)
}

/// `#rrggbb` for plain colours.
pub(super) fn put_ids<S: Serializer>(
    ids: &BTreeMap<String, i64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(ids.iter().map(|(monitor, id)| {
        let color = color::of_image(*id).map(hex);
        (monitor, color.map_or_else(|| Value::from(*id), Value::from))
    }))
}
