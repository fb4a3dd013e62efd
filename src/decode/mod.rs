//! Decodes images in separate processes, `murald decode`, so that a hostile file, a dead disk or a
//! bug in a decoder affects only that process.
//!
//! Each call of [`Decoder`] gives a process one job and waits on the calling thread for its reply.
//! The thread `decode` starts the processes and ends idle ones. The caller owns the files that a
//! job writes: it names them, creates their directories, and removes what a failed job leaves.

mod child;
mod limits;
mod package;
mod pool;
mod protocol;
mod reading;
mod worker;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::color::Rgb;
use crate::media::{Cut, Shown};
use crate::sys::Cancel;
use crate::thread::Spawner;

pub(crate) use child::main;
pub(crate) use protocol::{Drawn, Error, Hashed, Header, Looked, Packed, Stamp, stamp};
pub use worker::Settings;

use pool::{Pool, Purpose};
use protocol::{Job, Task};

/// Decodes with a pool of processes; clones share them.
#[derive(Clone, Debug)]
pub struct Decoder {
    pool: Arc<Pool>,
    purpose: Purpose,
    cancel: Option<Cancel>,
    shown: Option<Shown>,
}

impl Decoder {
    /// Starts the thread; processes are started when there are jobs. The thread ends when the last
    /// clone is dropped.
    pub fn start(settings: Settings, spawner: &Spawner) -> io::Result<Self> {
        let pool = Arc::new(Pool::start(settings, spawner)?);
        Ok(Self {
            pool,
            purpose: Purpose::Client,
            cancel: None,
            shown: None,
        })
    }

    /// Returns a decoder whose jobs are part of imports.
    pub(crate) fn for_imports(&self) -> Self {
        Self {
            purpose: Purpose::Import,
            ..self.clone()
        }
    }

    /// Returns a decoder whose jobs can be cancelled while they run.
    pub(crate) fn until(&self, cancel: &Cancel) -> Self {
        Self {
            cancel: Some(cancel.clone()),
            ..self.clone()
        }
    }

    /// The cancellation of its jobs.
    pub(crate) fn cancel(&self) -> Option<&Cancel> {
        self.cancel.as_ref()
    }

    /// Returns a decoder for an image that another program has decoded.
    pub(crate) fn shown(&self, shown: Shown) -> Self {
        Self {
            shown: Some(shown),
            ..self.clone()
        }
    }

    /// Whether its jobs are cancelled or refused.
    pub(crate) fn is_stopped(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled) || self.pool.has_ended(self.purpose)
    }

    /// Cancels the jobs of clients, which get an error at once, and refuses new ones.
    pub(crate) fn end_clients(&self) {
        self.pool.end(Purpose::Client);
    }

    /// Cancels the jobs of imports, and refuses new ones.
    pub(crate) fn end_imports(&self) {
        self.pool.end(Purpose::Import);
    }

    /// Reads the headers of a file.
    pub(crate) fn look(&self, path: &Path) -> Result<Looked, Error> {
        self.run(path, Task::Look)
    }

    /// Computes the SHA-256 of a file.
    pub(crate) fn checksum(&self, path: &Path) -> Result<Hashed, Error> {
        self.run(path, Task::Checksum)
    }

    /// Copies a file into a new one.
    pub(crate) fn copy(&self, path: &Path, to: &Path) -> Result<Hashed, Error> {
        self.run(path, Task::Copy { to: to.into() })
    }

    /// Returns the name and text of the first of these files that a package has.
    pub(crate) fn manifest(
        &self,
        root: &Path,
        names: &[&str],
    ) -> Result<Option<(String, String)>, Error> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        self.run(root, Task::Manifest { names })
    }

    /// Returns the paths of files in a package, whatever the case of their letters.
    pub(crate) fn find(
        &self,
        root: &Path,
        files: &[&Path],
    ) -> Result<Vec<Option<OsString>>, Error> {
        let files = files.iter().map(|&file| file.into()).collect();
        self.run(root, Task::Find { files })
    }

    /// Reads a package, and copies it to a new directory, if given.
    pub(crate) fn package(&self, root: &Path, to: Option<&Path>) -> Result<Packed, Error> {
        let to = to.map(Into::into);
        self.run(root, Task::Package { to })
    }

    /// Decodes an image, and writes a thumbnail that fits into `fits` as WebP.
    pub(crate) fn thumbnail(
        &self,
        path: &Path,
        fits: (u32, u32),
        to: Option<&Path>,
    ) -> Result<Drawn, Error> {
        self.run(
            path,
            Task::Thumbnail {
                fits,
                to: to.map(Into::into),
            },
        )
    }

    /// Writes the first frame of an image, no larger than `fits`, as PNG. If the image has transparent
    /// pixels, they are composed over the colour `fill`, and the colours of the result are returned.
    pub(crate) fn still(
        &self,
        path: &Path,
        (fits, fill): ((u32, u32), Rgb),
        to: &Path,
    ) -> Result<Option<Vec<Rgb>>, Error> {
        self.run(
            path,
            Task::Still {
                fits,
                fill,
                to: to.into(),
            },
        )
    }

    /// Cuts an image for monitors, and writes a PNG for each.
    pub(crate) fn slices(&self, path: &Path, cut: &Cut, to: &[PathBuf]) -> Result<(), Error> {
        self.run(
            path,
            Task::Slices {
                cut: cut.clone(),
                to: to.iter().map(Into::into).collect(),
            },
        )
    }

    /// Decodes an image to find out whether it is complete.
    pub(crate) fn read_whole(&self, path: &Path) -> Result<(), Error> {
        self.thumbnail(path, (1, 1), None).map(drop)
    }

    fn run<T: DeserializeOwned>(&self, path: &Path, task: Task) -> Result<T, Error> {
        let job = Job {
            path: path.into(),
            task,
            shown: self.shown,
        };
        self.pool.run(&job, self.purpose, self.cancel.as_ref())
    }
}
