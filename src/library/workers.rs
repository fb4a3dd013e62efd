//! The threads `import-1..n`, each of which prepares one file at a time. They belong to the thread
//! `library`, which lands what they have prepared.
//!
//! Files are decoded in processes that are killed if they hang (`decode`), so each worker ends its file.
//! There are a few more workers than processors, as a worker that waits for the disk to flush its copy
//! needs no processor.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Error;
use super::task::{Prepared, Task};
use super::walk::FoundFile;
use crate::decode::Decoder;
use crate::thread::{Spawner, Thread};

/// Workers beyond the number of processors, as some wait for the disk.
const FLUSHING: usize = 6;

/// One file for a worker.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) file: FoundFile,
    pub(super) folder: Option<i64>,
    pub(super) task: Task,
    /// Stops when the batch is cancelled.
    pub(super) decoder: Decoder,
}

/// A job that has ended.
pub(super) struct Done {
    pub(super) number: u64,
    pub(super) file: FoundFile,
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
    /// Starts the workers for this number of processors.
    pub(super) fn start(processors: usize, spawner: &Spawner, work: &Work) -> io::Result<Self> {
        let count = processors + FLUSHING;
        // Sending never blocks, as no more jobs are given than there are threads.
        let ((jobs, given), (ended, done)) = (bounded::<Job>(count), bounded(count));
        let threads = (1..=count).map(|number| {
            let work = Arc::clone(work);
            let given = given.clone();
            let ended = ended.clone();
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
        Ok(Self {
            jobs,
            done,
            threads,
        })
    }

    /// The number of files that are worked on at once.
    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn results(&self) -> &Receiver<Done> {
        &self.done
    }

    pub(super) fn give(&self, job: Job) {
        // The threads receive jobs as long as `self` exists.
        self.jobs.send(job).ok();
    }
}

fn attend(work: &Work, job: Job) -> Done {
    // A panic fails only its own file.
    let result = catch_unwind(AssertUnwindSafe(|| work(&job)));
    let result = result.unwrap_or_else(|panic| Err(Error::from_panic(&*panic)));
    let Job { number, file, .. } = job;
    if let Err(error @ Error::Mistake { .. }) = &result {
        log::error!("{}: {error}", file.path.display());
    }
    Done {
        number,
        file,
        result,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::decode::Settings;

    #[test]
    fn panic_fails_only_its_own_file() {
        let work: Work = Arc::new(|job| {
            assert!(!job.file.path.ends_with("cursed"), "on purpose");
            Err(Error::Busy)
        });
        let (spawner, _deaths) = Spawner::new();
        let decoder = Decoder::start(Settings::default(), &spawner).unwrap();
        let workers = Workers::start(1, &spawner, &work).unwrap();
        for (path, reason) in [
            ("/cursed", "internal error, please report it: on purpose"),
            ("/next", ""),
        ] {
            let path = PathBuf::from(path);
            let decoder = decoder.clone();
            let file = FoundFile {
                path: path.clone(),
                place: 0,
                inside: false,
                problem: None,
                stamp: Default::default(),
            };
            workers.give(Job {
                number: 0,
                file,
                folder: None,
                task: Task::Copy,
                decoder,
            });
            let done = workers
                .results()
                .recv_timeout(Duration::from_secs(60))
                .unwrap();
            assert_eq!(done.file.path, path);
            let why = done.result.err().unwrap();
            assert!(
                why.reason() == reason || matches!(why, Error::Busy),
                "{why}"
            );
        }
    }
}
