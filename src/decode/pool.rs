//! The processes that decode: started on demand by the thread `decode`, and ended by it after a while
//! without work. The threads that ask wait for a place here, and give a process one job at a time.
//!
//! The kernel kills a process when the thread that has started it ends, so none outlives the daemon.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

use super::protocol::{Error, Job, Reply};
use super::worker::{Settings, Worker};
use crate::sys::{Cancel, lock, unpoisoned};
use crate::thread::{Spawner, Thread};

/// A process without a job for so long is ended.
const IDLE_FOR: Duration = Duration::from_secs(30);
/// Requests to the thread that wait; those who ask wait for a place before they send one.
const REQUESTS: usize = 64;

/// Places for clients that wait, in addition to those for imports, so that a slow picture does not
/// delay the next one.
const CLIENTS_MIN: usize = 2;

/// Imports leave some processes to clients that wait.
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
    /// Cancelled when the time of a purpose is over.
    ends: [Cancel; 2],
}

#[derive(Debug, Default)]
struct PoolState {
    /// With the time since when they have nothing to do, the last one last.
    idle: Vec<(Instant, Worker)>,
    /// The places that are occupied, by purpose.
    busy: [usize; 2],
}

/// A message to the thread.
#[derive(Debug)]
enum Request {
    Start(Sender<io::Result<Worker>>),
    /// A process is idle from now on.
    Idle,
}

/// A place among the processes at work.
struct Seat<'a> {
    shared: &'a Shared,
    purpose: Purpose,
}

impl Pool {
    pub(super) fn start(settings: Settings, spawner: &Spawner) -> io::Result<Self> {
        let (state, freed) = (Mutex::default(), Condvar::new());
        let (imports_max, ends) = (settings.imports.max(1), [Cancel::new()?, Cancel::new()?]);
        let shared = Arc::new(Shared { imports_max, state, freed, ends });
        let (requests, inbox) = bounded(REQUESTS);
        let starter = Starter { settings, shared: Arc::clone(&shared), inbox };
        let thread = spawner.spawn("decode", move || starter.run())?;
        Ok(Self { shared, requests, _thread: thread })
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
        let _seat = self.shared.seat(purpose)?;
        let cancels: Vec<_> = cancel.into_iter().chain([self.shared.end_of(purpose)]).collect();
        loop {
            let (mut worker, is_new) = self.worker()?;
            match worker.ask(&line, &cancels) {
                Ok(Reply::Done(done)) => {
                    self.give_back(worker);
                    return Ok(done);
                }
                // Its directories may have been made again since it was confined to them.
                Ok(Reply::Failed(error)) if !is_new && is_denied(&error) => {}
                // A panic was its end.
                Ok(Reply::Failed(error)) if !matches!(error, Error::Broke(_)) => {
                    self.give_back(worker);
                    return Err(error);
                }
                Ok(Reply::Failed(error)) | Err(error) => return Err(error),
                Ok(Reply::Progress) => return Err(Error::Silent),
            }
        }
    }

    /// One without work, or a new one; and whether it is new.
    fn worker(&self) -> Result<(Worker, bool), Error> {
        while let Some((_, worker)) = { self.shared.lock().idle.pop() } {
            // Somebody may have killed it.
            if worker.is_running() {
                return Ok((worker, false));
            }
        }
        let (reply, started) = bounded(1);
        self.requests.send(Request::Start(reply)).map_err(|_| Error::Stopped)?;
        let started = started.recv().map_err(|_| Error::Stopped)?;
        Ok((started.map_err(|error| Error::NoProcess(error.to_string()))?, true))
    }

    fn give_back(&self, worker: Worker) {
        self.shared.lock().idle.push((Instant::now(), worker));
        // A full channel wakes the thread as well.
        self.requests.try_send(Request::Idle).ok();
    }

    pub(super) fn has_ended(&self, purpose: Purpose) -> bool {
        self.shared.end_of(purpose).is_cancelled()
    }

    /// Cancels the jobs of a purpose, and refuses others from now on.
    pub(super) fn end(&self, purpose: Purpose) {
        // Under the lock, so that nobody looks just before and waits just afterwards.
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

    /// Waits for a place. Each is left in time, as each job has its limits.
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
        Ok(Seat { shared: self, purpose })
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.shared.lock().busy[self.purpose as usize] -= 1;
        // All: the one that is woken may be of the other purpose.
        self.shared.freed.notify_all();
    }
}

/// The thread `decode`.
struct Starter {
    settings: Settings,
    shared: Arc<Shared>,
    inbox: Receiver<Request>,
}

impl Starter {
    fn run(self) {
        loop {
            let due = self.end_idle(Instant::now());
            let due =
                due.map_or_else(never, |at| after(at.saturating_duration_since(Instant::now())));
            select! {
                recv(self.inbox) -> request => match request {
                    // Who asked may have gone: then it is ended at once.
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

    /// Ends those whose time is up; returns when the next one's is.
    fn end_idle(&self, now: Instant) -> Option<Instant> {
        let mut state = self.shared.lock();
        let ended: Vec<_> =
            state.idle.extract_if(.., |(since, _)| *since + IDLE_FOR <= now).collect();
        let next = state.idle.iter().map(|(since, _)| *since + IDLE_FOR).min();
        drop(state);
        // Not under the lock: it waits for their ends.
        drop(ended);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_client_keeps_no_place_from_the_next_during_an_import() {
        let (spawner, _) = Spawner::new();
        let settings = Settings { imports: 1, ..Settings::default() };
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
