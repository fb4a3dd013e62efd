//! The still picture that stands for an image: its own file, or a PNG in `stills` that is named by the
//! image's checksum. Runs on the thread `desktop`; what it asks for is made on the transcoder's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::MakeStill;
use crate::paths::Replacement;
use crate::transcode::{self, Transcoder};
use crate::wire::{Image, MediaType};

/// Those that are made for monitors at the same time are far fewer.
const MADE: usize = 64;

pub(super) struct Stills {
    directory: PathBuf,
    transcoder: Transcoder,
    make: MakeStill,
    made: Sender<Made>,
    /// By checksum.
    pending: BTreeSet<String>,
    /// Those that could not be made, until they are asked for again.
    failed: BTreeSet<String>,
    /// Of which it was told that they could not be made.
    told: BTreeSet<String>,
}

/// What became of a still.
pub(super) struct Made {
    checksum: String,
    name: String,
    result: Result<(), String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Still {
    At(PathBuf),
    /// It is being made.
    Pending,
    /// It cannot be made.
    Missing,
}

impl Stills {
    pub(super) fn new(
        directory: PathBuf,
        transcoder: Transcoder,
        make: MakeStill,
    ) -> (Self, Receiver<Made>) {
        let (made, told) = bounded(MADE);
        let (pending, failed) = (BTreeSet::new(), BTreeSet::new());
        let stills =
            Self { directory, transcoder, make, made, pending, failed, told: BTreeSet::new() };
        (stills, told)
    }

    /// Where the image's still is; begins to make it where it is not there.
    pub(super) fn of(&mut self, image: &Image) -> Still {
        if is_still(image) {
            return Still::At(image.path.clone());
        }
        let checksum = image.checksum.strip_prefix("sha256:").unwrap_or(&image.checksum);
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

    /// Tries again what could not be made: it is asked for anew.
    pub(super) fn forgive(&mut self) {
        self.failed.clear();
    }

    pub(super) fn on_made(&mut self, Made { checksum, name, result }: Made) {
        self.pending.remove(&checksum);
        if let Err(why) = result {
            if self.told.insert(checksum.clone()) {
                log::warn!("there is no still picture of {name} for other programs: {why}");
            }
            self.failed.insert(checksum);
        }
    }

    /// Removes those that no link leads to.
    pub(super) fn tidy(&self, used: &BTreeSet<&Path>) {
        if !self.pending.is_empty() {
            return;
        }
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if !used.contains(&*entry.path()) {
                // Tried again after the next change.
                fs::remove_file(entry.path()).ok();
            }
        }
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
            // Nobody reads it at the end.
            made.try_send(Made { checksum, name: image.name, result }).ok();
        }));
    }
}

/// Whether a program that shows pictures shows the file as it is.
fn is_still(image: &Image) -> bool {
    image.media_type == MediaType::Image
        && !image.animated
        && !transcode::is_needed_for(image.format)
}

/// Writes a file whole or not at all.
fn land(path: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let unwritable = |error| format!("cannot write {}: {error}", path.display());
    let new = Replacement::of(path).map_err(unwritable)?;
    make(new.path())?;
    new.land().map_err(unwritable)
}
