//! A queue of jobs that are done one after the other.
//!
//! Each job has a thread of its own, and the queue's thread only waits for it: where a disk is
//! dead, neither the job nor its child can be ended. Such a job is left behind and the next one
//! done beside it; so many are left behind at most, then the queue waits.

use std::time::Duration;

use crossbeam_channel::{Receiver, Select, TryRecvError, bounded, select};

use super::error::Error;
use super::ffmpeg::Ffmpeg;
use crate::thread;

/// Jobs that are left behind at once.
const HUNG_MAX: usize = 4;
/// As much as the other threads have.
const STACK: usize = 1 << 20;
/// What a job gets at the end of the daemon.
const LAST: Duration = Duration::from_secs(1);

/// Called on a thread of its own; with an error where it is not run at all. One that panics is dropped,
/// with the reply that it has.
pub(crate) type Job = Box<dyn FnOnce(Result<&Ffmpeg, Error>) + Send>;

pub(super) struct Queue {
    /// Of its thread, and of those of its jobs.
    pub(super) name: &'static str,
    pub(super) jobs: Receiver<Job>,
    /// Closed at the end.
    pub(super) end: Receiver<()>,
    pub(super) ffmpeg: Ffmpeg,
    /// A job without a sign of life for so long hangs.
    pub(super) patience: Duration,
}

impl Queue {
    pub(super) fn work(self) {
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

    /// What it returns is closed when the job is done.
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
    use super::*;

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
