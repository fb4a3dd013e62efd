//! Answers to waiting clients: they come once pictures are shown, and say whether that succeeded.

use super::*;
use crate::playlist::Error::{NotRunning, Picture};

/// The image indices of the published changes.
fn indices(fixture: &Fixture) -> Vec<usize> {
    let events = fixture.events();
    let changed = events
        .iter()
        .filter(|(kind, _)| *kind == EventKind::PlaylistImageChanged);
    changed
        .map(|(_, event)| event["image_index"].as_u64().unwrap() as usize)
        .collect()
}

fn next(id: i64) -> impl FnOnce(&mut Player, crate::playlist::Reply<Moved>) {
    move |player: &mut Player, reply| player.act(id, Action::Next, &[], reply)
}

#[test]
fn step_is_answered_when_its_picture_is_shown() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.events();
    let answer = fixture.begin(next(id));
    assert!(answer.try_recv().is_err() && fixture.events().is_empty());
    assert_eq!(fixture.active()[0].current_index, 0);
    // The timer changes nothing while the step is on its way.
    fixture.pass(30 * SECOND);
    assert_eq!(fixture.active()[0].current_index, 0);
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(
        (indices(&fixture), fixture.active()[0].current_index),
        (vec![1], 1)
    );
    fixture.asked();
    fixture.pass(9 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.pass(SECOND);
    assert_eq!(fixture.asked(), [2]);
}

#[test]
fn step_has_its_index_in_the_list_at_the_time_its_picture_is_shown() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.events();
    let answer = fixture.begin(next(id));
    fixture.edit(id, Some(&[3, 0, 1, 2]), NewConfiguration::default());
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(
        (indices(&fixture), fixture.active()[0].current_index),
        (vec![2], 2)
    );
    fixture.asked();
    fixture.act(id, Action::Next).unwrap();
    assert_eq!(fixture.asked(), [2]);
}

#[test]
fn start_has_its_index_in_the_list_at_the_time_its_picture_is_shown() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    fixture.behaviour(Behaviour::Silent);
    let start = |player: &mut Player, reply| {
        player.begin(
            id,
            Aim::Start {
                monitors: vec![],
                mode: Mode::Individual,
            },
            reply,
        )
    };
    let answer = fixture.begin(start);
    assert_eq!(fixture.asked(), [0]);
    fixture.edit(id, Some(&[2, 0, 1]), NewConfiguration::default());
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(fixture.active()[0].current_index, 1);
    assert_eq!(fixture.asked(), NONE, "it is up");
}

#[test]
fn timer_change_has_its_index_in_the_list_at_the_time_its_picture_is_shown() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.pass(10 * SECOND);
    fixture.edit(id, Some(&[3, 0, 1, 2]), NewConfiguration::default());
    fixture.events();
    fixture.release(Behaviour::Shows);
    assert_eq!(
        (indices(&fixture), fixture.active()[0].current_index),
        (vec![2], 2)
    );
}

#[test]
fn step_is_not_answered_by_the_picture_of_an_earlier_change() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.pass(10 * SECOND);
    let answer = fixture.begin(next(id));
    assert_eq!(fixture.asked(), [0, 1, 2]);
    fixture.release_one(Behaviour::Shows);
    assert!(answer.try_recv().is_err());
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(fixture.active()[0].current_index, 2);
}

#[test]
fn failed_step_keeps_position_but_failed_timer_change_advances() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.events();
    fixture.behaviour(Behaviour::Fails);
    assert!(matches!(
        fixture.act(id, Action::Next),
        Err(Picture(wallpaper::Error::Backend { .. }))
    ));
    assert!(matches!(fixture.act(id, Action::Previous), Err(Picture(_))));
    assert_eq!(
        (indices(&fixture), fixture.active()[0].current_index),
        (vec![], 0)
    );
    fixture.asked();
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [1]);
    assert_eq!(
        (indices(&fixture), fixture.active()[0].current_index),
        (vec![], 1)
    );
    // A restart does not move it either.
    fixture.restart(SECOND, "boot");
    assert_eq!(fixture.active()[0].current_index, 1);
}

#[test]
fn failed_start_leaves_running_playlists() {
    let mut fixture = fixture();
    let (one, two) = (
        fixture.make(PlaylistType::Timer, &[0, 1], &[]),
        fixture.make(PlaylistType::Timer, &[2, 3], &[]),
    );
    fixture.start(one, &["A"]).unwrap();
    fixture.events();
    fixture.behaviour(Behaviour::Fails);
    assert!(matches!(fixture.start(two, &[]), Err(Picture(_))));
    let active = fixture.active();
    assert_eq!((active.len(), active[0].playlist_id), (1, one));
    assert!(fixture.events().is_empty());
    assert!(matches!(
        fixture.act(two, Action::Next),
        Err(NotRunning { .. })
    ));
    fixture.restart(SECOND, "boot");
    assert_eq!(fixture.active().len(), 1);
    // While a start is on its way, the running playlist does not change.
    fixture.behaviour(Behaviour::Silent);
    let answer = fixture.begin(|player: &mut Player, reply| {
        player.begin(
            two,
            Aim::Start {
                monitors: Vec::new(),
                mode: Mode::Individual,
            },
            reply,
        )
    });
    fixture.asked();
    fixture.pass(30 * SECOND);
    assert_eq!(fixture.asked(), NONE);
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(fixture.active()[0].playlist_id, two);
    // A playlist that is stopped before its first picture is shown never ran.
    fixture.behaviour(Behaviour::Silent);
    let answer = fixture.begin(|player: &mut Player, reply| {
        player.begin(
            one,
            Aim::Start {
                monitors: names(&["A"]),
                mode: Mode::Individual,
            },
            reply,
        )
    });
    fixture.act(one, Action::Stop).unwrap();
    assert!(matches!(answer.try_recv().unwrap(), Err(NotRunning { .. })));
    fixture.release(Behaviour::Shows);
    assert_eq!(fixture.active()[0].playlist_id, two);
}

#[test]
fn stopped_event_is_published_only_if_the_playlist_ran() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    fixture.behaviour(Behaviour::Silent);
    let start = |player: &mut Player, reply| {
        player.begin(
            id,
            Aim::Start {
                monitors: vec![],
                mode: Mode::Individual,
            },
            reply,
        )
    };
    let answer = fixture.begin(start);
    fixture.act(id, Action::Stop).unwrap();
    assert!(matches!(answer.try_recv().unwrap(), Err(NotRunning { .. })));
    assert_eq!(fixture.kinds(), []);
    fixture.behaviour(Behaviour::Shows);
    fixture.start(id, &[]).unwrap();
    fixture.events();
    fixture.act(id, Action::Stop).unwrap();
    assert_eq!(fixture.kinds(), [EventKind::PlaylistStopped]);
}

#[test]
fn steps_of_a_playlist_that_stops_are_refused() {
    let (stopped, deleted, emptied) = (0, 1, 2);
    for end in [stopped, deleted, emptied] {
        let mut fixture = fixture();
        let id = fixture.make(PlaylistType::Manual, &[0, 1, 2, 3], &[]);
        fixture.start(id, &[]).unwrap();
        fixture.behaviour(Behaviour::Silent);
        let steps = [fixture.begin(next(id)), fixture.begin(next(id))];
        match end {
            0 => fixture.act(id, Action::Stop).unwrap(),
            1 => fixture
                .command(|player, reply| reply(player.delete(id)))
                .unwrap(),
            _ => fixture.edit(id, Some(&[]), NewConfiguration::default()),
        }
        for step in steps {
            assert!(matches!(step.try_recv().unwrap(), Err(NotRunning { .. })));
        }
        fixture.asked();
        fixture.release(Behaviour::Shows);
        assert!(fixture.asked().is_empty() && fixture.active().is_empty());
        if end == stopped {
            fixture.start(id, &[]).unwrap();
            assert_eq!(fixture.asked(), [0], "the steps did not count");
        }
    }
}

#[test]
fn each_queued_step_has_its_own_answer_and_event() {
    let mut fixture = fixture();
    let one = fixture.make(PlaylistType::Manual, &[0, 1, 2, 3], &[]);
    let two = fixture.make(PlaylistType::Manual, &[3, 2, 1, 0], &[]);
    fixture.start(one, &["A"]).unwrap();
    fixture.start(two, &["B"]).unwrap();
    fixture.asked();
    fixture.events();
    fixture.behaviour(Behaviour::Silent);
    let answers: Vec<_> = (0..3)
        .map(|_| fixture.begin(|player, reply| player.act_on_all(Action::Next, &[], reply)))
        .collect();
    fixture.release(Behaviour::Silent);
    fixture.release(Behaviour::Shows);
    // A superseded step answers with its own images as well.
    for (answer, (a, b)) in answers.into_iter().zip([(1, 2), (2, 1), (3, 0)]) {
        let moved = answer.try_recv().unwrap().unwrap();
        let image = |monitor: &str, number: usize| (monitor.to_owned(), fixture.images[number]);
        assert_eq!(moved.images, BTreeMap::from([image("A", a), image("B", b)]));
        assert_eq!(moved.count, 2);
    }
    // The third step has superseded the second.
    assert_eq!(fixture.asked(), [1, 2, 2, 1, 3, 0]);
    let shown = fixture.wallpapers.state.lock().unwrap().screen.clone();
    let last = [("A", 3), ("B", 0)].map(|(name, at)| (name.to_owned(), fixture.images[at]));
    assert_eq!(shown, BTreeMap::from(last));
    let events = fixture.events();
    for id in [one, two] {
        let of_it = events
            .iter()
            .filter(|(_, event)| event["playlist_id"] == id);
        let indices: Vec<_> = of_it
            .map(|(_, event)| event["image_index"].clone())
            .collect();
        assert_eq!(indices, [1, 2, 3]);
    }
    // If the last of the waiting steps fails, none of them has moved.
    fixture.behaviour(Behaviour::Silent);
    let answers: Vec<_> = (0..3).map(|_| fixture.begin(next(one))).collect();
    fixture.release_one(Behaviour::Shows);
    fixture.release(Behaviour::Fails);
    let moved: Vec<bool> = answers
        .iter()
        .map(|answer| answer.try_recv().unwrap().is_ok())
        .collect();
    assert_eq!(moved, [true, false, false]);
    assert_eq!(fixture.active()[0].current_index, 0);
}

#[test]
fn bulk_action_counts_playlists_that_moved() {
    let mut fixture = fixture();
    let one = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    let clock = fixture.make(PlaylistType::TimeOfDay, &[2], &[0]);
    fixture.start(one, &["A"]).unwrap();
    fixture.start(clock, &["B"]).unwrap();
    assert_eq!(fixture.act_on_all(Action::Next), 1);
    fixture.behaviour(Behaviour::Fails);
    let failed = fixture.command(|player, reply| player.act_on_all(Action::Next, &[], reply));
    assert!(matches!(failed, Err(Picture(_))));
    fixture.act(one, Action::Stop).unwrap();
    let none = fixture.command(|player, reply| player.act_on_all(Action::Previous, &[], reply));
    assert!(matches!(none, Err(Error::NoSteps { .. })));
}

#[test]
fn only_playlists_on_the_named_monitors_step() {
    let mut fixture = fixture();
    let one = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    let two = fixture.make(PlaylistType::Manual, &[2, 3], &[]);
    fixture.start(one, &["A"]).unwrap();
    fixture.start(two, &["B", "away"]).unwrap();
    let mut step = |on: &[&str]| {
        let on = names(on);
        fixture
            .command(|player, reply| player.act_on_all(Action::Next, &on, reply))
            .unwrap()
            .images
    };
    let [first, last] = [("A".to_owned(), 1), ("B".to_owned(), 4)];
    assert_eq!(step(&["B"]), BTreeMap::from([last.clone()]));
    assert_eq!(step(&["away"]), BTreeMap::new());
    step(&["B"]);
    assert_eq!(
        step(&["A", "B"]).into_keys().collect::<Vec<_>>(),
        [first.0, last.0]
    );
    let refused =
        fixture.command(|player, reply| player.act(one, Action::Next, &names(&["B"]), reply));
    assert!(matches!(refused, Err(Error::NotRunningOn { .. })));
    assert_eq!(fixture.active()[0].current_index, 1);
}

#[test]
fn image_lost_during_a_step_is_replaced_only_if_the_step_fails() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.asked();
    fixture.events();
    fixture.behaviour(Behaviour::Silent);
    let answer = fixture.begin(next(id));
    fixture.edit(id, Some(&[1, 2]), NewConfiguration::default());
    // A look at the monitors does not replace it either.
    fixture.player.fill_all_monitors();
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!((fixture.asked(), indices(&fixture)), (vec![1], vec![0]));
    assert_eq!(fixture.active()[0].current_index, 0);
    fixture.behaviour(Behaviour::Silent);
    let answer = fixture.begin(next(id));
    fixture.edit(id, Some(&[0, 2]), NewConfiguration::default());
    assert_eq!(fixture.asked(), [2]);
    fixture.release(Behaviour::Fails);
    assert!(answer.try_recv().unwrap().is_err());
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_index),
        (vec![0], 0)
    );
}

#[test]
fn image_that_left_the_list_before_it_was_shown_is_replaced() {
    for is_start in [false, true] {
        let mut fixture = fixture();
        let id = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
        let start = |player: &mut Player, reply| {
            player.begin(
                id,
                Aim::Start {
                    monitors: vec![],
                    mode: Mode::Individual,
                },
                reply,
            )
        };
        if !is_start {
            fixture.start(id, &[]).unwrap();
        }
        fixture.asked();
        fixture.events();
        fixture.behaviour(Behaviour::Silent);
        let answer = fixture.begin(|player, reply| {
            if is_start {
                start(player, reply)
            } else {
                next(id)(player, reply)
            }
        });
        let left = if is_start { [1, 2] } else { [0, 2] };
        fixture.edit(id, Some(&left), NewConfiguration::default());
        fixture.release(Behaviour::Shows);
        answer.try_recv().unwrap().unwrap();
        let (asked, at) = if is_start { ([0, 1], 0) } else { ([1, 2], 1) };
        assert_eq!(
            (fixture.asked(), indices(&fixture)),
            (asked.to_vec(), vec![at; 2])
        );
        let active = &fixture.active()[0];
        assert_eq!(active.current_index, at);
        assert_eq!(active.current_image_id, Some(fixture.images[asked[1]]));
    }
}

#[test]
fn resume_waits_for_the_current_slot() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    fixture.start(id, &[]).unwrap();
    fixture.act(id, Action::Pause).unwrap();
    fixture.set_clock("2024-06-01T21:00", "Europe/Berlin");
    fixture.behaviour(Behaviour::Fails);
    assert!(matches!(fixture.act(id, Action::Resume), Err(Picture(_))));
    let active = &fixture.active()[0];
    assert_eq!((active.paused, active.current_index), (true, 0));
    fixture.behaviour(Behaviour::Shows);
    fixture.events();
    fixture.act(id, Action::Resume).unwrap();
    use EventKind::{PlaylistImageChanged, PlaylistResumed};
    assert_eq!(fixture.kinds(), [PlaylistResumed, PlaylistImageChanged]);
    let active = &fixture.active()[0];
    assert_eq!((active.paused, active.current_index), (false, 1));
}

#[test]
fn playlist_on_all_monitors_adds_new_monitors() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    let other = fixture.make(PlaylistType::Manual, &[2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.asked();
    fixture.connect(&["A", "B", "C"]);
    let asked = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().asked);
    assert_eq!(
        asked,
        [(fixture.images[0], names(&["C"]), Mode::Individual)]
    );
    assert_eq!(fixture.active()[0].applied_to, ["A", "B", "C"]);
    fixture.restart(SECOND, "boot");
    fixture.connect(&["C", "D"]);
    assert_eq!(fixture.active()[0].monitors, ["A", "B", "C", "D"]);
    // A playlist on any monitor shares one with it.
    fixture.start(other, &["D"]).unwrap();
    assert_eq!(fixture.active()[0].playlist_id, other);
}

#[test]
fn too_many_queued_steps_are_refused() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    let answers: Vec<_> = (0..65).map(|_| fixture.begin(next(id))).collect();
    fixture.release(Behaviour::Shows);
    let answers: Vec<_> = answers
        .iter()
        .map(|answer| answer.try_recv().unwrap())
        .collect();
    assert!(matches!(answers[64], Err(Error::Busy)));
    assert!(answers[..64].iter().all(Result::is_ok));
}

/// The rows of the picture are written, and the player has not heard of that yet.
fn write_rows(fixture: &Fixture) {
    fixture.asked();
    let held = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().held);
    assert_eq!(held.len(), 1);
    for (request, reply) in held {
        let wallpapers = &fixture.wallpapers;
        wallpapers.answer_as(Behaviour::Shows, request, reply);
    }
}

fn start(id: i64, on: &[&str]) -> impl FnOnce(&mut Player, crate::playlist::Reply<Moved>) {
    let monitors = names(on);
    let mode = Mode::Individual;
    move |player: &mut Player, reply| player.begin(id, Aim::Start { monitors, mode }, reply)
}

#[test]
fn start_that_was_written_runs_after_a_kill_instead_of_those_on_its_monitors() {
    let mut fixture = fixture();
    let [everywhere, on_a, on_b] =
        [0, 1, 2].map(|image| fixture.make(PlaylistType::Manual, &[image, 3], &[]));
    let kill = |fixture: &mut Fixture| {
        write_rows(fixture);
        fixture.restart(Duration::ZERO, "boot");
        assert_eq!(fixture.asked(), NONE, "it is shown already");
        let active = fixture.active().into_iter();
        active.map(|one| one.playlist_id).collect::<Vec<_>>()
    };
    fixture.behaviour(Behaviour::Silent);
    fixture.begin(start(everywhere, &[]));
    assert_eq!(kill(&mut fixture), [everywhere]);
    fixture.begin(start(on_a, &["A"]));
    assert_eq!(kill(&mut fixture), [on_a]);
    fixture.begin(start(on_b, &["B"]));
    assert_eq!(kill(&mut fixture), [on_a, on_b]);
}

#[test]
fn start_that_is_cancelled_when_it_was_written_does_not_run_after_a_kill() {
    let (stopped, emptied, late) = (0, 1, 2);
    for end in [stopped, emptied, late] {
        let mut fixture = fixture();
        let old = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
        let new = fixture.make(PlaylistType::Manual, &[2, 3], &[]);
        fixture.start(old, &[]).unwrap();
        fixture.behaviour(Behaviour::Silent);
        let answer = fixture.begin(start(new, &[]));
        if end != late {
            write_rows(&fixture);
        }
        if end == emptied {
            fixture.edit(new, Some(&[]), NewConfiguration::default());
        } else {
            fixture.act(new, Action::Stop).unwrap();
        }
        if end == late {
            fixture.release(Behaviour::Shows);
        }
        assert!(answer.try_recv().unwrap().is_err());
        fixture.restart(SECOND, "boot");
        let active = fixture.active();
        assert_eq!((active.len(), active[0].playlist_id), (1, old), "{end}");
    }
}

#[test]
fn picture_that_was_written_is_the_place_after_a_kill() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2, 3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    let kill = |fixture: &mut Fixture| {
        write_rows(fixture);
        fixture.restart(Duration::ZERO, "boot");
        assert_eq!(fixture.asked(), NONE, "it is shown already");
        let active = fixture.active();
        active.first().map(|active| active.current_index)
    };
    fixture.begin(next(id));
    assert_eq!(kill(&mut fixture), Some(1));
    fixture.pass(10 * SECOND);
    assert_eq!(kill(&mut fixture), Some(2));
    fixture.begin(next(id));
    fixture.act(id, Action::Stop).unwrap();
    assert_eq!(kill(&mut fixture), None, "stopped");
}
