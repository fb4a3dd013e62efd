//! What only ffmpeg can do: look into videos, take frames out of them, write them anew.
//!
//! [`Ffmpeg`] runs the programs on the thread that asks, which must be one that may wait.
//! [`Transcoder`] has two threads for those that may not: `transcode` for what takes minutes, one
//! job after the other, and `frames` for what takes a moment. Their queues are bounded. At the end
//! of the daemon ffmpeg is killed and whoever waits is told. Nothing here knows of the library.

mod encode;
mod error;
mod facts;
mod ffmpeg;

use std::io;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};

use crate::process::Cancel;
use crate::thread::{Spawner, Thread};

pub use encode::Cut;
pub use error::Error;
pub use facts::Facts;
pub use ffmpeg::{Ffmpeg, is_available, is_needed_for, require};

/// Jobs of minutes that wait; one more is refused.
const JOBS_MAX: usize = 8;
/// Jobs of moments that wait.
const FRAMES_MAX: usize = 64;

/// How long ffmpeg may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a look at a file.
    pub look: Duration,
    /// For a single frame.
    pub frame: Duration,
    /// While it writes a video: without a word of how far it is.
    pub silence: Duration,
    /// Bytes of its address space, and of what it writes.
    pub memory: u64,
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let (memory, output) = (2 << 30, 2 << 30);
        Self { look: seconds(20), frame: seconds(40), silence: seconds(120), memory, output }
    }
}

/// Called on the room's thread; with an error where it is not run at all.
pub type Job = Box<dyn FnOnce(Result<&Ffmpeg, Error>) + Send>;

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
    let mut threads = Vec::with_capacity(2);
    let mut thread = |name, room| -> io::Result<Sender<Job>> {
        let (inbox, jobs) = bounded(room);
        let (ffmpeg, ended) = (ffmpeg.clone(), ended.clone());
        threads.push(spawner.spawn(name, move || work(&jobs, &ended, &ffmpeg))?);
        Ok(inbox)
    };
    let (jobs, frames) = (thread("transcode", JOBS_MAX)?, thread("frames", FRAMES_MAX)?);
    let imported = Ffmpeg::new(limits, imports.clone());
    let transcoder = Transcoder { jobs, frames, ffmpeg, imports: imported };
    Ok((transcoder, Threads { cancel, imports, end: Some(end), threads }))
}

fn work(jobs: &Receiver<Job>, end: &Receiver<()>, ffmpeg: &Ffmpeg) {
    loop {
        select! {
            recv(jobs) -> job => match job {
                Ok(job) => job(Ok(ffmpeg)),
                Err(_) => return,
            },
            recv(end) -> _ => break,
        }
    }
    for job in jobs.try_iter() {
        job(Err(Error::Ended));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_bounded_and_told_of_the_end() {
        let (spawner, _deaths) = Spawner::new();
        let (transcoder, running) = start(&spawner, Limits::default()).unwrap();
        let (tell, told) = bounded(100);
        let (release, held) = bounded::<()>(0);
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
        transcoder.submit_frame(Box::new(move |ran| moment.send(ran.is_ok()).unwrap()));
        assert!(passed.recv().unwrap(), "moments do not wait for minutes");
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
