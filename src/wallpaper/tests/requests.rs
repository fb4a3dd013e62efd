//! Tests what requests write, and which requests wait for which.

use std::collections::VecDeque;

use super::*;
use crate::backends::Kind;
use crate::store::assignments;
use crate::wallpaper::handle::Command;
use crate::wallpaper::jobs::{Job, Purpose};
use crate::wallpaper::plan::WorkerKey;
use crate::wallpaper::plan::tests::placement;
use crate::wallpaper::plan::{Placements, Step};
use crate::wallpaper::queue::{Jobs, Queue};
use crate::wire::{Event, Fit, SetStatus, Timestamp};

#[test]
fn rows_and_history_are_written_together() {
    let room = Room::of(outputs(&["A", "B"]));
    let [one, two] = ["one", "two"].map(|name| room.add(name));
    let source = HistorySource {
        kind: Source::Playlist,
        playlist_id: Some(3),
        playlist_name: Some("p".to_owned()),
    };
    let asked = Request {
        fit: Some(Fit::Fill),
        ..request(Ask::Image(one), &["A"])
    };
    room.set(Request {
        source: source.clone(),
        mode: Mode::Individual,
        ..asked
    });
    assert_eq!(room.rows(), BTreeMap::from([("A".to_owned(), one)]));
    let [entry] = &room.history()[..] else {
        panic!("one entry")
    };
    assert_eq!((entry.image_id, entry.image_name.as_str()), (one, "one"));
    assert_eq!(
        (&entry.source, entry.fit, &entry.monitors),
        (&source, Some(Fit::Fill), &names(&["A"]))
    );
    assert!(entry.images.is_empty());
    // The request is not for all monitors, so a later monitor shows its picture only as the last resort.
    assert_eq!(
        room.store.read(assignments::for_every_monitor).unwrap(),
        None
    );
    let seen = room.store.read(crate::store::monitors::seen).unwrap();
    assert_eq!(seen, ["A", "B"]);
    room.set(request(Ask::Image(two), &[]));
    let for_all = room
        .store
        .read(assignments::for_every_monitor)
        .unwrap()
        .unwrap();
    assert_eq!((for_all.image_id, for_all.mode), (two, Mode::Clone));
    let asked = Request {
        mode: Mode::Each,
        ..request(Ask::Each(vec![one, two]), &[])
    };
    let feasible = room.feasible(&asked).unwrap();
    assert!(feasible.for_all);
    let mut pending = PendingApply {
        request: asked,
        feasible,
        reply: reply().0,
    };
    let changed = pending.commit(&room.store, &Placements::new()).unwrap();
    let kinds: Vec<usize> = changed.iter().map(|one| one.events.len()).collect();
    assert_eq!(
        kinds,
        [1, 2],
        "that the history has grown is told once, at the end"
    );
    for (changed, (name, id)) in changed.iter().zip([("A", one), ("B", two)]) {
        let Event::WallpaperChanged {
            image_id,
            monitors,
            images,
            source,
            ..
        } = &changed.events[0]
        else {
            panic!("the wallpaper has changed first");
        };
        assert_eq!(
            (*image_id, monitors, *source),
            (id, &names(&[name]), Source::Manual)
        );
        assert_eq!(
            *images,
            BTreeMap::from([("A".to_owned(), one), ("B".to_owned(), two)])
        );
        assert!(!changed.change.by_hook);
        assert_eq!(
            (changed.change.image.id, &*changed.change.shown[0].0),
            (id, name)
        );
    }
    assert_eq!(room.history()[0].images.len(), 2);
}

#[test]
fn requests_of_a_hook_are_marked() {
    let room = Room::of(outputs(&["A"]));
    let asked = Request {
        by_hook: true,
        ..request(Ask::Image(room.add("one")), &[])
    };
    let feasible = room.feasible(&asked).unwrap();
    let mut pending = PendingApply {
        request: asked,
        feasible,
        reply: reply().0,
    };
    assert!(
        pending
            .commit(&room.store, &Placements::new())
            .unwrap()
            .iter()
            .all(|one| one.change.by_hook)
    );
}

#[test]
fn request_is_checked_against_the_backend() {
    let room = Room::with(outputs(&["A"]), &["swaybg"], |config| {
        config.builtin.enabled = false
    });
    let [still, moving] =
        [false, true].map(|moves| room.add_as(&format!("{moves}"), |image| image.animated = moves));
    let video = room.add_as("video", |image| image.format = Format::Mp4);
    let ask = |id| {
        room.feasible(&Request {
            mode: Mode::Extend,
            ..request(Ask::Image(id), &[])
        })
    };
    let applied = ask(still).unwrap().applied;
    assert_eq!((applied.mode, applied.note), (Mode::Extend, None));
    let applied = ask(moving).unwrap().applied;
    assert_eq!(applied.mode, Mode::Clone, "only stills are cut");
    assert!(
        applied
            .note
            .unwrap()
            .contains("swaybg shows only still images")
    );
    assert!(matches!(
        ask(video),
        Err(Error::Incompatible {
            kind: Kind::Video,
            ..
        })
    ));
    let with = |fit, transition: Option<&str>| {
        let transition = transition.map(str::to_owned);
        room.feasible(&Request {
            fit,
            transition,
            ..request(Ask::Image(still), &[])
        })
    };
    assert!(with(Some(Fit::Tile), None).is_ok());
    let refused = with(Some(Fit::Tile), Some("fade"));
    assert!(matches!(
        refused,
        Err(Error::NoWord {
            what: "transition",
            ..
        })
    ));
    let room = Room::with(outputs(&["A"]), &["awww", "awww-daemon"], |_| ());
    room.add("one");
    let with = |fit, transition: Option<&str>| {
        let transition = transition.map(str::to_owned);
        room.feasible(&Request {
            fit,
            transition,
            ..request(Ask::Image(1), &[])
        })
    };
    assert!(matches!(
        with(Some(Fit::Tile), None),
        Err(Error::NoWord { what: "fit", .. })
    ));
    let feasible = with(Some(Fit::Cover), Some("fade")).unwrap();
    assert!(matches!(
        with(None, Some("jump")),
        Err(Error::NoWord {
            what: "transition",
            ..
        })
    ));
    let transition = Some("fade".to_owned());
    let request = Request {
        transition,
        ..request(Ask::Image(1), &[])
    };
    let pending = PendingApply {
        request,
        feasible,
        reply: reply().0,
    };
    let job = Job::new(VecDeque::new(), Purpose::Apply(Box::new(pending)));
    assert_eq!(job.transition().as_deref(), Some("fade"));
}

/// The queue and the jobs of a reconciler.
struct Waiting {
    room: Room,
    queue: Queue,
    jobs: Jobs,
    current: Placements,
}

impl Waiting {
    fn new() -> Self {
        // Videos have a worker for each monitor, stills one for all.
        let room = Room::with(
            outputs(&["A", "B", "C"]),
            &["mpvpaper", "swaybg", "mpv"],
            |config| config.builtin.enabled = false,
        );
        room.add("still");
        room.add_as("video", |image| image.format = Format::Mp4);
        Self {
            room,
            queue: Queue::default(),
            jobs: Jobs::default(),
            current: Placements::new(),
        }
    }

    fn push(&mut self, ask: Ask, monitors: &[&str]) -> Receiver<Result<Applied, Error>> {
        let request = request(ask, monitors);
        let applied = self.room.feasible(&request).unwrap().applied;
        let (reply, answer) = reply();
        self.queue.push_set(request, applied, reply);
        answer
    }

    /// The next request to begin.
    fn pop(&mut self) -> Option<(Ask, Targets)> {
        match self.queue.pop(&self.jobs, &self.current)? {
            Command::Set(request, _) => Some((request.ask, request.targets)),
            _ => panic!("no request"),
        }
    }

    fn job(&mut self, ask: Ask, monitors: &[&str]) {
        let request = request(ask, monitors);
        let feasible = self.room.feasible(&request).unwrap();
        let pending = PendingApply {
            request,
            feasible,
            reply: reply().0,
        };
        let keys = pending.keys();
        let show = |key: WorkerKey| Step {
            key,
            placements: Vec::new(),
        };
        let steps: VecDeque<Step> = keys.into_iter().map(show).collect();
        self.jobs
            .push(Job::new(steps, Purpose::Apply(Box::new(pending))));
    }
}

const STILL: Ask = Ask::Image(1);
const VIDEO: Ask = Ask::Image(2);

fn named(monitors: &[&str]) -> Targets {
    Targets::from_names(names(monitors))
}

#[test]
fn later_request_supersedes_those_that_it_covers() {
    let mut waiting = Waiting::new();
    let [first, second] = ["A", "B"].map(|name| waiting.push(VIDEO, &[name]));
    let both = waiting.push(STILL, &["A", "C"]);
    let answer = first.try_recv().unwrap().unwrap();
    assert_eq!(
        (answer.outcome, answer.image.id),
        (SetStatus::Superseded, 2)
    );
    assert!(second.try_recv().is_err() && both.try_recv().is_err());
    assert_eq!(waiting.pop(), Some((VIDEO, named(&["B"]))));
    assert_eq!(waiting.pop(), Some((STILL, named(&["A", "C"]))));
    assert!(waiting.queue.is_empty() && waiting.pop().is_none());
}

#[test]
fn steps_back_wait_for_the_picture_they_start_from() {
    type Asked<'a> = (Ask, &'a [&'a str]);
    let check = |asked: &[Asked<'_>], expected: &[Asked<'_>]| {
        let mut waiting = Waiting::new();
        for ask in [STILL, VIDEO, STILL, VIDEO] {
            waiting.room.set(request(ask, &[]));
        }
        let answers: Vec<_> = asked
            .iter()
            .map(|(ask, monitors)| waiting.push(ask.clone(), monitors))
            .collect();
        let left: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(ask, monitors)| (ask.clone(), named(monitors)))
            .collect();
        assert_eq!(left, expected, "{asked:?}");
        let superseded = answers.iter().filter(|answer| {
            let answer = answer.try_recv();
            answer.is_ok_and(|told| told.unwrap().outcome == SetStatus::Superseded)
        });
        assert_eq!(
            superseded.count(),
            asked.len() - expected.len(),
            "{asked:?}"
        );
    };
    let back = Ask::Back;
    check(
        &[(back(1), &["A"]), (back(2), &["A"])],
        &[(back(3), &["A"])],
    );
    check(
        &[(back(1), &["B", "A"]), (back(1), &["A", "B"])],
        &[(back(2), &["A", "B"])],
    );
    check(&[(back(1), &[]), (back(1), &[])], &[(back(2), &[])]);
    // Steps back for other monitors are not added.
    let apart: [Asked<'_>; 2] = [(back(1), &["A"]), (back(1), &[])];
    check(&apart, &apart);
    let apart: [Asked<'_>; 2] = [(back(1), &["A", "B"]), (back(1), &["A"])];
    check(&apart, &apart);
    // The picture before a waiting one is the one shown now.
    let after: [Asked<'_>; 2] = [(STILL, &["A"]), (back(1), &["A"])];
    check(&after, &after);
    check(
        &[(STILL, &["A"]), (back(1), &["A"]), (back(1), &["A"])],
        &[(STILL, &["A"]), (back(2), &["A"])],
    );
    check(&[(back(1), &["A"]), (STILL, &["A"])], &[(STILL, &["A"])]);
    check(&[(back(1), &["A"]), (STILL, &[])], &[(STILL, &[])]);
}

#[test]
fn queue_is_bounded_and_refuses_the_rest() {
    let mut waiting = Waiting::new();
    let replies: Vec<_> = (0..33)
        .map(|_| {
            let (reply, answer) = reply();
            waiting
                .queue
                .push(Command::Activate("feh".to_owned(), reply));
            answer
        })
        .collect();
    let refused = |at: usize| replies[at].try_recv().ok().map(|answer| answer.err());
    assert!((0..32).all(|at| refused(at).is_none()));
    assert!(matches!(refused(32), Some(Some(Error::Busy))));
    let (told, answer) = reply();
    waiting.queue.push(Command::Clear(told));
    assert!(matches!(answer.try_recv().unwrap(), Err(Error::Busy)));
    assert!(!waiting.queue.is_empty());
    waiting.queue.refuse(&Error::NoMonitor);
    assert!((0..32).all(|at| matches!(refused(at), Some(Some(Error::NoMonitor)))));
    assert!(waiting.queue.is_empty());
}

#[test]
fn request_overtakes_only_requests_for_other_monitors() {
    let mut waiting = Waiting::new();
    waiting.job(VIDEO, &["A"]);
    waiting.push(STILL, &["A", "B"]);
    // This request must not overtake the one before it, which waits for B too.
    waiting.push(VIDEO, &["B"]);
    waiting.push(VIDEO, &["C"]);
    assert_eq!(waiting.pop(), Some((VIDEO, named(&["C"]))));
    assert_eq!(waiting.pop(), None);
    // The job for A will use this worker, although no step is in progress.
    let key = WorkerKey::of(BackendName::Mpvpaper, "A");
    assert!(
        waiting.jobs.is_busy(&key) && waiting.jobs.take(&key).is_none(),
        "it is not told yet"
    );
    waiting.jobs.take_all();
    assert_eq!(waiting.pop(), Some((STILL, named(&["A", "B"]))));
    assert_eq!(waiting.pop(), Some((VIDEO, named(&["B"]))));
    // A command for all waits its turn, and no request overtakes it.
    waiting.job(VIDEO, &["A"]);
    waiting.queue.push(Command::Clear(reply().0));
    waiting.push(VIDEO, &["C"]);
    assert_eq!(waiting.pop(), None);
    waiting.jobs.take_all();
    assert!(matches!(
        waiting.queue.pop(&waiting.jobs, &waiting.current),
        Some(Command::Clear(_))
    ));
    assert_eq!(waiting.pop(), Some((VIDEO, named(&["C"]))));
}

#[test]
fn job_blocks_its_workers_and_monitors() {
    let mut waiting = Waiting::new();
    let [video, stills] = [
        WorkerKey::of(BackendName::Mpvpaper, "A"),
        WorkerKey::of(BackendName::Swaybg, "A"),
    ];
    assert!(waiting.jobs.is_empty() && waiting.jobs.are_partial() && !waiting.jobs.activate());
    waiting.job(STILL, &["A"]);
    let mut job = waiting.jobs.take_all().remove(0);
    assert_eq!(job.pending(), std::slice::from_ref(&stills));
    assert_eq!(
        (job.asked_for(), job.transition()),
        (&names(&["A"])[..], None)
    );
    let told = job.next_steps();
    assert_eq!(told.len(), 1);
    assert!(job.holds(&stills) && !job.holds(&video) && job.pending().is_empty());
    job.warn(names(&["hidden", "hidden", "late"]));
    job.warn(names(&["hidden"]));
    let Purpose::Apply(apply) = &job.purpose else {
        panic!("it is an apply")
    };
    assert_eq!(apply.feasible.applied.warnings, names(&["hidden", "late"]));
    waiting.jobs.push(job);
    let alone = |jobs: &Jobs, outputs: &[&str]| jobs.leave_alone(outputs, &waiting.current);
    assert!(!waiting.jobs.is_empty() && waiting.jobs.are_partial());
    assert!(waiting.jobs.is_busy(&stills) && !waiting.jobs.is_busy(&video));
    assert!(alone(&waiting.jobs, &["B", "C"]) && !alone(&waiting.jobs, &["C", "A"]));
    assert!(waiting.jobs.take(&video).is_none() && waiting.jobs.take(&stills).is_some());
    // Only the outputs that a step may change count in a restore.
    let show = Step {
        key: video.clone(),
        placements: vec![placement("A", 2)],
    };
    waiting.jobs.push(Job::new(
        [show.clone()].into(),
        Purpose::Restore(Vec::new()),
    ));
    assert!(waiting.jobs.are_partial() && waiting.jobs.is_busy(&video));
    assert!(!waiting.jobs.is_busy(&stills));
    assert!(alone(&waiting.jobs, &["B"]) && !alone(&waiting.jobs, &["A"]));
    // An activation affects all monitors.
    let (reply, answer) = reply();
    let (backend, restored, warnings) = (BackendName::Feh, Vec::new(), Vec::new());
    let purpose = Purpose::Activate {
        backend,
        before: None,
        restored,
        warnings,
        reply,
    };
    waiting.jobs.push(Job::new(VecDeque::new(), purpose));
    assert!(waiting.jobs.activate() && !waiting.jobs.are_partial());
    assert!(!alone(&waiting.jobs, &["B"]));
    for job in waiting.jobs.take_all() {
        job.refuse(Error::Busy);
    }
    assert!(matches!(answer.try_recv().unwrap(), Err(Error::Busy)));
    assert!(waiting.jobs.is_empty());
}

#[test]
fn steps_of_one_backend_are_carried_out_together() {
    let show = |backend, output| Step {
        key: WorkerKey::of(backend, output),
        placements: vec![placement(output, 1)],
    };
    let clear = |backend, output| Step {
        placements: Vec::new(),
        ..show(backend, output)
    };
    let (mpv, swaybg) = (BackendName::Mpvpaper, BackendName::Swaybg);
    let steps = [
        show(mpv, "A"),
        clear(mpv, "B"),
        show(swaybg, "C"),
        show(mpv, "D"),
    ];
    let mut job = Job::new(VecDeque::from(steps.clone()), Purpose::Restore(Vec::new()));
    assert_eq!(job.left().count(), 4);
    assert_eq!(job.next_steps(), steps[..2]);
    assert_eq!((job.left().count(), job.asked_for().len()), (4, 0));
    let mut jobs = Jobs::default();
    jobs.push(job);
    // Steps in progress count as done.
    let before = Placements::from([(WorkerKey::of(mpv, "B"), vec![placement("B", 9)])]);
    let expected = Placements::from([(WorkerKey::of(mpv, "A"), vec![placement("A", 1)])]);
    assert_eq!(jobs.expected(&before), expected);
    let mut job = jobs.take(&WorkerKey::of(mpv, "B")).unwrap();
    assert_eq!(job.next_steps(), steps[2..3]);
    assert_eq!(job.next_steps(), steps[3..]);
    assert_eq!(job.next_steps(), []);
}

#[test]
fn picture_is_restored_monitor_by_monitor() {
    let room = Room::of(outputs(&["A", "B"]));
    let id = room.add("one");
    room.set(Request {
        mode: Mode::Each,
        ..request(Ask::Each(vec![id]), &[])
    });
    let before = room.history().len();
    let [a, b] = ["A", "B"].map(|name| {
        let mut rows = room.store.read(assignments::all).unwrap();
        rows.retain(|row| row.monitor == name);
        assignments::Assignment {
            backend: "mpvpaper".to_owned(),
            set_at: Timestamp::from_micros(7),
            ..rows.remove(0)
        }
    });
    let image = room.store.read(|c| images::get(c, id)).unwrap().unwrap();
    let mut picture = crate::wallpaper::jobs::Picture {
        image: image.into(),
        backend: BackendName::Mpvpaper,
        rows: vec![a, b],
        was_shown: false,
        of_workspace: false,
    };
    assert!(
        picture
            .split_off(&WorkerKey::of(BackendName::Swaybg, "A"))
            .is_none()
    );
    assert!(
        picture
            .split_off(&WorkerKey::of(BackendName::Mpvpaper, "C"))
            .is_none()
    );
    let part = picture
        .split_off(&WorkerKey::of(BackendName::Mpvpaper, "B"))
        .unwrap();
    assert_eq!(
        (part.monitors().collect::<Vec<_>>(), picture.rows.len()),
        (vec!["B"], 1)
    );
    let changed = part.commit_restored(&room.store).unwrap();
    let [
        Event::WallpaperChanged {
            images,
            source,
            monitors,
            ..
        },
    ] = &changed.events[..]
    else {
        panic!("one event");
    };
    assert_eq!((*source, monitors), (Source::Restore, &names(&["B"])));
    assert_eq!(*images, BTreeMap::from([("B".to_owned(), id)]));
    let shown_by: Vec<String> = room
        .store
        .read(assignments::all)
        .unwrap()
        .into_iter()
        .map(|row| row.backend)
        .collect();
    assert_eq!(
        (shown_by, room.history().len()),
        (names(&["builtin", "mpvpaper"]), before)
    );
}
