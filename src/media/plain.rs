//! Writes the image files of plain colours, which backends and other programs show like any image,
//! and makes the placeholder of an HTML package without a preview.
//!
//! The files are in a directory of the cache. The thread `reconciler` writes them when they are
//! needed.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::exif::Orientation;
use super::picture::{Picture, fit};
use super::probe::Thumbnail;
use super::webp;
use crate::color::{self, Rgb};
use crate::error_chain::chain;
use crate::paths;
use crate::wire::{COLOR_SIZE, Image};

/// Number of unused files that are kept.
const KEPT: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct PlainColors {
    directory: PathBuf,
}

impl PlainColors {
    /// Uses a directory in murald's cache.
    pub(crate) fn new(cache: &Path) -> Self {
        Self {
            directory: cache.join("colors"),
        }
    }

    /// Sets the path of a plain colour to its file; does nothing to images of the library.
    pub(crate) fn locate(&self, image: &mut Image) -> Option<Rgb> {
        let rgb = color::from_image_id(image.id)?;
        image.path = self.directory.join(format!("{}.png", &image.name[1..]));
        Some(rgb)
    }

    /// Like [`Self::locate`], but also writes the file if it is missing. Returns why that failed.
    pub(crate) fn supply(&self, image: &mut Image) -> Result<(), String> {
        let Some(rgb) = self.locate(image).filter(|_| !image.path.exists()) else {
            return Ok(());
        };
        paths::replace(&image.path, &png(rgb)).map_err(|error| {
            let error = format!("cannot write {}: {}", image.path.display(), chain(&error));
            log::warn!("{error}");
            error
        })
    }

    /// Removes the oldest unused files if there are too many.
    pub(crate) fn tidy<'i>(&self, used: impl Iterator<Item = &'i Image>) {
        let used: Vec<&Path> = used.map(|image| image.path.as_path()).collect();
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let unused = entries
            .flatten()
            .filter(|entry| !used.contains(&&*entry.path()));
        let time =
            |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
        let mut unused: Vec<_> = unused.filter_map(time).collect();
        unused.sort();
        for (_, path) in &unused[..unused.len().saturating_sub(KEPT)] {
            // A failed removal is retried after the next change.
            fs::remove_file(path).ok();
        }
    }
}

fn png(rgb: Rgb) -> Vec<u8> {
    plain(rgb, COLOR_SIZE)
        .png()
        .expect("a picture in memory can be encoded")
}

fn plain(rgb: Rgb, size: (u32, u32)) -> Picture {
    let pixels = rgb.repeat(size.0 as usize * size.1 as usize);
    Picture::new(size, 3, pixels, Orientation::NoTransforms)
}

const PLACEHOLDER_SIZE: (u32, u32) = (480, 270);
const PLACEHOLDER_COLOR: Rgb = [0x30; 3];

/// Returns a grey thumbnail that fits into `frame`.
pub(crate) fn placeholder(frame: (u32, u32)) -> Result<Thumbnail, Error> {
    let picture = plain(PLACEHOLDER_COLOR, fit(PLACEHOLDER_SIZE, frame));
    Ok(Thumbnail {
        webp: webp::encode(&picture)?,
        picture,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_file_is_kept_while_it_is_in_use() {
        let cache = tempfile::tempdir().unwrap();
        let colors = PlainColors::new(cache.path());
        let of = |blue| {
            let mut image = Image::from_color([30, 30, blue], Path::new(""));
            colors.supply(&mut image).unwrap();
            image
        };
        let (shown, first) = (of(0), of(1));
        let drawn = image::open(&shown.path).unwrap().to_rgb8();
        assert_eq!(drawn.dimensions(), COLOR_SIZE);
        assert!(drawn.pixels().all(|pixel| pixel.0 == [30, 30, 0]));
        for number in 0..KEPT {
            fs::write(cache.path().join(format!("colors/{number}.png")), "").unwrap();
        }
        colors.tidy(std::iter::once(&shown));
        assert!(shown.path.exists() && !first.path.exists());
        assert_eq!(
            fs::read_dir(cache.path().join("colors")).unwrap().count(),
            KEPT + 1
        );
    }
}
