//! Tests what requests check and write.

use super::*;
use crate::backends::Kind;
use crate::store::assignments;
use crate::wire::{Event, Fit};

#[test]
fn rows_and_history_are_written_together() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, two] = ["one", "two"].map(|name| room.add(name));
    let source = HistorySource {
        kind: Source::Playlist,
        playlist_id: Some(3),
        playlist_name: Some("p".to_owned()),
    };
    let asked = Request {
        fit: Some(Fit::Fill),
        ..request(Ask::Image(one), &["A"])
    };
    room.set(Request {
        source: source.clone(),
        mode: Mode::Individual,
        ..asked
    });
    assert_eq!(room.rows(), BTreeMap::from([("A".to_owned(), one)]));
    let [entry] = &room.history()[..] else {
        panic!("one entry")
    };
    assert_eq!((entry.image_id, entry.image_name.as_str()), (one, "one"));
    assert_eq!(
        (&entry.source, entry.fit, &entry.monitors),
        (&source, Some(Fit::Fill), &names(&["A"]))
    );
    assert!(entry.images.is_empty());
    // The request is not for all monitors, so a later monitor shows its picture only as the last resort.
    assert_eq!(
        room.store.read(assignments::for_every_monitor).unwrap(),
        None
    );
    let seen = room.store.read(crate::store::monitors::seen).unwrap();
    assert_eq!(seen, ["A", "B"]);
    room.set(request(Ask::Image(two), &[]));
    let for_all = room
        .store
        .read(assignments::for_every_monitor)
        .unwrap()
        .unwrap();
    assert_eq!((for_all.image_id, for_all.mode), (two, Mode::Clone));
    let asked = Request {
        mode: Mode::Each,
        ..request(Ask::Each(vec![one, two]), &[])
    };
    let mut feasible = room.feasible(&asked).unwrap();
    assert!(feasible.for_all);
    let changed = feasible.commit(&room.store, &asked, |_| false).unwrap();
    let kinds: Vec<usize> = changed.iter().map(|one| one.events.len()).collect();
    assert_eq!(
        kinds,
        [1, 2],
        "that the history has grown is told once, at the end"
    );
    for (changed, (name, id)) in changed.iter().zip([("A", one), ("B", two)]) {
        let Event::WallpaperChanged {
            image_id,
            monitors,
            images,
            source,
            ..
        } = &changed.events[0]
        else {
            panic!("the wallpaper has changed first");
        };
        assert_eq!(
            (*image_id, monitors, *source),
            (id, &names(&[name]), Source::Manual)
        );
        assert_eq!(
            *images,
            BTreeMap::from([("A".to_owned(), one), ("B".to_owned(), two)])
        );
        assert_eq!(
            (changed.change.image.id, &*changed.change.shown[0].0),
            (id, name)
        );
    }
    assert_eq!(room.history()[0].images.len(), 2);
}

#[test]
fn row_of_a_newer_request_stays() {
    let room = Room::new(outputs(&["A", "B"]));
    let [older, newer] = ["older", "newer"].map(|name| room.add(name));
    let asked = request(Ask::Image(older), &["A", "B"]);
    let mut feasible = room.feasible(&asked).unwrap();
    room.set(request(Ask::Image(newer), &["B"]));
    let changed = feasible.commit(&room.store, &asked, |monitor| monitor == "B");
    let monitors: Vec<_> = changed
        .unwrap()
        .into_iter()
        .flat_map(|one| one.change.shown)
        .map(|(monitor, _)| monitor)
        .collect();
    assert_eq!(monitors, ["A"]);
    let rows = [("A".to_owned(), older), ("B".to_owned(), newer)];
    assert_eq!(room.rows(), rows.into());
    assert_eq!(room.history()[0].monitors, names(&["A", "B"]));
}

#[test]
fn request_is_checked_against_the_backend() {
    let room = Room::with(outputs(&["A"]), &["swaybg"], |config| {
        config.builtin.enabled = false
    });
    let [still, moving] =
        [false, true].map(|moves| room.add_as(&format!("{moves}"), |image| image.animated = moves));
    let video = room.add_as("video", |image| image.format = Format::Mp4);
    let ask = |id| {
        room.feasible(&Request {
            mode: Mode::Extend,
            ..request(Ask::Image(id), &[])
        })
    };
    let applied = ask(still).unwrap().applied;
    assert_eq!((applied.mode, applied.note), (Mode::Extend, None));
    let applied = ask(moving).unwrap().applied;
    assert_eq!(applied.mode, Mode::Clone, "only stills are cut");
    assert!(
        applied
            .note
            .unwrap()
            .contains("swaybg shows only still images")
    );
    assert!(matches!(
        ask(video),
        Err(Error::Incompatible {
            kind: Kind::Video,
            ..
        })
    ));
    let with = |fit, transition: Option<&str>| {
        let transition = transition.map(str::to_owned);
        room.feasible(&Request {
            fit,
            transition,
            ..request(Ask::Image(still), &[])
        })
    };
    assert!(with(Some(Fit::Tile), None).is_ok());
    let refused = with(Some(Fit::Tile), Some("fade"));
    assert!(matches!(
        refused,
        Err(Error::NoWord {
            what: "transition",
            ..
        })
    ));
    let room = Room::with(outputs(&["A"]), &["awww", "awww-daemon"], |_| ());
    room.add("one");
    let with = |fit, transition: Option<&str>| {
        let transition = transition.map(str::to_owned);
        room.feasible(&Request {
            fit,
            transition,
            ..request(Ask::Image(1), &[])
        })
    };
    assert!(matches!(
        with(Some(Fit::Tile), None),
        Err(Error::NoWord { what: "fit", .. })
    ));
    assert!(with(Some(Fit::Cover), Some("fade")).is_ok());
    assert!(matches!(
        with(None, Some("jump")),
        Err(Error::NoWord {
            what: "transition",
            ..
        })
    ));
}
