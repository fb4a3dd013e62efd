//! The handle of the library, for all other modules. Runs on the calling thread; the threads of the
//! library do the work. Never waits for a file on a disk that does not answer.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::batch::{Done, Reply};
use super::context::{ImportContext, OnRewritten};
use super::decode::Tools;
use super::departed::{AT_ONCE, lost, purge};
use super::error::Error;
use super::import::{Answer, Request, Started};
use super::landing::LibraryFiles;
use super::owner::{Command, Owner, ask};
use super::task::{Imported, Prepared, Source, Task};
use super::thumbnails::Thumbnails;
use super::walk::{FoundFile, walk};
use super::watch::Watching;
use super::{disk, package};
use crate::color::Rgb;
use crate::decode;
use crate::events::EventBus;
use crate::media::Note;
use crate::paths::presence;
use crate::store::{Store, images, watched};
use crate::transcode::{Ffmpeg, Transcoder};
use crate::wire::{
    DebugQueue, GalleryDomain, Image, ImportedBatch, LibraryHealth, MediaType, Resolution,
};

/// How often one request tries again if its file may have been renamed, and renamed back, since it was
/// looked for.
pub(crate) const TRIES: usize = 3;
/// The longest wait for the row of a file that was replaced, and the delay between two checks.
const REPLACED: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The size of still pictures: larger than any screen that one is likely to be shown on.
const SIZE: Resolution = Resolution::P2160;

/// The handle. Clones share the same library.
#[derive(Clone)]
pub struct Library {
    pub(super) owner: Owner,
    pub(super) context: Arc<ImportContext>,
    pub(super) thumbnails: Thumbnails,
    pub(super) transcoder: Transcoder,
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(crate) watching: Watching,
}

impl Library {
    /// The queues of the thread `library`, and of ffmpeg.
    pub(crate) fn queues(&self) -> impl Iterator<Item = DebugQueue> {
        std::iter::once(self.owner.queue()).chain(self.transcoder.queues())
    }

    /// Imports files and directories; the progress is published as events. Returns when the directories
    /// have been walked.
    pub fn import(&self, paths: Vec<PathBuf>, folder: Option<i64>) -> Result<Started, Error> {
        ask(|reply| self.start(&paths, folder, false, Answer::Begun(reply)))
    }

    /// Imports files in place. Refuses directories, which can be watched instead.
    pub(crate) fn import_in_place(
        &self,
        paths: Vec<PathBuf>,
        folder: Option<i64>,
    ) -> Result<Started, Error> {
        ask(|reply| self.start(&paths, folder, true, Answer::Begun(reply)))
    }

    /// Imports like [`Self::import`] or [`Self::import_in_place`], but calls `reply` when all files have
    /// ended.
    pub(crate) fn import_all(
        &self,
        paths: &[PathBuf],
        folder: Option<i64>,
        in_place: bool,
        reply: Reply<ImportedBatch>,
    ) {
        self.start(paths, folder, in_place, Answer::Ended(reply));
    }

    fn start(&self, paths: &[PathBuf], folder: Option<i64>, in_place: bool, answer: Answer) {
        let files = match self.walk(paths, in_place) {
            Ok(files) => files,
            Err(error) => return answer.refuse(error),
        };
        let (task, done) = if in_place {
            let watching = self.watching.clone();
            let done: Done = Box::new(move |_| watching.named());
            (Task::InPlace, Some(done))
        } else {
            (Task::Copy, None)
        };
        self.owner.send(Command::Import(Request::Client {
            files,
            folder,
            task,
            done,
            answer,
        }));
    }

    /// Walks the paths on this thread, as all clients wait for the thread `library`.
    fn walk(&self, paths: &[PathBuf], in_place: bool) -> Result<Vec<FoundFile>, Error> {
        paths.iter().try_for_each(|path| disk::answers(path))?;
        match paths.iter().find(|path| in_place && path.is_dir()) {
            Some(path) => Err(Error::DirectoryInPlace { path: path.clone() }),
            None => Ok(walk(paths, &self.watching.exclude())),
        }
    }

    /// Sets the function that is called for images that have to be shown again. Only the first call has
    /// an effect.
    pub(crate) fn on_rewritten(&self, tell: OnRewritten) {
        self.context.on_rewritten.set(tell).ok();
    }

    /// Stops a batch before its next file.
    pub fn cancel(&self, batch: &str) -> Result<(), Error> {
        let batch = batch.to_owned();
        ask(|reply| self.owner.send(Command::Cancel { batch, reply }))
    }

    /// The cache of thumbnails.
    pub fn thumbnails(&self) -> &Thumbnails {
        &self.thumbnails
    }

    /// Threads for work that waits for ffmpeg.
    pub fn transcoder(&self) -> &Transcoder {
        &self.transcoder
    }

    /// The file of a thumbnail, made now if it is missing.
    pub fn thumbnail(&self, image: &Image, size: Resolution) -> Result<PathBuf, Error> {
        let mut image = image.clone();
        let mut tries = TRIES;
        loop {
            self.answers(&image)?;
            let made = if image.is_absent() {
                Err(Error::FileGone { id: image.id })
            } else {
                self.thumbnails.get(&image, size)
            };
            let again = if made.as_ref().is_err_and(|error| error.is_missing_file()) {
                self.found_again(&image, &mut tries)?
            } else {
                None
            };
            match again {
                Some(now) => image = now,
                None => return made,
            }
        }
    }

    /// The present row, if the image's path has changed since `image` was read. For callers that did not
    /// find the file; waits for a rename in progress.
    pub fn moved(&self, image: &Image) -> Result<Option<Image>, Error> {
        // Files are renamed inside the transaction, and readers see the old row until it ends.
        let now = self.store.read_after_writer(|c| images::get(c, image.id))?;
        Ok(now.filter(|now| now.path != image.path))
    }

    /// Like [`Self::moved`], but also returns the unchanged row if the file exists now, as it may have
    /// been renamed and renamed back. Each such answer takes one of the `tries`.
    pub(crate) fn found_again(
        &self,
        image: &Image,
        tries: &mut usize,
    ) -> Result<Option<Image>, Error> {
        let now = self.moved(image)?;
        if now.is_some() || *tries == 0 || !image.path.exists() {
            return Ok(now);
        }
        *tries -= 1;
        Ok(Some(image.clone()))
    }

    /// How many copies have missing files.
    pub fn health(&self) -> LibraryHealth {
        let (missing, _) = self.count_missing();
        LibraryHealth { missing }
    }

    /// A warning for people about missing files, if any.
    pub fn warning(&self) -> Option<String> {
        let (missing, total) = self.count_missing();
        (missing > 0).then(|| {
            format!(
                "{missing} of {total} pictures are missing; their entries are kept. Restore the files, or remove the entries with `murald library purge-missing`"
            )
        })
    }

    fn count_missing(&self) -> (usize, usize) {
        let counted = self.store.read(images::count_missing);
        counted
            .inspect_err(|error| log::warn!("cannot count the missing pictures: {error}"))
            .unwrap_or_default()
    }

    /// Looks for the files of all images. Returns at once for watched directories.
    pub(crate) fn scan(&self) -> Result<(), Error> {
        self.watching.scan();
        self.context.mark_missing()
    }

    /// Removes all copies and single files in place that are missing; returns how many. Images of
    /// watched directories stay: their threads remove them, unless their disk is unmounted.
    pub fn purge_missing(&self) -> Result<usize, Error> {
        self.context.mark_missing()?;
        let roots = self.context.watched.roots();
        let is_watched = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let mut missing = self.store.missing();
        for (id, one) in self.store.read(watched::missing)? {
            // An image without files is kept for one that cannot be decoded.
            if is_watched(&one.path) || one.since == 0 && !one.has_files {
                missing.remove(&id);
            }
        }
        let missing: Vec<i64> = missing.into_iter().collect();
        let mut purged = 0;
        for some in missing.chunks(AT_ONCE) {
            let some = some.to_vec();
            purged += self
                .owner
                .slice(move |files| purge(&files.context, &some))?;
        }
        if purged > 0 {
            self.watching.scan();
        }
        Ok(purged)
    }

    /// For requests that do not find the row or file of an image, and whether their users named it: has
    /// the image marked as missing, or removed if it was named. Does not wait.
    pub(crate) fn on_lost(&self) -> impl Fn(i64, bool) + Send + Sync + use<> {
        let owner = self.owner.clone();
        move |id, is_named| {
            let work = move |files: Result<&mut LibraryFiles, Error>| {
                if let Err(error) = files.and_then(|files| lost(&files.context, id, is_named)) {
                    log::warn!("image {id} is missing, and stays: {}", error.reason());
                }
            };
            owner.send(Command::Work(Box::new(work)));
        }
    }

    /// Fails if an image is in place and the disk of its file does not answer.
    pub(crate) fn answers(&self, image: &Image) -> Result<(), Error> {
        if image.in_place {
            disk::answers(&image.path)
        } else {
            Ok(())
        }
    }

    /// Waits until the library knows which file has the path of an image in place, if that was replaced:
    /// the row of the image may be about to follow its file to another path.
    pub(crate) fn wait_for_replaced(&self, image: &Image) -> Result<(), Error> {
        let end = Instant::now() + REPLACED;
        while image.in_place && Instant::now() < end {
            let known = self.store.read(|c| watched::get(c, &image.path))?;
            let now = fs::metadata(&image.path).ok();
            if known
                .zip(now)
                .is_none_or(|(known, now)| known.stamp.inode == now.ino())
            {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// The row of an image, if there is one. Has the file of one in place looked at: a network disk
    /// reports no changes.
    pub(crate) fn image_now(&self, id: i64) -> Result<Option<Image>, Error> {
        let image = self.store.read(|c| images::get(c, id))?;
        if let Some(image) = image.as_ref().filter(|image| image.in_place) {
            self.context.watched.look_at(&image.path);
            // Waits for a disk that does not answer, so that the reconciler need not.
            presence(&image.path);
        }
        Ok(image)
    }

    /// The image for a path: the one with this path or this content, otherwise a new one, in no folder.
    /// Also returns the defect of a new image's file.
    pub(crate) fn import_one(&self, source: &Path) -> Result<(Image, Option<Note>), Error> {
        disk::answers(source)?;
        let real = fs::canonicalize(source).map_err(Error::file("read", source))?;
        if let Some(image) = self.store.read(|c| images::by_path(c, &real))? {
            return Ok((image, None));
        }
        let imported = self.land(self.context.prepare(source, None, self.context.tools())?)?;
        Ok((imported.image, imported.note))
    }

    /// Imports a web package, which takes seconds if it is large.
    pub fn import_web(&self, source: &Path, folder: Option<i64>) -> Result<Image, Error> {
        disk::answers(source)?;
        let prepared = self
            .context
            .prepare_web(source, folder, self.context.tools())?;
        Ok(self.land(prepared)?.image)
    }

    pub(super) fn land(&self, prepared: Prepared) -> Result<Imported, Error> {
        let owner = &self.owner;
        let imported = owner.call(move |files| files.land_one(prepared))?;
        if !imported.duplicate {
            self.changed(GalleryDomain::Images);
        }
        Ok(imported)
    }

    /// Looks at a file or package without importing it, for callers that ask whether it can be shown.
    pub(crate) fn content(&self, source: &Path) -> Result<Content, Error> {
        disk::answers(source)?;
        let looked = match self.context.decoder.look(source) {
            Err(decode::Error::Directory) => {
                let (media_type, name) = package::content(source, &self.context.decoder)?;
                return Ok(Content {
                    media_type,
                    animated: false,
                    name,
                });
            }
            looked => looked,
        };
        let Source {
            format,
            name,
            header,
            ..
        } = Source::from_looked(source, looked)?;
        // A file that cannot be read is reported when it is imported.
        let animated = header.is_ok_and(|header| header.animated);
        Ok(Content {
            media_type: format.media_type(),
            animated,
            name: name.stem,
        })
    }
    /// Writes a still picture of an image to a new PNG file of 4K at most: the first frame of an
    /// animation, the poster frame of a video, the preview of a page. Transparent pixels are composed
    /// over the colour `fill`; then the colours of the result are returned.
    pub(crate) fn still(
        &self,
        ffmpeg: &Ffmpeg,
        image: &Image,
        fill: Rgb,
        to: &Path,
    ) -> Result<Option<Vec<Rgb>>, Error> {
        let tools = Tools {
            decoder: &self.context.decoder,
            ffmpeg,
        };
        match &image.web_meta {
            Some(meta) => package::package_still((image, meta), (SIZE, fill), tools, to),
            None => tools.still(&image.path, (SIZE, fill), to),
        }
    }
}

/// The properties that decide which backend can show a file or package, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub media_type: MediaType,
    pub animated: bool,
    pub name: String,
}
