//! Dynamic playlists: images that come and go between two steps, and waiting while none is found.

use super::*;
use crate::playlist::edits::{Renewed, renew};
use crate::playlist::spec::Direction;
use crate::store::edits::{self, ImageChange};
use crate::store::filter;
use crate::store::playlists::NewSource;
use crate::store::purge;
use crate::wire::GalleryDomain;
use serde_json::json;

fn source(fields: Value) -> NewSource {
    let Value::Object(fields) = fields else {
        panic!("{fields}")
    };
    NewSource {
        query: Box::new(filter::from_source(&fields).unwrap()),
        fields,
    }
}

impl Fixture {
    pub(super) fn make_dynamic(&self, configuration: NewConfiguration, fields: Value) -> i64 {
        let change = PlaylistChange {
            name: Some(format!("list {}", seed())),
            configuration,
            images: None,
            source: Some(source(fields)),
            located: false,
        };
        self.store.write(|c| playlists::insert(c, &change)).unwrap()
    }

    pub(super) fn tag(&self, number: usize, tags: &[&str]) {
        let tags = Some(names(tags).into());
        let change = ImageChange {
            tags,
            ..ImageChange::default()
        };
        self.store
            .write(|c| edits::change(c, self.images[number], &change))
            .unwrap();
    }

    fn delete(&self, numbers: &[usize]) {
        let ids: Vec<i64> = numbers.iter().map(|&number| self.images[number]).collect();
        self.store.write(|c| purge::delete(c, &ids, false)).unwrap();
    }

    /// Publishes to the player that images have changed.
    fn tell(&mut self) {
        let news = self.bus.subscribe(NEWS.iter().copied().collect(), || ());
        self.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Images,
        });
        self.player.on_event(&news.receiver().recv().unwrap());
        self.settle();
    }
}

#[test]
fn dynamic_playlist_shows_the_images_that_its_source_finds_before_each_step() {
    let mut fixture = fixture();
    fixture.tag(0, &["a"]);
    fixture.tag(2, &["a"]);
    let id = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    fixture.start(id, &[]).unwrap();
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [0, 2]);
    // One image is added before the present one and one behind it, and one is removed.
    fixture.tag(1, &["a"]);
    fixture.tag(3, &["a"]);
    fixture.tag(0, &[]);
    fixture.tell();
    assert_eq!(
        fixture.asked(),
        NONE,
        "nothing changes before the next step"
    );
    fixture.pass(20 * SECOND);
    assert_eq!(fixture.asked(), [3, 1]);
    let active = &fixture.active()[0];
    assert_eq!((active.total_images, active.current_index), (3, 0));
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.asked(), [3]);
    // The present image is removed: the step leads to its successor.
    fixture.tag(3, &[]);
    fixture.act(id, Action::Next).unwrap();
    assert_eq!(fixture.asked(), [2]);
    fixture.delete(&[2]);
    fixture.act(id, Action::Previous).unwrap();
    assert_eq!(fixture.asked(), [1]);
}

#[test]
fn deleted_image_is_replaced_at_once() {
    let mut fixture = fixture();
    (0..4).for_each(|number| fixture.tag(number, &["a"]));
    let id = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    fixture.start(id, &[]).unwrap();
    fixture.pass(5 * SECOND);
    fixture.delete(&[1]);
    fixture.tell();
    assert_eq!(fixture.asked(), [0], "another one has left");
    fixture.delete(&[0]);
    fixture.tell();
    assert_eq!(fixture.asked(), [2]);
    fixture.pass(6 * SECOND);
    assert_eq!(fixture.asked(), NONE, "its time begins with it");
    // A deleted image is also replaced during a pause. If the last one is deleted, none is present.
    fixture.act(id, Action::Pause).unwrap();
    fixture.delete(&[2]);
    fixture.tell();
    assert_eq!(fixture.asked(), [3]);
    fixture.delete(&[3]);
    fixture.tell();
    assert_eq!(
        (fixture.asked(), fixture.active()[0].current_image_id),
        (vec![], None)
    );
}

#[test]
fn deleted_image_on_one_of_several_monitors_is_replaced_at_once() {
    let mut fixture = fixture();
    (0..4).for_each(|number| fixture.tag(number, &["a"]));
    let id = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    fixture.start_each(id, &[]).unwrap();
    fixture.delete(&[1]);
    fixture.tell();
    assert_eq!(fixture.dealt(), [[0, 1], [0, 2]]);
}

#[test]
fn dynamic_playlist_finds_images_that_came_while_no_daemon_ran() {
    let mut fixture = fixture();
    let order = Some(PlaylistOrder::Random);
    let id = fixture.make_dynamic(NewConfiguration { order, ..fast() }, json!({}));
    fixture.start(id, &[]).unwrap();
    fixture.pass(20 * SECOND);
    fixture.images.push(add_image(&fixture.store, 6));
    fixture.restart(SECOND, "boot");
    fixture.pass(40 * SECOND);
    let mut shown = fixture.asked();
    shown.sort_unstable();
    shown.dedup();
    assert!(shown.len() >= 6, "{shown:?}");
    assert_eq!(fixture.active()[0].total_images, 7);
}

#[test]
fn dynamic_playlist_without_images_does_not_start() {
    let mut fixture = fixture();
    let id = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    let refused = fixture.start(id, &[]).unwrap_err();
    assert!(matches!(refused, Error::NothingFound { .. }), "{refused}");
    assert!(fixture.active().is_empty());
}

#[test]
fn dynamic_playlist_waits_while_no_image_is_found_and_continues() {
    let mut fixture = fixture();
    fixture.tag(0, &["a"]);
    let id = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    fixture.start(id, &[]).unwrap();
    fixture.pass(5 * SECOND);
    fixture.asked();
    fixture.events();
    let rests = |fixture: &mut Fixture| {
        let active = fixture.active();
        let found = (
            active[0].current_image_id,
            active[0].total_images,
            active[0].next_change_at,
        );
        assert_eq!(found, (None, 0, None));
        assert_eq!(
            fixture.player.playlist_deadlines(),
            Deadlines::default(),
            "nothing wakes it"
        );
    };
    fixture.tag(0, &[]);
    fixture.tell();
    rests(&mut fixture);
    assert!(matches!(
        fixture.act(id, Action::Next),
        Err(Error::NothingFound { .. })
    ));
    // A new monitor gets nothing, and a restart changes nothing.
    fixture.connect(&["A", "B", "C"]);
    fixture.restart(SECOND, "other boot");
    rests(&mut fixture);
    fixture.pass(60 * SECOND);
    assert_eq!((fixture.asked(), fixture.kinds()), (vec![], vec![]));
    fixture.tag(3, &["a"]);
    fixture.tell();
    assert_eq!(fixture.asked(), [3]);
    let events = fixture.events();
    let [(EventKind::PlaylistImageChanged, event)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(event.get("source"), None, "at rest nothing is missed");
    // A change without an event is noticed when the next image is due.
    fixture.tag(3, &[]);
    let one = &fixture.player.running[&id];
    let (mut spec, mut state) = (one.spec.clone(), one.state.clone());
    let found = renew(&fixture.store, &mut spec, &mut state, Direction::Forward);
    assert_eq!((found, spec.is_waiting()), (Renewed::Empty, false));
    fixture.pass(10 * SECOND);
    rests(&mut fixture);
}

#[test]
fn edit_turns_a_list_into_a_source_and_back() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Timer, &[4, 1], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.pass(10 * SECOND);
    fixture.asked();
    let edit = |fixture: &mut Fixture, change: PlaylistChange| {
        fixture.command(|player, reply| reply(player.change(id, &change)))
    };
    let dynamic = source(json!({ "media_type": "image" }));
    let change = PlaylistChange {
        source: Some(dynamic),
        ..PlaylistChange::default()
    };
    let playlist = edit(&mut fixture, change).unwrap();
    assert!(playlist.images.is_empty() && playlist.source.is_some());
    let active = &fixture.active()[0];
    assert_eq!((active.current_index, active.total_images), (1, 4));
    fixture.pass(10 * SECOND);
    assert_eq!(fixture.asked(), [2]);
    let kind = Some(PlaylistType::DayOfWeek);
    let configuration = NewConfiguration {
        kind,
        ..Default::default()
    };
    let slots = PlaylistChange {
        configuration,
        ..PlaylistChange::default()
    };
    assert!(
        edit(&mut fixture, slots)
            .unwrap_err()
            .to_string()
            .contains("timer and manual")
    );
    // The new source finds nothing: the playlist waits.
    let nothing = source(json!({ "tags": ["none"] }));
    let change = PlaylistChange {
        source: Some(nothing),
        ..PlaylistChange::default()
    };
    edit(&mut fixture, change).unwrap();
    assert_eq!(fixture.active()[0].current_image_id, None);
    let images = Some(fixture.items(&[3, 0], &[]));
    let change = PlaylistChange {
        images,
        ..PlaylistChange::default()
    };
    let playlist = edit(&mut fixture, change).unwrap();
    assert!(playlist.source.is_none() && playlist.images.len() == 2);
    assert_eq!(fixture.asked().len(), 1);
}

#[test]
fn edit_of_the_interval_keeps_the_found_images_of_a_dynamic_playlist() {
    let mut fixture = fixture();
    fixture.tag(0, &["a"]);
    fixture.tag(2, &["a"]);
    let id = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    fixture.start(id, &[]).unwrap();
    fixture.pass(15 * SECOND);
    assert_eq!(fixture.asked(), [0, 2]);
    fixture.edit(
        id,
        None,
        NewConfiguration {
            interval: Some(8),
            ..Default::default()
        },
    );
    let active = &fixture.active()[0];
    assert_eq!((active.current_index, active.total_images), (1, 2));
    fixture.pass(3 * SECOND);
    assert_eq!(fixture.asked(), [0]);
}

#[test]
fn image_that_left_the_library_during_a_step_is_skipped() {
    let mut fixture = fixture();
    let id = fixture.make_dynamic(fast(), json!({ "media_type": "image" }));
    fixture.start(id, &[]).unwrap();
    fixture.behaviour(Behaviour::Silent);
    let next = fixture.begin(|player, reply| player.act(id, Action::Next, &[], reply));
    fixture.delete(&[1]);
    fixture.release(Behaviour::Shows);
    next.try_recv().unwrap().unwrap();
    assert_eq!(fixture.asked(), [0, 1, 2]);
    assert_eq!(fixture.active()[0].total_images, 3);
}

#[test]
fn unreadable_playlist_does_not_stop_others_from_continuing() {
    let mut fixture = fixture();
    fixture.tag(0, &["a"]);
    let damaged = fixture.make_dynamic(fast(), json!({ "tags": ["a"] }));
    let sound = fixture.make(PlaylistType::Timer, &[1, 2], &[]);
    fixture.start(damaged, &["A"]).unwrap();
    fixture.start(sound, &["B"]).unwrap();
    let damage = "UPDATE playlist SET source = '{broken' WHERE source IS NOT NULL";
    fixture
        .store
        .write(|c| Ok::<_, crate::store::Error>(c.execute_batch(damage)?))
        .unwrap();
    fixture.restart(SECOND, "boot");
    let active: Vec<i64> = fixture.active().iter().map(|one| one.playlist_id).collect();
    assert_eq!(active, [sound]);
}
