//! The thread `import`: runs batches in order, gives a file to each of its [`Workers`], and lands the
//! files that they have prepared.
//!
//! The thread owns the queue of batches and is the only one that publishes their events. Each run of
//! prepared files without a gap lands together (`landing`).

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, after, never, select};

use super::batch::{Batch, Done, Reply};
use super::context::ImportContext;
use super::decode::Tools;
use super::error::Error;
use super::task::{Prepared, Task};
use super::walk::FoundFile;
use super::workers::{Done as Worked, Job, Workers};
use crate::events::EventBus;
use crate::wire::{ImportedBatch, Timestamp};

/// The maximum number of batches that run or wait; another one is refused.
pub(super) const BATCHES_MAX: usize = 64;
/// The maximum number of files from the first that has not ended to the last that was started.
const LENGTH_MAX: u64 = 64;

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

pub(super) enum Message {
    Start {
        files: Vec<FoundFile>,
        folder: Option<i64>,
        task: Task,
        /// Called when the batch has ended.
        done: Option<Done>,
        answer: Answer,
    },
    Cancel {
        batch: String,
        reply: Reply<()>,
    },
    /// Files of a watched directory, which sends no more until `done` is called.
    Watched {
        files: Vec<PathBuf>,
        task: Task,
        done: Done,
    },
}

/// Prepares the file of a job, in a worker.
pub(super) fn work(context: &ImportContext, job: &Job) -> Result<Prepared, Error> {
    let ffmpeg = context.ffmpeg.until(job.decoder.cancel());
    let tools = Tools {
        decoder: &job.decoder,
        ffmpeg: &ffmpeg,
    };
    let (path, folder) = (&job.file.path, job.folder);
    match &job.task {
        Task::Copy => context.prepare(path, folder, tools),
        Task::InPlace => context.prepare_in_place(path, folder, tools),
        Task::Watched(directory, pass) => context.take_watched(path, directory, *pass, tools),
    }
}

pub(super) struct Importer {
    pub(super) context: Arc<ImportContext>,
    pub(super) bus: EventBus,
    pub(super) inbox: Receiver<Message>,
    pub(super) workers: Workers,
    /// Disconnected when the daemon exits.
    pub(super) end: Receiver<()>,
}

/// The queue of the thread.
#[derive(Default)]
struct ImportState {
    /// The batches; the first one is running.
    batches: VecDeque<Batch>,
    running: bool,
    /// The files of the first batch that were started.
    line: Line<(FoundFile, Prepared)>,
    last_id: i64,
}

impl Importer {
    /// The body of the thread.
    pub(super) fn run(self) {
        let mut state = ImportState::default();
        loop {
            self.dispatch(&mut state);
            let due = state.batches.front().and_then(Batch::gallery_due);
            let due = due.map_or_else(never, |at| {
                after(at.saturating_duration_since(Instant::now()))
            });
            select! {
                recv(self.inbox) -> message => match message {
                    Ok(message) => self.answer(message, &mut state),
                    Err(_) => break,
                },
                recv(self.workers.results()) -> done => {
                    // The daemon is exiting: files in progress fail at once, without events.
                    if self.context.imports.is_stopped() {
                        break;
                    }
                    let others = self.workers.results().try_iter();
                    done.into_iter().chain(others).for_each(|done| self.settle(done, &mut state));
                    self.land(&mut state);
                },
                recv(due) -> _ => {
                    let front = state.batches.front_mut();
                    if let Some(batch) = front.filter(|batch| batch.is_gallery_due()) {
                        batch.tell_gallery(&self.bus);
                    }
                },
                recv(self.end) -> _ => break,
            }
        }
        // Gives up the files in progress, without events.
        self.context.imports.end_imports();
    }

    /// Reports a file that has ended. A file that is ready to land waits for those before it.
    fn settle(&self, done: Worked, state: &mut ImportState) {
        let Worked {
            number,
            file,
            result,
        } = done;
        let Some(batch) = state.batches.front_mut() else {
            return;
        };
        let mut ready = None;
        match result {
            Ok(Prepared::Done(imported)) => batch.ended(&file, Ok(*imported), &self.bus),
            Ok(prepared) if batch.is_cancelled() => self.context.give_up(&prepared),
            Ok(prepared) => ready = Some((file, prepared)),
            Err(error) => batch.ended(&file, Err(error), &self.bus),
        }
        state.line.put(number, ready);
    }

    /// Lands the files that are ready, up to the first gap.
    fn land(&self, state: &mut ImportState) {
        let run = state.line.take_run();
        let Some(batch) = state.batches.front_mut().filter(|_| !run.is_empty()) else {
            return;
        };
        let (files, prepared): (Vec<_>, Vec<_>) = run.into_iter().unzip();
        for (file, landed) in files.iter().zip(self.context.land_run(prepared)) {
            batch.ended(file, landed, &self.bus);
        }
    }

    /// Keeps all workers busy with the first batch, and finishes it when all its files have ended.
    fn dispatch(&self, state: &mut ImportState) {
        while let Some(batch) = state.batches.front_mut() {
            if !state.running {
                state.running = true;
                batch.start(&self.bus);
            }
            let line = &mut state.line;
            while line.in_hand() < self.workers.count() && !line.is_full() {
                let Some(mut file) = batch.next() else { break };
                if let Some(problem) = file.problem.take() {
                    batch.ended(&file, Err(problem), &self.bus);
                    continue;
                }
                let (number, folder, task) = (line.next(), batch.folder, batch.task.clone());
                let decoder = batch.decoder(&self.context.imports);
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
            state.running = false;
            if let Some(batch) = state.batches.pop_front() {
                batch.finish(&self.bus);
            }
            if state.batches.is_empty() {
                self.context.names.forget();
            }
        }
    }

    fn answer(&self, message: Message, state: &mut ImportState) {
        match message {
            Message::Start { answer, .. } if state.batches.len() >= BATCHES_MAX => match answer {
                Answer::Begun(reply) => reply(Err(Error::Busy)),
                Answer::Ended(reply) => reply(Err(Error::Busy)),
            },
            Message::Start {
                files,
                folder,
                task,
                done,
                answer,
            } => {
                // Greater than all ids before, so that no two are equal.
                state.last_id = Timestamp::now().as_micros().max(state.last_id + 1);
                let batch_id = format!("{:x}", state.last_id);
                let mut batch = Batch::asked(batch_id.clone(), folder, task, files);
                batch.done = done;
                match answer {
                    Answer::Begun(reply) => reply(Ok(Started {
                        batch_id,
                        total: batch.total(),
                    })),
                    Answer::Ended(reply) => batch.answer_at_end(reply),
                }
                state.batches.push_back(batch);
            }
            Message::Watched { files, task, done } => {
                state
                    .batches
                    .push_back(Batch::own(task, found(files), Some(done)));
            }
            Message::Cancel { batch, reply } => reply(self.cancel(&batch, state)),
        }
    }

    fn cancel(&self, id: &str, state: &mut ImportState) -> Result<(), Error> {
        let is = |batch: &Batch| batch.id.as_deref() == Some(id);
        let at = state
            .batches
            .iter()
            .position(is)
            .ok_or_else(|| Error::NoBatch(id.to_owned()))?;
        state.batches[at].cancel();
        // A waiting batch has no files in progress. The running one ends when its workers have given
        // up theirs.
        if at > 0 {
            state
                .batches
                .remove(at)
                .into_iter()
                .for_each(|batch| batch.finish(&self.bus));
        } else {
            state
                .line
                .give_up()
                .iter()
                .for_each(|(_, prepared)| self.context.give_up(prepared));
            self.land(state);
        }
        Ok(())
    }
}

fn found(files: Vec<PathBuf>) -> Vec<FoundFile> {
    let found = |(place, path)| FoundFile {
        path,
        place,
        inside: true,
        problem: None,
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

    /// Takes the files that are ready up to the first gap.
    fn take_run(&mut self) -> Vec<T> {
        let mut run = Vec::new();
        while let Some(file) = self.ready.remove(&self.first) {
            self.first += 1;
            run.extend(file);
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
            line.take_run()
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
        assert_eq!(line.take_run(), [()]);
        assert!(!line.is_full() && !line.is_empty());
    }
}
