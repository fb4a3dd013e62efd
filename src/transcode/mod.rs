//! Examines and converts videos with ffmpeg, and images with similar programs.
//!
//! [`Ffmpeg`] runs programs on the calling thread, which must be allowed to wait. [`Transcoder`]
//! has two bounded queues for threads that must not: `transcode` for jobs of minutes, one at a
//! time, and `frames` for jobs of moments, two at a time. When the daemon shuts down, ffmpeg is
//! killed and waiting jobs get an error.

mod encode;
mod error;
mod facts;
mod ffmpeg;
mod fresh;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/transcode.rs"]
pub mod fuzz;
mod pictures;

use std::io;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};

use crate::media::catch_panic;
use crate::sys::Cancel;
use crate::thread::{Spawner, Thread};
use crate::wire::DebugQueue;

pub(crate) use encode::Cut;
pub use error::Error;
pub(crate) use facts::Facts;
pub use ffmpeg::{Ffmpeg, Limits};
pub(crate) use ffmpeg::{is_available, require};
pub(crate) use pictures::{PROGRAMS, Program, require_for};

/// Number of long jobs that may wait; further ones are refused.
const JOBS_MAX: usize = 8;
/// Number of short jobs that may wait.
const FRAMES_MAX: usize = 64;
/// Number of short jobs that run at a time, so that a slow one does not delay the next.
const FRAMES_AT_ONCE: usize = 2;

/// Submits jobs; clones use the same threads.
#[derive(Clone, Debug)]
pub struct Transcoder {
    jobs: Sender<Job>,
    frames: Sender<Job>,
    ffmpeg: Ffmpeg,
    imports: Ffmpeg,
}

/// Owns the threads. Dropping it kills their programs and stops them.
#[derive(Debug)]
pub struct Threads {
    cancel: Cancel,
    imports: Cancel,
    /// Above the threads: the channel must close before they are joined.
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
            let jobs = jobs.clone();
            let end = ended.clone();
            let ffmpeg = ffmpeg.clone();
            threads.push(spawner.spawn(name, move || work(name, &jobs, &end, &ffmpeg))?);
        }
        Ok(inbox)
    };
    let jobs = queue("transcode", JOBS_MAX, 1)?;
    let frames = queue("frames", FRAMES_MAX, FRAMES_AT_ONCE)?;
    let transcoder = Transcoder {
        jobs,
        frames,
        ffmpeg,
        imports: Ffmpeg::new(limits, imports.clone()),
    };
    Ok((
        transcoder,
        Threads {
            cancel,
            imports,
            end: Some(end),
            threads,
        },
    ))
}

impl Transcoder {
    /// Queues a job that takes minutes.
    pub fn submit(&self, job: Job) {
        enqueue(&self.jobs, job);
    }

    /// Queues a job that takes moments.
    pub fn submit_frame(&self, job: Job) {
        enqueue(&self.frames, job);
    }

    /// Returns the length of the queues.
    pub(crate) fn queues(&self) -> [DebugQueue; 2] {
        [
            DebugQueue::new("transcode", &self.jobs),
            DebugQueue::new("frames", &self.frames),
        ]
    }

    /// Runs ffmpeg for requests of clients, on threads that may wait.
    pub fn ffmpeg(&self) -> &Ffmpeg {
        &self.ffmpeg
    }

    /// Runs ffmpeg for imports, which are cancelled later than requests.
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
    /// Cancels the jobs of requests; waiting ones get an error at once.
    pub fn cancel(&mut self) {
        self.cancel.cancel();
        self.end = None;
    }

    /// Cancels the jobs of imports.
    pub fn cancel_imports(&self) {
        self.imports.cancel();
    }

    /// Tells the threads to end, and returns them to be joined.
    pub fn end(mut self) -> Vec<Thread> {
        self.cancel();
        self.cancel_imports();
        std::mem::take(&mut self.threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.cancel();
        self.cancel_imports();
    }
}

/// Called on a thread of its queue, or with an error if it cannot run. If it panics, it is dropped
/// together with its reply.
pub(crate) type Job = Box<dyn FnOnce(Result<&Ffmpeg, Error>) + Send>;

/// Runs jobs one after another. The programs that they run have time limits; direct accesses to
/// disks have none, and hang if the disk does not answer.
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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::thread::join_all;

    #[test]
    fn panic_of_a_job_ends_only_that_job() {
        let (spawner, deaths) = Spawner::new();
        let (transcoder, threads) = start(&spawner, Limits::default()).unwrap();
        let (reply, answer) = bounded::<()>(1);
        transcoder.submit(Box::new(move |_| {
            let _reply = reply;
            panic!("on purpose")
        }));
        // A dropped reply becomes status 500 for the client.
        answer.recv().unwrap_err();
        let (tell, told) = bounded(1);
        transcoder.submit(Box::new(move |ran| tell.send(ran.is_ok()).unwrap()));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(true));
        assert!(join_all(threads.end(), Instant::now() + Duration::from_secs(60)).is_empty());
        // The channel is disconnected once no thread can report a panic.
        drop(spawner);
        let death = deaths.recv_timeout(Duration::from_secs(60));
        assert_eq!(
            death,
            Err(crossbeam_channel::RecvTimeoutError::Disconnected)
        );
    }

    #[test]
    fn queues_are_bounded_and_jobs_fail_at_the_shutdown() {
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
        assert!(
            passed.recv().unwrap(),
            "moments wait neither for minutes nor for a slow one"
        );
        let ended = running.end();
        assert!(transcoder.ffmpeg().is_cancelled());
        drop(release);
        assert!(join_all(ended, Instant::now() + Duration::from_secs(60)).is_empty());
        for _ in 0..JOBS_MAX {
            // `None` means that the thread received the job just before it saw the end.
            assert!(matches!(told.recv().unwrap(), Some(Error::Ended) | None));
        }
        drop(tell);
    }
}
