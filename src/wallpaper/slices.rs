//! Cuts pictures that are stretched over several monitors into slices, and makes the pictures of plain
//! colours; keeps both while they are shown.
//!
//! Runs on the worker's thread, since cutting takes as long as decoding. The name of a slice contains a
//! hash of all its inputs, so an existing slice is valid. Slices that are no longer used are removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::backends::decoding::{self, file_error, unwritable};
use crate::backends::{Error, Placement};
use crate::color;
use crate::compositor::Output;
use crate::decode::Decoder;
use crate::digest;
use crate::media::{Cut, Tile, extent};
use crate::paths::{Replacement, remove_unused};
use crate::sys::Cancel;

pub(super) struct Slices {
    directory: PathBuf,
    /// The directory of the backend's own copies.
    copies: PathBuf,
    decoder: Decoder,
}

impl Slices {
    /// `cache` is the directory of a worker.
    pub(super) fn new(cache: &Path, decoder: Decoder) -> Self {
        Self {
            directory: cache.join("slices"),
            copies: cache.join("copies"),
            decoder,
        }
    }

    /// Carries out an order. If it fails, removes the slices and copies that it made, as nothing shows
    /// them.
    pub(super) fn keep_if_done<T>(
        &self,
        order: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.files();
        order().inspect_err(|_| {
            for directory in [&self.directory, &self.copies] {
                remove_unused(directory, |path| before.contains(path));
            }
        })
    }

    fn files(&self) -> BTreeSet<PathBuf> {
        let entries = [&self.directory, &self.copies]
            .map(fs::read_dir)
            .into_iter()
            .flatten();
        entries
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    }

    /// Replaces the paths of stretched pictures and plain colours by those of slices.
    pub(super) fn cut(
        &self,
        mut placements: Vec<Placement>,
        cancel: &Cancel,
    ) -> Result<Vec<Placement>, Error> {
        // A colour of its monitor's size fills the monitor with any fit. Feh has one fit for all
        // monitors.
        let is_cut = |placement: &&mut Placement| {
            placement.extended_over.len() > 1 || color::from_image_id(placement.image_id).is_some()
        };
        for placement in placements.iter_mut().filter(is_cut) {
            placement.path = self.slice(placement, cancel)?;
        }
        Ok(placements)
    }

    /// Removes the slices that these placements do not use.
    pub(super) fn tidy(&self, placements: &[Placement]) {
        let is_used = |path: &Path| placements.iter().any(|placement| placement.path == path);
        remove_unused(&self.directory, is_used);
    }

    /// Returns the file of a slice. If it is missing, the slices of all outputs are made at once.
    fn slice(&self, placement: &Placement, cancel: &Cancel) -> Result<PathBuf, Error> {
        let outputs = if placement.span.is_empty() {
            std::slice::from_ref(&placement.output)
        } else {
            placement.span.as_slice()
        };
        let source = &placement.path;
        let tiles: Vec<Tile> = outputs.iter().map(tile).collect();
        let key = key(source, &tiles).map_err(|error| file_error(source, &error))?;
        let path = |output: &Output| self.path(&key, output);
        let slice = path(&placement.output);
        if slice.exists() {
            return Ok(slice);
        }
        let new = outputs
            .iter()
            .map(|output| Replacement::create(&path(output)));
        let new = new
            .collect::<Result<Vec<_>, _>>()
            .map_err(unwritable(&self.directory))?;
        let to: Vec<_> = new.iter().map(|new| new.path().to_owned()).collect();
        let size = extent(&tiles);
        let cut = Cut {
            tiles,
            ..Cut::WHOLE
        };
        decoding::cut(
            &self.decoder.until(cancel),
            source,
            (&cut, size),
            &to,
            cancel,
        )?;
        new.into_iter()
            .try_for_each(Replacement::land)
            .map_err(unwritable(&self.directory))?;
        Ok(slice)
    }

    fn path(&self, key: &str, output: &Output) -> PathBuf {
        // A file name must not contain a separator.
        self.directory
            .join(format!("{key}-{}.png", output.name.replace('/', "_")))
    }
}

/// The position and size of an output, and its pixels after the transform.
fn tile(output: &Output) -> Tile {
    Tile {
        x: output.x,
        y: output.y,
        width: output.logical_width,
        height: output.logical_height,
        pixels: output.turned_size(),
    }
}

/// A hash of the file's metadata and the layout.
fn key(source: &Path, tiles: &[Tile]) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(source)?;
    let changed = (
        metadata.ino(),
        metadata.len(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    );
    Ok(digest::short(
        format!("{source:?} {changed:?} {tiles:?}"),
        8,
    ))
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, Rgb, RgbImage};

    use super::*;
    use crate::decode::Settings;
    use crate::thread::Spawner;
    use crate::wallpaper::worker_key::tests::placement;

    fn slices(room: &Path) -> Slices {
        let (spawner, _) = Spawner::new();
        Slices::new(room, Decoder::start(Settings::default(), &spawner).unwrap())
    }

    /// A placement on A, and one on B to the right of it.
    fn stretched(path: &Path) -> Vec<Placement> {
        let both = vec!["A".to_owned(), "B".to_owned()];
        let of = |name: &str| {
            let whole = placement(name, 1);
            Placement {
                path: path.to_owned(),
                extended_over: both.clone(),
                ..whole
            }
        };
        let mut placements = vec![of("A"), of("B")];
        placements[1].output.x = 1920;
        let span: Vec<Output> = placements.iter().map(|one| one.output.clone()).collect();
        placements
            .iter_mut()
            .for_each(|one| one.span.clone_from(&span));
        placements
    }

    #[test]
    fn each_monitor_has_its_slice_until_it_is_unused() {
        let room = tempfile::tempdir().unwrap();
        let (red, blue) = (Rgb([255, 0, 0]), Rgb([0, 0, 255]));
        let picture = RgbImage::from_fn(64, 18, |x, _| if x < 32 { red } else { blue });
        let path = room.path().join("whole.png");
        DynamicImage::ImageRgb8(picture).save(&path).unwrap();
        let slices = slices(room.path());
        let cut = |placements| slices.cut(placements, &Cancel::new().unwrap()).unwrap();
        let whole = stretched(&path);
        let parts = cut(whole.clone());
        let colors = [red, blue];
        for ((part, whole), color) in parts.iter().zip(&whole).zip(colors) {
            let drawn = image::open(&part.path).unwrap().to_rgb8();
            assert_eq!(
                *drawn.get_pixel(drawn.width() / 2, drawn.height() / 2),
                color
            );
            assert_eq!(
                Placement {
                    path: path.clone(),
                    ..part.clone()
                },
                *whole
            );
        }
        assert_eq!(cut(whole.clone()), parts, "they are there already");
        assert_eq!(
            cut(whole[..1].to_vec()),
            parts[..1],
            "the other one is hidden"
        );
        // A picture that no other monitor shows is cut for its own monitor alone. A picture that was set
        // for one monitor is not cut.
        let mut mixed = stretched(&path);
        mixed[1].image_id = 2;
        mixed
            .iter_mut()
            .for_each(|one| one.span = vec![one.output.clone()]);
        let own = Placement {
            extended_over: vec!["A".to_owned()],
            ..whole[0].clone()
        };
        assert_eq!(cut(vec![own.clone()]), [own]);
        let other = cut(mixed);
        let drawn = image::open(&other[0].path).unwrap().to_rgb8();
        assert_eq!(
            *drawn.get_pixel(drawn.width() - 1, 0),
            blue,
            "it has all of its picture"
        );
        let there = || -> BTreeSet<PathBuf> {
            let entries = fs::read_dir(room.path().join("slices")).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        let all = parts
            .iter()
            .chain(&other)
            .map(|part| part.path.clone())
            .collect();
        assert_eq!(there(), all);
        // A plain colour has all pixels of its monitor, so that no fit leaves a border.
        let night = Placement {
            path: path.clone(),
            ..placement("A", color::image_id([30, 30, 46]))
        };
        let drawn = image::open(&cut(vec![night])[0].path).unwrap();
        assert_eq!((drawn.width(), drawn.height()), (1920, 1080));
        slices.tidy(&parts[..1]);
        assert_eq!(there(), BTreeSet::from([parts[0].path.clone()]));
        // The file holds another picture now.
        fs::remove_file(&path).unwrap();
        DynamicImage::ImageRgb8(RgbImage::new(64, 18))
            .save(&path)
            .unwrap();
        assert_ne!(cut(whole)[0].path, parts[0].path);
    }

    #[test]
    fn file_without_a_picture_is_reported() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("x.png");
        let slices = slices(room.path());
        let cut = || {
            slices
                .cut(stretched(&path), &Cancel::new().unwrap())
                .unwrap_err()
        };
        assert!(matches!(cut(), Error::File { path: told, .. } if told == path));
        fs::write(&path, "no picture").unwrap();
        assert!(matches!(cut(), Error::File { path: told, .. } if told == path));
        // The picture is not to blame for a directory that cannot be written.
        fs::remove_dir_all(room.path().join("slices")).unwrap();
        fs::write(room.path().join("slices"), "no directory").unwrap();
        assert!(matches!(cut(), Error::Unavailable(_)));
    }

    #[test]
    fn failed_order_leaves_no_files() {
        let room = tempfile::tempdir().unwrap();
        let slices = slices(room.path());
        let order = |name: &str, done: Result<(), Error>| {
            slices.keep_if_done(|| {
                for directory in ["slices", "copies"].map(|name| room.path().join(name)) {
                    fs::create_dir_all(&directory).unwrap();
                    fs::write(directory.join(name), "").unwrap();
                }
                done
            })
        };
        order("shown.png", Ok(())).unwrap();
        let shown = slices.files();
        order("failed.png", Err(Error::Cancelled)).unwrap_err();
        assert_eq!((shown.len(), slices.files()), (2, shown));
    }

    #[test]
    fn tile_has_the_pixels_after_the_transform() {
        let mut output = placement("A", 1).output;
        let pixels = |output: &Output| tile(output).pixels;
        for (transform, expected) in [(0, (1920, 1080)), (1, (1080, 1920)), (2, (1920, 1080))] {
            output.transform = transform;
            assert_eq!(pixels(&output), expected);
        }
        (output.x, output.y, output.logical_width) = (5, -7, 960);
        let Tile {
            x,
            y,
            width,
            height,
            ..
        } = tile(&output);
        assert_eq!((x, y, width, height), (5, -7, 960, 1080));
    }
}
