//! Playlists whose monitors the start of another one takes: they change nothing until its result is
//! known.

use super::*;
use crate::playlist::Error::NotRunning;

/// A running playlist, and another whose start is on its way to its monitors.
struct Starting {
    fixture: Fixture,
    old: i64,
    new: i64,
    start: Receiver<Result<Moved, Error>>,
}

fn starting(old: &[usize], old_on: &[&str], new_on: &[&str]) -> Starting {
    let mut fixture = fixture();
    let old = fixture.make(PlaylistType::Manual, old, &[]);
    let new = fixture.make(PlaylistType::Manual, &[3], &[]);
    fixture.start(old, old_on).unwrap();
    fixture.behaviour(Behaviour::Silent);
    let start = fixture.begin(start(new, new_on));
    fixture.asked();
    Starting {
        fixture,
        old,
        new,
        start,
    }
}

fn start(id: i64, on: &[&str]) -> impl FnOnce(&mut Player, crate::playlist::Reply<Moved>) {
    let monitors = names(on);
    let mode = Mode::Individual;
    move |player: &mut Player, reply| player.begin(id, Aim::Start { monitors, mode }, reply)
}

fn next(id: i64) -> impl FnOnce(&mut Player, crate::playlist::Reply<Moved>) {
    move |player: &mut Player, reply| player.act(id, Action::Next, &[], reply)
}

#[test]
fn step_during_a_start_on_the_same_monitors_is_refused() {
    for (old_on, new_on) in [(&[][..], &[][..]), (&[], &["A"]), (&["A"], &[])] {
        for behaviour in [Behaviour::Shows, Behaviour::Fails] {
            let Starting {
                mut fixture,
                old,
                new,
                start,
            } = starting(&[0, 1], old_on, new_on);
            assert!(matches!(fixture.command(next(old)), Err(NotRunning { .. })));
            // It is listed until the other one runs.
            assert_eq!(fixture.active()[0].playlist_id, old);
            fixture.release(behaviour);
            let started = start.try_recv().unwrap().is_ok();
            assert_eq!(started, behaviour == Behaviour::Shows);
            let active = fixture.active();
            assert_eq!(
                (active.len(), active[0].playlist_id),
                (1, if started { new } else { old })
            );
            fixture.behaviour(Behaviour::Shows);
            assert_eq!(fixture.command(next(old)).is_ok(), !started);
            assert_eq!(fixture.asked(), if started { vec![] } else { vec![1] });
        }
    }
    // A playlist on another monitor does not wait.
    let Starting {
        mut fixture,
        old,
        start,
        ..
    } = starting(&[0, 1], &["B"], &["A"]);
    fixture.behaviour(Behaviour::Shows);
    fixture.command(next(old)).unwrap();
    assert_eq!(fixture.asked(), [1]);
    fixture.release(Behaviour::Shows);
    start.try_recv().unwrap().unwrap();
    assert_eq!(fixture.active().len(), 2);
}

#[test]
fn playlist_goes_on_when_a_start_on_its_monitors_is_cancelled() {
    for delete in [false, true] {
        let Starting {
            mut fixture,
            old,
            new,
            start,
        } = starting(&[0, 1], &[], &[]);
        fixture.behaviour(Behaviour::Shows);
        if delete {
            fixture
                .command(|player, reply| reply(player.delete(new)))
                .unwrap()
        } else {
            fixture.act(new, Action::Stop).unwrap()
        }
        assert!(start.try_recv().unwrap().is_err());
        fixture.command(next(old)).unwrap();
        assert_eq!(
            (fixture.asked(), fixture.active()[0].current_index),
            (vec![0, 1], 1)
        );
    }
}

#[test]
fn playlist_shows_its_image_again_over_the_picture_of_a_cancelled_start() {
    // A playlist on another monitor is not covered.
    for (old_on, again) in [(&[][..], &[0][..]), (&["B"], &[])] {
        let Starting {
            mut fixture,
            new,
            start,
            ..
        } = starting(&[0, 1], old_on, &["A"]);
        fixture.act(new, Action::Stop).unwrap();
        assert!(matches!(start.try_recv().unwrap(), Err(NotRunning { .. })));
        // The request is queued behind the cancelled start, whose picture is still shown.
        assert_eq!(fixture.asked(), again);
        fixture.release(Behaviour::Shows);
        assert_eq!(fixture.asked(), NONE);
    }
}

#[test]
fn playlist_that_is_started_again_stays_if_its_start_is_the_later_one() {
    let Starting {
        mut fixture,
        old,
        start: first,
        ..
    } = starting(&[0, 1], &[], &[]);
    let again = fixture.begin(start(old, &[]));
    assert_eq!(fixture.asked(), [0]);
    fixture.release(Behaviour::Shows);
    first.try_recv().unwrap().unwrap();
    again.try_recv().unwrap().unwrap();
    let active = fixture.active();
    assert_eq!(
        (active.len(), active[0].playlist_id),
        (1, old),
        "who came last"
    );
}

#[test]
fn start_that_ends_after_a_later_one_does_not_run() {
    let mut fixture = fixture();
    let [wide, narrow] = [[0, 1], [2, 3]].map(|two| fixture.make(PlaylistType::Manual, &two, &[]));
    fixture.behaviour(Behaviour::Silent);
    let first = fixture.begin(start(wide, &["A", "B"]));
    let second = fixture.begin(start(narrow, &["A"]));
    fixture.wallpapers.state.lock().unwrap().held.reverse();
    fixture.release(Behaviour::Shows);
    second.try_recv().unwrap().unwrap();
    assert!(matches!(first.try_recv().unwrap(), Err(NotRunning { .. })));
    assert_eq!(fixture.active()[0].playlist_id, narrow);
}

#[test]
fn step_that_a_start_overtakes_is_shown_if_the_start_fails() {
    for fails in [false, true] {
        let mut fixture = fixture();
        let old = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
        let new = fixture.make(PlaylistType::Manual, &[3], &[]);
        fixture.start(old, &[]).unwrap();
        fixture.behaviour(Behaviour::Silent);
        let steps = [fixture.begin(next(old)), fixture.begin(next(old))];
        let start = fixture.begin(start(new, &[]));
        fixture.asked();
        fixture.release_one(Behaviour::Shows);
        for step in steps {
            step.try_recv().unwrap().unwrap();
        }
        fixture.release(if fails {
            Behaviour::Fails
        } else {
            Behaviour::Shows
        });
        assert_eq!(start.try_recv().unwrap().is_err(), fails);
        let active = fixture.active();
        let (running, asked) = if fails { (old, vec![2]) } else { (new, vec![]) };
        assert_eq!((active[0].playlist_id, fixture.asked()), (running, asked));
    }
}

#[test]
fn resume_during_a_start_on_the_same_monitors_is_refused() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    let new = fixture.make(PlaylistType::Manual, &[3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.act(id, Action::Pause).unwrap();
    fixture.set_clock("2024-06-01T21:00", "Europe/Berlin");
    fixture.behaviour(Behaviour::Silent);
    let start = fixture.begin(start(new, &[]));
    fixture.asked();
    let refused = fixture.act(id, Action::Resume);
    assert!(matches!(refused, Err(NotRunning { .. })));
    fixture.release(Behaviour::Shows);
    start.try_recv().unwrap().unwrap();
    assert_eq!(fixture.asked(), NONE);
}

#[test]
fn new_monitor_waits_for_the_picture_of_the_start() {
    for behaviour in [Behaviour::Shows, Behaviour::NoBackend] {
        let Starting {
            mut fixture, start, ..
        } = starting(&[0, 1], &[], &["A"]);
        fixture.connect(&["A", "B", "C"]);
        assert_eq!(fixture.asked(), NONE);
        fixture.release(behaviour);
        let started = start.try_recv().unwrap().is_ok();
        let asked = fixture.asked();
        assert_eq!(
            (started, asked),
            match behaviour {
                Behaviour::Shows => (true, vec![]),
                _ => (false, vec![0]),
            }
        );
    }
}

#[test]
fn step_without_file_fails_if_a_start_is_on_its_way() {
    for behaviour in [Behaviour::LacksVideo, Behaviour::Fails] {
        let mut fixture = fixture();
        let old = fixture.make(PlaylistType::Manual, &[0, 4, 1], &[]);
        let new = fixture.make(PlaylistType::Manual, &[3], &[]);
        fixture.start(old, &[]).unwrap();
        fixture.behaviour(Behaviour::Silent);
        let step = fixture.begin(next(old));
        let start = fixture.begin(start(new, &[]));
        assert_eq!(fixture.asked(), [0, 4, 3]);
        fixture.release_one(Behaviour::LacksVideo);
        assert!(step.try_recv().unwrap().is_err());
        fixture.release(behaviour);
        let started = start.try_recv().unwrap().is_ok();
        assert_eq!(started, behaviour == Behaviour::LacksVideo);
        assert_eq!(fixture.asked(), NONE);
    }
}
