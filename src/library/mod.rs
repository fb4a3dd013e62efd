//! The library: what comes in, what stays, what goes.
//!
//! [`Library`] is the handle; [`Running`] owns the threads `import`, `import-1..n`, `reconcile`,
//! `thumbs` and `watch`. Pictures are taken in one file to a worker, whole or not at all
//! ([`import_file`]); a start finds out what the last run left, while everybody is served
//! ([`reconcile`]); thumbnails are a cache that mends itself ([`Thumbnails`]). Nothing here waits on a
//! client or a backend, and no source file is ever changed.

mod batch;
mod decode;
mod disk;
mod edit;
mod error;
mod folders;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/library.rs"]
pub mod fuzz;
mod given_back;
mod guard;
mod idle;
mod import;
mod import_file;
mod in_place;
mod kept;
mod known;
mod landed;
mod landing;
mod leftovers;
mod memory_budget;
mod missing;
mod name;
mod package;
mod reconcile;
mod removal;
mod scratch;
mod single;
mod single_flight;
mod source;
mod still;
mod task;
#[cfg(test)]
mod tests;
mod thumbnails;
mod thumbnails_look;
mod thumbnails_seen;
mod trash;
mod turn;
mod video;
mod video_frame;
mod walk;
mod watch;
mod watched;
mod watched_folder;
mod workers;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Sender, TrySendError, bounded};

use crate::events::EventBus;
use crate::media::Stop;
use crate::store::{Store, images};
use crate::thread::{Spawner, Thread};
use crate::transcode::Transcoder;
use crate::wire::{DebugQueue, Image, ImportedBatch, Resolution};

use batch::Done;
use guard::Guard;
use idle::Wake;
use import::{Answer, BATCHES_MAX, Importer, Message, PATIENCE, Reply, work};
use import_file::ImportContext;
use leftovers::Leftovers;
use reconcile::Reconciler;
use task::Task;
use walk::Found;
use watch::{WatchThread, Watching};
use workers::Workers;

pub(crate) use error::Error;
pub(crate) use folders::Deleted;
pub(crate) use idle::{Idle, machine_is_idle};
pub(crate) use single::Content;
pub(crate) use thumbnails::Thumbnails;
pub(crate) use video::LoopGoes;
pub(crate) use watch::{Wanted, WatchSettings};

/// Whether a video that is taken in is heard; asked anew for each.
pub(crate) type AudioDefault = Arc<dyn Fn() -> bool + Send + Sync>;

/// Told of each image whose file was written anew by its owner; must not wait.
pub(crate) type OnRewritten = Box<dyn Fn(i64) + Send + Sync>;

/// Of the configuration, what the library needs.
#[derive(Clone)]
pub struct Settings {
    pub images_dir: PathBuf,
    pub thumbnails_dir: PathBuf,
    /// Files that are worked on at the same time; one for each processor.
    pub workers: usize,
    pub video_audio: AudioDefault,
    /// None: thumbnails are made only when they are asked for.
    pub idle: Option<Idle>,
}

/// An accepted import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub batch_id: String,
    /// Files found.
    pub total: usize,
}

/// The handle; clones speak to the same library.
#[derive(Clone)]
pub struct Library {
    inbox: Sender<Message>,
    context: Arc<ImportContext>,
    thumbnails: Thumbnails,
    transcoder: Transcoder,
    store: Store,
    bus: EventBus,
    guard: Guard,
    wake: Wake,
    watching: Watching,
}

/// The thread that looks through the library after a start.
const RECONCILE: &str = "reconcile";

/// How often one request believes that a file was renamed there and back while it looked.
pub(crate) const TRIES: usize = 3;

/// The threads. Dropping it ends them, each with the file that it has in hand.
pub struct Running {
    /// Before the imports, which it gives files.
    watch: WatchThread,
    /// Above the threads: closed before they are joined.
    end: Sender<()>,
    threads: Vec<Thread>,
}

/// Starts the threads. Rows and files are reconciled in the background.
pub fn start(
    settings: &Settings,
    store: Store,
    bus: EventBus,
    transcoder: Transcoder,
    spawner: &Spawner,
) -> io::Result<(Library, Running)> {
    // Above the channels: where the start fails these are closed before the threads are joined.
    let mut threads = Vec::new();
    let context = Arc::new(ImportContext::new(settings, &store, &bus, &transcoder));
    // Before anybody can be served: what this run notes must not be taken for the last one's.
    let leftovers = Leftovers::take(&context);
    let (inbox, messages) = bounded(BATCHES_MAX);
    let (end, ended) = bounded(0);
    let importing = Arc::clone(&context);
    let work = Arc::new(move |job: &_, stop: Stop<'_>| work(&importing, job, stop));
    let workers = Workers::start(settings.workers.max(1), PATIENCE, spawner, work)?;
    let (wake, thumbs) = idle::start(settings.idle, &context, ended.clone(), spawner)?;
    threads.extend(thumbs);
    let guard = Guard::default();
    let (watching, watch) =
        watch::start(Arc::clone(&context), bus.clone(), inbox.clone(), spawner)?;
    let reconciler = Reconciler {
        context: Arc::clone(&context),
        leftovers,
        guard: guard.clone(),
        importer: inbox.clone(),
        watching: watching.clone(),
        wake: wake.clone(),
        end: ended.clone(),
    };
    let importer = Importer {
        context: Arc::clone(&context),
        bus: bus.clone(),
        inbox: messages,
        workers,
        end: ended,
        wake: wake.clone(),
    };
    threads.push(spawner.spawn("import", move || importer.run())?);
    threads.push(spawner.spawn(RECONCILE, move || reconciler.run())?);
    let thumbnails = context.thumbnails.clone();
    let library =
        Library { inbox, context, thumbnails, transcoder, store, bus, guard, wake, watching };
    Ok((library, Running { watch, end, threads }))
}

impl Library {
    /// What waits for the imports, and for ffmpeg.
    pub(crate) fn queues(&self) -> impl Iterator<Item = DebugQueue> {
        std::iter::once(DebugQueue::of("import", &self.inbox)).chain(self.transcoder.queues())
    }

    /// Takes files and directories in; progress arrives as events. Returns when the directories
    /// have been walked.
    pub fn import(&self, paths: Vec<PathBuf>, folder: Option<i64>) -> Result<Started, Error> {
        let start = self.start(&paths, folder, false)?;
        self.ask(|reply| start(Answer::Begun(reply)))
    }

    /// Takes files in where they lie; a directory is refused, as it is watched instead.
    pub(crate) fn import_in_place(
        &self,
        paths: Vec<PathBuf>,
        folder: Option<i64>,
    ) -> Result<Started, Error> {
        let start = self.start(&paths, folder, true)?;
        self.ask(|reply| start(Answer::Begun(reply)))
    }

    /// As one of these two, and answers when all files have ended.
    pub(crate) fn import_all(
        &self,
        paths: &[PathBuf],
        folder: Option<i64>,
        in_place: bool,
        reply: Reply<ImportedBatch>,
    ) {
        let start = match self.start(paths, folder, in_place) {
            Ok(start) => start,
            Err(error) => return reply(Err(error)),
        };
        let (error, message) = match self.inbox.try_send(start(Answer::Ended(reply))) {
            Ok(()) => return,
            Err(TrySendError::Full(message)) => (Error::Busy, message),
            Err(TrySendError::Disconnected(message)) => (Error::Ended, message),
        };
        if let Message::Start { answer: Answer::Ended(reply), .. } = message {
            reply(Err(error));
        }
    }

    /// What the thread `import` is asked, once it is known when its client is answered.
    fn start(
        &self,
        paths: &[PathBuf],
        folder: Option<i64>,
        in_place: bool,
    ) -> Result<impl FnOnce(Answer) -> Message + use<>, Error> {
        let files = self.walk(paths)?;
        let (task, done) = if in_place {
            if let Some(path) = paths.iter().find(|path| path.is_dir()) {
                return Err(Error::DirectoryInPlace { path: path.clone() });
            }
            let watching = self.watching.clone();
            let done: Done = Box::new(move || watching.named());
            (Task::InPlace, Some(done))
        } else {
            (Task::Copy, None)
        };
        Ok(move |answer| Message::Start { files, folder, task, done, answer })
    }

    /// Here, and not in the thread that every other import waits for.
    fn walk(&self, paths: &[PathBuf]) -> Result<Vec<Found>, Error> {
        disk::answers_in(&self.context.directory)?;
        paths.iter().try_for_each(|path| disk::answers(path))?;
        Ok(walk::walk(paths))
    }

    /// Says who is told of images whose files are written anew; the first one that is said.
    pub(crate) fn on_rewritten(&self, tell: OnRewritten) {
        self.context.on_rewritten.set(tell).ok();
    }

    /// Stops a batch before its next file.
    pub fn cancel(&self, batch: &str) -> Result<(), Error> {
        self.ask(|reply| Message::Cancel { batch: batch.to_owned(), reply })
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
    pub fn thumbnail(&self, image: &Image, size: Resolution) -> Result<PathBuf, Arc<Error>> {
        let (mut image, mut tries) = (image.clone(), TRIES);
        loop {
            self.answers(&image.path)?;
            let made = self.thumbnails.get(&image, size);
            // The owner is looking at pictures, and where one was missing there may be more.
            self.wake.send();
            let again = match made.as_ref().is_err_and(|error| error.is_missing_file()) {
                true => self.found_again(&image, &mut tries)?,
                false => None,
            };
            match again {
                Some(now) => image = now,
                None => return made,
            }
        }
    }

    /// For who has looked at an image's row and not found its file: the row again, where the image
    /// has moved meanwhile. Waits for a rename that is on its way.
    pub fn moved(&self, image: &Image) -> Result<Option<Image>, Error> {
        // Files are renamed inside the transaction, and readers see the old row till its end.
        let now = self.store.read_after_writer(|c| images::get(c, image.id))?;
        Ok(now.filter(|now| now.path != image.path))
    }

    /// The same where its file may also have been renamed there and back: its row is the old one, and
    /// the file is where it says. That is believed as often as there are `tries` left.
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

    fn ask<T: Send + 'static>(
        &self,
        message: impl FnOnce(Reply<T>) -> Message,
    ) -> Result<T, Error> {
        let (answer, answered) = bounded(1);
        let reply = Box::new(move |result| {
            // Whoever asked may have gone.
            answer.send(result).ok();
        });
        self.inbox.try_send(message(reply)).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy,
            TrySendError::Disconnected(_) => Error::Ended,
        })?;
        answered.recv().unwrap_or(Err(Error::Ended))
    }
}

impl Running {
    /// Whether rows and files have been looked through; what is to be adopted then waits as a batch.
    pub fn is_reconciled(&self) -> bool {
        self.threads.iter().all(|thread| thread.name() != RECONCILE || thread.has_ended())
    }

    /// Ends the threads by the deadline; returns the names of those that are late.
    pub fn end(self, deadline: Instant) -> Vec<String> {
        let watch = self.watch.end();
        drop(self.end);
        let late = watch.into_iter().chain(self.threads).filter_map(|thread| {
            let name = thread.name().to_owned();
            (!thread.join_by(deadline)).then_some(name)
        });
        late.collect()
    }
}
