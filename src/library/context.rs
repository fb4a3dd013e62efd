//! The context that all parts of the library share: its settings, paths, names and caches.
//!
//! The import workers, the threads `library`, `remove` and `watch-1..n`, and the handle use it. It
//! starts nothing, and knows no thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::Thumbnails;
use super::decode::Tools;
use super::disk::{self, Copy};
use super::error::Error;
use super::task::{self, Imported, Landed, Prepared};
use super::watch::watched::WatchList;
use crate::decode::Decoder;
use crate::events::EventBus;
use crate::paths::make_directories;
use crate::store::Store;
use crate::transcode::{Ffmpeg, Transcoder};
use crate::wire::Image;

/// Whether an imported video has sound; asked for each video.
pub(crate) type AudioDefault = Arc<dyn Fn() -> bool + Send + Sync>;

/// Called with the id of an image whose file has other content now, or whose package was renamed; must
/// not wait.
pub(crate) type OnRewritten = Box<dyn Fn(i64) + Send + Sync>;

pub(super) type Land = Box<dyn Fn(Prepared) -> Landed + Send + Sync>;

/// The part of the configuration that the library needs.
#[derive(Clone)]
pub struct Settings {
    pub images_dir: PathBuf,
    pub thumbnails_dir: PathBuf,
    /// The number of files that are decoded at the same time; one for each processor.
    pub workers: usize,
    pub video_audio: AudioDefault,
    pub decoder: Decoder,
}

/// The context that all workers share.
pub(super) struct ImportContext {
    pub(super) directory: PathBuf,
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) thumbnails: Thumbnails,
    /// The decoder for clients that wait.
    pub(super) decoder: Decoder,
    pub(super) imports: Decoder,
    /// Lands a prepared file on the thread `library`, and waits for it.
    pub(super) land: Land,
    pub(super) run: disk::Run,
    pub(super) serial: AtomicU64,
    /// The watched directories.
    pub(super) watched: WatchList,
    /// The programs for files that murald does not decode itself.
    pub(super) ffmpeg: Ffmpeg,
    /// Whether imported videos have sound.
    pub(super) audio: AudioDefault,
    /// Called for each image that has to be shown again; see [`OnRewritten`].
    pub(super) on_rewritten: OnceLock<OnRewritten>,
}

impl ImportContext {
    pub(super) fn new(
        settings: &Settings,
        store: &Store,
        bus: &EventBus,
        transcoder: &Transcoder,
        land: Land,
    ) -> Self {
        let directory = &settings.thumbnails_dir;
        let ffmpeg = transcoder.ffmpeg().clone();
        let decoder = settings.decoder.clone();
        let run = disk::Run::begin();
        let thumbnails = Thumbnails::new(directory, decoder.clone(), ffmpeg, store.clone());
        Self {
            directory: settings.images_dir.clone(),
            store: store.clone(),
            bus: bus.clone(),
            thumbnails,
            imports: decoder.for_imports(),
            decoder,
            land,
            run,
            serial: AtomicU64::new(0),
            watched: WatchList::default(),
            ffmpeg: transcoder.imports().clone(),
            audio: Arc::clone(&settings.video_audio),
            on_rewritten: OnceLock::new(),
        }
    }

    /// Whether a path is that of a copy, a package or a preview: only these are removed without a check
    /// of their content.
    pub(super) fn is_ours(&self, path: &Path) -> bool {
        self.is_in_library(path) || self.thumbnails.is_preview(path)
    }

    /// Whether a path is directly in the library's directory, which the path may name over a link.
    pub(super) fn is_in_library(&self, path: &Path) -> bool {
        let Some(home) = path.parent().filter(|_| path.file_name().is_some()) else {
            return false;
        };
        let is_it = |home: PathBuf| self.directory.canonicalize().is_ok_and(|own| own == home);
        home == self.directory || home.canonicalize().is_ok_and(is_it)
    }

    /// A temporary path for a file or package that is about to be created.
    pub(super) fn new_copy(&self) -> Result<Copy, Error> {
        let directory = &self.directory;
        // A new file would make it look as if the disk were mounted.
        self.check_mounted(directory)?;
        // If this fails, the write into the directory says why.
        if !directory.is_dir() {
            make_directories(directory).ok();
        }
        Ok(Copy::new(
            directory,
            self.run,
            self.serial.fetch_add(1, Ordering::Relaxed),
        ))
    }

    /// The tools for threads on which a client waits.
    pub(super) fn tools(&self) -> Tools<'_> {
        Tools {
            decoder: &self.decoder,
            ffmpeg: &self.ffmpeg,
        }
    }

    pub(super) fn imported(&self, id: i64, duplicate: bool) -> Result<Imported, Error> {
        let image = self.store.read(|c| task::read_image(c, id))?;
        Ok(self.complete(Imported::new(image, duplicate)))
    }

    /// Handles new content of an image: removes the thumbnails of `old`, and has the image shown again.
    pub(super) fn rewritten(&self, old: &Image) -> Result<Imported, Error> {
        self.thumbnails.remove(old);
        self.tell_rewritten(old.id);
        self.imported(old.id, false)
    }

    pub(super) fn tell_rewritten(&self, image_id: i64) {
        if let Some(tell) = self.on_rewritten.get() {
            tell(image_id);
        }
    }

    /// Adds the paths of the image's thumbnails.
    pub(super) fn complete(&self, mut imported: Imported) -> Imported {
        self.thumbnails.complete(&mut imported.image);
        imported
    }
}
