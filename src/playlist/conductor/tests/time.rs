//! When changes come: beats, pauses, sleep, clocks that are set, restarts.

use super::*;

#[test]
fn a_timer_changes_on_the_beat_and_wraps() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[2, 0, 1], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(35 * SECOND);
    assert_eq!(stage.asked(), [2, 0, 1, 2]);
    let events = stage.events();
    assert_eq!(events[0].0, EventKind::PlaylistStarted);
    assert_eq!(events[0].1["monitors"], serde_json::json!(["A", "B"]));
    let indices: Vec<_> = events[1..].iter().map(|(_, event)| &event["image_index"]).collect();
    assert_eq!(indices, [0, 1, 2, 0]);
    assert!(events.iter().all(|(_, event)| event.get("source").is_none()));
    let active = &stage.active()[0];
    assert_eq!((active.current_index, active.total_images), (0, 3));
    let image = |number: usize| Some(stage.images[number]);
    assert_eq!((active.previous_image_id, active.next_image_id), (image(1), image(0)));
    let left = active.next_change_at.unwrap().as_micros() - now_micros(&stage);
    assert_eq!(left, 5_000_000);
}

fn now_micros(stage: &Stage) -> i64 {
    stage.time.lock().unwrap().wall.timestamp().as_microsecond()
}

#[test]
fn a_pause_keeps_the_time_left() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(7 * SECOND);
    stage.act(id, Act::Pause).unwrap();
    stage.act(id, Act::Pause).unwrap();
    stage.pass(1000 * SECOND);
    assert_eq!(stage.active()[0].next_change_at, None);
    stage.restart(100 * SECOND, "boot");
    assert!(stage.active()[0].paused);
    stage.act(id, Act::Resume).unwrap();
    assert_eq!(stage.asked(), [0]);
    stage.pass(2 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [1]);
    use EventKind::{PlaylistImageChanged, PlaylistPaused, PlaylistResumed, PlaylistStarted};
    let kinds = stage.kinds();
    let expected = [
        PlaylistStarted,
        PlaylistImageChanged,
        PlaylistPaused,
        PlaylistResumed,
        PlaylistImageChanged,
    ];
    assert_eq!(kinds, expected);
    // A step restarts the interval, also while paused.
    stage.pass(7 * SECOND);
    stage.act(id, Act::Pause).unwrap();
    stage.act(id, Act::Next).unwrap();
    stage.act(id, Act::Resume).unwrap();
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), [2]);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [0]);
}

#[test]
fn steps_restart_the_interval() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(9 * SECOND);
    stage.act(id, Act::Previous).unwrap();
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), [0, 2]);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [0]);
    let manual = stage.make(PlaylistType::Manual, &[3, 2], &[]);
    stage.start(manual, &[]).unwrap();
    stage.pass(100_000 * SECOND);
    stage.act(manual, Act::Next).unwrap();
    assert_eq!(stage.asked(), [3, 2]);
    assert_eq!(stage.conductor.deadlines(), Deadlines::default());
}

#[test]
fn asleep_over_changes_there_is_one() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.events();
    stage.sleep(3600 * SECOND);
    assert_eq!(stage.asked(), [0, 1]);
    assert_eq!(stage.events()[0].1["source"], "missed_event_recovery");
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.events()[0].1.get("source"), None);
}

#[test]
fn slots_follow_the_clock_however_it_is_set() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::TimeOfDay, &[0, 1, 2], &[360, 780, 1200]);
    stage.start(id, &[]).unwrap();
    assert_eq!(stage.asked(), [0]);
    stage.pass(3600 * SECOND);
    assert_eq!(stage.asked(), [1]);
    stage.events();
    let mut check = |text: &str, zone: &str, number: usize| {
        stage.set_clock(text, zone);
        assert_eq!(stage.asked(), [number], "{text} {zone}");
        let events = stage.events();
        assert_eq!((events.len(), &events[0].1["source"]), (1, &"missed_event_recovery".into()));
    };
    check("2024-06-01T20:30", "Europe/Berlin", 2);
    check("2024-06-01T12:59:50", "Europe/Berlin", 0);
    // Another zone: it is 19:59 there.
    check("2024-06-01T19:59:50", "Asia/Tokyo", 1);
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.events()[0].1.get("source"), None);
    let refused = stage.act(id, Act::Next).unwrap_err();
    assert!(matches!(refused, Failure::NoSteps { .. }));
    let active = &stage.active()[0];
    assert_eq!((active.current_index, active.total_images), (2, 3));
    assert_eq!(active.next_change_at.unwrap().as_micros(), {
        let at: Timestamp = "2024-06-01T21:00:00Z".parse().unwrap();
        at.as_microsecond()
    });
}

#[test]
fn a_week_turns_at_midnight() {
    let mut stage = stage();
    // 2024-06-01 is a Saturday.
    let id = stage.make(PlaylistType::DayOfWeek, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(5 * 86_400 * SECOND);
    assert_eq!(stage.asked(), [2, 0, 1, 2]);
    stage.act(id, Act::Pause).unwrap();
    stage.pass(3 * 86_400 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.events();
    stage.act(id, Act::Resume).unwrap();
    assert_eq!(stage.asked(), [0]);
    assert_eq!(stage.events()[1].1.get("source"), None);
}

#[test]
fn restarts_keep_place_and_beat() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &["A", "D"]).unwrap();
    stage.pass(14 * SECOND);
    stage.asked();
    stage.events();
    stage.restart(SECOND, "boot");
    assert_eq!(stage.asked(), NONE, "it hangs already");
    stage.pass(5 * SECOND);
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.active()[0].monitors, names(&["A", "D"]));
    // The machine is restarted: boot time begins anew, what is left is told by the wall clock.
    stage.pass(2 * SECOND);
    stage.restart(5 * SECOND, "another");
    assert_eq!(stage.asked(), NONE);
    stage.pass(3 * SECOND);
    assert_eq!(stage.asked(), [0]);
    stage.events();
    stage.restart(3600 * SECOND, "third");
    assert_eq!(stage.asked(), [1]);
    assert_eq!(stage.events()[0].1["source"], "missed_event_recovery");
}

/// What was left when it was held counts, not how long that was.
#[test]
fn a_restart_of_the_machine_after_a_pause_keeps_the_time_left() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &["A"]).unwrap();
    stage.pass(4 * SECOND);
    stage.act(id, Act::Pause).unwrap();
    stage.pass(3600 * SECOND);
    stage.act(id, Act::Resume).unwrap();
    stage.asked();
    stage.restart(2 * SECOND, "another");
    assert_eq!(stage.asked(), NONE);
    stage.pass(4 * SECOND);
    assert_eq!(stage.asked(), [1]);
}
