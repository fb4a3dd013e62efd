//! The cache of thumbnails: one WebP file for each picture and size, named by the picture's
//! checksum. Whatever is missing is made again when it is asked for, once however many ask.
//!
//! Runs in the thread that asks, which waits for the process that decodes.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::Error;
use super::decode::Tools;
use super::package::package_thumbnail;
use super::thumbnails_state::{Directories, Extra, Scratch, SeenThumbnails, SingleFlight};
use crate::decode::Decoder;
use crate::digest;
use crate::store::{Store, images};
use crate::sys::lock;
use crate::transcode::Ffmpeg;
use crate::wire::{Image, Resolution};

/// The prefix of temporary files.
const TEMPORARY: &str = ".new-";
/// The directory of videos' previews, beside those of the sizes.
const PREVIEWS: &str = "previews";

/// The handle of the cache. Clones share the same cache.
#[derive(Clone, Debug)]
pub struct Thumbnails {
    shared: Arc<CacheShared>,
}

#[derive(Debug)]
struct CacheShared {
    directory: PathBuf,
    /// The directory as the content of a JSON string.
    as_json: Arc<[u8]>,
    decoder: Decoder,
    /// The programs for files that murald does not decode itself.
    ffmpeg: Ffmpeg,
    store: Store,
    serial: AtomicU64,
    /// Counted after each thumbnail that we put or remove.
    changes: AtomicU64,
    /// The sizes of which there ever was one, as bits.
    sizes: AtomicU8,
    extra: Mutex<Extra>,
    seen: SeenThumbnails,
    running: SingleFlight<Key>,
}

/// Checksum in hexadecimal, and size.
type Key = (String, Resolution);

impl Thumbnails {
    pub(super) fn new(directory: &Path, decoder: Decoder, ffmpeg: Ffmpeg, store: Store) -> Self {
        let used = |size: &Resolution| {
            let listed = fs::read_dir(directory.join(size.as_str()));
            listed.is_ok_and(|mut all| all.next().is_some())
        };
        let used = Resolution::ALL.iter().filter(|size| used(size));
        let sizes = used.fold(bit(Resolution::Default), |bits, &size| bits | bit(size));
        let as_json = serde_json::Value::from(directory.to_string_lossy()).to_string();
        let shared = CacheShared {
            directory: directory.to_owned(),
            as_json: as_json.as_bytes()[1..as_json.len() - 1].into(),
            decoder,
            ffmpeg,
            store,
            serial: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            sizes: AtomicU8::new(sizes),
            extra: Mutex::default(),
            seen: SeenThumbnails::default(),
            running: SingleFlight::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The file of a thumbnail. Makes it if it is missing, which takes tens to hundreds of milliseconds.
    pub fn get(&self, image: &Image, resolution: Resolution) -> Result<PathBuf, Arc<Error>> {
        if let Some(path) = self.present(image, resolution) {
            return Ok(path);
        }
        let key = key(image, resolution);
        // Another thread may have made it after the first check.
        let is_made = || self.present(image, resolution).is_some();
        let make = || {
            if is_made() {
                Ok(())
            } else {
                self.make(image, &key)
            }
        };
        self.shared.running.run(&key, make)?;
        Ok(self.path(&key.0, key.1))
    }

    /// The file of a thumbnail, if it exists.
    pub fn present(&self, image: &Image, resolution: Resolution) -> Option<PathBuf> {
        let (hex, made) = key(image, resolution);
        Some(self.path(&hex, made)).filter(|path| is_whole(path))
    }

    /// The sizes that a picture has, as bits; `is_there` is asked for those that may be there.
    pub(super) fn there(
        &self,
        size: (u32, u32),
        number: u64,
        is_there: impl Fn(Resolution) -> bool,
    ) -> u8 {
        let may = lock(&self.shared.extra).of(number) | bit(Resolution::Default);
        // A size for which a smaller one is used has no file of its own.
        let own = |made: &&Resolution| made_as(size, **made) == **made && may & bit(**made) != 0;
        let there = Resolution::ALL
            .iter()
            .filter(own)
            .filter(|&&made| is_there(made));
        there.fold(0, |bits, &made| bits | bit(made))
    }

    /// The directories as they are now.
    pub(super) fn directories(&self) -> Directories {
        let (changes, sizes) = (&self.shared.changes, &self.shared.sizes);
        let changes = changes.load(Ordering::Acquire);
        let bits = sizes.load(Ordering::Acquire);
        let sizes = Resolution::ALL
            .iter()
            .filter(|&&size| bits & bit(size) != 0);
        let paths = sizes.map(|size| self.shared.directory.join(size.as_str()));
        Directories::of((changes, bits), paths)
    }

    /// The directory of the cache, as JSON has it between quotes.
    pub(super) fn directory_as_json(&self) -> &Arc<[u8]> {
        &self.shared.as_json
    }

    pub(super) fn seen(&self) -> &SeenThumbnails {
        &self.shared.seen
    }

    /// The number of temporary files that were named so far.
    #[cfg(test)]
    pub(super) fn made(&self) -> u64 {
        self.shared.serial.load(Ordering::Relaxed)
    }

    /// Removes the thumbnails and the preview of an image.
    pub fn remove(&self, image: &Image) {
        let hex = digest::hex(&image.checksum);
        lock(&self.shared.extra).made.remove(&number(&hex));
        for &resolution in Resolution::ALL {
            // Errors are ignored, as the next start removes what is left.
            fs::remove_file(self.path(&hex, resolution)).ok();
        }
        fs::remove_file(self.preview(image)).ok();
        self.shared.changes.fetch_add(1, Ordering::Release);
    }

    /// The path of a video's preview, which may not exist yet.
    pub(super) fn preview(&self, image: &Image) -> PathBuf {
        self.shared
            .directory
            .join(PREVIEWS)
            .join(format!("{}.mp4", digest::hex(&image.checksum)))
    }

    /// Whether this is the path of a preview.
    pub(super) fn is_preview(&self, path: &Path) -> bool {
        path.parent()
            .is_some_and(|home| home == self.shared.directory.join(PREVIEWS))
    }

    /// The path for a new temporary file, on the file system of the cache.
    pub(super) fn scratch(&self) -> Result<Scratch, Error> {
        let directory = self.shared.directory.join(PREVIEWS);
        fs::create_dir_all(&directory).map_err(Error::file("make", &directory))?;
        let serial = self.shared.serial.fetch_add(1, Ordering::Relaxed);
        // Programs choose the format by the extension.
        Ok(Scratch::at(
            directory.join(format!("{TEMPORARY}{serial}.png")),
        ))
    }

    /// The temporary path for a new thumbnail, in the directory of its size.
    pub(super) fn new_file(&self, resolution: Resolution) -> Result<Scratch, Error> {
        let directory = self.shared.directory.join(resolution.as_str());
        // Missing before the first thumbnail, or if the cache was deleted.
        fs::create_dir_all(&directory).map_err(Error::file("make", &directory))?;
        let serial = self.shared.serial.fetch_add(1, Ordering::Relaxed);
        Ok(Scratch::at(directory.join(format!("{TEMPORARY}{serial}"))))
    }

    /// Removes the thumbnail of a picture that is not imported after all.
    pub(super) fn take_back(&self, hex: &str, resolution: Resolution) {
        lock(&self.shared.extra).made.remove(&number(hex));
        fs::remove_file(self.path(hex, resolution)).ok();
    }

    /// Renames a complete thumbnail to its final path.
    pub(super) fn put(
        &self,
        hex: &str,
        resolution: Resolution,
        new: &Scratch,
    ) -> Result<(), Error> {
        let path = self.path(hex, resolution);
        let mut extra = lock(&self.shared.extra);
        if !extra.complete {
            extra.fresh.insert(hex.to_owned());
        }
        drop(extra);
        fs::rename(new.path(), &path).map_err(Error::file("write", &path))?;
        if resolution != Resolution::Default {
            lock(&self.shared.extra).add(number(hex), bit(resolution));
            self.shared
                .sizes
                .fetch_or(bit(resolution), Ordering::Release);
        }
        self.shared.changes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes temporary files of a run that was killed, and thumbnails and previews without an image.
    /// `is_known` says whether an image has a checksum.
    pub(super) fn sweep(&self, is_known: impl Fn(&str) -> bool) {
        let sizes = Resolution::ALL
            .iter()
            .map(|&size| (size.as_str(), Some(size)));
        for (directory, size) in sizes.chain([(PREVIEWS, None)]) {
            let directory = self.shared.directory.join(directory);
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some(name) = name.to_str() else { continue };
                let stem = name
                    .strip_suffix(".webp")
                    .or_else(|| name.strip_suffix(".mp4"));
                let stale = match stem {
                    Some(hex) => hex.len() == 64 && !is_known(hex),
                    None => self.is_stale(name),
                };
                match (stale, stem, size) {
                    (true, ..) => {
                        // Held over the removal: one that is put now comes after it.
                        let extra = lock(&self.shared.extra);
                        if stem.is_none_or(|hex| !extra.fresh.contains(hex)) {
                            fs::remove_file(entry.path()).ok();
                        }
                    }
                    (false, Some(hex), Some(size)) if size != Resolution::Default => {
                        lock(&self.shared.extra).add(number(hex), bit(size));
                    }
                    _ => {}
                }
            }
        }
        let mut extra = lock(&self.shared.extra);
        extra.complete = true;
        extra.fresh = HashSet::new();
    }

    /// Whether this is a temporary file of the last run. Requests are already served, so a file counts
    /// as this run's if its number has already been used.
    fn is_stale(&self, name: &str) -> bool {
        let serial = name
            .strip_prefix(TEMPORARY)
            .and_then(|name| name.split(['.', '-']).next());
        let serial = serial.and_then(|serial| serial.parse::<u64>().ok());
        serial.is_some_and(|serial| serial >= self.shared.serial.load(Ordering::Relaxed))
    }

    fn make(&self, image: &Image, (hex, resolution): &Key) -> Result<(), Error> {
        let tools = Tools {
            decoder: &self.shared.decoder,
            ffmpeg: &self.shared.ffmpeg,
        };
        let new = self.new_file(*resolution)?;
        match &image.web_meta {
            Some(meta) => package_thumbnail(meta, *resolution, tools, new.path())?,
            None => {
                let (to, scratch) = (Some(new.path()), || self.scratch());
                drop(tools.thumbnail(&image.path, *resolution, &scratch, to)?);
            }
        }
        self.check(image)?;
        self.put(hex, *resolution, &new)
    }

    /// Fails as for a missing file if the image was renamed in between: another image may have the old
    /// path by now, and the thumbnail may be of that image.
    fn check(&self, image: &Image) -> Result<(), Error> {
        let now = self.shared.store.read(|c| images::get(c, image.id))?;
        let same = |now: Image| now.path == image.path && now.checksum == image.checksum;
        if now.is_some_and(same) {
            return Ok(());
        }
        Err(Error::file("read", &image.path)(
            io::ErrorKind::NotFound.into(),
        ))
    }

    pub(super) fn path(&self, hex: &str, resolution: Resolution) -> PathBuf {
        let (directory, name) = (&self.shared.directory, resolution.as_str());
        let length = directory.as_os_str().len() + name.len() + hex.len();
        let mut path = PathBuf::with_capacity(length + "//.webp".len());
        [directory.as_path(), name.as_ref(), hex.as_ref()]
            .iter()
            .for_each(|part| path.push(part));
        path.as_mut_os_string().push(".webp");
        path
    }
}

/// Whether a thumbnail has content. Thumbnails are not flushed, so a power failure may leave empty ones.
pub(super) fn is_whole(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

fn key(image: &Image, wanted: Resolution) -> Key {
    (
        digest::hex(&image.checksum),
        made_as((image.width, image.height), wanted),
    )
}

/// The existing size, of these bits, that serves for a size.
pub(super) fn serves(size: (u32, u32), asked: Resolution, there: u8) -> Option<Resolution> {
    Some(made_as(size, asked)).filter(|&made| there & bit(made) != 0)
}

/// The size whose thumbnail is used for `wanted`. A picture that fits into a smaller frame has the same
/// thumbnail there, which is made only once.
fn made_as((width, height): (u32, u32), wanted: Resolution) -> Resolution {
    let holds = |resolution: &&Resolution| {
        let frame = resolution.fits();
        width <= frame.0 && height <= frame.1
    };
    let smallest = Resolution::ALL
        .iter()
        .find(holds)
        .copied()
        .unwrap_or(wanted);
    smallest.min(wanted)
}

pub(super) fn bit(resolution: Resolution) -> u8 {
    1 << resolution as u8
}

/// The first eight bytes of a checksum; what is none has none.
fn number(hex: &str) -> u64 {
    hex.get(..16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or_default()
}
