//! Images that were replaced in their lists by images with the same content.

use super::*;
use crate::store::{self, edits, purge};

impl Fixture {
    /// Replaces image `old` with `new` in all lists, as if a watched file had been given the
    /// content of another.
    fn unite(&self, old: usize, new: usize) {
        let [from, into] = [old, new].map(|number| {
            let id = self.images[number];
            self.store.read(|c| images::get(c, id)).unwrap().unwrap()
        });
        let united = |c: &store::Connection| -> Result<(), store::Error> {
            edits::unite(c, &from, &into)?;
            purge::delete(c, &[from.id], false).map(drop)
        };
        self.store.write(|c| united(c)).unwrap();
    }

    fn hear_of_lists(&mut self) {
        let news = self.bus.subscribe(NEWS.iter().copied().collect(), || ());
        self.bus.publish(&Event::GalleryChanged {
            domain: crate::wire::GalleryDomain::Playlists,
        });
        self.player.on_event(&news.receiver().recv().unwrap());
        self.settle();
    }
}

#[test]
fn image_is_replaced_in_its_list_by_one_with_the_same_content() {
    for random in [false, true] {
        let mut fixture = fixture();
        let order = random.then_some(PlaylistOrder::Random);
        let kind = Some(PlaylistType::Manual);
        let configuration = NewConfiguration {
            order,
            kind,
            ..fast()
        };
        let id = fixture.make_with(configuration, &[0, 1, 2], &[]);
        fixture.start(id, &["A"]).unwrap();
        fixture.act(id, Action::Next).unwrap();
        let way = fixture.asked();
        fixture.unite(way[1], 3);
        fixture.hear_of_lists();
        assert_eq!(fixture.asked(), NONE, "the wallpapers have put it there");
        let active = &fixture.active()[0];
        assert_eq!(active.current_image_id, Some(fixture.images[3]));
        assert_eq!((active.total_images, active.current_index), (3, way[1]));
        // The image counts as shown in this round, and steps back lead over it.
        fixture.act(id, Action::Next).unwrap();
        assert_eq!(fixture.asked(), [3 - way[0] - way[1]]);
        fixture.act(id, Action::Previous).unwrap();
        fixture.act(id, Action::Previous).unwrap();
        assert_eq!(fixture.asked(), [3, way[0]]);
    }
}

#[test]
fn replaced_image_delays_no_step_and_no_monitor() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.asked();
    // No event has reported the replacement yet.
    fixture.unite(1, 3);
    fixture.act(id, Action::Next).unwrap();
    assert_eq!(fixture.asked(), [1, 3]);
    fixture.unite(3, 4);
    fixture.connect(&["A", "B", "C"]);
    assert_eq!(fixture.asked(), [3, 4]);
    let shown_on = &fixture.player.running[&id].state.shown_on;
    assert_eq!(*shown_on, names(&["A", "B", "C"]));
}

#[test]
fn step_fails_if_its_image_is_gone_and_the_list_cannot_be_reloaded() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    fixture.unite(1, 3);
    let full = "CREATE TRIGGER full BEFORE UPDATE ON playback \
                BEGIN SELECT RAISE(FAIL, 'full'); END";
    fixture
        .store
        .write(|c| Ok::<_, store::Error>(c.execute_batch(full)?))
        .unwrap();
    fixture.events();
    let error = fixture.act(id, Action::Next).unwrap_err();
    assert!(
        matches!(error, Error::Picture(wallpaper::Error::NoImage { .. })),
        "{error}"
    );
    assert_eq!(fixture.active()[0].current_index, 0);
    // Only the player publishes this error.
    let events = fixture.events();
    let [(EventKind::WallpaperApplyFailed, event)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (&event["image_id"], &event["backend"]),
        (&fixture.images[1].into(), &"awww".into())
    );
    assert!(
        event["error"]
            .as_str()
            .unwrap()
            .contains(&fixture.images[1].to_string()),
        "{event}"
    );
}

#[test]
fn playlist_follows_its_image_only_to_a_replacement() {
    let mut fixture = fixture();
    let id = fixture.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    fixture.start(id, &[]).unwrap();
    let stands_at = |now: [usize; 3]| {
        let mut state = fixture.player.running[&id].state.clone();
        let ids = |numbers: [usize; 3]| numbers.map(|number| fixture.images[number]);
        state.follow_replaced(&ids([0, 1, 2]), &ids(now));
        fixture.number(state.image_id)
    };
    assert_eq!(stands_at([3, 1, 2]), 3);
    // The other images have only moved up or down.
    assert_eq!((stands_at([1, 2, 3]), stands_at([3, 0, 1])), (0, 0));
}
