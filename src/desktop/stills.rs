//! Provides the still of a wallpaper as the screen shows it: the image's own file, or a PNG in `stills`
//! that is named by the image's checksum, and by the colour behind it if the image is transparent.
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

use crate::color::{Rgb, hex};
use crate::config::{ConfigHandle, StillFiles};
use crate::decode::Decoder;
use crate::digest::{self, Checksum};
use crate::error_chain::plain;
use crate::paths::{self, Replacement, TEMPORARY};
use crate::transcode::{Ffmpeg, Transcoder};
use crate::wire::{Format, Image, MediaType};

/// The directory of stills, in the state directory.
pub(crate) const STILLS: &str = "stills";
/// The most finished stills that wait: far more than are made at the same time.
const MADE: usize = 64;
/// The most images whose result is remembered, by checksum.
const PLAIN: usize = 256;

/// Writes a still of an image over a colour to a new PNG file, on a thread that may wait. Returns the
/// colours of a transparent image; the error is for users.
pub(crate) type MakeStill =
    Arc<dyn Fn(&Ffmpeg, &Image, Rgb, &Path) -> Result<Option<Vec<Rgb>>, String> + Send + Sync>;

pub(super) struct Stills {
    directory: PathBuf,
    transcoder: Transcoder,
    decoder: Decoder,
    make: MakeStill,
    config: ConfigHandle,
    made: Sender<FinishedStill>,
    /// Whether other programs can show an image's own file, by checksum.
    plain: BTreeMap<Checksum, bool>,
    /// The colours of the stills of transparent images.
    flat: BTreeMap<PathBuf, Vec<Rgb>>,
    /// Stills that are being made, by checksum and colour.
    pending: BTreeSet<String>,
    /// Stills that could not be made, until they are tried again.
    failed: BTreeSet<String>,
    /// Stills whose failure was logged.
    logged: BTreeSet<String>,
}

/// The result of making a still.
pub(super) struct FinishedStill {
    key: String,
    name: String,
    result: Result<Option<Vec<Rgb>>, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Still {
    /// With its colours, if the image is transparent.
    At(PathBuf, Option<Vec<Rgb>>),
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
        config: ConfigHandle,
    ) -> (Self, Receiver<FinishedStill>) {
        let (made, finished) = bounded(MADE);
        let stills = Self {
            directory,
            transcoder,
            decoder,
            make,
            config,
            made,
            plain: BTreeMap::new(),
            flat: BTreeMap::new(),
            pending: BTreeSet::new(),
            failed: BTreeSet::new(),
            logged: BTreeSet::new(),
        };
        (stills, finished)
    }

    /// The still of an image that is shown over the colour `fill`; starts to make it if it is missing.
    pub(super) fn of(&mut self, image: &Image, fill: Rgb) -> Still {
        if self.is_still(image) {
            return Still::At(image.path.clone(), None);
        }
        let opaque = self.path(&digest::hex(&image.checksum));
        if opaque.exists() {
            return Still::At(opaque, None);
        }
        let key = digest::hex(&image.checksum) + "-" + &hex(fill)[1..];
        let flat = self.path(&key);
        if let Some(colors) = self.flat.get(&flat).filter(|_| flat.exists()) {
            return Still::At(flat, Some(colors.clone()));
        }
        if self.failed.contains(&key) {
            return Still::Missing;
        }
        if self.pending.insert(key.clone()) {
            self.begin((image, fill), key, [opaque, flat]);
        }
        Still::Pending
    }

    /// Allows another try for stills that could not be made.
    pub(super) fn retry_failed(&mut self) {
        self.failed.clear();
    }

    pub(super) fn on_made(&mut self, FinishedStill { key, name, result }: FinishedStill) {
        self.pending.remove(&key);
        match result {
            Ok(Some(colors)) => drop(self.flat.insert(self.path(&key), colors)),
            Ok(None) => {}
            Err(why) => {
                if self.logged.insert(key.clone()) {
                    log::warn!("cannot create a still picture of {name} for other programs: {why}");
                }
                self.failed.insert(key);
            }
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
        self.flat.retain(|path, _| used.contains(path.as_path()));
        sweep(&self.directory, |path| used.contains(path));
    }

    /// Whether other programs can show the file as it is.
    fn is_still(&mut self, image: &Image) -> bool {
        let is_file = image.media_type == MediaType::Image && !image.animated;
        let is_known = matches!(image.format, Format::Png | Format::Jpg);
        let wants_png = self.config.current().desktop.stills == StillFiles::Png;
        if !is_file || !is_known || wants_png {
            return false;
        }
        let looked = self.plain.entry(image.checksum);
        *looked.or_insert_with(|| is_plain(&self.decoder, &image.path))
    }

    fn path(&self, checksum: &str) -> PathBuf {
        self.directory.join(format!("{checksum}.png"))
    }

    fn begin(&self, (image, fill): (&Image, Rgb), key: String, paths: [PathBuf; 2]) {
        let made = self.made.clone();
        let make = Arc::clone(&self.make);
        let image = image.clone();
        self.transcoder.submit_frame(Box::new(move |ffmpeg| {
            let result = ffmpeg
                .map_err(|error| error.to_string())
                .and_then(|ffmpeg| land(&paths, |to| make(ffmpeg, &image, fill, to)));
            // The receiver is gone at the end.
            made.try_send(FinishedStill {
                key,
                name: image.name,
                result,
            })
            .ok();
        }));
    }
}

/// Removes stills from their directory, unless that is a link. Files with other names belong to other
/// programs.
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
    let key = name
        .strip_prefix(TEMPORARY)
        .unwrap_or(name)
        .strip_suffix(".png");
    key.is_some_and(|key| {
        let (checksum, fill) = key.split_once('-').unwrap_or((key, "000000"));
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (checksum.len(), fill.len()) == (64, 6) && is_hex(checksum) && is_hex(fill)
    })
}

/// Decides by the file's headers. A file that cannot be read counts as it is.
fn is_plain(decoder: &Decoder, path: &Path) -> bool {
    let header = || decoder.look(path).and_then(|looked| looked.header);
    !(paths::answers(path) && header().is_ok_and(|header| !header.plain || header.alpha))
}

/// Writes a file whole or not at all: to the second path if the image is transparent.
fn land(
    [opaque, flat]: &[PathBuf; 2],
    make: impl FnOnce(&Path) -> Result<Option<Vec<Rgb>>, String>,
) -> Result<Option<Vec<Rgb>>, String> {
    let unwritable = |error| format!("cannot write {}: {}", flat.display(), plain(&error));
    let new = Replacement::create(flat).map_err(unwritable)?;
    let colors = make(new.path())?;
    let landed = match colors {
        Some(_) => new.land(),
        None => fs::rename(new.path(), opaque),
    };
    landed.map_err(unwritable)?;
    Ok(colors)
}
