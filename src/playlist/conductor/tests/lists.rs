//! What is played: order, edits, deleted images, all at once, where a start begins.

use super::*;

#[test]
fn random_order_shows_each_once_and_goes_back_the_way_it_came() {
    let mut stage = stage();
    let order = Some(PlaylistOrder::Random);
    let id = stage.make_with(NewConfiguration { order, ..fast() }, &[0, 1, 2, 3], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(30 * SECOND);
    stage.restart(SECOND, "boot");
    let mut first = stage.asked();
    let back: Vec<usize> = (0..3)
        .map(|_| {
            stage.act(id, Act::Previous).unwrap();
            stage.asked()[0]
        })
        .collect();
    assert_eq!(back, [first[2], first[1], first[0]]);
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2, 3]);
    let active = &stage.active()[0];
    let index = active.current_index;
    assert_eq!(active.current_image_id, stage.images[index]);
}

#[test]
fn an_edit_keeps_the_place_by_image() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(15 * SECOND);
    stage.asked();
    let edit = |stage: &mut Stage, numbers: Option<&[usize]>, configuration| {
        let images = numbers.map(|numbers| stage.items(numbers, &[]));
        let change = PlaylistChange { name: None, configuration, images };
        stage.command(|reply| Command::Change(id, change, reply)).unwrap()
    };
    let playlist = edit(&mut stage, Some(&[3, 2, 1]), NewConfiguration::default());
    assert_eq!(playlist.playback.unwrap().current_index, 2);
    assert_eq!((stage.asked(), stage.active()[0].current_index), (vec![], 2));
    // The interval counts from the last change, which was five seconds ago.
    let interval = |seconds| NewConfiguration { interval: Some(seconds), ..Default::default() };
    edit(&mut stage, None, interval(8));
    stage.pass(3 * SECOND);
    assert_eq!(stage.asked(), [3]);
    stage.pass(5 * SECOND);
    stage.events();
    edit(&mut stage, None, interval(2));
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.events()[0].1.get("source"), None, "an edit's change was not missed");
    // The image is taken out under it.
    edit(&mut stage, Some(&[3, 1]), interval(10));
    assert_eq!(stage.asked(), [1]);
    // Of another type.
    let kind = Some(PlaylistType::DayOfWeek);
    edit(&mut stage, Some(&[3, 1, 0]), NewConfiguration { kind, ..Default::default() });
    assert_eq!(stage.asked(), [0]);
    stage.events();
    edit(&mut stage, Some(&[]), NewConfiguration::default());
    assert_eq!(stage.kinds(), [EventKind::PlaylistStopped]);
    assert!(stage.active().is_empty());
}

#[test]
fn an_edit_into_slots_shows_only_the_one_that_it_is_time_for() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(15 * SECOND);
    assert_eq!(stage.asked(), [0, 1]);
    let mut edit = |numbers: &[usize], times: &[i64]| {
        let kind = Some(PlaylistType::TimeOfDay);
        let configuration = NewConfiguration { kind, ..Default::default() };
        let images = Some(stage.items(numbers, times));
        let change = PlaylistChange { name: None, configuration, images };
        stage.command(|reply| Command::Change(id, change, reply)).unwrap();
        let active = &stage.active()[0];
        assert_eq!(active.current_image_id, stage.images[numbers[active.current_index]]);
        stage.asked()
    };
    // The picture is gone; at its place there is another, which is not due.
    assert_eq!(edit(&[2, 3], &[0, 1439]), [2]);
    // At its place there is the one that is due.
    assert_eq!(edit(&[3, 1], &[0, 1439]), [3]);
    assert_eq!(edit(&[3, 0], &[1, 1438]), NONE);
}

#[test]
fn an_edit_that_leaves_the_slot_leaves_the_picture() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    stage.start(id, &[]).unwrap();
    stage.asked();
    let images = Some(stage.items(&[2, 0, 1], &[300, 400, 1200]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    assert_eq!((stage.asked(), stage.active()[0].current_index), (vec![], 1));
    let images = Some(stage.items(&[2, 0, 1], &[500, 400, 1200]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    assert_eq!(stage.asked(), [2]);
}

#[test]
fn a_deleted_image_leaves_every_playlist() {
    let mut stage = stage();
    let one = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    let two = stage.make(PlaylistType::Timer, &[1], &[]);
    stage.start(one, &["A"]).unwrap();
    stage.start(two, &["B"]).unwrap();
    stage.pass(10 * SECOND);
    stage.asked();
    stage.events();
    let bus = stage.bus.clone();
    let news = bus.subscribe(NEWS.iter().copied().collect(), || ());
    stage.store.write(|c| images::delete(c, &stage.images[1..2])).unwrap();
    bus.publish(&Event::GalleryChanged { domain: crate::wire::GalleryDomain::Images });
    stage.conductor.heed(&news.receiver().recv().unwrap());
    stage.settle();
    assert_eq!(stage.asked(), [2]);
    use EventKind::{PlaylistImageChanged, PlaylistStopped};
    assert_eq!(stage.kinds(), [PlaylistStopped, PlaylistImageChanged]);
    // One that nobody has told of is found gone when it is its turn.
    stage.store.write(|c| images::delete(c, &stage.images[..1])).unwrap();
    stage.pass(10 * SECOND);
    assert_eq!(stage.active()[0].total_images, 1);
    assert_eq!(stage.active()[0].current_image_id, stage.images[2]);
}

#[test]
fn bulk_acts_concern_all_that_run() {
    let mut stage = stage();
    let one = stage.make(PlaylistType::Timer, &[0, 1], &[]);
    let two = stage.make(PlaylistType::Manual, &[2, 3], &[]);
    assert_eq!(stage.act_on_all(Act::Stop), 0);
    stage.start(one, &["A"]).unwrap();
    stage.start(two, &["B"]).unwrap();
    stage.events();
    stage.asked();
    assert_eq!(stage.act_on_all(Act::Next), 2);
    assert_eq!(
        (stage.asked(), stage.kinds()),
        (vec![1, 3], vec![EventKind::PlaylistImageChanged; 2])
    );
    assert_eq!(stage.act_on_all(Act::Previous), 2);
    assert_eq!((stage.asked(), stage.events().len()), (vec![0, 2], 2));
    stage.act(one, Act::Pause).unwrap();
    assert_eq!(stage.act_on_all(Act::Pause), 1);
    assert_eq!(stage.events()[1].1["action"], "pause_all");
    assert_eq!(stage.act_on_all(Act::Resume), 2);
    assert_eq!(stage.events()[0].1["resumed"], 2);
    assert_eq!(stage.act_on_all(Act::Stop), 2);
    let events = stage.events();
    assert_eq!((&events[0].1["action"], &events[0].1["stopped"]), (&"stop_all".into(), &2.into()));
    assert!(stage.active().is_empty());
}

#[test]
fn it_starts_where_it_last_was_or_at_the_first() {
    let mut stage = stage();
    let plain = stage.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    let always_start_on_first_image = Some(true);
    let kind = Some(PlaylistType::Manual);
    let first = NewConfiguration { always_start_on_first_image, kind, ..fast() };
    let first = stage.make_with(first, &[0, 1, 2], &[]);
    for (id, expected) in [(plain, 1), (first, 0)] {
        stage.start(id, &[]).unwrap();
        stage.act(id, Act::Next).unwrap();
        stage.act(id, Act::Stop).unwrap();
        stage.restart(SECOND, "boot");
        stage.start(id, &[]).unwrap();
        assert_eq!(stage.active()[0].current_index, expected);
    }
}

#[test]
fn an_edit_while_a_picture_is_on_its_way_moves_what_is_told_of_it() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[4, 0, 1], &[]);
    stage.mood(Mood::Silent);
    let answer =
        stage.begin(|reply| Command::Start { id, monitors: names(&["A"]), extend: false, reply });
    let images = Some(stage.items(&[0, 1, 4], &[]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    stage.events();
    stage.mood(Mood::RefusesVideo);
    let held = std::mem::take(&mut stage.wall.face.lock().unwrap().held);
    held.into_iter().for_each(|(request, reply)| stage.wall.answer(request, reply));
    stage.settle();
    let events = stage.events();
    answer.try_recv().unwrap().unwrap();
    assert_eq!(events[1].0, EventKind::PlaylistSkippedIncompatible);
    assert_eq!(events[1].1["skipped_items"][0]["slot_index"], 2);
    assert_eq!(events[2].1["image_index"], 0);
    assert_eq!(stage.asked(), [4, 0]);
}
