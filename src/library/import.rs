//! The imports: the queue of batches, whose files are given to the [`Workers`] and landed in order.
//!
//! Belongs to the thread `library`, the only one that publishes the events of the batches. Prepared
//! files without a gap between them land together (`landing`).

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Instant;

use crossbeam_channel::Receiver;

use super::batch::{Batch, Done, Reply};
use super::context::ImportContext;
use super::decode::Tools;
use super::error::Error;
use super::landing::LibraryFiles;
use super::task::{Prepared, Task};
use super::walk::FoundFile;
use super::workers::{Done as Worked, Job, Workers};
use crate::events::EventBus;
use crate::store::watched::Stamp;
use crate::wire::{ImportedBatch, Timestamp};

/// The maximum number of batches that run or wait; another one is refused.
pub(super) const BATCHES_MAX: usize = 64;
/// The maximum number of files from the first that has not ended to the last that was started.
const LENGTH_MAX: u64 = 64;
/// The maximum number of files that land together, for which clients wait.
const GROUP_MAX: usize = 32;

/// An accepted import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub batch_id: String,
    /// Files found.
    pub total: usize,
}

/// When a client is answered.
pub(super) enum Answer {
    /// At once, with what was found.
    Begun(Reply<Started>),
    /// When all files have ended.
    Ended(Reply<ImportedBatch>),
}

impl Answer {
    /// Answers a client whose import is not accepted.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Begun(reply) => reply(Err(error)),
            Self::Ended(reply) => reply(Err(error)),
        }
    }
}

pub(super) enum Request {
    /// Files that a client named.
    Client {
        files: Vec<FoundFile>,
        folder: Option<i64>,
        task: Task,
        /// Called when the batch has ended.
        done: Option<Done>,
        answer: Answer,
    },
    /// Files of a watched directory, which sends no more until `done` is called.
    Watched {
        files: BTreeMap<PathBuf, Stamp>,
        task: Task,
        done: Done,
    },
}

impl Request {
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Client { answer, .. } => answer.refuse(error),
            Self::Watched { done, .. } => done(true),
        }
    }
}

/// Prepares the file of a job, in a worker.
pub(super) fn work(context: &ImportContext, job: &Job) -> Result<Prepared, Error> {
    let ffmpeg = context.ffmpeg.until(job.decoder.cancel());
    let tools = Tools {
        decoder: &job.decoder,
        ffmpeg: &ffmpeg,
    };
    let path = &job.file.path;
    let folder = job.folder;
    match &job.task {
        Task::Copy => context.prepare(path, folder, tools),
        Task::InPlace => context.prepare_in_place(path, folder, tools),
        Task::Watched(directory) => context.read_watched((path, job.file.stamp), directory, tools),
    }
}

pub(super) struct Imports {
    bus: EventBus,
    workers: Workers,
    /// The batches; the first one is running.
    batches: VecDeque<Batch>,
    running: bool,
    /// The files of the first batch that were started.
    line: Line<(FoundFile, Prepared)>,
    last_id: i64,
}

impl Imports {
    pub(super) fn new(bus: EventBus, workers: Workers) -> Self {
        Self {
            bus,
            workers,
            batches: VecDeque::new(),
            running: false,
            line: Line::default(),
            last_id: 0,
        }
    }

    /// The files that workers have ended, for [`Self::settle`].
    pub(super) fn results(&self) -> &Receiver<Worked> {
        self.workers.results()
    }

    /// When [`Self::tell_gallery`] has something to report.
    pub(super) fn gallery_due(&self) -> Option<Instant> {
        self.batches.front().and_then(Batch::gallery_due)
    }

    pub(super) fn tell_gallery(&mut self) {
        let front = self.batches.front_mut();
        if let Some(batch) = front.filter(|batch| batch.is_gallery_due()) {
            batch.tell_gallery(&self.bus);
        }
    }

    /// Reports a file that has ended. A file that is ready to land waits for those before it.
    pub(super) fn settle(&mut self, done: Worked, files: &LibraryFiles) {
        let Worked {
            number,
            file,
            result,
        } = done;
        let Some(batch) = self.batches.front_mut() else {
            return;
        };
        // The daemon is exiting: files in progress fail at once, without events.
        if files.context.imports.is_stopped() {
            return;
        }
        let mut ready = None;
        match result {
            Ok(Prepared::Done(imported)) => batch.ended(&file, Ok(*imported), &self.bus),
            Ok(prepared) if batch.is_cancelled() => files.context.give_up(&prepared),
            Ok(prepared) => ready = Some((file, prepared)),
            Err(error) => batch.ended(&file, Err(error), &self.bus),
        }
        self.line.put(number, ready);
    }

    /// Lands the files that are ready, up to the first gap and at most [`GROUP_MAX`]. Returns whether
    /// any file has ended.
    pub(super) fn land_group(&mut self, files: &mut LibraryFiles) -> bool {
        let done: Vec<_> = self.workers.results().try_iter().collect();
        done.into_iter().for_each(|done| self.settle(done, files));
        let before = self.line.first;
        let run = self.line.take_run(GROUP_MAX);
        let Some(batch) = self.batches.front_mut().filter(|_| !run.is_empty()) else {
            return self.line.first != before;
        };
        let (found, prepared): (Vec<_>, Vec<_>) = run.into_iter().unzip();
        for (file, landed) in found.iter().zip(files.land_run(prepared)) {
            batch.ended(file, landed, &self.bus);
        }
        if batch.is_gallery_due() {
            batch.tell_gallery(&self.bus);
        }
        true
    }

    /// Keeps all workers busy with the first batch, and finishes it when all its files have ended.
    pub(super) fn dispatch(&mut self, files: &mut LibraryFiles) {
        while let Some(batch) = self.batches.front_mut() {
            if !self.running {
                self.running = true;
                batch.start(&self.bus);
            }
            let line = &mut self.line;
            while line.in_hand() < self.workers.count() && !line.is_full() {
                let Some(mut file) = batch.next() else { break };
                if let Some(problem) = file.problem.take() {
                    batch.ended(&file, Err(problem), &self.bus);
                    continue;
                }
                let number = line.next();
                let folder = batch.folder;
                let task = batch.task.clone();
                let decoder = batch.decoder(&files.context.imports);
                self.workers.give(Job {
                    number,
                    file,
                    folder,
                    task,
                    decoder,
                });
            }
            if !line.is_empty() {
                return;
            }
            self.running = false;
            if let Some(batch) = self.batches.pop_front() {
                batch.finish(&self.bus);
            }
            if self.batches.is_empty() {
                files.names.forget();
            }
        }
    }

    pub(super) fn accept(&mut self, request: Request) {
        match request {
            Request::Client { .. } if self.batches.len() >= BATCHES_MAX => {
                request.refuse(Error::Busy);
            }
            Request::Client {
                files,
                folder,
                task,
                done,
                answer,
            } => {
                // Greater than all ids before, so that no two are equal.
                self.last_id = Timestamp::now().as_micros().max(self.last_id + 1);
                let batch_id = format!("{:x}", self.last_id);
                let mut batch = Batch::new(Some(batch_id.clone()), folder, task, files, done);
                match answer {
                    Answer::Begun(reply) => reply(Ok(Started {
                        batch_id,
                        total: batch.total(),
                    })),
                    Answer::Ended(reply) => batch.answer_at_end(reply),
                }
                self.batches.push_back(batch);
            }
            Request::Watched { files, task, done } => {
                let batch = Batch::new(None, None, task, found(files), Some(done));
                self.batches.push_back(batch);
            }
        }
    }

    pub(super) fn cancel(&mut self, id: &str, files: &mut LibraryFiles) -> Result<(), Error> {
        let is = |batch: &Batch| batch.id.as_deref() == Some(id);
        let at = self
            .batches
            .iter()
            .position(is)
            .ok_or_else(|| Error::NoBatch(id.to_owned()))?;
        self.batches[at].cancel();
        // A waiting batch has no files in progress. The running one ends when its workers have given
        // up theirs.
        if at > 0 {
            let batch = self.batches.remove(at);
            batch.into_iter().for_each(|batch| batch.finish(&self.bus));
        } else {
            let ready = self.line.give_up();
            ready
                .iter()
                .for_each(|(_, prepared)| files.context.give_up(prepared));
            self.line.take_run(0);
        }
        Ok(())
    }
}

fn found(files: BTreeMap<PathBuf, Stamp>) -> Vec<FoundFile> {
    let found = |(place, (path, stamp))| FoundFile {
        path,
        place,
        inside: true,
        problem: None,
        stamp,
    };
    files.into_iter().enumerate().map(found).collect()
}

/// The files of a batch by number, in the order in which they land, so that ids and times follow it:
/// those that are ready and those that have ended in another way.
struct Line<T> {
    /// The first file that has not ended.
    first: u64,
    next: u64,
    /// Files that are ready to land; `None` for a file that has ended without anything to land.
    ready: BTreeMap<u64, Option<T>>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            first: 0,
            next: 0,
            ready: BTreeMap::new(),
        }
    }
}

impl<T> Line<T> {
    /// The number of the next file.
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Whether so many files wait for a slow one that no other may be started.
    fn is_full(&self) -> bool {
        self.next - self.first >= LENGTH_MAX
    }

    /// Whether all files have landed or ended.
    fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// Files that are being prepared.
    fn in_hand(&self) -> usize {
        (self.next - self.first) as usize - self.ready.len()
    }

    fn put(&mut self, number: u64, file: Option<T>) {
        self.ready.insert(number, file);
    }

    /// Takes the files that are ready, up to the first gap and at most `most`. Passes all that have
    /// ended in another way.
    fn take_run(&mut self, most: usize) -> Vec<T> {
        let mut run = Vec::new();
        while let Some(file) = self.ready.get(&self.first)
            && (file.is_none() || run.len() < most)
        {
            run.extend(self.ready.remove(&self.first).flatten());
            self.first += 1;
        }
        run
    }

    /// Takes all files that are ready, so that they do not land.
    fn give_up(&mut self) -> Vec<T> {
        self.ready.values_mut().filter_map(Option::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_a_gap_are_taken_in_order() {
        let mut line = Line::default();
        let numbers: Vec<_> = (0..6).map(|_| line.next()).collect();
        let put = |line: &mut Line<u64>, number: u64, lands: bool| {
            line.put(numbers[number as usize], lands.then_some(number));
            line.take_run(2)
        };
        assert!(put(&mut line, 2, true).is_empty() && put(&mut line, 1, false).is_empty());
        assert_eq!((line.in_hand(), put(&mut line, 0, true)), (4, vec![0, 2]));
        assert!(put(&mut line, 4, true).is_empty());
        assert_eq!(put(&mut line, 3, true), [3, 4]);
        assert!(put(&mut line, 5, false).is_empty() && line.is_empty());
    }

    #[test]
    fn a_line_has_a_length() {
        let mut line = Line::default();
        while !line.is_full() {
            line.next();
        }
        line.put(1, Some(()));
        assert_eq!(line.give_up(), [()]);
        assert!(line.is_full());
        line.put(0, Some(()));
        assert!(line.take_run(0).is_empty());
        assert_eq!(line.take_run(1), [()]);
        assert!(!line.is_full() && !line.is_empty());
    }
}
