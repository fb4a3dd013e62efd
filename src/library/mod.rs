//! The library: imports images, keeps their rows and files together, and deletes them.
//!
//! [`Library`] is the handle; [`Running`] owns the threads `library`, `import-1..n`, `remove` and
//! `watch-1..n`. A worker prepares a file (`import_file`), and `library`, the only thread that names
//! files, lands it as a whole or not at all (`owner`, `landing`). `remove` removes files whose rows are
//! gone, and compares rows and files after a start, while requests are served. Thumbnails are a cache
//! ([`Thumbnails`]): a missing one is made when it is asked for. Pictures are decoded in processes of
//! their own. Nothing here waits for a client or a backend, and no source file is ever changed.

mod batch;
mod context;
mod decode;
mod departed;
mod disk;
mod edit;
mod error;
mod file_removal;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/library.rs"]
pub mod fuzz;
mod handle;
mod import;
mod import_file;
mod landing;
mod listing;
mod missing;
mod name;
mod owner;
mod package;
mod reconcile;
mod removal;
mod removal_thread;
mod task;
#[cfg(test)]
mod tests;
mod thumbnails;
mod video;
mod walk;
mod watch;
mod workers;

use std::io;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use crate::events::EventBus;
use crate::kernel::Kernel;
use crate::store::Store;
use crate::thread::{Spawner, Thread};
use crate::transcode::Transcoder;

use context::ImportContext;
use import::{Imports, work};
use landing::LibraryFiles;
use owner::{Owner, OwnerThread};
use removal_thread::REMOVALS_MAX;
use watch::Watching;
use workers::{Work, Workers};

pub use context::Settings;
pub(crate) use edit::Deleted;
pub(crate) use error::Error;
pub(crate) use file_removal::Outcome;
pub use handle::Library;
pub(crate) use handle::{Content, TRIES};
pub(crate) use removal::Removed;
pub(crate) use thumbnails::Thumbnails;
pub(crate) use video::LoopGoes;
pub(crate) use watch::{Wanted, WatchSettings};

/// The threads. Dropping it ends them; files in progress are given up.
pub struct Running {
    /// Ended before the imports, to which it sends files.
    watching: Watching,
    /// Above the threads: closed before they are joined.
    end: Sender<()>,
    threads: Vec<Thread>,
    /// Disconnected when rows and files were compared.
    reconciled: Receiver<()>,
    /// May hang on any disk, so it is not joined.
    remove: Thread,
}

/// Starts the threads. Rows and files are reconciled in the background.
pub fn start(
    settings: &Settings,
    store: Store,
    bus: EventBus,
    transcoder: Transcoder,
    kernel: &Kernel,
    spawner: &Spawner,
) -> io::Result<(Library, Running)> {
    // Above the channels: if the start fails, these are closed before the threads are joined.
    let mut threads = Vec::new();
    let (owner, commands) = Owner::new();
    let landing = owner.clone();
    let land = move |prepared| landing.call(move |files| files.land_one(prepared));
    let context = ImportContext::new(settings, &store, &bus, &transcoder, Box::new(land));
    let context = Arc::new(context);
    // Before the first request is served, so that notes of this run are not taken for the last one's.
    let leftovers = reconcile::leftovers(&context);
    let (end, ended) = bounded(0);
    let importing = Arc::clone(&context);
    let work: Work = Arc::new(move |job| work(&importing, job));
    let workers = Workers::start(settings.workers.max(1), spawner, &work)?;
    let watching = Watching::new(Arc::clone(&context), owner.clone(), kernel, spawner);
    let (jobs, removals) = bounded(REMOVALS_MAX);
    let (reconciling, reconciled) = bounded(0);
    let removing = Arc::clone(&context);
    let thread = OwnerThread {
        files: LibraryFiles::new(Arc::clone(&context), jobs),
        imports: Imports::new(bus.clone(), workers),
        commands,
        end: ended,
    };
    threads.push(spawner.spawn("library", move || thread.run())?);
    let remove = move || removal_thread::run(&removing, &leftovers, reconciling, removals);
    let remove = spawner.spawn("remove", remove)?;
    let thumbnails = context.thumbnails.clone();
    let library = Library {
        owner,
        context,
        thumbnails,
        transcoder,
        store,
        bus,
        watching: watching.clone(),
    };
    Ok((
        library,
        Running {
            watching,
            end,
            threads,
            reconciled,
            remove,
        },
    ))
}

impl Running {
    /// Whether rows and files were compared.
    pub fn is_reconciled(&self) -> bool {
        self.reconciled.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Tells the threads to end, and returns them to be joined.
    pub fn end(self) -> Vec<Thread> {
        self.watching.end();
        drop(self.end);
        self.remove.leave();
        self.threads
    }
}
