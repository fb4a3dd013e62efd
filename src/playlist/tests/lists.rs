//! The order of the images, edits, deletions, actions on all playlists, and the first image of a
//! start.

use super::*;
use crate::store::purge;

#[test]
fn random_order_shows_each_once_and_steps_back_the_same_way() {
    let mut fixture = fixture();
    let order = Some(PlaylistOrder::Random);
    let id = fixture.make_with(NewConfiguration { order, ..fast() }, &[0, 1, 2, 3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(30 * SECOND);
    fixture.restart(SECOND, "boot");
    let mut first = fixture.asked();
    let back: Vec<usize> = (0..3)
        .map(|_| {
            fixture.act(id, Action::Previous).unwrap();
            fixture.asked()[0]
        })
        .collect();
    assert_eq!(back, [first[2], first[1], first[0]]);
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2, 3]);
    let active = &fixture.active()[0];
    let index = active.current_index;
    assert_eq!(active.current_image_id, Some(fixture.images[index]));
}

#[test]
fn edit_keeps_position_by_image() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(15 * SECOND);
    fixture.asked();
    let edit = |fixture: &mut Fixture, numbers: Option<&[usize]>, configuration| {
        let images = numbers.map(|numbers| fixture.items(numbers, &[]));
        let change = PlaylistChange {
            configuration,
            images,
            ..PlaylistChange::default()
        };
        fixture
            .command(|player, reply| reply(player.change(id, &change)))
            .unwrap()
    };
    let playlist = edit(&mut fixture, Some(&[3, 2, 1]), NewConfiguration::default());
    assert_eq!(playlist.playback.unwrap().current_index, 2);
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_index),
        (vec![], 2)
    );
    // The interval counts from the last change, which was five seconds ago.
    let interval = |seconds| NewConfiguration {
        interval: Some(seconds),
        ..Default::default()
    };
    edit(&mut fixture, None, interval(8));
    fixture.pass(3 * SECOND);
    assert_eq!(fixture.asked(), [3]);
    fixture.pass(5 * SECOND);
    fixture.events();
    edit(&mut fixture, None, interval(2));
    assert_eq!(fixture.asked(), [2]);
    assert_eq!(
        fixture.events()[0].1.get("source"),
        None,
        "an edit's change was not missed"
    );
    // The present image is removed.
    edit(&mut fixture, Some(&[3, 1]), interval(10));
    assert_eq!(fixture.asked(), [1]);
    // The type changes.
    let kind = Some(PlaylistType::DayOfWeek);
    edit(
        &mut fixture,
        Some(&[3, 1, 0]),
        NewConfiguration {
            kind,
            ..Default::default()
        },
    );
    assert_eq!(fixture.asked(), [0]);
    fixture.events();
    edit(&mut fixture, Some(&[]), NewConfiguration::default());
    assert_eq!(fixture.kinds(), [EventKind::PlaylistStopped]);
    assert!(fixture.active().is_empty());
}

#[test]
fn change_of_order_keeps_the_present_image() {
    use PlaylistOrder::{Ordered, Random};
    let mut fixture = fixture();
    let configuration = NewConfiguration {
        order: Some(Random),
        ..fast()
    };
    let id = fixture.make_with(configuration, &[0, 1, 2, 3], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.act(id, Action::Next).unwrap();
    let at = fixture.asked()[1];
    let order = |order| NewConfiguration {
        order: Some(order),
        ..NewConfiguration::default()
    };
    fixture.edit(id, None, order(Ordered));
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_index),
        (vec![], at)
    );
    (0..3).for_each(|_| fixture.act(id, Action::Next).unwrap());
    let mut shown = fixture.asked();
    assert_eq!(shown, [1, 2, 3].map(|step| (at + step) % 4));
    fixture.edit(id, None, order(Random));
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_index),
        (vec![], shown[2])
    );
    assert_eq!(
        fixture.active()[0].previous_image_id,
        None,
        "its way begins here"
    );
    (0..3).for_each(|_| fixture.act(id, Action::Next).unwrap());
    shown = [vec![shown[2]], fixture.asked()].concat();
    shown.sort_unstable();
    assert_eq!(shown, [0, 1, 2, 3], "a round of its own");
}

#[test]
fn list_of_one_has_no_neighbours_and_list_of_two_has_each_other() {
    let mut fixture = fixture();
    let neighbours = |fixture: &mut Fixture| {
        let active = fixture.active().remove(0);
        [active.previous_image_id, active.next_image_id].map(|id| id.map(|id| fixture.number(id)))
    };
    let id = fixture.make(PlaylistType::Manual, &[3], &[]);
    fixture.start(id, &[]).unwrap();
    assert_eq!(neighbours(&mut fixture), [None, None]);
    fixture.edit(id, Some(&[3, 1]), NewConfiguration::default());
    assert_eq!(neighbours(&mut fixture), [Some(1), Some(1)]);
}

/// A random playlist keeps the order of its last run while its current image is in it.
#[test]
fn start_continues_the_random_order_of_the_last_run() {
    let order = |order| NewConfiguration {
        order: Some(order),
        ..NewConfiguration::default()
    };
    let previous_after = |edit: &dyn Fn(&mut Fixture, i64, usize)| {
        let mut fixture = fixture();
        let configuration = NewConfiguration {
            order: Some(PlaylistOrder::Random),
            ..fast()
        };
        let id = fixture.make_with(configuration, &[0, 1, 2, 3], &[]);
        fixture.start(id, &[]).unwrap();
        fixture.act(id, Action::Next).unwrap();
        let way = fixture.asked();
        fixture.act(id, Action::Stop).unwrap();
        edit(&mut fixture, id, way[1]);
        fixture.start(id, &[]).unwrap();
        let active = fixture.active().remove(0);
        let numbers = [active.current_image_id, active.previous_image_id];
        (way, numbers.map(|id| id.map(|id| fixture.number(id))))
    };
    let (way, found) = previous_after(&|_, _, _| ());
    assert_eq!(found, [Some(way[1]), Some(way[0])]);
    let (_, [_, previous]) = previous_after(&|fixture, id, at| {
        let left: Vec<usize> = (0..4).filter(|number| *number != at).collect();
        fixture.edit(id, Some(&left), NewConfiguration::default());
    });
    assert_eq!(previous, None, "where it stood is gone");
    let (way, found) = previous_after(&|fixture, id, _| {
        fixture.edit(id, None, order(PlaylistOrder::Ordered));
    });
    assert_eq!(found, [Some(way[1]), Some((way[1] + 3) % 4)]);
}

#[test]
fn edit_into_slots_shows_only_the_current_slot() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(15 * SECOND);
    assert_eq!(fixture.asked(), [0, 1]);
    let mut edit = |numbers: &[usize], times: &[i64]| {
        let kind = Some(PlaylistType::TimeOfDay);
        let configuration = NewConfiguration {
            kind,
            ..Default::default()
        };
        let images = Some(fixture.items(numbers, times));
        let change = PlaylistChange {
            configuration,
            images,
            ..PlaylistChange::default()
        };
        fixture
            .command(|player, reply| reply(player.change(id, &change)))
            .unwrap();
        let active = &fixture.active()[0];
        assert_eq!(
            active.current_image_id,
            Some(fixture.images[numbers[active.current_index]])
        );
        fixture.asked()
    };
    // The present image is gone; the image at its index is not due.
    assert_eq!(edit(&[2, 3], &[0, 1439]), [2]);
    // The image at its index is the one that is due.
    assert_eq!(edit(&[3, 1], &[0, 1439]), [3]);
    assert_eq!(edit(&[3, 0], &[1, 1438]), NONE);
}

#[test]
fn edit_that_keeps_the_slot_keeps_the_picture() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    fixture.start(id, &[]).unwrap();
    fixture.asked();
    let images = Some(fixture.items(&[2, 0, 1], &[300, 400, 1200]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    fixture
        .command(|player, reply| reply(player.change(id, &change)))
        .unwrap();
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_index),
        (vec![], 1)
    );
    let images = Some(fixture.items(&[2, 0, 1], &[500, 400, 1200]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    fixture
        .command(|player, reply| reply(player.change(id, &change)))
        .unwrap();
    assert_eq!(fixture.asked(), [2]);
}

#[test]
fn action_on_all_fails_if_no_playlist_moved() {
    use crate::playlist::running::BulkReply;
    let overtaken = || Err(Error::Overtaken { name: "x".into() });
    for (results, expected) in [
        ([overtaken(), Ok(Moved::one())], Some(1)),
        ([Ok(Moved::default()), overtaken()], None),
        ([Ok(Moved::one()), Ok(Moved::one())], Some(2)),
    ] {
        let (sender, answer) = bounded(1);
        let bulk = BulkReply::new(2, Box::new(move |result| drop(sender.try_send(result))));
        for result in results {
            assert!(answer.is_empty(), "not before all are through");
            BulkReply::add(&bulk, result);
        }
        assert_eq!(
            answer.try_recv().unwrap().ok().map(|moved| moved.count),
            expected
        );
    }
}

#[test]
fn action_on_all_publishes_nothing_if_none_runs() {
    let mut fixture = fixture();
    fixture.make(PlaylistType::Timer, &[0, 1], &[]);
    assert_eq!(
        [Action::Stop, Action::Pause].map(|action| fixture.act_on_all(action)),
        [0, 0]
    );
    assert_eq!(fixture.kinds(), []);
}

#[test]
fn deleted_image_leaves_every_playlist() {
    let mut fixture = fixture();
    let one = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    let two = fixture.make(PlaylistType::Timer, &[1], &[]);
    fixture.start(one, &["A"]).unwrap();
    fixture.start(two, &["B"]).unwrap();
    fixture.pass(10 * SECOND);
    fixture.asked();
    fixture.events();
    let bus = fixture.bus.clone();
    let news = bus.subscribe(NEWS.iter().copied().collect(), || ());
    fixture
        .store
        .write(|c| purge::delete(c, &fixture.images[1..2], false))
        .unwrap();
    bus.publish(&Event::GalleryChanged {
        domain: crate::wire::GalleryDomain::Images,
    });
    fixture.player.on_event(&news.receiver().recv().unwrap());
    fixture.settle();
    assert_eq!(fixture.asked(), [2]);
    use EventKind::{PlaylistImageChanged, PlaylistStopped};
    assert_eq!(fixture.kinds(), [PlaylistStopped, PlaylistImageChanged]);
    // A deletion without an event is noticed when the image is due.
    fixture
        .store
        .write(|c| purge::delete(c, &fixture.images[..1], false))
        .unwrap();
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.active()[0].total_images, 1);
    assert_eq!(
        fixture.active()[0].current_image_id,
        Some(fixture.images[2])
    );
}

#[test]
fn bulk_actions_apply_to_all_running_playlists() {
    let mut fixture = fixture();
    let one = fixture.make(PlaylistType::Timer, &[0, 1], &[]);
    let two = fixture.make(PlaylistType::Manual, &[2, 3], &[]);
    assert_eq!(fixture.act_on_all(Action::Stop), 0);
    fixture.start(one, &["A"]).unwrap();
    fixture.start(two, &["B"]).unwrap();
    fixture.events();
    fixture.asked();
    assert_eq!(fixture.act_on_all(Action::Next), 2);
    assert_eq!(
        (fixture.asked(), fixture.kinds()),
        (vec![1, 3], vec![EventKind::PlaylistImageChanged; 2])
    );
    assert_eq!(fixture.act_on_all(Action::Previous), 2);
    assert_eq!((fixture.asked(), fixture.events().len()), (vec![0, 2], 2));
    fixture.act(one, Action::Pause).unwrap();
    assert_eq!(fixture.act_on_all(Action::Pause), 1);
    assert_eq!(fixture.events()[1].1["action"], "pause_all");
    assert_eq!(fixture.act_on_all(Action::Resume), 2);
    assert_eq!(fixture.events()[0].1["resumed"], 2);
    assert_eq!(fixture.act_on_all(Action::Stop), 2);
    let events = fixture.events();
    assert_eq!(
        (&events[0].1["action"], &events[0].1["stopped"]),
        (&"stop_all".into(), &2.into())
    );
    assert!(fixture.active().is_empty());
}

#[test]
fn start_resumes_last_position_or_begins_at_first_image() {
    let mut fixture = fixture();
    let plain = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    let always_start_on_first_image = Some(true);
    let kind = Some(PlaylistType::Manual);
    let first = NewConfiguration {
        always_start_on_first_image,
        kind,
        ..fast()
    };
    let first = fixture.make_with(first, &[0, 1, 2], &[]);
    for (id, expected) in [(plain, 1), (first, 0)] {
        fixture.start(id, &[]).unwrap();
        fixture.act(id, Action::Next).unwrap();
        fixture.act(id, Action::Stop).unwrap();
        fixture.restart(SECOND, "boot");
        fixture.start(id, &[]).unwrap();
        assert_eq!(fixture.active()[0].current_index, expected);
    }
}

#[test]
fn edit_during_apply_updates_reported_index() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[4, 0, 1], &[]);
    fixture.behaviour(Behaviour::Silent);
    let answer = fixture.begin(|player: &mut Player, reply| {
        player.begin(
            id,
            Aim::Start {
                monitors: names(&["A"]),
                mode: Mode::Individual,
            },
            reply,
        )
    });
    let images = Some(fixture.items(&[0, 1, 4], &[]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    fixture
        .command(|player, reply| reply(player.change(id, &change)))
        .unwrap();
    fixture.events();
    fixture.behaviour(Behaviour::LacksVideo);
    let held = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().held);
    held.into_iter()
        .for_each(|(request, reply)| fixture.wallpapers.answer(request, reply));
    fixture.settle();
    let events = fixture.events();
    answer.try_recv().unwrap().unwrap();
    assert_eq!(events[1].1["image_index"], 0);
    assert_eq!(fixture.asked(), [4, 0]);
}

#[test]
fn slot_that_was_entered_is_not_entered_again_after_an_edit() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    fixture.start(id, &["A"]).unwrap();
    assert_eq!(fixture.asked(), [0]);
    // While its monitor is unplugged nothing is due, so no check finds that the slot is the same.
    fixture.connect(&["B"]);
    let images = Some(fixture.items(&[2, 0, 1], &[300, 360, 1200]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    fixture
        .command(|player, reply| reply(player.change(id, &change)))
        .unwrap();
    let began = fixture.active()[0].slot_started_at;
    fixture.pass(60 * SECOND);
    fixture.connect(&["A", "B"]);
    let active = &fixture.active()[0];
    assert_eq!((active.current_index, active.slot_started_at), (1, began));
}

#[test]
fn slot_whose_image_was_removed_is_entered_again() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    fixture.start(id, &["A"]).unwrap();
    fixture.connect(&["B"]);
    let images = Some(fixture.items(&[2, 1], &[360, 1200]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    fixture
        .command(|player, reply| reply(player.change(id, &change)))
        .unwrap();
    fixture.pass(60 * SECOND);
    fixture.connect(&["A", "B"]);
    assert_eq!(fixture.asked(), [0, 2]);
    let now = fixture
        .time
        .lock()
        .unwrap()
        .wall
        .timestamp()
        .as_microsecond();
    let began = fixture.active()[0].slot_started_at.map(|at| at.as_micros());
    assert_eq!(began, Some(now), "it is seen from now on");
}

#[test]
fn lost_events_may_have_been_about_images() {
    use crate::wire::GalleryDomain::History;
    let check = |kind: EventKind, lost: u64, heard: bool| {
        let mut fixture = fixture();
        let listed = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
        fixture.tag(3, &["a"]);
        let dynamic = fixture.make_dynamic(fast(), serde_json::json!({ "tags": ["a"] }));
        fixture.start(listed, &["A"]).unwrap();
        fixture.start(dynamic, &["B"]).unwrap();
        let bus = fixture.bus.clone();
        let news = bus.subscribe(NEWS.iter().copied().collect(), || ());
        fixture
            .store
            .write(|c| purge::delete(c, &fixture.images[1..2], false))
            .unwrap();
        fixture.tag(3, &[]);
        bus.publish(&Event::GalleryChanged { domain: History });
        let message = news.receiver().recv().unwrap();
        fixture.player.on_event(&Message {
            kind,
            lost,
            ..message
        });
        fixture.settle();
        let mut totals: Vec<usize> = fixture
            .active()
            .iter()
            .map(|active| active.total_images)
            .collect();
        totals.sort_unstable();
        let expected = if heard { [0, 2] } else { [1, 3] };
        assert_eq!(totals, expected, "{kind:?} behind {lost} that were lost");
    };
    check(EventKind::GalleryChanged, 0, false);
    check(EventKind::GalleryChanged, 1, true);
    check(EventKind::ConfigChanged, 0, false);
    check(EventKind::ConfigChanged, 2, true);
    check(EventKind::ImageOrphanPurged, 0, true);
}

#[test]
fn list_edited_to_the_image_on_its_way_has_it_as_present_image() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &["A"]).unwrap();
    fixture.events();
    fixture.behaviour(Behaviour::Silent);
    let answer = fixture.begin(|player, reply| player.act(id, Action::Next, &[], reply));
    let images = Some(fixture.items(&[1], &[]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    drop(fixture.begin(|player, reply| reply(player.change(id, &change))));
    fixture.release(Behaviour::Shows);
    answer.try_recv().unwrap().unwrap();
    assert_eq!(fixture.events()[0].1["image_index"], 0);
    let active = &fixture.active()[0];
    assert_eq!((active.current_index, active.total_images), (0, 1));
    assert_eq!(active.current_image_id, Some(fixture.images[1]));
}
