//! Examines and converts videos with ffmpeg.
//!
//! [`Ffmpeg`] runs the programs on the thread that asks, which must be one that may wait.
//! [`Transcoder`] has two queues for those that may not: `transcode` for what takes minutes, one
//! job after the other, and `frames` for what takes a moment, two at once. Both are bounded. At the end
//! of the daemon ffmpeg is killed and whoever waits is told. Nothing here knows of the library.

mod encode;
mod error;
mod facts;
mod ffmpeg;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/transcode.rs"]
pub mod fuzz;
mod pictures;

use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Select, Sender, TryRecvError, TrySendError, bounded, select};

use crate::sys::Cancel;
use crate::thread::{self, Spawner, Thread};
use crate::wire::DebugQueue;

pub(crate) use encode::Cut;
pub use error::Error;
pub(crate) use facts::Facts;
pub use ffmpeg::{Ffmpeg, Limits};
pub(crate) use ffmpeg::{is_available, is_needed_for, require};
pub(crate) use pictures::{PROGRAMS, require_for};

/// Jobs of minutes that wait; one more is refused.
const JOBS_MAX: usize = 8;
/// Jobs of moments that wait.
const FRAMES_MAX: usize = 64;
/// Jobs of moments that run: one that takes long delays no other.
const FRAMES_AT_ONCE: usize = 2;

/// The handle; clones speak to the same threads.
#[derive(Clone, Debug)]
pub struct Transcoder {
    jobs: Sender<Job>,
    frames: Sender<Job>,
    ffmpeg: Ffmpeg,
    imports: Ffmpeg,
}

/// The threads. Dropping it ends them, and kills what they run.
#[derive(Debug)]
pub struct Threads {
    cancel: Cancel,
    imports: Cancel,
    /// Above the threads: closed before they are joined.
    end: Option<Sender<()>>,
    threads: Vec<Thread>,
}

pub fn start(spawner: &Spawner, limits: Limits) -> io::Result<(Transcoder, Threads)> {
    let (cancel, imports) = (Cancel::new()?, Cancel::new()?);
    let ffmpeg = Ffmpeg::new(limits, cancel.clone());
    let (end, ended) = bounded(0);
    let mut threads = Vec::with_capacity(1 + FRAMES_AT_ONCE);
    let mut queue = |name, places, at_once| -> io::Result<Sender<Job>> {
        let (inbox, jobs) = bounded(places);
        for _ in 0..at_once {
            // Its own, so that each thread sees the signs of life of its own jobs.
            let (jobs, ffmpeg) = (jobs.clone(), Ffmpeg::new(limits, cancel.clone()));
            let (end, patience) = (ended.clone(), 2 * limits.silence);
            let queue = Queue { name, jobs, end, ffmpeg, patience };
            threads.push(spawner.spawn(name, move || queue.work())?);
        }
        Ok(inbox)
    };
    let jobs = queue("transcode", JOBS_MAX, 1)?;
    let frames = queue("frames", FRAMES_MAX, FRAMES_AT_ONCE)?;
    let imported = Ffmpeg::new(limits, imports.clone());
    let transcoder = Transcoder { jobs, frames, ffmpeg, imports: imported };
    Ok((transcoder, Threads { cancel, imports, end: Some(end), threads }))
}

impl Transcoder {
    /// For work of minutes.
    pub fn submit(&self, job: Job) {
        enqueue(&self.jobs, job);
    }

    /// For work of moments.
    pub fn submit_frame(&self, job: Job) {
        enqueue(&self.frames, job);
    }

    /// The jobs that wait for each thread.
    pub(crate) fn queues(&self) -> [DebugQueue; 2] {
        [DebugQueue::of("transcode", &self.jobs), DebugQueue::of("frames", &self.frames)]
    }

    /// For threads that may wait for it, until the requests' work is ended.
    pub fn ffmpeg(&self) -> &Ffmpeg {
        &self.ffmpeg
    }

    /// The same for imports, which go on a little longer than requests.
    pub fn imports(&self) -> &Ffmpeg {
        &self.imports
    }
}

fn enqueue(queue: &Sender<Job>, job: Job) {
    match queue.try_send(job) {
        Ok(()) => {}
        Err(TrySendError::Full(job)) => job(Err(Error::Busy)),
        Err(TrySendError::Disconnected(job)) => job(Err(Error::Ended)),
    }
}

impl Threads {
    /// Gives up what was asked for by requests: whoever waits is told at once.
    pub fn cancel(&mut self) {
        self.cancel.cancel();
        self.end = None;
    }

    /// Gives up what imports have in hand.
    pub fn cancel_imports(&self) {
        self.imports.cancel();
    }

    /// Ends the threads by the deadline; returns the names of those that are late.
    pub fn end(mut self, deadline: Instant) -> Vec<String> {
        self.cancel();
        self.cancel_imports();
        let late = std::mem::take(&mut self.threads).into_iter().filter_map(|thread| {
            let name = thread.name().to_owned();
            (!thread.join_by(deadline)).then_some(name)
        });
        late.collect()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.cancel();
        self.cancel_imports();
    }
}

/// Jobs that are left behind at once.
const HUNG_MAX: usize = 4;
/// As much as the other threads have.
const STACK: usize = 1 << 20;
/// The time that a job has to end at the end of the daemon.
const LAST: Duration = Duration::from_secs(1);

/// Called on a thread of its own; with an error where it is not run at all. One that panics is dropped,
/// with the reply that it has.
pub(crate) type Job = Box<dyn FnOnce(Result<&Ffmpeg, Error>) + Send>;

struct Queue {
    /// The name of its thread, and of the threads of its jobs.
    name: &'static str,
    jobs: Receiver<Job>,
    /// Closed at the end.
    end: Receiver<()>,
    ffmpeg: Ffmpeg,
    /// A job without a sign of life for so long hangs.
    patience: Duration,
}

impl Queue {
    fn work(self) {
        let mut hung: Vec<Receiver<()>> = Vec::new();
        loop {
            let job = select! {
                recv(self.jobs) -> job => job,
                recv(self.end) -> _ => break,
            };
            let Ok(job) = job else { return };
            hung.extend(self.attend(self.start(job)));
            hung.retain(|done| done.try_recv() == Err(TryRecvError::Empty));
            if hung.len() == HUNG_MAX {
                log::error!("{}: {HUNG_MAX} jobs hang; starting no more", self.name);
                match first_done(&hung, &self.end) {
                    Some(done) => drop(hung.swap_remove(done)),
                    None => break,
                }
            }
        }
        for job in self.jobs.try_iter() {
            job(Err(Error::Ended));
        }
    }

    /// Starts a job; the returned channel is closed when the job is done.
    fn start(&self, job: Job) -> Receiver<()> {
        let (running, done) = bounded(0);
        // Through a channel: it comes back where there can be no thread.
        let (give, given) = bounded(1);
        give.send(job).ok();
        let (ffmpeg, taken) = (self.ffmpeg.clone(), given.clone());
        let thread = thread::expendable(self.name, STACK, move || {
            let _running = running;
            taken.into_iter().take(1).for_each(|job: Job| job(Ok(&ffmpeg)));
        });
        match thread {
            // It is never joined: it may hang.
            Ok(thread) => thread.leave(),
            Err(error) => {
                log::error!("{}: cannot start a thread: {error}", self.name);
                given.try_iter().for_each(|job| job(Err(Error::Busy)));
            }
        }
        done
    }

    /// Waits until the job is done, and gives it back where it hangs.
    fn attend(&self, done: Receiver<()>) -> Option<Receiver<()>> {
        loop {
            let before = self.ffmpeg.signs_of_life();
            select! {
                recv(done) -> _ => return None,
                recv(self.end) -> _ => {
                    // Its child is killed by now.
                    done.recv_timeout(LAST).ok();
                    return None;
                }
                default(self.patience) => {}
            }
            if self.ffmpeg.signs_of_life() == before {
                log::error!("{}: timed out waiting for a job; continuing without it", self.name);
                return Some(done);
            }
        }
    }
}

/// Waits until one of those that hang is done after all; `None` at the end.
fn first_done(hung: &[Receiver<()>], end: &Receiver<()>) -> Option<usize> {
    let mut all = Select::new();
    for done in hung {
        all.recv(done);
    }
    let end = all.recv(end);
    Some(all.ready()).filter(|ready| *ready != end)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_job_that_hangs_does_not_hold_the_others() {
        let (spawner, _deaths) = Spawner::new();
        let limits = Limits { silence: Duration::from_millis(20), ..Limits::default() };
        let (transcoder, threads) = start(&spawner, limits).unwrap();
        let (release, held) = bounded::<()>(0);
        // One fewer than are left behind at most, and the last of them again when one has ended.
        for _ in 0..3 {
            let held = held.clone();
            transcoder.submit(Box::new(move |_| {
                held.recv().ok();
            }));
        }
        let (tell, told) = bounded(1);
        transcoder.submit(Box::new(move |ran| tell.send(ran.is_ok()).unwrap()));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(true));
        transcoder.submit(Box::new(move |_| {
            held.recv().ok();
        }));
        // It ends while they hang still.
        assert!(threads.end(Instant::now() + Duration::from_secs(60)).is_empty());
        drop(release);
    }

    #[test]
    fn a_job_that_panics_ends_itself_alone() {
        let (spawner, deaths) = Spawner::new();
        let (transcoder, threads) = start(&spawner, Limits::default()).unwrap();
        let (reply, answer) = bounded::<()>(1);
        transcoder.submit(Box::new(move |_| {
            let _reply = reply;
            panic!("on purpose")
        }));
        // A client is told 500 where its reply is dropped.
        answer.recv().unwrap_err();
        let (tell, told) = bounded(1);
        transcoder.submit(Box::new(move |ran| tell.send(ran.is_ok()).unwrap()));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(true));
        assert!(threads.end(Instant::now() + Duration::from_secs(60)).is_empty());
        // It closes when no thread is left that could report one.
        drop(spawner);
        let death = deaths.recv_timeout(Duration::from_secs(60));
        assert_eq!(death, Err(crossbeam_channel::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn queues_are_bounded_and_told_of_the_end() {
        let (spawner, _deaths) = Spawner::new();
        let (transcoder, running) = start(&spawner, Limits::default()).unwrap();
        let (tell, told) = bounded(100);
        let (release, held) = bounded::<()>(0);
        let slow = held.clone();
        let (begun, begins) = bounded(1);
        transcoder.submit(Box::new(move |_| {
            begun.send(()).unwrap();
            held.recv().ok();
        }));
        begins.recv().unwrap();
        for _ in 0..=JOBS_MAX {
            let tell = tell.clone();
            transcoder.submit(Box::new(move |ran| tell.send(ran.err()).unwrap()));
        }
        assert!(matches!(told.recv().unwrap(), Some(Error::Busy)));
        assert!(told.is_empty());
        let (moment, passed) = bounded(1);
        transcoder.submit_frame(Box::new(move |_| {
            slow.recv().ok();
        }));
        transcoder.submit_frame(Box::new(move |ran| moment.send(ran.is_ok()).unwrap()));
        assert!(passed.recv().unwrap(), "moments wait neither for minutes nor for a slow one");
        let ender =
            std::thread::spawn(move || running.end(Instant::now() + Duration::from_secs(9)));
        while !transcoder.ffmpeg().is_cancelled() {
            std::thread::yield_now();
        }
        drop(release);
        assert!(ender.join().unwrap().is_empty());
        for _ in 0..JOBS_MAX {
            // None: the thread took it just before it saw the end.
            assert!(matches!(told.recv().unwrap(), Some(Error::Ended) | None));
        }
        drop(tell);
    }

    #[test]
    fn any_hanging_job_that_ends_makes_room() {
        let (mut running, hung): (Vec<_>, Vec<_>) = (0..HUNG_MAX).map(|_| bounded(0)).unzip();
        let (ending, end) = bounded(0);
        drop(running.remove(2));
        assert_eq!(first_done(&hung, &end), Some(2));
        drop(ending);
        assert_eq!(first_done(&hung[..2], &end), None);
    }
}
