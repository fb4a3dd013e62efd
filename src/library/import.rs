//! The thread `import`: batches in order, a file to each of its [`Workers`].
//!
//! The thread owns the queue of batches and is the only one that publishes their events; workers
//! decode and land. It never touches pixels, so a request is answered while pictures are decoded.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, after, never, select};

use super::batch::{Batch, Done, FoundFile, Reply};
use super::commit_order::Turns;
use super::context::ImportContext;
use super::error::Error;
use super::idle::Wake;
use super::task::{Landed, Task};
use super::workers::{Job, Workers, no_answer};
use crate::events::EventBus;
use crate::media::Stop;
use crate::memory;
use crate::wire::{ImportedBatch, Timestamp};

/// Batches that run or wait; one more is refused.
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
    /// When all of it has ended.
    Ended(Reply<ImportedBatch>),
}

pub(super) enum Message {
    Start {
        files: Vec<FoundFile>,
        folder: Option<i64>,
        task: Task,
        /// Told when the batch has ended.
        done: Option<Done>,
        answer: Answer,
    },
    Cancel {
        batch: String,
        reply: Reply<()>,
    },
    /// Files that lie in the library's directory and have no rows.
    Adopt {
        files: Vec<PathBuf>,
    },
    /// Some of a watched directory; no more come until these are `done`.
    Watched {
        files: Vec<PathBuf>,
        task: Task,
        done: Done,
    },
}

/// How long a worker may show no sign of life: the slowest, a long video on its way to a slow disk,
/// takes minutes.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// Imports the file of a job, in a worker.
pub(super) fn work(context: &ImportContext, job: &Job, stop: Stop<'_>) -> Landed {
    let stop = || stop() || context.ended.load(Ordering::Relaxed);
    let (path, folder, turn) = (&job.path, job.folder, &*job.turn);
    match &job.task {
        Task::Copy => context.import(path, folder, turn, &stop),
        Task::InPlace => context.import_in_place(path, folder, turn, &stop),
        Task::Adopt => context.adopt(path, &stop),
        Task::Watched(directory, pass) => {
            context.take_watched(path, directory, *pass, (turn, &stop))
        }
    }
}

pub(super) struct Importer {
    pub(super) context: Arc<ImportContext>,
    pub(super) bus: EventBus,
    pub(super) inbox: Receiver<Message>,
    pub(super) workers: Workers,
    /// Closed when the daemon ends.
    pub(super) end: Receiver<()>,
    pub(super) wake: Wake,
}

/// The queue of the thread.
#[derive(Default)]
struct ImportState {
    /// The first one runs.
    batches: VecDeque<Batch>,
    running: bool,
    turns: Turns,
    last_id: i64,
}

impl Importer {
    /// The body of the thread.
    pub(super) fn run(mut self) {
        let mut state = ImportState::default();
        let rested = state.turns.rested().clone();
        loop {
            self.dispatch(&mut state);
            let due = state.batches.front().and_then(Batch::gallery_due);
            let due = due.into_iter().chain(self.workers.due()).min();
            let due =
                due.map_or_else(never, |at| after(at.saturating_duration_since(Instant::now())));
            select! {
                recv(self.inbox) -> message => match message {
                    Ok(message) => self.answer(message, &mut state),
                    Err(_) => break,
                },
                recv(self.workers.results()) -> done => {
                    let settled = done.ok().and_then(|done| self.workers.settle(done));
                    if let Some((path, inside, result)) = settled {
                        self.tell(&mut state, &path, inside, result);
                    }
                },
                // There is room for another.
                recv(rested) -> _ => {}
                recv(due) -> _ => {
                    for (path, error) in self.workers.leave_hung() {
                        self.tell(&mut state, &path, false, Err(error));
                    }
                    let front = state.batches.front_mut();
                    if let Some(batch) = front.filter(|batch| batch.is_gallery_due()) {
                        batch.tell_gallery(&self.bus);
                    }
                },
                recv(self.end) -> _ => break,
            }
        }
        // The files in hand are landed or given up by their workers; nobody is told any more.
        self.context.ended.store(true, Ordering::Relaxed);
        self.workers.end();
    }

    /// A file of the first batch has ended: workers have none of another.
    fn tell(&self, state: &mut ImportState, path: &Path, inside: bool, result: Landed) {
        if let Some(batch) = state.batches.front_mut() {
            batch.ended(path, inside, result, &self.bus);
        }
    }

    /// Keeps all workers busy with the first batch, and ends it when it has no more.
    fn dispatch(&mut self, state: &mut ImportState) {
        while let Some(batch) = state.batches.front_mut() {
            if !state.running {
                state.running = true;
                batch.start(&self.bus);
                self.wake.send();
            }
            while self.workers.make_room() || self.workers.are_gone() {
                let Some(FoundFile { path, inside, problem }) = batch.next() else { break };
                if let Some(problem) = problem {
                    batch.ended(&path, inside, Err(problem), &self.bus);
                } else if self.workers.are_gone() {
                    batch.ended(&path.clone(), inside, Err(no_answer(path)), &self.bus);
                } else {
                    let (folder, task) = (batch.folder, batch.task.clone());
                    let (turn, cancelled) =
                        (Arc::new(state.turns.next()), Arc::clone(&batch.cancelled));
                    self.workers.give(Job { path, inside, folder, task, turn, cancelled });
                }
            }
            if self.workers.are_busy() {
                return;
            }
            state.running = false;
            if let Some(batch) = state.batches.pop_front() {
                batch.finish(&self.bus);
            }
            if state.batches.is_empty() {
                self.context.names.forget();
                self.workers.shrink();
                memory::trim();
                self.wake.send();
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
                // Later than all before, so that no two are equal.
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
        state.batches[at].cancelled.store(true, Ordering::Relaxed);
        // One that waits has nothing in hand; the one that runs ends with its files.
        if at > 0
            && let Some(batch) = state.batches.remove(at)
        {
            batch.finish(&self.bus);
        }
        Ok(())
    }
}

fn found(files: Vec<PathBuf>) -> Vec<FoundFile> {
    files.into_iter().map(|path| FoundFile { path, inside: true, problem: None }).collect()
}
