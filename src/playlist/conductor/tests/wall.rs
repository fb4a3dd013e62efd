//! Where pictures hang: monitors that are shared, come and go; what cannot be shown or hangs.

use super::*;

#[test]
fn playlists_share_no_monitor() {
    let mut stage = stage();
    let ids: Vec<i64> =
        (0..3).map(|at| stage.make(PlaylistType::Timer, &[at, at + 1], &[])).collect();
    stage.start(ids[0], &["A"]).unwrap();
    stage.start(ids[1], &["B", "C"]).unwrap();
    assert_eq!(stage.active().len(), 2);
    stage.events();
    stage.start(ids[2], &["C", "A"]).unwrap();
    let events = stage.events();
    let stopped: Vec<_> = events
        .iter()
        .filter(|(kind, _)| *kind == EventKind::PlaylistStopped)
        .map(|(_, event)| event["playlist_id"].as_i64().unwrap())
        .collect();
    assert_eq!(stopped, ids[..2]);
    let active = &stage.active()[0];
    assert_eq!((active.monitors.len(), active.applied_to.len()), (2, 1));
    // Started anew it is not stopped, and stays where it was.
    stage.act(ids[2], Act::Next).unwrap();
    stage.events();
    stage.start(ids[2], &[]).unwrap();
    assert_eq!(stage.kinds(), [EventKind::PlaylistStarted, EventKind::PlaylistImageChanged]);
    assert_eq!(stage.active()[0].current_index, 1);
    assert!(matches!(stage.start(ids[0], &["C", "D"]), Err(Failure::NoMonitor { .. })));
    assert_eq!(stage.active().len(), 1);
    let empty = stage.make(PlaylistType::Timer, &[], &[]);
    assert!(matches!(stage.start(empty, &[]), Err(Failure::Empty { .. })));
    assert!(matches!(stage.act(empty, Act::Stop), Err(Failure::NotRunning { .. })));
    assert!(matches!(stage.act(99, Act::Stop), Err(Failure::Refused(_))));
}

#[test]
fn a_declared_monitor_is_served_when_it_comes() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &["A", "C"]).unwrap();
    stage.events();
    stage.asked();
    stage.connect(&["A", "B", "C"]);
    let asked = std::mem::take(&mut stage.wall.face.lock().unwrap().asked);
    assert_eq!(asked, [(stage.images[0], names(&["C"]), Mode::Individual)]);
    assert_eq!(stage.kinds(), [], "it only joins");
    // What went and comes back has its picture already: the stage restores it.
    stage.connect(&["A"]);
    stage.connect(&["A", "C"]);
    assert_eq!(stage.asked(), NONE);
    // Nobody looks: nothing changes, and it is caught up with once.
    stage.connect(&[]);
    stage.pass(100 * SECOND);
    assert_eq!((stage.asked(), stage.conductor.deadlines()), (vec![], Deadlines::default()));
    stage.connect(&["C"]);
    assert_eq!(stage.asked(), [1]);
    assert_eq!(stage.events()[0].1["source"], "missed_event_recovery");
    stage.connect(&["A", "C"]);
    assert_eq!(stage.asked(), [1]);
}

#[test]
fn an_extended_picture_is_hung_anew_for_another_monitor() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1], &[]);
    let start = |reply| Command::Start { id, monitors: names(&["A", "C"]), extend: true, reply };
    stage.command(start).unwrap();
    stage.connect(&["A", "C"]);
    let asked = std::mem::take(&mut stage.wall.face.lock().unwrap().asked);
    let image = stage.images[0];
    let extend = Mode::Extend;
    assert_eq!(asked, [(image, names(&["A"]), extend), (image, names(&["A", "C"]), extend)]);
}

#[test]
fn what_the_backend_cannot_show_is_skipped() {
    let mut stage = stage();
    stage.mood(Mood::RefusesVideo);
    let id = stage.make(PlaylistType::Timer, &[0, 4, 5, 1], &[]);
    stage.start(id, &[]).unwrap();
    stage.events();
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [0, 4, 1]);
    let events = stage.events();
    let (kind, skipped) = &events[0];
    assert_eq!(*kind, EventKind::PlaylistSkippedIncompatible);
    assert_eq!((&skipped["skipped"], &skipped["applied_index"]), (&2.into(), &3.into()));
    assert_eq!(skipped["backend"], "swaybg");
    let items = skipped["skipped_items"].as_array().unwrap();
    assert_eq!(items[1]["slot_index"], 2);
    assert_eq!(events[1].1["image_index"], 3);
    // Backwards past them, too.
    stage.act(id, Act::Previous).unwrap();
    assert_eq!(stage.asked(), [5, 0]);
    assert_eq!(stage.active()[0].current_index, 0);
}

#[test]
fn random_order_skips_without_losing_its_way() {
    let mut stage = stage();
    stage.mood(Mood::RefusesVideo);
    let order = Some(PlaylistOrder::Random);
    let id = stage.make_with(NewConfiguration { order, ..fast() }, &[4, 0, 5, 1], &[]);
    stage.start(id, &[]).unwrap();
    for _ in 0..20 {
        stage.act(id, Act::Next).unwrap();
        assert!(stage.active()[0].current_index % 2 == 1);
    }
}

#[test]
fn nothing_to_show_is_told_once_and_tried_again() {
    let mut stage = stage();
    stage.mood(Mood::RefusesAll);
    let id = stage.make(PlaylistType::Timer, &[4, 5], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(30 * SECOND);
    let events = stage.events();
    assert_eq!(events.len(), 2, "{events:?}");
    let (kind, event) = &events[1];
    assert_eq!(*kind, EventKind::PlaylistNoCompatibleItem);
    assert_eq!((&event["backend"], &event["total_images"]), (&"swaybg".into(), &2.into()));
    assert_eq!(event.get("media_type"), None);
    stage.asked();
    stage.mood(Mood::Hangs);
    let bus = stage.bus.clone();
    let news = bus.subscribe(NEWS.iter().copied().collect(), || ());
    bus.publish(&Event::ConfigChanged { sections: names(&["backend"]), source: None });
    stage.conductor.heed(&news.receiver().recv().unwrap());
    stage.settle();
    assert_eq!(stage.asked().len(), 1);
    assert_eq!(stage.kinds(), [EventKind::ConfigChanged, EventKind::PlaylistImageChanged]);

    // Without a backend, and where each kind has its own.
    stage.wall.face.lock().unwrap().fixed = false;
    stage.mood(Mood::NoBackend);
    let none = stage.act(id, Act::Next);
    assert!(matches!(none, Err(Failure::Picture(wallpaper::Error::NoBackend { .. }))));
    let events = stage.events();
    assert_eq!(events[0].1["media_type"], "video");
    assert_eq!(events[0].1.get("backend"), None);
    // The playlist changes: tried again. Its next time as well.
    stage.asked();
    stage.mood(Mood::RefusesVideo);
    let images = Some(stage.items(&[4, 0], &[]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    assert_eq!(stage.asked(), [0]);
}

#[test]
fn killed_before_a_picture_is_up_it_is_hung_again() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.mood(Mood::Silent);
    stage.pass(10 * SECOND);
    stage.mood(Mood::Hangs);
    stage.asked();
    stage.restart(SECOND, "boot");
    assert_eq!(stage.asked(), [1]);
    assert_eq!(stage.active()[0].current_index, 1);
}

#[test]
fn a_wall_that_hangs_holds_nobody_up() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.mood(Mood::Silent);
    stage.pass(20 * SECOND);
    assert_eq!(stage.asked(), [0, 1, 2]);
    stage.pass(10 * SECOND);
    stage.events();
    // The answers come late and out of order: events tell what was hung, the place stays.
    stage.mood(Mood::Hangs);
    let held = std::mem::take(&mut stage.wall.face.lock().unwrap().held);
    for (request, reply) in held.into_iter().rev() {
        stage.wall.answer(request, reply);
    }
    stage.settle();
    let indices: Vec<_> =
        stage.events().iter().map(|(_, event)| event["image_index"].clone()).collect();
    assert_eq!(indices, [0, 2, 1]);
    assert_eq!(stage.active()[0].current_index, 0);
    assert_eq!(stage.asked(), [0]);
}

#[test]
fn a_wallpaper_set_by_hand_stays_until_the_next_change() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.mood(Mood::Superseded);
    stage.start(id, &[]).unwrap();
    assert_eq!(stage.kinds(), [EventKind::PlaylistStarted, EventKind::PlaylistImageChanged]);
    stage.connect(&["A", "B"]);
    assert_eq!(stage.asked(), [0]);
    stage.mood(Mood::Hangs);
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [1]);
}
