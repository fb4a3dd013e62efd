//! Playlists whose monitors the start of another one is about to take: they request nothing until
//! it has ended.

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
    let monitors = names(new_on);
    let mode = Mode::Individual;
    let start =
        fixture.begin(|player: &mut Player, reply| player.start(new, monitors, mode, reply));
    fixture.asked();
    Starting {
        fixture,
        old,
        new,
        start,
    }
}

fn next(id: i64) -> impl FnOnce(&mut Player, crate::playlist::Reply<Moved>) {
    move |player: &mut Player, reply| player.act(id, Action::Next, &[], reply)
}

#[test]
fn step_waits_for_a_start_that_takes_its_monitors() {
    for (old_on, new_on) in [(&[][..], &[][..]), (&[], &["A"]), (&["A"], &[])] {
        for behaviour in [Behaviour::Shows, Behaviour::Fails] {
            let Starting {
                mut fixture,
                old,
                new,
                start,
            } = starting(&[0, 1], old_on, new_on);
            let step = fixture.begin(next(old));
            assert_eq!(fixture.asked(), NONE);
            fixture.release(behaviour);
            let started = start.try_recv().unwrap();
            let running = fixture.active()[0].playlist_id;
            if behaviour == Behaviour::Shows {
                assert!(matches!(step.try_recv().unwrap(), Err(NotRunning { .. })));
                assert_eq!(
                    (started.is_ok(), running, fixture.asked()),
                    (true, new, vec![])
                );
            } else {
                // The step is made.
                assert_eq!(
                    (started.is_ok(), running, fixture.asked()),
                    (false, old, vec![1])
                );
                assert!(
                    step.try_recv().unwrap().is_err(),
                    "the backend shows nothing"
                );
            }
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
    fixture.begin(next(old)).try_recv().unwrap().unwrap();
    assert_eq!(fixture.asked(), [1]);
    fixture.release(Behaviour::Shows);
    start.try_recv().unwrap().unwrap();
    assert_eq!(fixture.active().len(), 2);
}

#[test]
fn step_that_waits_for_a_start_is_made_when_that_start_is_cancelled() {
    for delete in [false, true] {
        let Starting {
            mut fixture,
            old,
            new,
            start,
        } = starting(&[0, 1], &[], &[]);
        let step = fixture.begin(next(old));
        fixture.behaviour(Behaviour::Shows);
        match delete {
            true => fixture
                .command(|player, reply| reply(player.delete(new)))
                .unwrap(),
            false => fixture.act(new, Action::Stop).unwrap(),
        }
        assert!(start.try_recv().unwrap().is_err());
        step.try_recv().unwrap().unwrap();
        assert_eq!(
            (fixture.asked(), fixture.active()[0].current_index),
            (vec![1], 1)
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
fn restart_of_a_running_playlist_waits_for_no_other_start() {
    let Starting {
        mut fixture,
        old,
        start,
        ..
    } = starting(&[0, 1], &[], &[]);
    let mode = Mode::Individual;
    let again = |player: &mut Player, reply| player.start(old, Vec::new(), mode, reply);
    let again = fixture.begin(again);
    assert_eq!(fixture.asked(), [0]);
    fixture.release(Behaviour::Shows);
    start.try_recv().unwrap().unwrap();
    again.try_recv().unwrap().unwrap();
    let active = fixture.active();
    assert_eq!(
        (active.len(), active[0].playlist_id),
        (1, old),
        "who came last"
    );
}

#[test]
fn resume_waits_for_a_start_too() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    let new = fixture.make(PlaylistType::Manual, &[3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.act(id, Action::Pause).unwrap();
    fixture.set_clock("2024-06-01T21:00", "Europe/Berlin");
    fixture.behaviour(Behaviour::Silent);
    let mode = Mode::Individual;
    let start = |player: &mut Player, reply| player.start(new, Vec::new(), mode, reply);
    let start = fixture.begin(start);
    fixture.asked();
    let resume = fixture.begin(|player, reply| player.act(id, Action::Resume, &[], reply));
    assert_eq!(fixture.asked(), NONE);
    fixture.release(Behaviour::Shows);
    start.try_recv().unwrap().unwrap();
    assert!(matches!(resume.try_recv().unwrap(), Err(NotRunning { .. })));
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
fn step_without_file_is_made_after_a_start_that_is_on_its_way() {
    for behaviour in [Behaviour::LacksVideo, Behaviour::Fails] {
        let mut fixture = fixture();
        let old = fixture.make(PlaylistType::Manual, &[0, 4, 1], &[]);
        let new = fixture.make(PlaylistType::Manual, &[3], &[]);
        fixture.start(old, &[]).unwrap();
        fixture.behaviour(Behaviour::Silent);
        let step = fixture.begin(next(old));
        let mode = Mode::Individual;
        let start = |player: &mut Player, reply| player.start(new, Vec::new(), mode, reply);
        let start = fixture.begin(start);
        assert_eq!(fixture.asked(), [0, 4, 3]);
        fixture.release_one(Behaviour::LacksVideo);
        assert_eq!(fixture.asked(), NONE);
        fixture.release(behaviour);
        let started = start.try_recv().unwrap().is_ok();
        assert_eq!(started, behaviour == Behaviour::LacksVideo);
        assert_eq!(fixture.asked(), if started { vec![] } else { vec![4] });
        assert!(step.try_recv().unwrap().is_err());
    }
}
