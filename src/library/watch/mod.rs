//! Watched directories: the library follows the files in them.
//!
//! `watcher` is the thread `watch`. `settings` says which directories are watched; `inbox` has the
//! messages to the thread and the status that it reports; `look` lists a directory on a thread that may
//! hang; `notices` watches it; `findings` compares a listing with the known files; `directory` keeps
//! the state of each directory; `expirations` removes images whose files have gone. The imports read
//! the files themselves (`watched.rs` in the directory above).

mod directory;
mod expirations;
mod findings;
mod inbox;
mod look;
mod notices;
mod settings;
mod watcher;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::context::ImportContext;
use super::error::Error;
use super::owner::Owner;
use crate::store::watched;
use crate::sys::lock;
use crate::thread::{Spawner, Thread};
use crate::wire::{WatchState, WatchedDirectory};

use inbox::StatusList;
use inbox::{Inbox, Message};
use watcher::Watcher;

pub(crate) use settings::{Wanted, WatchSettings};

/// The time limit for the thread's answer. The thread waits for no disk but the database's.
const FORGET_WITHIN: Duration = Duration::from_secs(60);

/// The handle. Clones use the same thread.
#[derive(Clone)]
pub(crate) struct Watching {
    context: Arc<ImportContext>,
    inbox: Inbox,
    status: StatusList,
}

/// The thread's owner.
pub(super) struct WatchThread {
    inbox: Inbox,
    thread: Option<Thread>,
}

/// Starts the thread, which watches nothing until [`Watching::configure`] is called.
pub(super) fn start(
    context: Arc<ImportContext>,
    owner: Owner,
    spawner: &Spawner,
) -> io::Result<(Watching, WatchThread)> {
    let (inbox, status) = (Inbox::new()?, StatusList::default());
    let watching = Watching {
        context: Arc::clone(&context),
        inbox: inbox.clone(),
        status: status.clone(),
    };
    let watcher = Watcher::new((inbox.clone(), status), context, owner);
    let thread = spawner.spawn("watch", move || watcher.run())?;
    Ok((
        watching,
        WatchThread {
            inbox,
            thread: Some(thread),
        },
    ))
}

impl Watching {
    /// Starts a scan of all directories. Returns at once.
    pub(crate) fn scan(&self) {
        self.inbox.send(Message::Scan);
    }

    /// Reports that files were imported in place by their paths. Returns at once.
    pub(super) fn named(&self) {
        self.inbox.send(Message::Named);
    }

    /// Sets the directories to watch. Returns at once.
    pub(crate) fn configure(&self, settings: WatchSettings) {
        let roots = settings
            .directories
            .iter()
            .filter_map(|one| one.directory.clone().ok());
        *lock(&self.context.roots) = roots.collect();
        self.inbox.send(Message::Settings(settings));
    }

    /// Removes the images in place of a directory that is no longer watched; their files stay. Waits
    /// for no disk but the database's.
    pub(crate) fn forget(&self, directory: &Path) -> Result<(), Error> {
        let (reply, answer) = bounded(1);
        self.inbox.send(Message::Forget {
            directory: directory.to_owned(),
            reply,
        });
        answer
            .recv_timeout(FORGET_WITHIN)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => Error::Busy,
                RecvTimeoutError::Disconnected => Error::Ended,
            })?
    }

    /// The state of each directory. Waits for no disk.
    pub(crate) fn directories(
        &self,
        settings: &WatchSettings,
    ) -> Result<Vec<WatchedDirectory>, Error> {
        let store = &self.context.store;
        let one = |wanted: &Wanted| -> Result<WatchedDirectory, Error> {
            let path = wanted.written.clone();
            let (state, message) = match (&wanted.directory, self.status.of(&path)) {
                (Err(why), _) => (WatchState::Unreadable, Some(why.clone())),
                (Ok(_), Some(status)) => (status.state, status.message),
                (Ok(_), None) => (WatchState::Watched, Some("not scanned yet".to_owned())),
            };
            let directory = wanted.directory.clone().ok();
            let count = |directory| store.read(|c| watched::count(c, directory));
            let images = directory.as_deref().map_or(Ok(0), count)?;
            Ok(WatchedDirectory {
                path,
                directory,
                state,
                images,
                message,
            })
        };
        settings.directories.iter().map(one).collect()
    }

    /// Warnings about watched directories, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.status.warnings()
    }
}

impl WatchThread {
    /// Tells the thread to end, and returns it to be joined.
    pub(super) fn end(mut self) -> Option<Thread> {
        self.inbox.send(Message::End);
        self.thread.take()
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        // Sent before the field `thread` is dropped, which joins the thread.
        self.inbox.send(Message::End);
    }
}
