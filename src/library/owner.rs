//! The thread `library`: the only one that adds and renames files in the library's directory, and that
//! writes the rows which name them.
//!
//! It carries out commands and lands what the imports have prepared. Up to [`COMMANDS_AT_ONCE`] commands
//! come before each group of files, so that no client waits for an import. Changes of many rows, such as
//! the moves of a watched directory, arrive in slices of at most [`AT_ONCE`](super::departed::AT_ONCE)
//! rows through [`Owner::slice`]: each is one command and one transaction, and clients come in between.
//!
//! The thread reads only the disks of the library's directory and of the database, as a user's disk may
//! not answer.

use std::time::{Duration, Instant};

use crossbeam_channel::{
    Receiver, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, after, bounded, never,
    select,
};

use super::batch::Reply;
use super::error::Error;
use super::import::{Imports, Request};
use super::landing::LibraryFiles;
use crate::wire::DebugQueue;

/// The maximum number of commands that wait; another one is refused.
const COMMANDS_MAX: usize = 64;
/// The maximum number of commands between two groups of files.
const COMMANDS_AT_ONCE: usize = 16;
/// How long a client waits, even if the disk of the library hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) enum Command {
    Import(Request),
    Cancel { batch: String, reply: Reply<()> },
    Work(Work),
}

/// Work on the library's files, carried out at once, or told why it is refused.
type Work = Box<dyn FnOnce(Result<&mut LibraryFiles, Error>) + Send>;

impl Command {
    fn refuse(self, why: Error) {
        match self {
            Self::Import(request) => request.refuse(why),
            Self::Cancel { reply, .. } => reply(Err(why)),
            Self::Work(work) => work(Err(why)),
        }
    }
}

/// Sends commands to the thread. Clones send to the same one.
#[derive(Clone)]
pub(super) struct Owner {
    commands: Sender<Command>,
}

impl Owner {
    pub(super) fn new() -> (Self, Receiver<Command>) {
        let (commands, receiver) = bounded(COMMANDS_MAX);
        (Self { commands }, receiver)
    }

    pub(super) fn queue(&self) -> DebugQueue {
        DebugQueue::new("library", &self.commands)
    }

    /// Sends a command, which is refused if too many wait.
    pub(super) fn send(&self, command: Command) {
        self.send_within(Duration::ZERO, command);
    }

    /// Has `work` done on the thread, and returns its result. After a minute it fails, but the work may
    /// still be done.
    pub(super) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LibraryFiles) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.hand(|files, reply| reply(work(files)))
    }

    /// Like [`Self::call`], for work that another thread finishes, which replies.
    pub(super) fn hand<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LibraryFiles, Reply<T>) + Send + 'static,
    ) -> Result<T, Error> {
        ask(|reply| {
            self.send(Command::Work(Box::new(|files| match files {
                Ok(files) => work(files, reply),
                Err(why) => reply(Err(why)),
            })));
        })
    }

    /// Like [`Self::call`], but waits for a place in the queue: for threads of the library that give one
    /// slice after another.
    pub(super) fn slice<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LibraryFiles) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        ask(|reply| {
            let work = Command::Work(Box::new(|files| reply(files.and_then(work))));
            self.send_within(PATIENCE, work);
        })
    }

    fn send_within(&self, room: Duration, command: Command) {
        match self.commands.send_timeout(command, room) {
            Ok(()) => {}
            Err(SendTimeoutError::Timeout(command)) => command.refuse(Error::Busy),
            Err(SendTimeoutError::Disconnected(command)) => command.refuse(Error::Ended),
        }
    }

    /// Sends files of a watched directory, and waits until there is room for them.
    pub(super) fn give(&self, request: Request) {
        // The send fails only if the daemon is exiting.
        self.commands.send(Command::Import(request)).ok();
    }
}

/// Sends a request with a reply, and waits for it, at most a minute.
pub(super) fn ask<T: Send + 'static>(send: impl FnOnce(Reply<T>)) -> Result<T, Error> {
    let (answer, answered) = bounded(1);
    send(Box::new(move |result| {
        // The client may have gone.
        answer.send(result).ok();
    }));
    answered
        .recv_timeout(PATIENCE)
        .map_err(|error| match error {
            RecvTimeoutError::Timeout => Error::Busy,
            RecvTimeoutError::Disconnected => Error::Ended,
        })?
}

/// The state of the thread.
pub(super) struct OwnerThread {
    pub(super) files: LibraryFiles,
    pub(super) imports: Imports,
    pub(super) commands: Receiver<Command>,
    /// Disconnected when the daemon exits.
    pub(super) end: Receiver<()>,
}

impl OwnerThread {
    /// The body of the thread.
    pub(super) fn run(mut self) {
        while self.end.try_recv() != Err(TryRecvError::Disconnected) {
            let commands = self.commands.clone();
            let waiting = commands.try_iter().take(COMMANDS_AT_ONCE);
            waiting.for_each(|command| self.obey(command));
            self.imports.dispatch(&mut self.files);
            if !self.imports.land_group(&mut self.files) {
                self.wait();
            }
        }
        // Gives up the files in progress, without events.
        self.files.context.imports.end_imports();
    }

    /// Waits until there is something to do.
    fn wait(&mut self) {
        let due = self.imports.gallery_due().map_or_else(never, |at| {
            after(at.saturating_duration_since(Instant::now()))
        });
        select! {
            recv(self.commands) -> command => command.into_iter().for_each(|it| self.obey(it)),
            recv(self.imports.results()) -> done => {
                done.into_iter().for_each(|it| self.imports.settle(it, &self.files));
            }
            recv(due) -> _ => self.imports.tell_gallery(),
            recv(self.end) -> _ => {}
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Import(request) => self.imports.accept(request),
            Command::Cancel { batch, reply } => {
                reply(self.imports.cancel(&batch, &mut self.files));
            }
            Command::Work(work) => work(Ok(&mut self.files)),
        }
    }
}
