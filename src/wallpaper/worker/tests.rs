//! Tests a worker with backends that panic, record their calls, or do not finish.

use super::*;
use crate::config::BackendName;
use crate::sys::poll_until;
use crate::wallpaper::tests::Room;
use crate::wallpaper::worker_key::tests::placement;
use rustix::event::{PollFd, PollFlags};

/// Panics at the second picture, and when one of its processes has ended.
struct Faulty(bool);

impl Backend for Faulty {
    fn show(&mut self, _: &[Placement], _: &Cancel) -> Result<(), Error> {
        assert!(!std::mem::replace(&mut self.0, true), "on purpose");
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        panic!("on purpose");
    }
}

/// A worker with this backend, the receiver of its reports, and the sender that announces the exit of a
/// process.
fn started(backend: Box<dyn Backend>) -> (Worker, Receiver<Report>, Sender<()>) {
    let (spawner, _) = Spawner::new();
    let backends = Room::new(Vec::new()).backends;
    let (reports, heard) = bounded(8);
    let (ring, exits) = bounded(1);
    let of = (
        WorkerKey {
            backend: BackendName::Feh,
            output: None,
        },
        1,
    );
    let worker = Worker::start(&spawner, of, || backend, backends, exits, reports).unwrap();
    (worker, heard, ring)
}

fn show(transition: Option<&str>, renew: bool) -> Task {
    Task {
        placements: vec![placement("A", 1)],
        transition: transition.map(str::to_owned),
        renew,
        ..Task::default()
    }
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Records its calls.
struct Telling(Sender<String>);

impl Backend for Telling {
    fn show(&mut self, _: &[Placement], _: &Cancel) -> Result<(), Error> {
        self.0.send("show".to_owned()).unwrap();
        Ok(())
    }

    fn use_transition(&mut self, transition: Option<&str>) {
        self.0.send(format!("transition {transition:?}")).unwrap();
    }

    fn renew(&mut self) {
        self.0.send("renew".to_owned()).unwrap();
    }

    fn pause(&mut self, outputs: &BTreeSet<String>, _: &Cancel) -> Result<(), Error> {
        self.0.send(format!("pause {outputs:?}")).unwrap();
        Ok(())
    }

    fn unseen(&mut self) -> Vec<String> {
        vec!["A".to_owned()]
    }

    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

fn outputs(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn backend_is_told_where_to_pause_when_that_changes() {
    let (tell, told) = bounded(8);
    let (worker, _reports, _ring) = started(Box::new(Telling(tell)));
    let next = || told.recv_timeout(PATIENCE).expect("it is told");
    worker.pause(outputs(&["A"]));
    assert_eq!(next(), r#"pause {"A"}"#);
    worker.pause(outputs(&["A"]));
    worker.pause(outputs(&["A", "B"]));
    assert_eq!(next(), r#"pause {"A", "B"}"#);
    worker.pause(outputs(&[]));
    assert_eq!(next(), "pause {}");
    drop(worker);
    assert!(told.recv().is_err(), "that is all");
}

#[test]
fn backend_is_told_where_to_pause_after_each_order_and_the_end_of_a_process() {
    let (tell, told) = bounded(8);
    let (worker, reports, ring) = started(Box::new(Telling(tell)));
    let next = || told.recv_timeout(PATIENCE).expect("it is told");
    let news = || reports.recv_timeout(PATIENCE).expect("a report").news;
    worker.pause_after(Some(outputs(&["A"])));
    assert!(worker.give(show(Some("fade"), true)));
    assert_eq!(
        [next(), next(), next()],
        [r#"transition Some("fade")"#, "renew", "show"]
    );
    assert_eq!(next(), r#"pause {"A"}"#);
    let News::Done(Ok(done)) = news() else {
        panic!("it is done")
    };
    assert_eq!(done.unseen, ["A"]);
    assert!(worker.give(show(None, false)));
    assert_eq!(
        [next(), next(), next()],
        ["transition None", "show", r#"pause {"A"}"#]
    );
    assert!(matches!(news(), News::Done(Ok(_))));
    ring.send(()).unwrap();
    assert_eq!(next(), r#"pause {"A"}"#);
    assert!(matches!(news(), News::Unseen(left) if left == ["A"]));
    // Dropped before `ring`: the worker would wake again and again for a closed channel.
    drop(worker);
}

/// Shows until it is cancelled.
struct Slow(Sender<()>);

impl Backend for Slow {
    fn show(&mut self, _: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        self.0.send(()).unwrap();
        let until = Some(std::time::Instant::now() + PATIENCE);
        let told = poll_until(&mut [PollFd::new(cancel, PollFlags::IN)], until).unwrap();
        if told { Err(Error::Cancelled) } else { Ok(()) }
    }

    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

#[test]
fn order_in_progress_is_cancelled_when_its_worker_is_cancelled_or_dropped() {
    for is_cancelled in [true, false] {
        let (tell, begun) = bounded(1);
        let (worker, reports, _ring) = started(Box::new(Slow(tell)));
        worker.give(show(None, false));
        begun.recv_timeout(PATIENCE).unwrap();
        if is_cancelled {
            worker.cancel();
            let news = reports.recv_timeout(PATIENCE).unwrap().news;
            assert!(matches!(news, News::Done(Err(Error::Cancelled))));
        } else {
            drop(worker);
            assert!(matches!(
                reports.recv().unwrap().news,
                News::Done(Err(Error::Cancelled))
            ));
        }
    }
}

/// Hangs as on a dead disk, until the sender is dropped.
struct Stuck(Receiver<()>);

impl Backend for Stuck {
    fn show(&mut self, _: &[Placement], _: &Cancel) -> Result<(), Error> {
        self.0.recv().ok();
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

#[test]
fn worker_that_hangs_is_left_alone() {
    let (release, stuck) = bounded(0);
    let (worker, reports, _ring) = started(Box::new(Stuck(stuck)));
    worker.give(show(None, false));
    let (tell, told) = bounded(1);
    let ends = std::thread::spawn(move || {
        drop(worker);
        tell.send(()).unwrap();
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok(()));
    drop::<Sender<()>>(release);
    ends.join().unwrap();
    assert!(matches!(reports.recv().unwrap().news, News::Done(Ok(_))));
}

#[test]
fn panic_of_a_worker_is_reported_and_ends_nothing_else() {
    let (spawner, deaths) = Spawner::new();
    let room = Room::new(Vec::new());
    let (reports, heard) = bounded(8);
    let key = WorkerKey {
        backend: BackendName::Feh,
        output: None,
    };
    let start = |number| {
        let (ring, exits) = bounded(1);
        let faulty = move || -> Box<dyn Backend> {
            assert!(number < 3, "on purpose");
            Box::new(Faulty(false))
        };
        let of = (key.clone(), number);
        let backends = room.backends.clone();
        let reports = reports.clone();
        let worker = Worker::start(&spawner, of, faulty, backends, exits, reports);
        (worker.unwrap(), ring)
    };
    let next = || {
        let report = heard.recv_timeout(PATIENCE).expect("a report");
        (report.worker, report.news)
    };
    let (first, _ring) = start(1);
    assert!(first.give(show(None, false)));
    assert!(matches!(next(), (1, News::Done(Ok(_)))));
    assert!(first.give(show(None, false)));
    assert!(matches!(next(), (1, News::Panicked)));
    // Another worker replaces it, and panics when a process exits.
    let (second, ring) = start(2);
    assert!(second.give(Task::default()));
    assert!(matches!(next(), (2, News::Done(Ok(_)))));
    ring.send(()).unwrap();
    assert!(matches!(next(), (2, News::Panicked)));
    // The third worker panics while it builds its backend.
    let (third, _ring) = start(3);
    assert!(matches!(next(), (3, News::Panicked)));
    drop((first, second, third));
    assert!(deaths.try_recv().is_err(), "the daemon goes on");
}
