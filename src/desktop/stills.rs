//! Provides the still of a wallpaper: the image's own file, or a PNG in `stills` that is named by the
//! image's checksum.
//!
//! Runs on the thread `desktop`; stills are made on the transcoder's threads.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::fs::{AtFlags, Mode, OFlags, open, unlinkat};

use crate::decode::Decoder;
use crate::digest::{self, Checksum};
use crate::paths::{self, Replacement, TEMPORARY};
use crate::transcode::{Ffmpeg, Transcoder};
use crate::wire::{Format, Image, MediaType};

/// The directory of stills, in the state directory.
pub(crate) const STILLS: &str = "stills";
/// The most finished stills that wait: far more than are made at the same time.
const MADE: usize = 64;
/// The most images whose result is remembered, by checksum.
const PLAIN: usize = 256;

/// Writes a still of an image to a new PNG file, on a thread that may wait; the error is for users.
pub(crate) type MakeStill = Arc<dyn Fn(&Ffmpeg, &Image, &Path) -> Result<(), String> + Send + Sync>;

/// Whether every still must be a PNG.
pub(crate) type WantsPng = Arc<dyn Fn() -> bool + Send + Sync>;

pub(super) struct Stills {
    directory: PathBuf,
    transcoder: Transcoder,
    decoder: Decoder,
    make: MakeStill,
    wants_png: WantsPng,
    made: Sender<FinishedStill>,
    /// Whether other programs can show an image's own file, by checksum.
    plain: BTreeMap<Checksum, bool>,
    /// Stills that are being made, by checksum.
    pending: BTreeSet<String>,
    /// Stills that could not be made, until they are tried again.
    failed: BTreeSet<String>,
    /// Stills whose failure was logged.
    logged: BTreeSet<String>,
}

/// The result of making a still.
pub(super) struct FinishedStill {
    checksum: String,
    name: String,
    result: Result<(), String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Still {
    At(PathBuf),
    /// The still is being made.
    Pending,
    /// The still cannot be made.
    Missing,
}

impl Stills {
    pub(super) fn new(
        directory: PathBuf,
        (transcoder, decoder): (Transcoder, Decoder),
        make: MakeStill,
        wants_png: WantsPng,
    ) -> (Self, Receiver<FinishedStill>) {
        let (made, finished) = bounded(MADE);
        let (pending, failed, plain) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let stills = Self {
            directory,
            transcoder,
            decoder,
            make,
            wants_png,
            made,
            plain,
            pending,
            failed,
            logged: BTreeSet::new(),
        };
        (stills, finished)
    }

    /// The path of the image's still; starts to make it if it is missing.
    pub(super) fn of(&mut self, image: &Image) -> Still {
        if self.is_still(image) {
            return Still::At(image.path.clone());
        }
        let checksum = &digest::hex(&image.checksum);
        let path = self.path(checksum);
        if path.exists() {
            return Still::At(path);
        }
        if self.failed.contains(checksum) {
            return Still::Missing;
        }
        if self.pending.insert(checksum.to_owned()) {
            self.begin(image, checksum, path);
        }
        Still::Pending
    }

    /// Allows another try for stills that could not be made.
    pub(super) fn retry_failed(&mut self) {
        self.failed.clear();
    }

    pub(super) fn on_made(
        &mut self,
        FinishedStill {
            checksum,
            name,
            result,
        }: FinishedStill,
    ) {
        self.pending.remove(&checksum);
        if let Err(why) = result {
            if self.logged.insert(checksum.clone()) {
                log::warn!("cannot create a still picture of {name} for other programs: {why}");
            }
            self.failed.insert(checksum);
        }
    }

    /// Removes stills to which no link points.
    pub(super) fn tidy(&mut self, used: &BTreeSet<&Path>) {
        if self.plain.len() > PLAIN {
            self.plain.clear();
        }
        if !self.pending.is_empty() {
            return;
        }
        sweep(&self.directory, |path| used.contains(path));
    }

    /// Whether other programs can show the file as it is.
    fn is_still(&mut self, image: &Image) -> bool {
        let is_file = image.media_type == MediaType::Image && !image.animated;
        let is_known = matches!(image.format, Format::Png | Format::Jpg);
        if !is_file || !is_known || (self.wants_png)() {
            return false;
        }
        let looked = self.plain.entry(image.checksum);
        *looked.or_insert_with(|| is_plain(&self.decoder, &image.path))
    }

    fn path(&self, checksum: &str) -> PathBuf {
        self.directory.join(format!("{checksum}.png"))
    }

    fn begin(&self, image: &Image, checksum: &str, path: PathBuf) {
        let (made, make) = (self.made.clone(), Arc::clone(&self.make));
        let (image, checksum) = (image.clone(), checksum.to_owned());
        self.transcoder.submit_frame(Box::new(move |ffmpeg| {
            let result = ffmpeg
                .map_err(|error| error.to_string())
                .and_then(|ffmpeg| land(&path, |to| make(ffmpeg, &image, to)));
            // The receiver is gone at the end.
            made.try_send(FinishedStill {
                checksum,
                name: image.name,
                result,
            })
            .ok();
        }));
    }
}

/// Removes stills from their directory, unless that is a link. Files with other names belong to somebody
/// else.
pub(super) fn sweep(directory: &Path, is_used: impl Fn(&Path) -> bool) {
    let Ok(opened) = open_directory(directory) else {
        return;
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_ours(&name) && !is_used(&entry.path()) {
            // The removal is tried again after the next change.
            unlinkat(&opened, name, AtFlags::empty()).ok();
        }
    }
}

/// A directory, which must not be a link.
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// The name of a still, or of one that is being written.
fn is_ours(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let checksum = name
        .strip_prefix(TEMPORARY)
        .unwrap_or(name)
        .strip_suffix(".png");
    checksum.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Decides by the file's headers. A file that cannot be read counts as it is.
fn is_plain(decoder: &Decoder, path: &Path) -> bool {
    let header = || decoder.look(path).and_then(|looked| looked.header);
    !(paths::answers(path) && header().is_ok_and(|header| !header.plain))
}

/// Writes a file whole or not at all.
fn land(path: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let unwritable = |error| format!("cannot write {}: {error}", path.display());
    let new = Replacement::of(path).map_err(unwritable)?;
    make(new.path())?;
    new.land().map_err(unwritable)
}
