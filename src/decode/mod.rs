//! Decodes pictures in processes of their own, `murald decode`, so that a hostile file, a dead disk or a
//! decoder's mistake ends such a process and nothing else.
//!
//! [`Decoder`] is the handle: each call gives a process one job and waits for its reply, on the thread
//! that asks. The thread `decode` starts the processes and ends those without work. Files that a job
//! writes are the caller's: it names them, makes their directories and removes what a failure leaves.

mod child;
mod pool;
mod protocol;
mod sandbox;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::media::{Cut, Shown};
use crate::sys::Cancel;
use crate::thread::Spawner;

pub(crate) use child::main;
pub(crate) use protocol::{Drawn, Error, FileMeta, Hashed, Header, Looked};
pub(crate) use sandbox::confine;
pub use worker::Settings;

use pool::{Pool, Purpose};
use protocol::{Job, Task};

/// The handle; clones use the same processes.
#[derive(Clone, Debug)]
pub struct Decoder {
    pool: Arc<Pool>,
    purpose: Purpose,
    cancel: Option<Cancel>,
    shown: Option<Shown>,
}

impl Decoder {
    /// Starts the thread; processes are started when there is a job. The thread ends with the last
    /// clone.
    pub fn start(settings: Settings, spawner: &Spawner) -> io::Result<Self> {
        let pool = Arc::new(Pool::start(settings, spawner)?);
        Ok(Self { pool, purpose: Purpose::Client, cancel: None, shown: None })
    }

    /// For jobs of imports.
    pub(crate) fn for_imports(&self) -> Self {
        Self { purpose: Purpose::Import, ..self.clone() }
    }

    /// For jobs that may be cancelled while they run.
    pub(crate) fn until(&self, cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..self.clone() }
    }

    /// Cancels its jobs.
    pub(crate) fn cancel(&self) -> Option<&Cancel> {
        self.cancel.as_ref()
    }

    /// For a picture that another program has written.
    pub(crate) fn shown(&self, shown: Shown) -> Self {
        Self { shown: Some(shown), ..self.clone() }
    }

    /// Whether nobody wants results any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled) || self.pool.has_ended(self.purpose)
    }

    /// Ends the jobs of clients, which are told at once, and refuses others.
    pub(crate) fn end_clients(&self) {
        self.pool.end(Purpose::Client);
    }

    /// The same for imports.
    pub(crate) fn end_imports(&self) {
        self.pool.end(Purpose::Import);
    }

    /// The headers of a file.
    pub(crate) fn look(&self, path: &Path) -> Result<Looked, Error> {
        self.run(path, Task::Look)
    }

    /// Tells whether a file is the same and unchanged; reads none of it.
    pub(crate) fn meta(&self, path: &Path) -> Result<FileMeta, Error> {
        self.run(path, Task::Meta)
    }

    /// SHA-256 of a file.
    pub(crate) fn checksum(&self, path: &Path) -> Result<Hashed, Error> {
        self.run(path, Task::Checksum)
    }

    /// Copies a file into a new one.
    pub(crate) fn copy(&self, path: &Path, to: &Path) -> Result<Hashed, Error> {
        self.run(path, Task::Copy { to: to.into() })
    }

    /// The description that a picture carries; empty if it has none.
    pub(crate) fn description(&self, path: &Path) -> Result<String, Error> {
        self.run(path, Task::Description)
    }

    /// Decodes a picture and writes its thumbnail, which fits into a frame of this size, as WebP.
    pub(crate) fn thumbnail(
        &self,
        path: &Path,
        fits: (u32, u32),
        to: Option<&Path>,
    ) -> Result<Drawn, Error> {
        self.run(path, Task::Thumbnail { fits, to: to.map(Into::into) })
    }

    /// Writes the first frame of a picture, no larger than `fits`, as PNG.
    pub(crate) fn still(&self, path: &Path, fits: (u32, u32), to: &Path) -> Result<(), Error> {
        self.run(path, Task::Still { fits, to: to.into() })
    }

    /// Cuts a picture for monitors: a PNG for each.
    pub(crate) fn slices(&self, path: &Path, cut: &Cut, to: &[PathBuf]) -> Result<(), Error> {
        self.run(path, Task::Slices { cut: cut.clone(), to: to.iter().map(Into::into).collect() })
    }

    /// Reads a picture to its end, to see whether it is whole.
    pub(crate) fn read_whole(&self, path: &Path) -> Result<(), Error> {
        self.thumbnail(path, (1, 1), None).map(drop)
    }

    fn run<T: DeserializeOwned>(&self, path: &Path, task: Task) -> Result<T, Error> {
        let job = Job { path: path.into(), task, shown: self.shown };
        self.pool.run(&job, self.purpose, self.cancel.as_ref())
    }
}
