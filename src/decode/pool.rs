//! The pool of decoding processes: the thread `decode` starts them on demand and ends them when
//! they are idle. Calling threads wait here for a place, and give a process one job at a time.
//!
//! The kernel kills a process when the thread that started it ends, so none outlives the daemon.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

use super::protocol::{Error, Job, Reply};
use super::worker::{Settings, Worker};
use crate::paths;
use crate::sys::{Cancel, lock, unpoisoned};
use crate::thread::{Spawner, Thread};

/// An idle process is ended after this time.
const IDLE_FOR: Duration = Duration::from_secs(30);
/// Number of requests that may wait for the thread; callers get a place before they send one.
const REQUESTS: usize = 64;

/// Number of places for clients in addition to those for imports, so that a slow image does not
/// delay the next one.
const CLIENTS_MIN: usize = 2;

/// Whom a job is for: some places are reserved for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Client,
    Import,
}

#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    /// Above the thread: closed before it is joined.
    requests: Sender<Request>,
    _thread: Thread,
}

#[derive(Debug)]
struct Shared {
    imports_max: usize,
    state: Mutex<PoolState>,
    freed: Condvar,
    /// Cancelled when jobs of the purpose are to end.
    ends: [Cancel; 2],
}

#[derive(Debug, Default)]
struct PoolState {
    /// Idle processes and when they became idle, the latest last.
    idle: Vec<(Instant, Worker)>,
    /// The number of occupied places by purpose.
    busy: [usize; 2],
}

/// A message to the thread.
#[derive(Debug)]
enum Request {
    Start(Sender<io::Result<Worker>>),
    /// A process has become idle.
    Idle,
}

/// An occupied place in the pool; dropping it frees the place.
struct Seat<'a> {
    shared: &'a Shared,
    purpose: Purpose,
}

impl Pool {
    pub(super) fn start(settings: Settings, spawner: &Spawner) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            imports_max: settings.imports.max(1),
            state: Mutex::default(),
            freed: Condvar::new(),
            ends: [Cancel::new()?, Cancel::new()?],
        });
        let (requests, inbox) = bounded(REQUESTS);
        let starter = Starter {
            settings,
            shared: Arc::clone(&shared),
            inbox,
        };
        let thread = spawner.spawn("decode", move || starter.run())?;
        Ok(Self {
            shared,
            requests,
            _thread: thread,
        })
    }

    /// Gives a job to a process and waits for its reply.
    pub(super) fn run<T: DeserializeOwned>(
        &self,
        job: &Job,
        purpose: Purpose,
        cancel: Option<&Cancel>,
    ) -> Result<T, Error> {
        let mut line = serde_json::to_vec(job).map_err(|error| Error::Broke(error.to_string()))?;
        line.push(b'\n');
        let path = Path::new(&job.path);
        let _seat = self.shared.seat(purpose)?;
        if paths::hangs(path) {
            return Err(Error::Silent);
        }
        let cancels: Vec<_> = cancel
            .into_iter()
            .chain([self.shared.end_of(purpose)])
            .collect();
        loop {
            let (mut worker, is_new) = self.worker()?;
            match worker.ask(&line, &cancels) {
                Ok(Reply::Done(done)) => {
                    self.give_back(worker);
                    return Ok(done);
                }
                // The process may lack access to directories that were created since it was
                // started: retry with a new one.
                Ok(Reply::Failed(error)) if !is_new && is_denied(&error) => {}
                // A panic has ended the process.
                Ok(Reply::Failed(error)) if !matches!(error, Error::Broke(_)) => {
                    self.give_back(worker);
                    return Err(error);
                }
                Ok(Reply::Failed(error)) | Err(error) => {
                    if let Error::Broke(why) = &error {
                        log::warn!("the decoder of {} crashed: {why}", path.display());
                    }
                    if error == Error::Silent {
                        // If its disk hangs, the next jobs there fail at once.
                        paths::answers(path);
                    }
                    return Err(error);
                }
                Ok(Reply::Progress) => return Err(Error::Silent),
            }
        }
    }

    /// Returns an idle process or a new one, and whether it is new.
    fn worker(&self) -> Result<(Worker, bool), Error> {
        while let Some((_, worker)) = { self.shared.lock().idle.pop() } {
            // The process may have been killed.
            if worker.is_running() {
                return Ok((worker, false));
            }
        }
        let (reply, started) = bounded(1);
        self.requests
            .send(Request::Start(reply))
            .map_err(|_| Error::Stopped)?;
        let started = started.recv().map_err(|_| Error::Stopped)?;
        Ok((
            started.map_err(|error| Error::NoProcess(error.to_string()))?,
            true,
        ))
    }

    fn give_back(&self, worker: Worker) {
        self.shared.lock().idle.push((Instant::now(), worker));
        // If the channel is full, the thread will wake anyway.
        self.requests.try_send(Request::Idle).ok();
    }

    pub(super) fn has_ended(&self, purpose: Purpose) -> bool {
        self.shared.end_of(purpose).is_cancelled()
    }

    /// Cancels the jobs of a purpose, and refuses others from now on.
    pub(super) fn end(&self, purpose: Purpose) {
        // The lock is held so that no thread misses the notification between its check and its wait.
        let _state = self.shared.lock();
        self.shared.end_of(purpose).cancel();
        self.shared.freed.notify_all();
    }
}

fn is_denied(error: &Error) -> bool {
    let code = Some(Errno::ACCESS.raw_os_error());
    matches!(error, Error::Write { io, .. } if io.error().raw_os_error() == code)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        lock(&self.state)
    }

    fn end_of(&self, purpose: Purpose) -> &Cancel {
        &self.ends[purpose as usize]
    }

    /// Waits for a place. The wait is bounded, as every job has a time limit.
    fn seat(&self, purpose: Purpose) -> Result<Seat<'_>, Error> {
        let is_full = |state: &mut PoolState| {
            let of_it = state.busy[purpose as usize];
            let all_busy = state.busy.iter().sum::<usize>() > self.imports_max;
            let is_full = match purpose {
                Purpose::Client => all_busy && of_it >= CLIENTS_MIN,
                Purpose::Import => all_busy || of_it >= self.imports_max,
            };
            is_full && !self.end_of(purpose).is_cancelled()
        };
        let mut state = unpoisoned(self.freed.wait_while(self.lock(), is_full));
        if self.end_of(purpose).is_cancelled() {
            return Err(Error::Stopped);
        }
        state.busy[purpose as usize] += 1;
        Ok(Seat {
            shared: self,
            purpose,
        })
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.shared.lock().busy[self.purpose as usize] -= 1;
        // Notify all, as a single woken thread might have the other purpose.
        self.shared.freed.notify_all();
    }
}

/// The state of the thread `decode`.
struct Starter {
    settings: Settings,
    shared: Arc<Shared>,
    inbox: Receiver<Request>,
}

impl Starter {
    fn run(self) {
        loop {
            let due = self.end_idle(Instant::now());
            let due = due.map_or_else(never, |at| {
                after(at.saturating_duration_since(Instant::now()))
            });
            select! {
                recv(self.inbox) -> request => match request {
                    // If the caller is gone, the worker is dropped at once.
                    Ok(Request::Start(reply)) => drop(reply.send(Worker::start(&self.settings))),
                    Ok(Request::Idle) => {}
                    Err(_) => break,
                },
                recv(due) -> _ => {}
            }
        }
        let idle = std::mem::take(&mut self.shared.lock().idle);
        drop(idle);
    }

    /// Ends processes that were idle too long; returns when the next one is due.
    fn end_idle(&self, now: Instant) -> Option<Instant> {
        let mut state = self.shared.lock();
        let ended: Vec<_> = state
            .idle
            .extract_if(.., |(since, _)| *since + IDLE_FOR <= now)
            .collect();
        let next = state.idle.iter().map(|(since, _)| *since + IDLE_FOR).min();
        drop(state);
        // Outside the lock, as dropping waits for the processes to end.
        drop(ended);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_client_does_not_block_the_next_during_an_import() {
        let (spawner, _) = Spawner::new();
        let settings = Settings {
            imports: 1,
            ..Settings::default()
        };
        let pool = Pool::start(settings, &spawner).unwrap();
        let _import = pool.shared.seat(Purpose::Import).unwrap();
        let slow = pool.shared.seat(Purpose::Client).unwrap();
        let (tell, told) = bounded(1);
        let shared = Arc::clone(&pool.shared);
        std::thread::spawn(move || tell.send(shared.seat(Purpose::Client).is_ok()));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(true));
        drop(slow);
    }
}
