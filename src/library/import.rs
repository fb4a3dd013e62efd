//! The thread `import`: runs batches in order, gives a file to each of its [`Workers`], and lands the
//! files that they have prepared.
//!
//! The thread owns the queue of batches and is the only one that publishes their events. Each run of
//! prepared files without a gap lands together (`landing`).

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, after, never, select};

use super::batch::{Batch, Done, Reply};
use super::context::ImportContext;
use super::decode::Tools;
use super::error::Error;
use super::line::Line;
use super::task::{Prepared, Task};
use super::walk::FoundFile;
use super::workers::{Done as Worked, Job, Workers};
use crate::events::EventBus;
use crate::wire::{ImportedBatch, Timestamp};

/// The maximum number of batches that run or wait; another one is refused.
pub(super) const BATCHES_MAX: usize = 64;

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
    /// Files of the library's directory that have no rows, or were rewritten by their owner.
    Adopt {
        files: Vec<PathBuf>,
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
    let tools = Tools { decoder: &job.decoder, ffmpeg: &ffmpeg };
    let (path, folder) = (&job.path, job.folder);
    match &job.task {
        Task::Copy => context.prepare(path, folder, tools),
        Task::InPlace => context.prepare_in_place(path, folder, tools),
        Task::Adopt => context.adopt(path, tools).map(Prepared::from),
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

/// A file that is ready to land.
struct ReadyFile {
    path: PathBuf,
    inside: bool,
    prepared: Prepared,
}

/// The queue of the thread.
#[derive(Default)]
struct ImportState {
    /// The batches; the first one is running.
    batches: VecDeque<Batch>,
    running: bool,
    /// The files of the first batch that were begun.
    line: Line<ReadyFile>,
    last_id: i64,
}

impl Importer {
    /// The body of the thread.
    pub(super) fn run(self) {
        let mut state = ImportState::default();
        loop {
            self.dispatch(&mut state);
            let due = state.batches.front().and_then(Batch::gallery_due);
            let due =
                due.map_or_else(never, |at| after(at.saturating_duration_since(Instant::now())));
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
        let Worked { number, path, inside, result } = done;
        let Some(batch) = state.batches.front_mut() else { return };
        let ready = match result {
            Ok(Prepared::Done(imported)) => {
                batch.ended(&path, inside, Ok(*imported), &self.bus);
                None
            }
            Ok(prepared) if batch.is_cancelled() => {
                self.context.give_up(&prepared);
                None
            }
            Ok(prepared) => Some(ReadyFile { path, inside, prepared }),
            Err(error) => {
                batch.ended(&path, inside, Err(error), &self.bus);
                None
            }
        };
        state.line.put(number, ready);
    }

    /// Lands the files that are ready, up to the first gap.
    fn land(&self, state: &mut ImportState) {
        let run = state.line.take_run();
        let Some(batch) = state.batches.front_mut().filter(|_| !run.is_empty()) else { return };
        let (files, prepared): (Vec<_>, Vec<_>) =
            run.into_iter().map(|file| ((file.path, file.inside), file.prepared)).unzip();
        for ((path, inside), landed) in files.into_iter().zip(self.context.land_run(prepared)) {
            batch.ended(&path, inside, landed, &self.bus);
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
                let Some(FoundFile { path, inside, problem }) = batch.next() else { break };
                if let Some(problem) = problem {
                    batch.ended(&path, inside, Err(problem), &self.bus);
                    continue;
                }
                let (number, folder, task) = (line.next(), batch.folder, batch.task.clone());
                let decoder = batch.decoder(&self.context.imports);
                self.workers.give(Job { number, path, inside, folder, task, decoder });
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
            Message::Start { files, folder, task, done, answer } => {
                // Greater than all ids before, so that no two are equal.
                state.last_id = Timestamp::now().as_micros().max(state.last_id + 1);
                let batch_id = format!("{:x}", state.last_id);
                let mut batch = Batch::asked(batch_id.clone(), folder, task, files);
                batch.done = done;
                match answer {
                    Answer::Begun(reply) => reply(Ok(Started { batch_id, total: batch.total() })),
                    Answer::Ended(reply) => batch.answer_at_end(reply),
                }
                state.batches.push_back(batch);
            }
            Message::Adopt { files } => {
                state.batches.push_back(Batch::own(Task::Adopt, found(files), None));
            }
            Message::Watched { files, task, done } => {
                state.batches.push_back(Batch::own(task, found(files), Some(done)));
            }
            Message::Cancel { batch, reply } => reply(self.cancel(&batch, state)),
        }
    }

    fn cancel(&self, id: &str, state: &mut ImportState) -> Result<(), Error> {
        let is = |batch: &Batch| batch.id.as_deref() == Some(id);
        let at = state.batches.iter().position(is).ok_or_else(|| Error::NoBatch(id.to_owned()))?;
        state.batches[at].cancel();
        // A waiting batch has no files in progress. The running one ends when its workers have given
        // up theirs.
        if at > 0 {
            state.batches.remove(at).into_iter().for_each(|batch| batch.finish(&self.bus));
        } else {
            state.line.give_up().iter().for_each(|file| self.context.give_up(&file.prepared));
            self.land(state);
        }
        Ok(())
    }
}

fn found(files: Vec<PathBuf>) -> Vec<FoundFile> {
    files.into_iter().map(|path| FoundFile { path, inside: true, problem: None }).collect()
}
