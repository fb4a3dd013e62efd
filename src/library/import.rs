//! The thread `import` and its workers `import-1..n`: batches in order, each worker one file.
//!
//! The thread owns the queue of batches and is the only one that publishes their events; workers
//! decode and land. It never touches pixels, so a request is answered while pictures are decoded.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, after, never, select};

use super::batch::Batch;
use super::idle::Wake;
use super::import_file::{ImportContext, Imported};
use super::turn::{Turn, Turns};
use super::walk::Found;
use super::{Error, Started};
use crate::events::EventBus;
use crate::memory;
use crate::wire::Timestamp;

/// Batches that run or wait; one more is refused.
pub(super) const BATCHES_MAX: usize = 64;

pub(super) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

pub(super) enum Message {
    Start {
        files: Vec<Found>,
        folder: Option<i64>,
        reply: Reply<Started>,
    },
    Cancel {
        batch: String,
        reply: Reply<()>,
    },
    /// Files that lie in the library's directory and have no rows.
    Adopt {
        files: Vec<PathBuf>,
    },
}

/// One file for a worker.
pub(super) struct Job {
    path: PathBuf,
    /// It was found in a directory.
    inside: bool,
    folder: Option<i64>,
    /// It lies in the library's directory already.
    adopt: bool,
    turn: Turn,
    /// Its batch was cancelled.
    cancelled: Arc<AtomicBool>,
}

pub(super) struct Done {
    path: PathBuf,
    inside: bool,
    result: Result<Imported, Error>,
}

/// The body of a worker's thread: ends when the thread `import` has ended.
pub(super) fn work(context: &ImportContext, jobs: &Receiver<Job>, done: &Sender<Done>) {
    for Job { path, inside, folder, adopt, turn, cancelled } in jobs {
        let stop = || cancelled.load(Ordering::Relaxed) || context.ended.load(Ordering::Relaxed);
        let result = match adopt {
            true => context.adopt(&path, &stop),
            false => context.import(&path, folder, &turn, &stop),
        };
        // Before it is told of: who hears of it may take the next one in.
        drop(turn);
        if done.send(Done { path, inside, result }).is_err() {
            return;
        }
    }
}

pub(super) struct Importer {
    pub(super) context: Arc<ImportContext>,
    pub(super) bus: EventBus,
    pub(super) inbox: Receiver<Message>,
    pub(super) jobs: Sender<Job>,
    pub(super) done: Receiver<Done>,
    /// Closed when the daemon ends.
    pub(super) end: Receiver<()>,
    pub(super) workers: usize,
    pub(super) wake: Wake,
}

/// What changes while the thread runs.
#[derive(Default)]
struct State {
    /// The first one runs.
    batches: VecDeque<Batch>,
    running: bool,
    /// Files that workers have in hand, all of the first batch.
    in_hand: usize,
    turns: Turns,
    last_id: i64,
}

impl Importer {
    /// The body of the thread.
    pub(super) fn run(self) {
        let mut state = State::default();
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
                recv(self.done) -> done => match (done, state.batches.front_mut()) {
                    (Ok(done), Some(batch)) => {
                        state.in_hand -= 1;
                        batch.ended(&done.path, done.inside, done.result, &self.bus);
                    }
                    _ => break,
                },
                recv(due) -> _ => if let Some(batch) = state.batches.front_mut() {
                    batch.tell_gallery(&self.bus);
                },
                recv(self.end) -> _ => break,
            }
        }
        // The files in hand are landed or given up by their workers; nobody is told any more.
        self.context.ended.store(true, Ordering::Relaxed);
        drop(self.jobs);
        while state.in_hand > 0 && self.done.recv().is_ok() {
            state.in_hand -= 1;
        }
    }

    /// Keeps all workers busy with the first batch, and ends it when it has no more.
    fn dispatch(&self, state: &mut State) {
        while let Some(batch) = state.batches.front_mut() {
            if !state.running {
                state.running = true;
                batch.start(&self.bus);
                self.wake.send();
            }
            while state.in_hand < self.workers {
                let Some(Found { path, inside, problem }) = batch.next() else { break };
                match problem {
                    Some(problem) => batch.ended(&path, inside, Err(problem), &self.bus),
                    None => {
                        let (folder, adopt) = (batch.folder, batch.id.is_none());
                        let (turn, cancelled) = (state.turns.next(), batch.cancelled.clone());
                        let job = Job { path, inside, folder, adopt, turn, cancelled };
                        // As much room as workers: this never waits.
                        self.jobs.send(job).ok();
                        state.in_hand += 1;
                    }
                }
            }
            if state.in_hand > 0 {
                return;
            }
            state.running = false;
            if let Some(batch) = state.batches.pop_front() {
                batch.finish(&self.bus);
            }
            if state.batches.is_empty() {
                self.context.names.forget();
                memory::trim();
                self.wake.send();
            }
        }
    }

    fn answer(&self, message: Message, state: &mut State) {
        match message {
            Message::Start { reply, .. } if state.batches.len() >= BATCHES_MAX => {
                reply(Err(Error::Busy));
            }
            Message::Start { files, folder, reply } => {
                // Later than all before, so that no two are equal.
                state.last_id = Timestamp::now().as_micros().max(state.last_id + 1);
                let batch_id = format!("{:x}", state.last_id);
                let batch = Batch::new(Some(batch_id.clone()), folder, files);
                let total = batch.total();
                state.batches.push_back(batch);
                reply(Ok(Started { batch_id, total }));
            }
            Message::Adopt { files } => {
                let found =
                    files.into_iter().map(|path| Found { path, inside: true, problem: None });
                state.batches.push_back(Batch::new(None, None, found.collect()));
            }
            Message::Cancel { batch, reply } => reply(self.cancel(&batch, state)),
        }
    }

    fn cancel(&self, id: &str, state: &mut State) -> Result<(), Error> {
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
