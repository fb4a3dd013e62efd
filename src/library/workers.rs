//! The threads `import-1..n`, each of which prepares one file at a time. They belong to the thread
//! `import`, which lands what they have prepared.
//!
//! Whatever hangs or breaks on a file does so in a process that is killed (`decode`), so each of them
//! ends its file. There are some more than processors: a file that waits for the disk to flush its copy
//! keeps no processor from the next one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Error;
use super::task::{Prepared, Task};
use crate::decode::Decoder;
use crate::thread::{Spawner, Thread};

/// Files that wait for the disk while as many as there are processors are decoded.
const FLUSHING: usize = 6;

/// One file for a worker.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// It was found in a directory.
    pub(super) inside: bool,
    pub(super) folder: Option<i64>,
    pub(super) task: Task,
    /// Until its batch is cancelled.
    pub(super) decoder: Decoder,
}

/// A job that has ended.
pub(super) struct Done {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) inside: bool,
    pub(super) result: Result<Prepared, Error>,
}

/// The work of a worker on its file.
pub(super) type Work = Arc<dyn Fn(&Job) -> Result<Prepared, Error> + Send + Sync>;

pub(super) struct Workers {
    /// Above the threads: closed before they are joined.
    jobs: Sender<Job>,
    done: Receiver<Done>,
    threads: Vec<Thread>,
}

impl Workers {
    /// For so many processors.
    pub(super) fn start(processors: usize, spawner: &Spawner, work: &Work) -> io::Result<Self> {
        let count = processors + FLUSHING;
        // Nobody waits to give one: no more are given than there are threads.
        let ((jobs, given), (ended, done)) = (bounded::<Job>(count), bounded(count));
        let threads = (1..=count).map(|number| {
            let (work, given, ended) = (Arc::clone(work), given.clone(), ended.clone());
            let body = move || {
                for job in given {
                    if ended.send(attend(&work, job)).is_err() {
                        return;
                    }
                }
            };
            spawner.spawn(&format!("import-{number}"), body)
        });
        let threads = threads.collect::<io::Result<_>>()?;
        Ok(Self { jobs, done, threads })
    }

    /// How many files they work on at once.
    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn results(&self) -> &Receiver<Done> {
        &self.done
    }

    pub(super) fn give(&self, job: Job) {
        // Each takes jobs as long as this is there.
        self.jobs.send(job).ok();
    }
}

fn attend(work: &Work, job: Job) -> Done {
    // A mistake of ours is its file's failure: the others go on.
    let result = catch_unwind(AssertUnwindSafe(|| work(&job)));
    let result = result.unwrap_or_else(|panic| Err(Error::of_panic(&*panic)));
    let Job { number, path, inside, .. } = job;
    if let Err(error @ Error::Mistake { .. }) = &result {
        log::error!("{}: {error}", path.display());
    }
    Done { number, path, inside, result }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::decode::Settings;

    #[test]
    fn panic_fails_only_its_own_file() {
        let work: Work = Arc::new(|job| {
            assert!(!job.path.ends_with("cursed"), "on purpose");
            Err(Error::Busy)
        });
        let (spawner, _deaths) = Spawner::new();
        let decoder = Decoder::start(Settings::default(), &spawner).unwrap();
        let workers = Workers::start(1, &spawner, &work).unwrap();
        for (path, reason) in
            [("/cursed", "internal error, please report it: on purpose"), ("/next", "")]
        {
            let (path, decoder) = (PathBuf::from(path), decoder.clone());
            let (inside, folder, task) = (false, None, Task::Copy);
            workers.give(Job { number: 0, path: path.clone(), inside, folder, task, decoder });
            let done = workers.results().recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(done.path, path);
            let why = done.result.err().unwrap();
            assert!(why.reason() == reason || matches!(why, Error::Busy), "{why}");
        }
    }
}
