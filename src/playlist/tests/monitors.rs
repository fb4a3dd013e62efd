//! Monitors that are shared, plugged in and unplugged; pictures that cannot be shown or are never
//! answered.

use super::*;
use crate::playlist::skips::skip;

#[test]
fn starting_a_playlist_stops_those_on_its_monitors() {
    let mut fixture = fixture();
    let ids: Vec<i64> = (0..3)
        .map(|at| fixture.make(PlaylistType::Timer, &[at, at + 1], &[]))
        .collect();
    fixture.start(ids[0], &["A"]).unwrap();
    fixture.start(ids[1], &["B", "C"]).unwrap();
    assert_eq!(fixture.active().len(), 2);
    fixture.events();
    fixture.start(ids[2], &["C", "A"]).unwrap();
    let events = fixture.events();
    let stopped: Vec<_> = events
        .iter()
        .filter(|(kind, _)| *kind == EventKind::PlaylistStopped)
        .map(|(_, event)| event["playlist_id"].as_i64().unwrap())
        .collect();
    assert_eq!(stopped, ids[..2]);
    let active = &fixture.active()[0];
    assert_eq!((active.monitors.len(), active.applied_to.len()), (2, 1));
    // A start of the running playlist does not stop it, and keeps its position.
    fixture.act(ids[2], Action::Next).unwrap();
    fixture.events();
    fixture.start(ids[2], &[]).unwrap();
    assert_eq!(
        fixture.kinds(),
        [EventKind::PlaylistStarted, EventKind::PlaylistImageChanged]
    );
    assert_eq!(fixture.active()[0].current_index, 1);
    assert!(matches!(
        fixture.start(ids[0], &["C", "D"]),
        Err(Error::Picture(wallpaper::Error::UnknownMonitors { .. }))
    ));
    assert_eq!(fixture.active().len(), 1);
    let empty = fixture.make(PlaylistType::Timer, &[], &[]);
    assert!(matches!(
        fixture.start(empty, &[]),
        Err(Error::Empty { .. })
    ));
    assert!(matches!(
        fixture.act(empty, Action::Stop),
        Err(Error::NotRunning { .. })
    ));
    assert!(matches!(
        fixture.act(99, Action::Stop),
        Err(Error::Refused(_))
    ));
}

#[test]
fn monitor_that_a_newer_request_has_taken_keeps_its_picture() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.wallpapers.state.lock().unwrap().behaviour = Behaviour::LosesB;
    fixture.act(id, Action::Next).unwrap();
    let mut state = fixture.wallpapers.state.lock().unwrap();
    state.behaviour = Behaviour::Shows;
    state.asked.clear();
    drop(state);
    fixture.player.fill_all_monitors();
    assert_eq!(fixture.wallpapers.state.lock().unwrap().asked, []);
}

#[test]
fn declared_monitor_gets_its_picture_when_connected() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &["A", "C"]).unwrap();
    fixture.events();
    fixture.asked();
    fixture.connect(&["A", "B", "C"]);
    let asked = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().asked);
    assert_eq!(
        asked,
        [(fixture.images[0], names(&["C"]), Mode::Individual)]
    );
    assert_eq!(fixture.kinds(), [], "it only joins");
    // A monitor that is plugged in again needs no request: the reconciler restores its picture.
    fixture.connect(&["A"]);
    fixture.connect(&["A", "C"]);
    assert_eq!(fixture.asked(), NONE);
    // While no monitor is connected nothing changes; then one change is made up for.
    fixture.connect(&[]);
    fixture.pass(100 * SECOND);
    assert_eq!(
        (fixture.asked(), fixture.player.playlist_deadlines()),
        (vec![], Deadlines::default())
    );
    fixture.connect(&["C"]);
    assert_eq!(fixture.asked(), [1]);
    assert_eq!(fixture.events()[0].1["source"], "missed_event_recovery");
    fixture.connect(&["A", "C"]);
    assert_eq!(fixture.asked(), [1]);
}

#[test]
fn unplugged_monitor_does_not_keep_a_picture_from_the_others() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &["A", "B"]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.pass(10 * SECOND);
    fixture.events();
    fixture.asked();
    fixture.wallpapers.state.lock().unwrap().connected = names(&["A"]);
    fixture.release(Behaviour::Shows);
    let asked = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().asked);
    assert_eq!(
        asked,
        [(fixture.images[1], names(&["A"]), Mode::Individual)]
    );
    let kinds = fixture.kinds();
    assert!(!kinds.contains(&EventKind::ImageError), "{kinds:?}");
}

#[test]
fn extended_picture_is_applied_again_for_new_monitor() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1], &[]);
    let start = |player: &mut Player, reply| {
        player.begin(
            id,
            Aim::Start {
                monitors: names(&["A", "C"]),
                mode: Mode::Extend,
            },
            reply,
        )
    };
    fixture.command(start).unwrap();
    fixture.connect(&["A", "C"]);
    assert_eq!(fixture.events()[0].1["extend"], true);
    let asked = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().asked);
    let image = fixture.images[0];
    let extend = Mode::Extend;
    assert_eq!(
        asked,
        [
            (image, names(&["A"]), extend),
            (image, names(&["A", "C"]), extend)
        ]
    );
}

#[test]
fn incompatible_items_are_skipped() {
    let mut fixture = fixture();
    fixture.behaviour(Behaviour::RefusesVideo);
    let id = fixture.make(PlaylistType::Timer, &[0, 4, 5, 1], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.events();
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [0, 1]);
    let events = fixture.events();
    let (kind, skipped) = &events[0];
    assert_eq!(*kind, EventKind::PlaylistSkippedIncompatible);
    assert_eq!(
        (&skipped["skipped"], &skipped["applied_index"]),
        (&2.into(), &3.into())
    );
    assert_eq!(skipped["backend"], "swaybg");
    let items = skipped["skipped_items"].as_array().unwrap();
    assert_eq!(items[1]["slot_index"], 2);
    assert_eq!(events[1].1["image_index"], 3);
    // Steps back skip them, too.
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.asked(), [0]);
    assert_eq!(fixture.active()[0].current_index, 0);
}

#[test]
fn random_order_skips_incompatible_items() {
    let mut fixture = fixture();
    fixture.behaviour(Behaviour::RefusesVideo);
    let order = Some(PlaylistOrder::Random);
    let id = fixture.make_with(NewConfiguration { order, ..fast() }, &[4, 0, 5, 1], &[]);
    fixture.start(id, &[]).unwrap();
    let mut before = fixture.active()[0].current_index;
    for _ in 0..20 {
        fixture.act(id, Action::Next).unwrap();
        let index = fixture.active()[0].current_index;
        assert!(index % 2 == 1 && index != before, "{index} after {before}");
        before = index;
    }
}

#[test]
fn images_whose_files_are_missing_are_skipped() {
    let mut fixture = fixture();
    fixture.behaviour(Behaviour::LacksVideo);
    let id = fixture.make(PlaylistType::Timer, &[0, 4, 5, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.act(id, Action::Next).unwrap();
    assert_eq!(fixture.asked(), [0, 4, 5, 1]);
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.asked(), [5, 4, 0]);
    fixture.pass(10 * SECOND);
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_index),
        (vec![4, 5, 1], 3)
    );
    let kinds = fixture.kinds();
    assert!(
        !kinds.contains(&EventKind::PlaylistSkippedIncompatible),
        "{kinds:?}"
    );
    assert!(
        !kinds.contains(&EventKind::WallpaperApplyFailed),
        "{kinds:?}"
    );
    // Images that the watcher misses are not tried.
    let missing = [fixture.images[4], fixture.images[1]];
    fixture
        .store
        .write(|c| crate::store::images::set_missing(c, &missing, true))
        .unwrap();
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.asked(), [5, 0]);
    let random = NewConfiguration {
        order: Some(PlaylistOrder::Random),
        ..fast()
    };
    let id = fixture.make_with(random, &[4, 5, 0], &[]);
    fixture.start(id, &[]).unwrap();
    assert_eq!(fixture.asked().last(), Some(&0));
    let gone = fixture.make(PlaylistType::Manual, &[4, 5], &[]);
    let is_gone =
        |error: &Error| matches!(error, Error::Picture(wallpaper::Error::FileGone { .. }));
    assert!(fixture.start(gone, &[]).is_err_and(|error| is_gone(&error)));
    // The image of a later time is not shown early.
    let day = fixture.make(PlaylistType::TimeOfDay, &[4, 0], &[600, 900]);
    assert!(fixture.start(day, &[]).is_err_and(|error| is_gone(&error)));
}

/// An edit may have moved the playlist on while the refused picture was on its way.
#[test]
fn item_of_another_kind_than_the_refused_one_is_kept() {
    let mut fixture = fixture();
    let order = Some(PlaylistOrder::Random);
    let id = fixture.make_with(NewConfiguration { order, ..fast() }, &[0, 1, 2, 3], &[]);
    fixture.start(id, &[]).unwrap();
    let one = &fixture.player.running[&id];
    let mut state = one.state.clone();
    let video = crate::backends::Kind::from_media_type(crate::wire::MediaType::Video, false);
    let forward = crate::playlist::spec::Direction::Forward;
    let skipped = skip(&one.spec, &mut state, forward, &[video], &|_| false);
    assert!(skipped.is_empty());
    assert_eq!(state.image_id, one.state.image_id);
}

#[test]
fn no_compatible_item_is_reported_once_and_retried() {
    let mut fixture = fixture();
    fixture.behaviour(Behaviour::RefusesAll);
    let id = fixture.make(PlaylistType::Timer, &[4, 5], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(30 * SECOND);
    let events = fixture.events();
    assert_eq!(events.len(), 2, "{events:?}");
    let (kind, event) = &events[1];
    assert_eq!(*kind, EventKind::PlaylistNoCompatibleItem);
    assert_eq!(
        (&event["backend"], &event["total_images"]),
        (&"swaybg".into(), &2.into())
    );
    assert_eq!(event.get("media_type"), None);
    fixture.asked();
    fixture.behaviour(Behaviour::Shows);
    let bus = fixture.bus.clone();
    let news = bus.subscribe(NEWS.iter().copied().collect(), || ());
    bus.publish(&Event::ConfigChanged {
        sections: names(&["backend"]),
        source: None,
    });
    fixture.player.on_event(&news.receiver().recv().unwrap());
    fixture.settle();
    assert_eq!(fixture.asked().len(), 1);
    assert_eq!(
        fixture.kinds(),
        [EventKind::ConfigChanged, EventKind::PlaylistImageChanged]
    );

    // No backend is available, and each kind of content has its own.
    fixture.wallpapers.state.lock().unwrap().fixed = false;
    fixture.behaviour(Behaviour::NoBackend);
    let none = fixture.act(id, Action::Next);
    assert!(matches!(
        none,
        Err(Error::Picture(wallpaper::Error::NoBackend { .. }))
    ));
    let events = fixture.events();
    assert_eq!(events[0].1["media_type"], "video");
    assert_eq!(events[0].1.get("backend"), None);
    // An edit makes the playlist try again.
    fixture.asked();
    fixture.behaviour(Behaviour::RefusesVideo);
    let images = Some(fixture.items(&[4, 0], &[]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    fixture
        .command(|player, reply| reply(player.change(id, &change)))
        .unwrap();
    assert_eq!(fixture.asked(), [0]);
}

#[test]
fn restart_applies_picture_that_was_not_confirmed() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.pass(10 * SECOND);
    fixture.behaviour(Behaviour::Shows);
    fixture.asked();
    fixture.restart(SECOND, "boot");
    assert_eq!(fixture.asked(), [1]);
    assert_eq!(fixture.active()[0].current_index, 1);
}

#[test]
fn unanswered_apply_does_not_block_the_player() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    fixture.pass(20 * SECOND);
    assert_eq!(fixture.asked(), [0, 1, 2]);
    fixture.pass(10 * SECOND);
    fixture.events();
    // The third request overtakes the second. The answers come late and out of order: the events
    // report what was shown, and the position stays.
    fixture.behaviour(Behaviour::Shows);
    let held = std::mem::take(&mut fixture.wallpapers.state.lock().unwrap().held);
    for (request, reply) in held.into_iter().rev() {
        fixture.wallpapers.answer(request, reply);
    }
    fixture.settle();
    let indices: Vec<_> = fixture
        .events()
        .iter()
        .map(|(_, event)| event["image_index"].clone())
        .collect();
    assert_eq!(indices, [0, 1]);
    assert_eq!(fixture.active()[0].current_index, 0);
    assert_eq!(fixture.asked(), [0]);
}

#[test]
fn answers_to_earlier_changes_do_not_move_the_playlist() {
    for behaviour in [Behaviour::Shows, Behaviour::RefusesVideo] {
        let mut fixture = fixture();
        let id = fixture.make(PlaylistType::Timer, &[0, 4, 1], &[]);
        fixture.start(id, &[]).unwrap();
        fixture.behaviour(Behaviour::Silent);
        fixture.pass(20 * SECOND);
        assert_eq!(fixture.asked(), [0, 4, 1]);
        fixture.release_one(behaviour);
        assert_eq!(
            (fixture.asked(), fixture.active()[0].current_index),
            (vec![], 2)
        );
        // The answer to the later change is missing, so a restart requests its picture again.
        fixture.behaviour(Behaviour::Shows);
        fixture.restart(SECOND, "boot");
        assert_eq!(fixture.asked(), [1]);
    }
}

#[test]
fn monitors_that_joined_or_moved_are_known_after_a_restart() {
    let mut fixture = fixture();
    let plug = |fixture: &Fixture, monitors: &[(&str, &str)]| {
        let own = |&(name, identity): &(&str, &str)| (name.to_owned(), identity.to_owned());
        let mut state = fixture.wallpapers.state.lock().unwrap();
        state.identities = monitors.iter().map(own).collect();
        state.connected = state.identities.keys().cloned().collect();
    };
    plug(&fixture, &[("A", "one")]);
    let id = fixture.make(PlaylistType::Manual, &[0, 1], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.asked();
    // The daemon is killed before the new monitor's picture is shown.
    fixture.behaviour(Behaviour::Silent);
    for (plugged, monitors) in [
        (&[("A", "one"), ("B", "two")][..], ["A", "B"]),
        (&[("C", "one")], ["C", "B"]),
    ] {
        plug(&fixture, plugged);
        fixture.player.fill_all_monitors();
        fixture.settle();
        plug(&fixture, &[]);
        fixture.restart(SECOND, "boot");
        assert_eq!(fixture.active()[0].monitors, monitors);
    }
    assert_eq!(fixture.asked(), [0], "what moved has its picture");
}

#[test]
fn manual_wallpaper_stays_until_next_change() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    fixture.behaviour(Behaviour::Superseded);
    fixture.start(id, &[]).unwrap();
    assert_eq!(
        fixture.kinds(),
        [EventKind::PlaylistStarted, EventKind::PlaylistImageChanged]
    );
    fixture.connect(&["A", "B"]);
    assert_eq!(fixture.asked(), [0]);
    fixture.behaviour(Behaviour::Shows);
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [1]);
}
