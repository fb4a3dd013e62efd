//! The cache of thumbnails: one WebP file for each picture and size, named by the picture's
//! checksum. Whatever is missing is made again when it is asked for, once however many ask.
//!
//! Runs in the thread that asks, which waits for the process that decodes. The records of a page name
//! the thumbnails that exist: each is one `stat`, a few microseconds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::Error;
use super::decode::Tools;
use super::disk::{Scratch, stamp};
use super::package::package_thumbnail;
use crate::decode::Decoder;
use crate::digest;
use crate::paths::remove_leftover;
use crate::store::{Store, images, watched};
use crate::sys::lock;
use crate::transcode::Ffmpeg;
use crate::wire::{Image, Resolution};

/// The prefix of temporary files.
const TEMPORARY: &str = ".new-";
/// The directory of videos' previews, beside those of the sizes.
const PREVIEWS: &str = "previews";
/// The number of thumbnails that are made at the same time, one for each first digit of a checksum.
const MAKING: usize = 16;
/// The handle of the cache. Clones share the same cache.
#[derive(Clone, Debug)]
pub struct Thumbnails {
    shared: Arc<CacheShared>,
}

#[derive(Debug)]
struct CacheShared {
    directory: PathBuf,
    decoder: Decoder,
    /// The programs for files that murald does not decode itself.
    ffmpeg: Ffmpeg,
    store: Store,
    serial: AtomicU64,
    started: SystemTime,
    /// Held while a thumbnail is made, so that it is made once however many clients ask.
    making: [Mutex<()>; MAKING],
}

impl Thumbnails {
    pub(super) fn new(directory: &Path, decoder: Decoder, ffmpeg: Ffmpeg, store: Store) -> Self {
        let shared = CacheShared {
            directory: directory.to_owned(),
            decoder,
            ffmpeg,
            store,
            serial: AtomicU64::new(0),
            started: SystemTime::now(),
            making: Default::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The file of a thumbnail. Makes it if it is missing, which takes tens to hundreds of milliseconds.
    pub fn get(&self, image: &Image, resolution: Resolution) -> Result<PathBuf, Error> {
        if let Some(path) = self.present(image, resolution) {
            return Ok(path);
        }
        let _turn = lock(&self.shared.making[usize::from(image.checksum[0] >> 4)]);
        // Another thread may have made it after the first check.
        if let Some(path) = self.present(image, resolution) {
            return Ok(path);
        }
        let (hex, made) = key(image, resolution);
        self.make(image, &hex, made)?;
        Ok(self.path(&hex, made))
    }

    /// The file of a thumbnail, if it exists.
    pub fn present(&self, image: &Image, resolution: Resolution) -> Option<PathBuf> {
        let (hex, made) = key(image, resolution);
        Some(self.path(&hex, made)).filter(|path| is_whole(path))
    }

    /// Appends an image with what is not in its row.
    pub(crate) fn write(&self, mut image: Image, out: &mut Vec<u8>) -> serde_json::Result<()> {
        self.complete(&mut image);
        serde_json::to_writer(out, &image)
    }

    /// Adds to an image the paths of the files that exist in the cache now.
    pub fn complete(&self, image: &mut Image) {
        // The cache may have been deleted.
        image.preview_path = image.preview_path.take().filter(|preview| preview.exists());
        let size = (image.width, image.height);
        let hex = digest::hex(&image.checksum);
        let there = |asked: &Resolution| {
            // For some sizes a smaller one is used.
            let path = self.path(&hex, made_as(size, *asked));
            is_whole(&path).then(|| (asked.as_str(), path.to_string_lossy().into_owned()))
        };
        image.thumbnails = Resolution::ALL.iter().filter_map(there).collect();
    }

    /// The number of temporary files that were named so far.
    #[cfg(test)]
    pub(super) fn made(&self) -> u64 {
        self.shared.serial.load(Ordering::Relaxed)
    }

    /// Removes the thumbnails and the preview of an image.
    pub fn remove(&self, image: &Image) {
        let hex = digest::hex(&image.checksum);
        for &resolution in Resolution::ALL {
            // Errors are ignored, as the next start removes what is left.
            fs::remove_file(self.path(&hex, resolution)).ok();
        }
        fs::remove_file(self.preview(image)).ok();
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
        Ok(Scratch::new(
            directory.join(format!("{TEMPORARY}{serial}.png")),
        ))
    }

    /// The temporary path for a new thumbnail, in the directory of its size.
    pub(super) fn new_file(&self, resolution: Resolution) -> Result<Scratch, Error> {
        let directory = self.shared.directory.join(resolution.as_str());
        // Missing before the first thumbnail, or if the cache was deleted.
        fs::create_dir_all(&directory).map_err(Error::file("make", &directory))?;
        let serial = self.shared.serial.fetch_add(1, Ordering::Relaxed);
        Ok(Scratch::new(directory.join(format!("{TEMPORARY}{serial}"))))
    }

    /// Removes the thumbnail of a picture that is not imported after all.
    pub(super) fn take_back(&self, hex: &str, resolution: Resolution) {
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
        fs::rename(new.path(), &path).map_err(Error::file("write", &path))
    }

    /// Removes what the last run has left: temporary files, and thumbnails and previews without an
    /// image. `is_known` says whether an image has a checksum. Files of this run stay, as their rows
    /// may be still to come.
    pub(super) fn sweep(&self, is_known: impl Fn(&str) -> bool) {
        let sizes = Resolution::ALL.iter().map(|size| size.as_str());
        for directory in sizes.chain([PREVIEWS]) {
            let directory = self.shared.directory.join(directory);
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some(name) = name.to_str() else { continue };
                let stem = name
                    .strip_suffix(".webp")
                    .or_else(|| name.strip_suffix(".mp4"));
                let is_stale = match stem {
                    Some(hex) => hex.len() == 64 && !is_known(hex),
                    None => name.starts_with(TEMPORARY),
                };
                let written = entry.metadata().and_then(|meta| meta.modified());
                if is_stale && written.is_ok_and(|at| at < self.shared.started) {
                    remove_leftover(&entry.path());
                }
            }
        }
    }

    fn make(&self, image: &Image, hex: &str, resolution: Resolution) -> Result<(), Error> {
        let tools = Tools {
            decoder: &self.shared.decoder,
            ffmpeg: &self.shared.ffmpeg,
        };
        let new = self.new_file(resolution)?;
        match &image.web_meta {
            Some(meta) => package_thumbnail((image, meta), resolution, tools, new.path())?,
            None => {
                let to = Some(new.path());
                let scratch = || self.scratch();
                drop(tools.thumbnail(&image.path, resolution, &scratch, to)?);
            }
        }
        self.check(image)?;
        self.put(hex, resolution, &new)
    }

    /// Fails as for a missing file if the image was renamed in between, or if its file is not the one of
    /// the row any more: another image may have the path by now, and the thumbnail may be of that image.
    fn check(&self, image: &Image) -> Result<(), Error> {
        let now = self.shared.store.read(|c| images::get(c, image.id))?;
        let file = self.shared.store.read(|c| watched::get(c, &image.path))?;
        let same = |now: Image| now.path == image.path && now.checksum == image.checksum;
        let is_its_own = file.is_none_or(|file| {
            let now = fs::metadata(&image.path).map(|meta| stamp(&meta));
            now.is_ok_and(|now| file.stamp.inode == now.inode && file.stamp.same_written(&now))
        });
        if now.is_some_and(same) && is_its_own {
            return Ok(());
        }
        Err(Error::file("read", &image.path)(
            io::ErrorKind::NotFound.into(),
        ))
    }

    fn path(&self, hex: &str, resolution: Resolution) -> PathBuf {
        let directory = &self.shared.directory;
        let name = resolution.as_str();
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
fn is_whole(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// The checksum in hexadecimal, and the size that is used for `wanted`.
fn key(image: &Image, wanted: Resolution) -> (String, Resolution) {
    (
        digest::hex(&image.checksum),
        made_as((image.width, image.height), wanted),
    )
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
