//! Watched directories: their pictures are in the library as they come and go.
//!
//! From the bottom up: `settings` says what is watched, `findings` what a look found and what that
//! means, `places` knows names of directories, `way` and `notices` ask the kernel, `look` lists on threads
//! that may hang, `mounts` knows disks, `missing` which files are not there, `directory` keeps the
//! state of each, `endings` knows whose time is up and `rows` ends it, `watcher` is the thread
//! `watch`. The files themselves are taken by the imports (`watched.rs` beside this room).

mod directory;
mod endings;
mod findings;
mod inbox;
mod known;
mod look;
mod missing;
mod mounts;
mod notices;
mod places;
mod rows;
mod settings;
mod status;
mod watcher;
mod way;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::import;
use super::import_file::ImportContext;
use super::{Error, Library};
use crate::events::EventBus;
use crate::store::watched;
use crate::sys::lock;
use crate::thread::{Spawner, Thread};
use crate::wire::{WatchState, WatchedDirectory};

use inbox::{Inbox, Message};
use status::StatusList;
use watcher::Watcher;

pub(crate) use settings::{Wanted, WatchSettings};

/// The thread waits for the database at most.
const FORGET_WITHIN: Duration = Duration::from_secs(60);

/// The handle; clones speak to the same thread.
#[derive(Clone)]
pub(super) struct Watching {
    inbox: Inbox,
    status: StatusList,
}

/// The thread's owner.
pub(super) struct WatchThread {
    inbox: Inbox,
    thread: Option<Thread>,
}

/// Starts the thread, which watches nothing until it is told what.
pub(super) fn start(
    context: Arc<ImportContext>,
    bus: EventBus,
    importer: Sender<import::Message>,
    spawner: &Spawner,
) -> io::Result<(Watching, WatchThread)> {
    let (inbox, status) = (Inbox::new()?, StatusList::default());
    let watching = Watching { inbox: inbox.clone(), status: status.clone() };
    let told = (inbox.clone(), status);
    let watcher = Watcher::new(told, context, bus, importer);
    let thread = spawner.spawn("watch", move || watcher.run())?;
    Ok((watching, WatchThread { inbox, thread: Some(thread) }))
}

impl Watching {
    /// Has all directories looked at. Returns at once.
    pub(super) fn scan(&self) {
        self.inbox.send(Message::Scan);
    }

    /// Files were imported in place by their names. Returns at once.
    pub(super) fn named(&self) {
        self.inbox.send(Message::Named);
    }
}

impl WatchThread {
    /// Tells the thread to end, and hands it over.
    pub(super) fn end(mut self) -> Option<Thread> {
        self.inbox.send(Message::End);
        self.thread.take()
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        // Before its thread is joined.
        self.inbox.send(Message::End);
    }
}

impl Library {
    /// Says what is to be watched. Returns at once.
    pub(crate) fn watch(&self, settings: WatchSettings) {
        let roots = settings.directories.iter().filter_map(|one| one.directory.clone().ok());
        *lock(&self.context.roots) = roots.collect();
        self.watching.inbox.send(Message::Settings(settings));
    }

    /// Has all watched directories looked at. Returns at once.
    pub(crate) fn scan(&self) {
        self.watching.scan();
    }

    /// The images in place of a directory that is watched no more leave the library, and their files
    /// stay. Waits for no disk but the database's.
    pub(crate) fn forget_watched(&self, directory: &std::path::Path) -> Result<(), Error> {
        let (reply, answer) = bounded(1);
        self.watching.inbox.send(Message::Forget { directory: directory.to_owned(), reply });
        answer.recv_timeout(FORGET_WITHIN).map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::Busy,
            RecvTimeoutError::Disconnected => Error::Ended,
        })?
    }

    /// How the directories are; waits for no disk.
    pub(crate) fn watched(&self, settings: &WatchSettings) -> Result<Vec<WatchedDirectory>, Error> {
        let one = |wanted: &settings::Wanted| -> Result<WatchedDirectory, Error> {
            let path = wanted.written.clone();
            let directory = match &wanted.directory {
                Ok(directory) => directory.clone(),
                Err(why) => {
                    let (state, message) = (WatchState::Unreadable, Some(why.clone()));
                    return Ok(WatchedDirectory {
                        path,
                        directory: None,
                        state,
                        images: 0,
                        message,
                    });
                }
            };
            let images = self.store.read(|c| watched::count(c, &directory))?;
            let status = self.watching.status.of(&path);
            let (state, message) = status.map_or_else(
                || (WatchState::Watched, Some("it is being looked at".to_owned())),
                |status| (status.state, status.message),
            );
            Ok(WatchedDirectory { path, directory: Some(directory), state, images, message })
        };
        settings.directories.iter().map(one).collect()
    }

    /// What is not as it should be with watched directories, for people.
    pub(crate) fn watch_warnings(&self) -> Vec<String> {
        self.watching.status.warnings()
    }
}
