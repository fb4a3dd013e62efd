//! The threads `import-1..n`, each of which works on one file. They belong to the thread `import`.
//!
//! A read from a dead disk does not return, and its thread cannot be ended. A worker that shows no sign
//! of life is abandoned: its file has failed, another worker is started in its place, and the end of
//! the daemon does not wait for it.
//!
//! As many work at once as there are processors. A file that only waits for the disk and its turn does
//! not count: another worker begins the next file, and the files that wait are committed together.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Error;
use super::commit_order::Turn;
use super::task::{Landed, Task};
use crate::media::Stop;
use crate::thread::{Spawner, Thread};

/// Workers that are left behind at once.
const HUNG_MAX: usize = 8;
/// Files that wait to be landed.
const RESTING_MAX: usize = 24;
/// The time that the files in hand get at the end of the daemon.
const LAST: Duration = Duration::from_secs(2);

/// One file for a worker.
pub(super) struct Job {
    pub(super) path: PathBuf,
    /// It was found in a directory.
    pub(super) inside: bool,
    pub(super) folder: Option<i64>,
    pub(super) task: Task,
    pub(super) turn: Arc<Turn>,
    /// Its batch was cancelled.
    pub(super) cancelled: Arc<AtomicBool>,
}

pub(super) struct Done {
    worker: u64,
    pub(super) result: Landed,
}

/// The work of a worker on its file; it asks often whether it is to stop.
pub(super) type Work = Arc<dyn Fn(&Job, Stop<'_>) -> Landed + Send + Sync>;

pub(super) struct Workers {
    work: Work,
    spawner: Spawner,
    /// The number of workers that work at once.
    count: usize,
    /// A worker without a sign of life for so long hangs.
    patience: Duration,
    all: Vec<Worker>,
    started: u64,
    hung: usize,
    done: (Sender<Done>, Receiver<Done>),
}

struct Worker {
    number: u64,
    /// Above the thread: closed before it is joined.
    jobs: Sender<Job>,
    thread: Thread,
    life: Arc<AtomicU64>,
    in_hand: Option<InHand>,
}

/// A file that a worker has, and what it was seen to do.
struct InHand {
    path: PathBuf,
    inside: bool,
    turn: Arc<Turn>,
    life: u64,
    since: Instant,
}

impl Workers {
    pub(super) fn start(
        count: usize,
        patience: Duration,
        spawner: &Spawner,
        work: Work,
    ) -> io::Result<Self> {
        let mut workers = Self {
            work,
            spawner: spawner.clone(),
            count,
            patience,
            all: Vec::with_capacity(count),
            started: 0,
            hung: 0,
            done: bounded(count + RESTING_MAX + HUNG_MAX),
        };
        (1..=count).try_for_each(|place| workers.add(place))?;
        Ok(workers)
    }

    fn add(&mut self, place: usize) -> io::Result<()> {
        self.started += 1;
        let (number, (jobs, given)) = (self.started, bounded::<Job>(1));
        let (work, done) = (Arc::clone(&self.work), self.done.0.clone());
        let life = Arc::<AtomicU64>::default();
        let signs = Arc::clone(&life);
        let body = move || {
            for job in given {
                let stop = || {
                    signs.fetch_add(1, Ordering::Relaxed);
                    job.cancelled.load(Ordering::Relaxed) || job.turn.has_left()
                };
                // Whatever it was, it was this file's: the others go on.
                let result = catch_unwind(AssertUnwindSafe(|| work(&job, &stop)));
                let result = result.unwrap_or_else(|panic| Err(Error::of_panic(&*panic)));
                if let Err(error @ Error::Mistake { .. }) = &result {
                    log::error!("{} fails by {error}", job.path.display());
                }
                // Before it is reported: the receiver may give out the next one.
                drop(job);
                if done.send(Done { worker: number, result }).is_err() {
                    return;
                }
            }
        };
        let thread = self.spawner.spawn(&format!("import-{place}"), body)?;
        self.all.push(Worker { number, jobs, thread, life, in_hand: None });
        Ok(())
    }

    /// The results of the workers.
    pub(super) fn results(&self) -> &Receiver<Done> {
        &self.done.1
    }

    pub(super) fn are_busy(&self) -> bool {
        self.all.iter().any(|worker| worker.in_hand.is_some())
    }

    fn has_idle(&self) -> bool {
        self.all.iter().any(|worker| worker.in_hand.is_none())
    }

    /// Whether another file is to be begun; there is a worker for it then.
    pub(super) fn make_room(&mut self) -> bool {
        let in_hand = self.all.iter().filter_map(|worker| worker.in_hand.as_ref());
        if in_hand.filter(|file| !file.turn.is_resting()).count() >= self.count {
            return false;
        }
        let most = self.count + RESTING_MAX;
        let may_add = !self.are_gone() && self.all.len() + self.hung < most;
        // If none can be started, the next idle worker gets it.
        self.has_idle() || may_add && self.add(self.all.len() + 1).is_ok()
    }

    /// Ends those that were started for what waits.
    pub(super) fn shrink(&mut self) {
        self.all.truncate(self.count);
    }

    /// Whether all hang.
    pub(super) fn are_gone(&self) -> bool {
        self.all.is_empty()
    }

    /// Hands a file to a worker that has none.
    pub(super) fn give(&mut self, job: Job) {
        let idle = self.all.iter_mut().find(|worker| worker.in_hand.is_none());
        let Some(worker) = idle else { return };
        let (path, inside, turn) = (job.path.clone(), job.inside, Arc::clone(&job.turn));
        let life = worker.life.load(Ordering::Relaxed);
        worker.in_hand = Some(InHand { path, inside, turn, life, since: Instant::now() });
        // It has room for one, and has none.
        worker.jobs.send(job).ok();
    }

    /// Takes a worker's result, with its file and whether that was found in a directory; none of
    /// one that was left behind, whose file has failed already.
    pub(super) fn settle(&mut self, done: Done) -> Option<(PathBuf, bool, Landed)> {
        let worker = self.all.iter_mut().find(|worker| worker.number == done.worker);
        let Some(InHand { path, inside, .. }) = worker.and_then(|worker| worker.in_hand.take())
        else {
            self.hung -= 1;
            // Too many hung for another; now there may be one.
            if self.are_gone()
                && let Err(error) = self.add(1)
            {
                log::error!("no thread for another import: {error}");
            }
            return None;
        };
        Some((path, inside, done.result))
    }

    /// When workers are to be looked at again; none while they have nothing.
    pub(super) fn due(&self) -> Option<Instant> {
        let in_hand = self.all.iter().filter_map(|worker| worker.in_hand.as_ref());
        in_hand.map(|file| file.since + self.patience).min()
    }

    /// Leaves those behind that hang, and returns their files with what is wrong.
    pub(super) fn leave_hung(&mut self) -> Vec<(PathBuf, Error)> {
        let (now, mut failed) = (Instant::now(), Vec::new());
        for at in (0..self.all.len()).rev() {
            if !self.all[at].hangs(now, self.patience) {
                continue;
            }
            let Worker { thread, in_hand, .. } = self.all.swap_remove(at);
            self.hung += 1;
            let place = thread.name().to_owned();
            thread.leave();
            let Some(file) = in_hand else { continue };
            file.turn.leave();
            log::error!("{place} hangs on {}: it is left behind", file.path.display());
            failed.push((file.path.clone(), no_answer(file.path)));
            let place = place.rsplit('-').next().and_then(|number| number.parse().ok());
            let added = (self.hung <= HUNG_MAX).then(|| self.add(place.unwrap_or(1)));
            if let Some(Err(error)) = added {
                log::error!("no thread for another import: {error}");
            }
        }
        failed
    }

    /// Has the idle ones end, and waits a moment for the others.
    pub(super) fn end(mut self) {
        let deadline = Instant::now() + LAST;
        while self.are_busy()
            && let Ok(done) = self.done.1.recv_deadline(deadline)
        {
            self.settle(done);
        }
        for Worker { jobs, thread, in_hand, .. } in self.all.drain(..) {
            drop(jobs);
            if in_hand.is_some() {
                thread.leave();
            }
        }
    }
}

impl Worker {
    fn hangs(&mut self, now: Instant, patience: Duration) -> bool {
        let life = self.life.load(Ordering::Relaxed);
        let Some(file) = &mut self.in_hand else { return false };
        if file.life != life || file.turn.is_waiting() {
            (file.life, file.since) = (life, now);
        }
        now >= file.since + patience
    }
}

/// The error for a file whose disk does not answer.
pub(super) fn no_answer(path: PathBuf) -> Error {
    let source = io::Error::new(io::ErrorKind::TimedOut, "its disk does not answer");
    Error::File { action: "read", path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::commit_order::Turns;

    const SOON: Duration = Duration::from_secs(60);

    /// Files called "hung" wait until the sender is dropped, those called "cursed" have it panic, all
    /// others fail at once.
    fn workers(count: usize, patience: Duration) -> (Workers, Sender<()>) {
        let (release, hung) = bounded::<()>(0);
        let work = move |job: &Job, _: Stop<'_>| {
            if job.path.ends_with("hung") {
                hung.recv().ok();
            }
            assert!(!job.path.ends_with("cursed"), "on purpose");
            if job.turn.wait() { Err(Error::Busy) } else { Err(Error::Stopped) }
        };
        let (spawner, _) = Spawner::new();
        (Workers::start(count, patience, &spawner, Arc::new(work)).unwrap(), release)
    }

    fn job(turns: &mut Turns, path: &str) -> Job {
        let (turn, cancelled) = (Arc::new(turns.next()), Arc::default());
        Job { path: path.into(), inside: false, folder: None, task: Task::Copy, turn, cancelled }
    }

    #[test]
    fn worker_that_hangs_is_replaced_and_its_file_has_failed() {
        let (mut workers, release) = workers(1, Duration::ZERO);
        let mut turns = Turns::default();
        workers.give(job(&mut turns, "/hung"));
        assert!(!workers.has_idle() && workers.due().is_some());
        let failed = workers.leave_hung();
        assert_eq!(failed[0].0, PathBuf::from("/hung"));
        assert_eq!(failed[0].1.reason(), "cannot read it: its disk does not answer");
        // The file behind it is committed, and the file before it no longer is.
        workers.give(job(&mut turns, "/next"));
        let done = workers.results().recv_timeout(SOON).unwrap();
        let (path, _, result) = workers.settle(done).unwrap();
        assert_eq!(path, PathBuf::from("/next"));
        assert!(matches!(result, Err(Error::Busy)));
        drop(release);
        let late = workers.results().recv_timeout(SOON).unwrap();
        assert!(matches!(late.result, Err(Error::Stopped)));
        assert!(workers.settle(late).is_none());
        assert_eq!(workers.hung, 0);
    }

    #[test]
    fn worker_that_waits_for_its_turn_does_not_hang() {
        let (mut workers, release) = workers(2, Duration::ZERO);
        let mut turns = Turns::default();
        let (first, second) = (job(&mut turns, "/hung"), job(&mut turns, "/next"));
        let turn = Arc::clone(&second.turn);
        workers.give(first);
        workers.give(second);
        let deadline = Instant::now() + SOON;
        while !turn.is_waiting() {
            assert!(Instant::now() < deadline, "it never waits");
            std::thread::yield_now();
        }
        workers.patience = SOON;
        workers.all[0].in_hand.as_mut().unwrap().since -= SOON;
        workers.all[1].in_hand.as_mut().unwrap().since -= SOON;
        let failed = workers.leave_hung();
        assert_eq!(failed.len(), 1);
        let done = workers.results().recv_timeout(SOON).unwrap();
        assert_eq!(workers.settle(done).unwrap().0, PathBuf::from("/next"));
        drop(release);
    }

    #[test]
    fn a_panic_is_the_end_of_its_file_alone() {
        let (mut workers, _release) = workers(1, SOON);
        let mut turns = Turns::default();
        for (path, reason) in [("/cursed", "a mistake of murald: on purpose"), ("/next", "")] {
            workers.give(job(&mut turns, path));
            let done = workers.results().recv_timeout(SOON).expect("it is told of");
            let (settled, _, result) = workers.settle(done).unwrap();
            assert_eq!(settled, PathBuf::from(path));
            let why = result.unwrap_err();
            assert!(why.reason() == reason || matches!(why, Error::Busy), "{why}");
        }
    }

    #[test]
    fn end_does_not_wait_for_what_hangs() {
        let (mut workers, release) = workers(2, SOON);
        workers.give(job(&mut Turns::default(), "/hung"));
        workers.end();
        drop(release);
    }

    #[test]
    fn so_many_hang_at_once_and_no_more() {
        let (mut workers, release) = workers(1, Duration::ZERO);
        let mut turns = Turns::default();
        for _ in 0..=HUNG_MAX {
            workers.give(job(&mut turns, "/hung"));
            assert_eq!(workers.leave_hung().len(), 1);
        }
        assert!(workers.are_gone());
        drop(release);
        let late = workers.results().recv_timeout(SOON).unwrap();
        assert!(workers.settle(late).is_none());
        assert!(workers.has_idle(), "the disk answers again");
    }
}
