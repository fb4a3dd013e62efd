//! Tests which picture a request picks for which monitor.

use super::*;
use crate::store::query::Query;
use crate::wire::{Fit, MediaFilter, SetStatus};

fn upright(image: &mut NewImage) {
    (image.width, image.height) = (30, 40);
}

/// A wide monitor, a rotated one, and one that is higher than wide.
fn standing() -> Vec<Output> {
    let [wide, mut turned, mut high] = ["A", "B", "C"].map(Output::plain);
    turned.transform = 1;
    (high.width, high.height) = (1080, 1920);
    vec![wide, turned, high]
}

fn pick(room: &Room, ask: Ask, monitors: &[&str]) -> Result<Applied, Error> {
    room.feasible(&request(ask, monitors))
        .map(|feasible| feasible.applied)
}

fn each(room: &Room, ask: Ask, monitors: &[&str]) -> Result<Applied, Error> {
    let request = Request {
        mode: Mode::Each,
        ..request(ask, monitors)
    };
    room.feasible(&request).map(|feasible| feasible.applied)
}

#[test]
fn one_picture_is_for_all_monitors_of_the_request() {
    let room = Room::new(outputs(&["A", "B", "C"]));
    let [one, _] = ["one", "two"].map(|name| room.add(name));
    let applied = pick(&room, Ask::Image(one), &[]).unwrap();
    assert_eq!((applied.outcome, applied.image.id), (SetStatus::Set, one));
    assert_eq!(images_of(&applied), [("A", one), ("B", one), ("C", one)]);
    assert_eq!((applied.skipped, applied.note), (names(&[]), None));
    let applied = pick(&room, Ask::Image(one), &["X", "C", "A"]).unwrap();
    assert_eq!(images_of(&applied), [("A", one), ("C", one)]);
    assert_eq!(
        (applied.monitors, applied.skipped),
        (names(&["C", "A"]), names(&["X"]))
    );
}

#[test]
fn missing_images_are_reported() {
    let room = Room::new(outputs(&["A"]));
    let refused = |ask: Ask, monitors: &[&str]| pick(&room, ask, monitors).unwrap_err();
    assert!(matches!(refused(Ask::Random, &[]), Error::EmptyLibrary));
    let kept = room.add("kept");
    let own = room.add_as("own", |image| image.in_place = true);
    let gone = room.add("gone");
    for name in ["own", "gone"] {
        fs::remove_file(room.path(name)).unwrap();
    }
    // A missing picture is reported before a missing monitor.
    assert!(matches!(
        refused(Ask::Image(99), &["X"]),
        Error::NoImage { id: 99 }
    ));
    let error = refused(Ask::Image(gone), &[]);
    assert!(matches!(error, Error::FileGone { id, away: false, .. } if id == gone));
    let error = refused(Ask::Image(own), &[]);
    assert!(matches!(error, Error::FileGone { id, away: true, .. } if id == own));
    let Error::UnknownMonitors {
        names: unknown,
        connected,
    } = refused(Ask::Image(kept), &["X"])
    else {
        panic!("X is not there");
    };
    assert_eq!((unknown, connected), (names(&["X"]), names(&["A"])));
    let none = Room::new(Vec::new());
    let id = none.add("one");
    assert!(matches!(
        pick(&none, Ask::Image(id), &[]).unwrap_err(),
        Error::NoMonitor
    ));
    assert!(matches!(
        pick(&none, Ask::Random, &[]).unwrap_err(),
        Error::NoMonitor
    ));
}

#[test]
fn random_image_is_another_one_that_can_be_shown() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, other] = ["one", "other"].map(|name| room.add(name));
    room.add_as("video", |image| image.format = Format::Mp4);
    room.set(request(Ask::Image(one), &["A"]));
    let random = |monitors: &[&str]| pick(&room, Ask::Random, monitors).unwrap();
    for _ in 0..20 {
        assert_eq!(images_of(&random(&["A"])), [("A", other)]);
        assert_ne!(random(&["B"]).image.id, 3, "nothing shows videos");
        let all = random(&[]);
        assert_eq!(images_of(&all), [("A", all.image.id), ("B", all.image.id)]);
    }
    room.set(request(Ask::Image(other), &["B"]));
    for _ in 0..20 {
        assert!(
            [one, other].contains(&random(&[]).image.id),
            "both are shown: either will do"
        );
    }
}

#[test]
fn random_image_matches_the_filter() {
    let room = Room::new(outputs(&["A"]));
    let [wide, _, high] = [
        room.add("wide"),
        room.add_as("video", |image| image.format = Format::Mp4),
        room.add_as("high", upright),
    ];
    let with = |change: &dyn Fn(&mut Query)| {
        // The offset of a page is ignored.
        let mut query = Query {
            offset: 9,
            ..Query::default()
        };
        change(&mut query);
        let asked = Request {
            filter: Some(Box::new(query)),
            ..request(Ask::Random, &[])
        };
        room.feasible(&asked)
            .map(|feasible| feasible.applied.image.id)
    };
    for _ in 0..10 {
        let found = with(&|query| query.orientation = Some(crate::wire::Orientation::Portrait));
        assert_eq!(found.unwrap(), high);
        assert_eq!(
            with(&|query| query.search = "wide".to_owned()).unwrap(),
            wide
        );
    }
    let nothing = with(&|query| query.search = "nobody".to_owned());
    assert!(matches!(nothing, Err(Error::NoMatch)));
    // The error names one of the matches if none can be shown.
    let video = with(&|query| query.media_type = Some(MediaFilter::Video));
    assert!(matches!(
        video,
        Err(Error::Incompatible {
            image_id: Some(2),
            ..
        })
    ));
}

#[test]
fn image_on_an_unmounted_disk_is_skipped_unless_all_are() {
    let room = Room::new(outputs(&["A"]));
    let [there, away] = ["there", "away"].map(|name| room.add(name));
    let lose = |id| {
        room.store
            .write(|c| images::set_missing(c, &[id], true))
            .unwrap()
    };
    lose(away);
    for _ in 0..20 {
        assert_eq!(pick(&room, Ask::Random, &[]).unwrap().image.id, there);
    }
    lose(there);
    assert!([there, away].contains(&pick(&room, Ask::Random, &[]).unwrap().image.id));
}

#[test]
fn upright_pictures_go_to_upright_monitors() {
    let room = Room::new(standing());
    let high = room.add_as("high", upright);
    let [wide, also_wide] = ["wide", "also wide"].map(|name| room.add(name));
    let dealt = each(&room, Ask::Each(vec![high, wide]), &[]).unwrap();
    assert_eq!(images_of(&dealt), [("A", wide), ("B", high), ("C", high)]);
    assert_eq!((dealt.image.id, dealt.mode), (wide, Mode::Each));
    let dealt = each(
        &room,
        Ask::Each(vec![wide, high, also_wide]),
        &["C", "A", "B"],
    )
    .unwrap();
    assert_eq!(
        images_of(&dealt),
        [("A", wide), ("B", high), ("C", also_wide)]
    );
}

#[test]
fn square_monitor_is_not_upright() {
    let square = |name, transform| Output {
        height: 1920,
        transform,
        ..Output::plain(name)
    };
    let [.., high] = &standing()[..] else {
        panic!("three")
    };
    let room = Room::new(vec![square("A", 0), square("B", 1), high.clone()]);
    let high = room.add_as("high", upright);
    let [wide, also_wide] = ["wide", "also wide"].map(|name| room.add(name));
    let dealt = each(&room, Ask::Each(vec![high, wide, also_wide]), &[]).unwrap();
    assert_eq!(
        images_of(&dealt),
        [("A", wide), ("B", also_wide), ("C", high)]
    );
}

#[test]
fn random_images_suit_their_monitors_and_differ() {
    let room = Room::new(standing());
    let high: Vec<i64> = ["h1", "h2"].map(|name| room.add_as(name, upright)).into();
    let wide: Vec<i64> = ["w1", "w2", "w3"].map(|name| room.add(name)).into();
    for _ in 0..20 {
        let dealt = each(&room, Ask::Random, &[]).unwrap().images;
        assert!(wide.contains(&dealt["A"]), "{dealt:?}");
        assert!(
            high.contains(&dealt["B"]) && high.contains(&dealt["C"]),
            "{dealt:?}"
        );
        assert_ne!(dealt["B"], dealt["C"], "{dealt:?}");
    }
    // An image that does not suit comes before a repeat if too few suit.
    let room = Room::new(standing());
    let high = room.add_as("high", upright);
    let [w1, w2] = ["w1", "w2"].map(|name| room.add(name));
    for _ in 0..20 {
        let dealt = each(&room, Ask::Random, &[]).unwrap().images;
        assert_eq!(dealt["B"], high, "{dealt:?}");
        let mut others = [dealt["A"], dealt["C"]];
        others.sort_unstable();
        assert_eq!(others, [w1, w2]);
    }
    // An image that suits is shown twice if no other is left.
    fs::remove_file(room.path("w2")).unwrap();
    room.store
        .write(|c| crate::store::purge::delete(c, &[w2], false))
        .unwrap();
    for _ in 0..20 {
        let dealt = each(&room, Ask::Random, &["B", "C"]).unwrap();
        let mut both: Vec<i64> = dealt.images.into_values().collect();
        both.sort_unstable();
        assert_eq!(both, [high, w1]);
        let dealt = each(&room, Ask::Random, &[]).unwrap().images;
        assert_eq!((dealt["A"], dealt["B"]), (w1, high));
        assert_eq!(dealt["C"], high);
    }
}

#[test]
fn back_goes_through_the_history() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, two, three] = ["one", "two", "three"].map(|name| room.add(name));
    let back = |steps, monitors: &[&str]| pick(&room, Ask::Back(steps), monitors);
    assert!(matches!(back(1, &["A"]), Err(Error::NothingBefore { monitors }) if monitors == ["A"]));
    room.set(request(Ask::Image(one), &[]));
    for id in [two, two, three] {
        room.set(request(Ask::Image(id), &["A"]));
    }
    assert_eq!(images_of(&back(1, &["A"]).unwrap()), [("A", two)]);
    // Entries that would change nothing are skipped; the last stays if there are too few.
    assert_eq!(images_of(&back(2, &["A"]).unwrap()), [("A", one)]);
    assert_eq!(images_of(&back(9, &["A"]).unwrap()), [("A", one)]);
    // B has nothing before.
    let applied = back(1, &[]).unwrap();
    assert_eq!(
        (images_of(&applied), &applied.skipped),
        (vec![("A", two)], &names(&["B"]))
    );
    room.set(request(Ask::Back(1), &["A"]));
    assert_eq!(images_of(&back(1, &["A"]).unwrap()), [("A", one)]);
    room.set(request(Ask::Back(1), &["A"]));
    assert!(matches!(back(1, &["A"]), Err(Error::NothingBefore { .. })));
    // Any other change ends the way back.
    room.set(request(Ask::Image(three), &["A"]));
    assert_eq!(
        images_of(&back(1, &["A"]).unwrap()),
        [("A", one)],
        "what was there last"
    );
    assert_eq!(images_of(&back(2, &["A"]).unwrap()), [("A", two)]);
}

#[test]
fn back_compares_pictures_by_what_is_visible() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, gone] = ["one", "gone"].map(|name| room.add(name));
    let set = |id, mode, fit, monitors: &[&str]| {
        room.set(Request {
            mode,
            fit,
            ..request(Ask::Image(id), monitors)
        });
    };
    set(one, Mode::Extend, None, &[]);
    set(one, Mode::Clone, Some(Fit::Contain), &[]);
    set(gone, Mode::Clone, None, &[]);
    set(one, Mode::Clone, None, &[]);
    set(one, Mode::Individual, None, &["A"]);
    fs::remove_file(room.path("gone")).unwrap();
    let back = |steps| {
        let feasible = room.feasible(&request(Ask::Back(steps), &[])).unwrap();
        let pictures = feasible.pictures.iter().map(|picture| {
            let row = &picture.rows[0];
            (
                picture.rows.len(),
                row.mode,
                row.fit,
                row.together.join(" "),
            )
        });
        (
            pictures.collect::<Vec<_>>(),
            feasible.walk,
            feasible.for_all,
        )
    };
    let entries = |id| vec![("A".to_owned(), id), ("B".to_owned(), id)];
    let fitted = (2, Mode::Clone, Some(Fit::Contain), "A B".to_owned());
    assert_eq!(back(1), (vec![fitted], entries(2), true));
    let extended = (2, Mode::Extend, None, "A B".to_owned());
    assert_eq!(back(2), (vec![extended], entries(1), true));
}

#[test]
fn monitors_can_go_back_to_different_pictures() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, two, three] = ["one", "two", "three"].map(|name| room.add(name));
    room.set(request(Ask::Image(one), &["A"]));
    room.set(request(Ask::Image(two), &["B"]));
    room.set(request(Ask::Image(three), &[]));
    let feasible = room.feasible(&request(Ask::Back(1), &[])).unwrap();
    assert_eq!(images_of(&feasible.applied), [("A", one), ("B", two)]);
    assert_eq!((feasible.pictures.len(), feasible.for_all), (2, false));
    assert_eq!(feasible.walk, [("A".to_owned(), 1), ("B".to_owned(), 2)]);
}

#[test]
fn each_monitor_goes_back_from_its_own_place() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, two, three] = ["one", "two", "three"].map(|name| room.add(name));
    room.set(request(Ask::Image(one), &[]));
    room.set(request(Ask::Image(two), &[]));
    room.set(request(Ask::Image(three), &["A"]));
    // Both pictures were set for both monitors, one after the other.
    let feasible = room.feasible(&request(Ask::Back(1), &[])).unwrap();
    assert_eq!(images_of(&feasible.applied), [("A", two), ("B", one)]);
    assert_eq!((feasible.pictures.len(), feasible.for_all), (2, false));
}
