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
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};

use crate::media::catch_panic;
use crate::sys::Cancel;
use crate::thread::{Spawner, Thread};
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
            let (jobs, end, ffmpeg) = (jobs.clone(), ended.clone(), ffmpeg.clone());
            threads.push(spawner.spawn(name, move || work(name, &jobs, &end, &ffmpeg))?);
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

/// Called on a thread of its queue; with an error where it is not run at all. One that panics is
/// dropped, with the reply that it has.
pub(crate) type Job = Box<dyn FnOnce(Result<&Ffmpeg, Error>) + Send>;

/// Does one job after the other. The programs that it runs have their limits; its own accesses to disks
/// have none, and hang with a disk that does not answer.
fn work(name: &str, jobs: &Receiver<Job>, end: &Receiver<()>, ffmpeg: &Ffmpeg) {
    loop {
        let job = select! {
            recv(jobs) -> job => job,
            recv(end) -> _ => break,
        };
        let Ok(job) = job else { return };
        if let Err(said) = catch_panic(|| job(Ok(ffmpeg))) {
            log::error!("{name}: a job panicked: {said}");
        }
    }
    for job in jobs.try_iter() {
        job(Err(Error::Ended));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
}
