//! The still picture that stands for an image: its own file, or a PNG in `stills` that is named by the
//! image's checksum. Runs on the thread `desktop`; what it asks for is made on the transcoder's.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::fs::{AtFlags, unlinkat};

use super::links::opened;
use crate::media;
use crate::paths::{self, Replacement, TEMPORARY, open_regular};
use crate::thread::panic_text;
use crate::transcode::{Ffmpeg, Transcoder};
use crate::wire::{Format, Image, MediaType};

/// Where they are, in the state directory.
pub(super) const STILLS: &str = "stills";
/// Those that are made for monitors at the same time are far fewer.
const MADE: usize = 64;
/// Pictures that are not looked at again, each with its checksum.
const PLAIN: usize = 256;

/// Writes a still of an image to a new PNG file, on a thread that may wait; the error is for people.
pub(crate) type MakeStill = Arc<dyn Fn(&Ffmpeg, &Image, &Path) -> Result<(), String> + Send + Sync>;

/// Whether every still is to be a PNG.
pub(crate) type WantsPng = Arc<dyn Fn() -> bool + Send + Sync>;

pub(super) struct Stills {
    directory: PathBuf,
    transcoder: Transcoder,
    make: MakeStill,
    wants_png: WantsPng,
    made: Sender<Made>,
    /// Whether other programs show a picture as it is meant, by checksum.
    plain: BTreeMap<String, bool>,
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
        wants_png: WantsPng,
    ) -> (Self, Receiver<Made>) {
        let (made, told) = bounded(MADE);
        let (pending, failed, plain) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        let stills = Self {
            directory,
            transcoder,
            make,
            wants_png,
            made,
            plain,
            pending,
            failed,
            told: BTreeSet::new(),
        };
        (stills, told)
    }

    /// Where the image's still is; begins to make it where it is not there.
    pub(super) fn of(&mut self, image: &Image) -> Still {
        if self.is_still(image) {
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
    pub(super) fn tidy(&mut self, used: &BTreeSet<&Path>) {
        if self.plain.len() > PLAIN {
            self.plain.clear();
        }
        if !self.pending.is_empty() {
            return;
        }
        sweep(&self.directory, |path| used.contains(path));
    }

    /// Whether programs that show pictures show the file as it is.
    fn is_still(&mut self, image: &Image) -> bool {
        let is_file = image.media_type == MediaType::Image && !image.animated;
        let is_known = matches!(image.format, Format::Png | Format::Jpg);
        if !is_file || !is_known || (self.wants_png)() {
            return false;
        }
        let looked = self.plain.entry(image.checksum.clone());
        *looked.or_insert_with(|| is_plain(&image.path))
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
                .and_then(|ffmpeg| land(&path, |to| caught(|| make(ffmpeg, &image, to))));
            // Nobody reads it at the end.
            made.try_send(Made { checksum, name: image.name, result }).ok();
        }));
    }
}

/// Removes stills from their directory, which is not followed if it is a link; files with other names
/// are somebody else's.
pub(super) fn sweep(directory: &Path, is_used: impl Fn(&Path) -> bool) {
    let Ok(opened) = opened(directory) else { return };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_ours(&name) && !is_used(&entry.path()) {
            // Tried again after the next change.
            unlinkat(&opened, name, AtFlags::empty()).ok();
        }
    }
}

/// The name of a still, or of one that is being written.
fn is_ours(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let checksum = name.strip_prefix(TEMPORARY).unwrap_or(name).strip_suffix(".png");
    checksum.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// As the headers of a file say; one that cannot be read is left to those that try.
fn is_plain(path: &Path) -> bool {
    if !paths::answers(path) {
        return true;
    }
    let look = || media::is_plain(&mut BufReader::new(open_regular(path).ok()?)).ok();
    media::catch_panic(look).ok().flatten().unwrap_or(true)
}

/// A still that ends in a panic is one that cannot be made, and nobody waits for it.
fn caught(make: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(make))
        .unwrap_or_else(|panic| Err(format!("panicked: {}", panic_text(&*panic))))
}

/// Writes a file whole or not at all.
fn land(path: &Path, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let unwritable = |error| format!("cannot write {}: {error}", path.display());
    let new = Replacement::of(path).map_err(unwritable)?;
    make(new.path())?;
    new.land().map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::thread::Spawner;
    use crate::transcode;

    #[test]
    fn still_whose_making_panics_counts_as_failed() {
        let (spawner, _deaths) = Spawner::new();
        let (transcoder, _threads) =
            transcode::start(&spawner, transcode::Limits::default()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let make: MakeStill = Arc::new(|_, _, _| panic!("on purpose"));
        let (mut stills, made) =
            Stills::new(directory.path().to_owned(), transcoder, make, Arc::new(|| false));
        let image: Image = serde_json::from_value(serde_json::json!({
            "id": 1, "name": "film", "path": "/film.mp4", "media_type": "video", "format": "mp4",
            "width": 4, "height": 3, "duration": 1.0, "animated": false, "audio_enabled": false,
            "file_size": 1, "checksum": "sha256:00", "tags": [], "colors": [], "hue_group": 99,
            "folder_id": null, "is_selected": false, "imported_at": "2026-01-01T00:00:00Z",
            "source_path": "/from", "thumbnails": {},
        }))
        .unwrap();
        assert_eq!(stills.of(&image), Still::Pending);
        stills.on_made(made.recv_timeout(Duration::from_secs(60)).unwrap());
        assert_eq!(stills.of(&image), Still::Missing);
    }
}
