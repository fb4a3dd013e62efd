//! What clients wait for: answers come when pictures are up, and tell what became of them.

use super::*;
use crate::playlist::failure::Failure::{NotRunning, Picture};

/// The indices of the events, and nothing else in them.
fn indices(stage: &Stage) -> Vec<usize> {
    let events = stage.events();
    let changed = events.iter().filter(|(kind, _)| *kind == EventKind::PlaylistImageChanged);
    changed.map(|(_, event)| event["image_index"].as_u64().unwrap() as usize).collect()
}

fn next(id: i64) -> impl FnOnce(crate::playlist::Reply<()>) -> Command {
    move |reply| Command::Act(id, Act::Next, reply)
}

#[test]
fn a_step_is_answered_when_its_picture_is_up() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.mood(Mood::Silent);
    stage.events();
    let answer = stage.begin(next(id));
    assert!(answer.try_recv().is_err() && stage.events().is_empty());
    assert_eq!(stage.active()[0].current_index, 0);
    // The interval counts from the change that is on its way.
    stage.pass(30 * SECOND);
    assert_eq!(stage.active()[0].current_index, 0);
    stage.speak(Mood::Hangs);
    answer.try_recv().unwrap().unwrap();
    assert_eq!((indices(&stage), stage.active()[0].current_index), (vec![1], 1));
    stage.asked();
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [2]);
}

#[test]
fn a_failed_step_leaves_the_place_and_one_of_the_timer_does_not() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.events();
    stage.mood(Mood::Fails);
    assert!(matches!(stage.act(id, Act::Next), Err(Picture(wallpaper::Error::Backend { .. }))));
    assert!(matches!(stage.act(id, Act::Previous), Err(Picture(_))));
    assert_eq!((indices(&stage), stage.active()[0].current_index), (vec![], 0));
    stage.asked();
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [1]);
    assert_eq!((indices(&stage), stage.active()[0].current_index), (vec![], 1));
    // Nor does it move a restart.
    stage.restart(SECOND, "boot");
    assert_eq!(stage.active()[0].current_index, 1);
}

#[test]
fn a_failed_start_leaves_what_runs() {
    let mut stage = stage();
    let (one, two) = (
        stage.make(PlaylistType::Timer, &[0, 1], &[]),
        stage.make(PlaylistType::Timer, &[2, 3], &[]),
    );
    stage.start(one, &["A"]).unwrap();
    stage.events();
    stage.mood(Mood::Fails);
    assert!(matches!(stage.start(two, &[]), Err(Picture(_))));
    let active = stage.active();
    assert_eq!((active.len(), active[0].playlist_id), (1, one));
    assert!(stage.events().is_empty());
    assert!(matches!(stage.act(two, Act::Next), Err(NotRunning { .. })));
    stage.restart(SECOND, "boot");
    assert_eq!(stage.active().len(), 1);
    // While a start is on its way the other does not change what it will show.
    stage.mood(Mood::Silent);
    let answer =
        stage.begin(|reply| Command::Start { id: two, monitors: Vec::new(), extend: false, reply });
    stage.asked();
    stage.pass(30 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.speak(Mood::Hangs);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(stage.active()[0].playlist_id, two);
    // Stopped before it is up, it never ran.
    stage.mood(Mood::Silent);
    let answer = stage.begin(|reply| Command::Start {
        id: one,
        monitors: names(&["A"]),
        extend: false,
        reply,
    });
    stage.act(one, Act::Stop).unwrap();
    assert!(matches!(answer.try_recv().unwrap(), Err(NotRunning { .. })));
    stage.speak(Mood::Hangs);
    assert_eq!(stage.active()[0].playlist_id, two);
}

#[test]
fn each_of_many_steps_has_its_own_answer_and_event() {
    let mut stage = stage();
    let one = stage.make(PlaylistType::Manual, &[0, 1, 2, 3], &[]);
    let two = stage.make(PlaylistType::Manual, &[3, 2, 1, 0], &[]);
    stage.start(one, &["A"]).unwrap();
    stage.start(two, &["B"]).unwrap();
    stage.asked();
    stage.events();
    stage.mood(Mood::Silent);
    let answers: Vec<_> =
        (0..3).map(|_| stage.begin(|reply| Command::ActOnAll(Act::Next, reply))).collect();
    stage.speak(Mood::Silent);
    stage.speak(Mood::Hangs);
    for answer in answers {
        assert_eq!(answer.try_recv().unwrap().unwrap(), 2);
    }
    // The second is superseded by the third, and was never asked for.
    assert_eq!(stage.asked(), [1, 2, 3, 0]);
    let events = stage.events();
    for id in [one, two] {
        let of_it = events.iter().filter(|(_, event)| event["playlist_id"] == id);
        let indices: Vec<_> = of_it.map(|(_, event)| event["image_index"].clone()).collect();
        assert_eq!(indices, [1, 2, 3]);
    }
    // Where the last of those that wait fails, none of them has moved.
    stage.mood(Mood::Silent);
    let answers: Vec<_> = (0..3).map(|_| stage.begin(next(one))).collect();
    stage.speak(Mood::Silent);
    stage.speak(Mood::Fails);
    let moved: Vec<bool> =
        answers.iter().map(|answer| answer.try_recv().unwrap().is_ok()).collect();
    assert_eq!(moved, [true, false, false]);
    assert_eq!(stage.active()[0].current_index, 0);
}

#[test]
fn of_all_those_are_counted_that_moved() {
    let mut stage = stage();
    let one = stage.make(PlaylistType::Manual, &[0, 1], &[]);
    let clock = stage.make(PlaylistType::TimeOfDay, &[2], &[0]);
    stage.start(one, &["A"]).unwrap();
    stage.start(clock, &["B"]).unwrap();
    assert_eq!(stage.act_on_all(Act::Next), 1);
    stage.mood(Mood::Fails);
    let failed = stage.command(|reply| Command::ActOnAll(Act::Next, reply));
    assert!(matches!(failed, Err(Picture(_))));
    stage.act(one, Act::Stop).unwrap();
    let none = stage.command(|reply| Command::ActOnAll(Act::Previous, reply));
    assert!(matches!(none, Err(Failure::NoSteps { .. })));
}

#[test]
fn a_resume_waits_for_the_slot_that_it_is_time_for() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    stage.start(id, &[]).unwrap();
    stage.act(id, Act::Pause).unwrap();
    stage.set_clock("2024-06-01T21:00", "Europe/Berlin");
    stage.mood(Mood::Fails);
    assert!(matches!(stage.act(id, Act::Resume), Err(Picture(_))));
    let active = &stage.active()[0];
    assert_eq!((active.paused, active.current_index), (true, 0));
    stage.mood(Mood::Hangs);
    stage.events();
    stage.act(id, Act::Resume).unwrap();
    use EventKind::{PlaylistImageChanged, PlaylistResumed};
    assert_eq!(stage.kinds(), [PlaylistResumed, PlaylistImageChanged]);
    let active = &stage.active()[0];
    assert_eq!((active.paused, active.current_index), (false, 1));
}

#[test]
fn a_playlist_on_all_monitors_takes_in_those_that_come() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Manual, &[0, 1], &[]);
    let other = stage.make(PlaylistType::Manual, &[2], &[]);
    stage.start(id, &[]).unwrap();
    stage.asked();
    stage.connect(&["A", "B", "C"]);
    assert_eq!(stage.asked(), [0]);
    assert_eq!(stage.active()[0].applied_to, ["A", "B", "C"]);
    stage.restart(SECOND, "boot");
    stage.connect(&["C", "D"]);
    assert_eq!(stage.active()[0].monitors, ["A", "B", "C", "D"]);
    // Any other playlist takes one of its monitors.
    stage.start(other, &["D"]).unwrap();
    assert_eq!(stage.active()[0].playlist_id, other);
}
