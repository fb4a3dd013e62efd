//! When changes are made: intervals, pauses, suspend, clocks that are set, restarts.

use super::*;

#[test]
fn timer_changes_on_schedule_and_wraps() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[2, 0, 1], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(35 * SECOND);
    assert_eq!(fixture.asked(), [2, 0, 1, 2]);
    let events = fixture.events();
    assert_eq!(events[0].0, EventKind::PlaylistStarted);
    assert_eq!(events[0].1["monitors"], serde_json::json!(["A", "B"]));
    let indices: Vec<_> = events[1..]
        .iter()
        .map(|(_, event)| &event["image_index"])
        .collect();
    assert_eq!(indices, [0, 1, 2, 0]);
    for key in ["source", "images"] {
        assert!(
            events.iter().all(|(_, event)| event.get(key).is_none()),
            "{key}"
        );
    }
    assert_eq!(events[0].1["extend"], false);
    let active = &fixture.active()[0];
    assert_eq!((active.current_index, active.total_images), (0, 3));
    let image = |number: usize| Some(fixture.images[number]);
    assert_eq!(
        (active.previous_image_id, active.next_image_id),
        (image(1), image(0))
    );
    let left = active.next_change_at.unwrap().as_micros() - now_micros(&fixture);
    assert_eq!(left, 5_000_000);
}

fn now_micros(fixture: &Fixture) -> i64 {
    fixture
        .time
        .lock()
        .unwrap()
        .wall
        .timestamp()
        .as_microsecond()
}

/// A late change keeps the beat. A change that counts as missed, or is late by more than an
/// interval, starts a new one.
#[test]
fn late_changes_keep_the_beat_until_it_is_lost() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2, 3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.sleep(11 * SECOND);
    fixture.sleep(9 * SECOND);
    assert_eq!(fixture.asked(), [0, 1, 2]);
    fixture.sleep(13 * SECOND);
    fixture.sleep(9 * SECOND);
    assert_eq!(fixture.asked(), [3]);
    fixture.sleep(SECOND);
    assert_eq!(fixture.asked(), [0]);
    let brief = NewConfiguration {
        interval: Some(1),
        ..fast()
    };
    let id = fixture.make_with(brief, &[0, 1, 2, 3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.sleep(SECOND * 5 / 2);
    assert_eq!(fixture.asked(), [0, 1]);
    fixture.sleep(SECOND * 3 / 4);
    assert_eq!(fixture.asked(), NONE);
    fixture.sleep(SECOND / 4);
    assert_eq!(fixture.asked(), [2]);
}

#[test]
fn next_change_time_is_stable_across_reads() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1], &[]);
    fixture.start(id, &[]).unwrap();
    let next = |fixture: &mut Fixture| fixture.active()[0].next_change_at.map(|at| at.as_micros());
    let first = next(&mut fixture).unwrap();
    assert_eq!(first, now_micros(&fixture) + 10_000_000);
    let ahead = |fixture: &Fixture, by: SignedDuration| {
        let mut time = fixture.time.lock().unwrap();
        time.wall = &time.wall + by;
    };
    // The two clocks are not read at the same moment.
    ahead(&fixture, SignedDuration::from_millis(3));
    assert_eq!(next(&mut fixture), Some(first));
    // A clock that was set changes the answer.
    ahead(&fixture, SignedDuration::from_secs(60));
    assert_eq!(next(&mut fixture), Some(first + 60_003_000));
    fixture.connect(&[]);
    assert_eq!(
        next(&mut fixture),
        None,
        "without a monitor nothing changes"
    );
}

#[test]
fn pause_keeps_remaining_time() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(7 * SECOND);
    fixture.act(id, Action::Pause).unwrap();
    fixture.act(id, Action::Pause).unwrap();
    fixture.pass(1000 * SECOND);
    assert_eq!(fixture.active()[0].next_change_at, None);
    fixture.restart(100 * SECOND, "boot");
    assert!(fixture.active()[0].paused);
    fixture.act(id, Action::Resume).unwrap();
    assert_eq!(fixture.asked(), [0]);
    fixture.pass(2 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [1]);
    use EventKind::{PlaylistImageChanged, PlaylistPaused, PlaylistResumed, PlaylistStarted};
    let kinds = fixture.kinds();
    let expected = [
        PlaylistStarted,
        PlaylistImageChanged,
        PlaylistPaused,
        PlaylistResumed,
        PlaylistImageChanged,
    ];
    assert_eq!(kinds, expected);
    // A step restarts the interval, also while paused.
    fixture.pass(7 * SECOND);
    fixture.act(id, Action::Pause).unwrap();
    fixture.act(id, Action::Next).unwrap();
    fixture.act(id, Action::Resume).unwrap();
    fixture.pass(9 * SECOND);
    assert_eq!(fixture.asked(), [2]);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [0]);
}

/// Reports the session as locked or unlocked.
fn lock(fixture: &mut Fixture, locked: bool) -> Option<PauseReason> {
    let told = PutPower {
        locked: Some(locked),
        idle: None,
    };
    fixture
        .command(|player, reply| reply(Ok(player.report_power(told))))
        .unwrap()
        .resting
}

#[test]
fn pause_by_lock_keeps_remaining_time_beside_the_clients_pause() {
    let mut fixture = fixture();
    fixture.player.pause.power.set_conditions(false, false);
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    assert_eq!(fixture.asked(), [0]);
    fixture.pass(7 * SECOND);
    assert_eq!(
        lock(&mut fixture, true),
        None,
        "the settings do not want it"
    );
    fixture.player.pause.power.set_conditions(true, false);
    assert_eq!(lock(&mut fixture, true), Some(PauseReason::Locked));
    fixture.pass(1000 * SECOND);
    let active = &fixture.active()[0];
    assert_eq!(
        (active.resting, active.paused),
        (Some(PauseReason::Locked), false)
    );
    assert_eq!(active.next_change_at, None);
    assert_eq!(
        fixture.player.playlist_deadlines(),
        Deadlines::default(),
        "nothing wakes"
    );
    // A client's pause begins during it and ends after it.
    fixture.act(id, Action::Pause).unwrap();
    assert_eq!(lock(&mut fixture, false), None);
    fixture.pass(1000 * SECOND);
    fixture.act(id, Action::Resume).unwrap();
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(2 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [1]);
    // A client's step is made, and the pause by lock continues.
    lock(&mut fixture, true);
    fixture.act(id, Action::Next).unwrap();
    assert_eq!(fixture.asked(), [2]);
    fixture.pass(1000 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    // A playlist that a client resumes goes on until the lock ends, unless the client pauses it.
    let state = |fixture: &mut Fixture| {
        let one = fixture.active().remove(0);
        (one.resting, one.resumed, one.next_change_at.is_some())
    };
    let locked = Some(PauseReason::Locked);
    assert_eq!(state(&mut fixture), (locked, false, false));
    assert_eq!(fixture.act_on_all(Action::Resume), 1);
    assert_eq!(fixture.act_on_all(Action::Resume), 0);
    assert_eq!(state(&mut fixture), (locked, true, true));
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [0]);
    fixture.act(id, Action::Pause).unwrap();
    assert_eq!(state(&mut fixture), (locked, false, false));
    fixture.act(id, Action::Resume).unwrap();
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [1]);
    lock(&mut fixture, false);
    assert_eq!(state(&mut fixture), (None, false, true));
    lock(&mut fixture, true);
    assert_eq!(state(&mut fixture), (locked, false, false));
    // A playlist that is started during the pause is paused, too.
    let other = fixture.make(PlaylistType::Timer, &[3, 2], &[]);
    fixture.start(other, &["A"]).unwrap();
    assert_eq!(fixture.asked(), [3]);
    fixture.pass(1000 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    // The wallpapers get the first state, and then each change once.
    assert_eq!(
        fixture.wallpapers.state.lock().unwrap().rests,
        [false, true, false, true, false, true]
    );
    // The restarted daemon of this test does not know the lock; the remaining time is kept.
    fixture.restart(100 * SECOND, "boot");
    fixture.player.pause.power.set_conditions(true, false);
    fixture.player.run_all_due();
    fixture.pass(9 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [2]);
}

#[test]
fn pause_is_unknown_until_the_settings_are_applied() {
    let mut fixture = fixture();
    assert_eq!(lock(&mut fixture, true), None);
    fixture.player.run_all_due();
    assert_eq!(
        fixture.player.pause.reported, None,
        "a pause of the last daemon would end"
    );
    fixture.player.pause.power.set_conditions(true, false);
    fixture.player.run_all_due();
    assert_eq!(
        fixture.player.pause.reported,
        Some(Some(PauseReason::Locked))
    );
}

#[test]
fn slot_that_begins_during_a_pause_is_entered_after_it() {
    let mut fixture = fixture();
    // The slots begin at 12:00 and at 13:00.
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[720, 780]);
    fixture.start(id, &[]).unwrap();
    assert_eq!(fixture.asked(), [0]);
    fixture.player.pause.power.set_conditions(true, false);
    lock(&mut fixture, true);
    fixture.pass(2 * 3600 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    lock(&mut fixture, false);
    assert_eq!(fixture.asked(), [1]);
}

#[test]
fn steps_restart_timer_interval() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(9 * SECOND);
    fixture.act(id, Action::Previous).unwrap();
    fixture.pass(9 * SECOND);
    assert_eq!(fixture.asked(), [0, 2]);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [0]);
    let manual = fixture.make(PlaylistType::Manual, &[3, 2], &[]);
    fixture.start(manual, &[]).unwrap();
    fixture.pass(100_000 * SECOND);
    fixture.act(manual, Action::Next).unwrap();
    assert_eq!(fixture.asked(), [3, 2]);
    assert_eq!(fixture.player.playlist_deadlines(), Deadlines::default());
}

#[test]
fn suspend_over_several_changes_makes_one() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.events();
    fixture.sleep(3600 * SECOND);
    assert_eq!(fixture.asked(), [0, 1]);
    assert_eq!(fixture.events()[0].1["source"], "missed_event_recovery");
    fixture.pass(9 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [2]);
    assert_eq!(fixture.events()[0].1.get("source"), None);
}

#[test]
fn slots_follow_clock_changes() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1, 2], &[360, 780, 1200]);
    fixture.start(id, &[]).unwrap();
    assert_eq!(fixture.asked(), [0]);
    fixture.pass(3600 * SECOND);
    assert_eq!(fixture.asked(), [1]);
    fixture.events();
    let mut check = |text: &str, zone: &str, number: usize| {
        fixture.set_clock(text, zone);
        assert_eq!(fixture.asked(), [number], "{text} {zone}");
        let events = fixture.events();
        assert_eq!(
            (events.len(), &events[0].1["source"]),
            (1, &"missed_event_recovery".into())
        );
    };
    check("2024-06-01T20:30", "Europe/Berlin", 2);
    check("2024-06-01T12:59:50", "Europe/Berlin", 0);
    // In the other zone it is 19:59.
    check("2024-06-01T19:59:50", "Asia/Tokyo", 1);
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [2]);
    assert_eq!(fixture.events()[0].1.get("source"), None);
    assert!(
        !fixture.player.light.warned_of_location,
        "it does not go by the sun"
    );
    let refused = fixture.act(id, Action::Next).unwrap_err();
    assert!(matches!(refused, Error::NoSteps { .. }));
    let active = &fixture.active()[0];
    assert_eq!((active.current_index, active.total_images), (2, 3));
    assert_eq!(active.next_change_at.unwrap().as_micros(), {
        let at: Timestamp = "2024-06-01T21:00:00Z".parse().unwrap();
        at.as_microsecond()
    });
}

#[test]
fn day_of_week_changes_at_midnight() {
    let mut fixture = fixture();
    // 2024-06-01 is a Saturday.
    let id = fixture.make(PlaylistType::DayOfWeek, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(5 * 86_400 * SECOND);
    assert_eq!(fixture.asked(), [2, 0, 1, 2]);
    fixture.act(id, Action::Pause).unwrap();
    fixture.pass(3 * 86_400 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.events();
    fixture.act(id, Action::Resume).unwrap();
    assert_eq!(fixture.asked(), [0]);
    assert_eq!(fixture.events()[1].1.get("source"), None);
}

#[test]
fn restart_keeps_position_and_schedule() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &["A", "D"]).unwrap();
    fixture.pass(14 * SECOND);
    fixture.asked();
    fixture.events();
    fixture.restart(SECOND, "boot");
    assert_eq!(fixture.asked(), NONE, "it is shown already");
    fixture.pass(5 * SECOND);
    assert_eq!(fixture.asked(), [2]);
    assert_eq!(fixture.active()[0].monitors, names(&["A", "D"]));
    // After a reboot the boot time starts at zero; the remaining time comes from the wall clock.
    fixture.pass(2 * SECOND);
    fixture.restart(5 * SECOND, "another");
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(3 * SECOND);
    assert_eq!(fixture.asked(), [0]);
    fixture.events();
    fixture.restart(3600 * SECOND, "third");
    assert_eq!(fixture.asked(), [1]);
    assert_eq!(fixture.events()[0].1["source"], "missed_event_recovery");
}

#[test]
fn interval_of_the_replacement_of_a_lost_image_survives_a_restart() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &["A"]).unwrap();
    fixture.pass(5 * SECOND);
    fixture.connect(&["B"]);
    fixture.edit(id, Some(&[1, 2]), NewConfiguration::default());
    fixture.restart(SECOND, "boot");
    fixture.connect(&["A", "B"]);
    fixture.pass(8 * SECOND);
    assert_eq!(fixture.asked(), [0, 1]);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [2]);
}

/// The time left at the pause counts, not the length of the pause.
#[test]
fn reboot_after_pause_keeps_remaining_time() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &["A"]).unwrap();
    fixture.pass(4 * SECOND);
    fixture.act(id, Action::Pause).unwrap();
    fixture.pass(3600 * SECOND);
    fixture.act(id, Action::Resume).unwrap();
    fixture.asked();
    fixture.restart(2 * SECOND, "another");
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(4 * SECOND);
    assert_eq!(fixture.asked(), [1]);
}

#[test]
fn sun_slots_follow_the_season_and_the_location() {
    use crate::playlist::Location;
    let mut fixture = fixture();
    let item = |number: usize, at: &str| NewPlaylistItem {
        image_id: Some(fixture.images[number]),
        color: None,
        at: Some(at.to_owned()),
        ..NewPlaylistItem::default()
    };
    let kind = Some(PlaylistType::TimeOfDay);
    let change = PlaylistChange {
        name: Some("sun".to_owned()),
        configuration: NewConfiguration {
            kind,
            ..NewConfiguration::default()
        },
        images: Some(vec![item(0, "sunrise"), item(1, "12:00"), item(2, "sunset-1h")].into()),
        located: true,
        ..PlaylistChange::default()
    };
    let lost = PlaylistChange {
        located: false,
        ..change.clone()
    };
    let refused = fixture
        .store
        .write(|c| playlists::insert(c, &lost))
        .unwrap_err();
    assert!(
        refused.to_string().contains("location.latitude"),
        "{refused}"
    );
    let id = fixture
        .store
        .write(|c| playlists::insert(c, &change))
        .unwrap();
    let berlin = Location::new(Some(52.52), Some(13.40));
    fixture.time.lock().unwrap().location = berlin;
    fixture.set_clock("2024-06-21T04:00", "Europe/Berlin");
    fixture.start(id, &[]).unwrap();
    assert_eq!(fixture.asked(), [2], "since the evening before");
    // The sun rises at 04:43 and sets at 21:33.
    fixture.pass(Duration::from_secs(3600));
    assert_eq!(fixture.asked(), [0]);
    fixture.set_clock("2024-06-21T20:25", "Europe/Berlin");
    assert_eq!(fixture.asked(), [1]);
    fixture.pass(Duration::from_secs(1200));
    assert_eq!(fixture.asked(), [2]);
    // In winter at 08:15 and 15:54.
    fixture.set_clock("2024-12-21T08:30", "Europe/Berlin");
    assert_eq!(fixture.asked(), [0]);
    fixture.set_clock("2024-12-21T15:10", "Europe/Berlin");
    assert_eq!(fixture.asked(), [2]);
    // The sun does not rise in Tromsø then.
    assert!(!fixture.player.light.warned_of_location);
    fixture.time.lock().unwrap().location = Location::new(Some(69.65), Some(18.96));
    fixture.set_clock("2024-12-21T15:10", "Europe/Berlin");
    assert!(fixture.player.light.warned_of_location);
    assert_eq!(fixture.asked(), [1]);
    fixture.time.lock().unwrap().location = berlin;
    fixture.set_clock("2024-12-21T15:10", "Europe/Berlin");
    assert!(!fixture.player.light.warned_of_location);
    assert_eq!(fixture.asked(), [2]);
    // Without a location the evening begins at 18:00.
    fixture.time.lock().unwrap().location = None;
    fixture.set_clock("2024-12-21T15:10", "Europe/Berlin");
    assert!(fixture.player.light.warned_of_location);
    assert_eq!(fixture.asked(), [1]);
    fixture.pass(Duration::from_secs(2 * 3600));
    assert_eq!(fixture.asked(), [2]);
}
