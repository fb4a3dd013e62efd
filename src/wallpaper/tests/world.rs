//! Tests which pictures should be shown, given rows, missing images and changed monitors.

use serde_json::json;

use super::*;
use crate::backends::Kind;
use crate::config::SelectionMode;
use crate::events::{EventFilter, Subscription};
use crate::store::assignments::{self, Assignment};
use crate::store::images;
use crate::store::workspaces::WorkspacePicture;
use crate::store::{playlists, purge};
use crate::wallpaper::backend_choice::Choice;
use crate::wallpaper::scene::assigned;
use crate::wallpaper::worker_key::WorkerKey;
use crate::wire::{EventKind, Fit, NewPlaylistItem, Timestamp};

fn heard(events: &Subscription) -> Vec<EventKind> {
    events
        .receiver()
        .try_iter()
        .map(|message| message.kind)
        .collect()
}

fn builtin() -> WorkerKey {
    WorkerKey::new(BackendName::Builtin, "A")
}

#[test]
fn image_that_was_removed_is_replaced() {
    let room = Room::new(outputs(&["A", "B"]));
    let [kept, gone] = ["kept", "gone"].map(|name| room.add(name));
    room.set(request(Ask::Image(kept), &["A"]));
    room.set(request(Ask::Image(gone), &[]));
    let meant = room
        .store
        .read(assignments::for_every_monitor)
        .unwrap()
        .unwrap();
    room.store
        .write(|c| assignments::put_default(c, &meant))
        .unwrap();
    room.set(request(Ask::Image(kept), &["A"]));
    fs::remove_file(room.path("gone")).unwrap();
    let events = room.bus.subscribe(EventFilter::ALL, || ());
    room.world();
    assert_eq!(heard(&events), [], "a plan removes nothing");
    room.store.write(|c| purge::lost(c, gone)).unwrap();
    let world = room.world();
    assert_eq!(room.rows(), BTreeMap::from([("A".to_owned(), kept)]));
    assert_eq!(world.row("A").map(|row| row.image_id), Some(kept));
    // B has no other picture in its history, so it is served as a new monitor.
    assert_eq!(world.row("B").map(|row| row.image_id), Some(kept));
    assert_eq!(room.history().len(), 2);
    for read in [assignments::for_every_monitor, assignments::default] {
        assert_eq!(room.store.read(read).unwrap(), None);
    }
    room.world();
    assert_eq!(heard(&events), []);
}

#[test]
fn deleted_image_is_replaced_by_the_newest_of_the_history_unless_a_playlist_goes_on() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, two, other] = ["one", "two", "other"].map(|name| room.add(name));
    room.set(request(Ask::Image(one), &["A"]));
    room.set(request(Ask::Image(other), &["B"]));
    room.set(request(Ask::Image(two), &["A"]));
    let playlist = playlists::PlaylistChange {
        name: Some("all".to_owned()),
        images: Some(
            vec![NewPlaylistItem {
                image_id: Some(two),
                color: None,
                media_type: None,
                time: None,
                at: None,
                when: None,
            }]
            .into(),
        ),
        ..Default::default()
    };
    let playlist = room.store.write(|c| playlists::insert(c, &playlist));
    let playlist = playlist.unwrap_or_else(|error| panic!("{error}"));
    let on_a = || room.world().row("A").map(|row| (row.image_id, row.set_at));
    let state = json!({ "monitors": ["A"], "shown_on": ["A"], "image_id": one });
    let save = |running, state| {
        let save = |c: &_| playlists::save(c, playlist, running, &state);
        room.store.write(|c| save(c)).unwrap();
    };
    room.store
        .write(|c| purge::delete(c, &[one], false))
        .unwrap();
    assert_eq!(on_a().unwrap().0, two);
    // The playlist has lost its present image, and has another.
    let add = "UPDATE assignments SET image_id = NULL WHERE monitor = 'A'";
    room.store
        .write(|c| Ok::<_, crate::store::Error>(c.execute(add, [])?))
        .unwrap();
    save(true, state.clone());
    assert_eq!(on_a(), None);
    save(false, state);
    let newest = room.history().remove(0);
    assert_eq!(on_a(), Some((two, newest.set_at)));
    // The playlist shows its present image on other monitors only.
    save(
        true,
        json!({ "monitors": ["B"], "shown_on": ["B"], "image_id": one }),
    );
    assert_eq!(on_a(), Some((two, newest.set_at)));
}

#[test]
fn picture_whose_file_cannot_be_read_is_replaced_until_the_file_is_back() {
    let room = Room::new(outputs(&["A", "B"]));
    let [own, other, before] =
        ["own", "other", "before"].map(|name| room.add_as(name, |image| image.in_place = true));
    room.set(request(Ask::Image(before), &["A"]));
    room.set(request(Ask::Image(own), &["A"]));
    room.set(request(Ask::Image(other), &["B"]));
    let shown = || {
        let placements = desired(&room.world()).remove(&builtin()).unwrap();
        let shown = placements.into_iter();
        shown.map(|one| one.image_id).collect::<Vec<_>>()
    };
    let remove = |name: &str| fs::remove_file(room.path(name)).unwrap();
    assert_eq!(shown(), [own, other]);
    remove("own");
    assert_eq!(shown(), [before, other], "the newest of the history");
    remove("before");
    assert_eq!(shown(), [other, other], "that of another monitor");
    assert_eq!(room.rows()["A"], own, "the assignment stays");
    fs::write(room.path("own"), "").unwrap();
    assert_eq!(shown(), [own, other]);
}

#[test]
fn pictures_follow_their_monitors_to_other_connectors() {
    let of = |pairs: &[(&str, &str)]| -> Vec<Output> {
        let known = |(name, serial): &(&str, &str)| {
            let mut output = Output::plain(name);
            let identity = &mut output.identity;
            let own = [
                &mut identity.make,
                &mut identity.model,
                &mut identity.serial,
            ];
            own.into_iter()
                .zip(["Maker", "Model", serial])
                .for_each(|(to, of)| *to = of.to_owned());
            output
        };
        pairs.iter().map(known).collect()
    };
    let mut room = Room::new(of(&[("A", "1"), ("B", "2")]));
    let [one, two] = ["one", "two"].map(|name| room.add(name));
    // The identities of the monitors are stored before anything is set.
    room.world();
    room.set(request(Ask::Image(one), &["A"]));
    room.set(request(Ask::Image(two), &["B"]));
    let connect = |room: &mut Room, pairs: &[(&str, &str)]| {
        let session = room.backends.outputs.session().unwrap();
        room.backends.outputs = Outputs::fixed(session, of(pairs));
        room.world();
    };
    let rows = |a, b| BTreeMap::from([("A".to_owned(), a), ("B".to_owned(), b)]);
    connect(&mut room, &[("A", "2"), ("B", "1")]);
    assert_eq!(room.rows(), rows(two, one));
    // These two monitors cannot be told apart, so the connectors count.
    connect(&mut room, &[("A", "1"), ("B", "1")]);
    assert_eq!(room.rows(), rows(two, one));
    connect(&mut room, &[("B", "1")]);
    assert_eq!(
        room.rows(),
        rows(two, one),
        "which of the two it is nobody knows"
    );
}

#[test]
fn builtin_shows_only_stills_over_x11() {
    let mut room = Room::new(outputs(&["A"]));
    let id = room.add_as("one", |image| image.animated = true);
    let image = room.store.read(|c| images::get(c, id)).unwrap().unwrap();
    let shown = |room: &Room| room.world().choose(&image).unwrap().kind;
    assert_eq!(shown(&room), Kind::AnimatedImage);
    let session = Session::X11 {
        display: ":7".to_owned(),
    };
    room.backends.outputs = Outputs::fixed(session, outputs(&["A"]));
    assert_eq!(shown(&room), Kind::StaticImage);
}

#[test]
fn without_a_session_the_error_is_about_the_backend_not_the_monitor() {
    let mut room = Room::new(Vec::new());
    let refused = |room: &Room| {
        room.world()
            .targets(&Targets::from_names(Vec::new()))
            .unwrap_err()
    };
    assert!(matches!(refused(&room), Error::NoMonitor));
    room.backends.outputs = Outputs::default();
    assert!(matches!(refused(&room), Error::NoBackend { .. }));
}

#[test]
fn backend_that_was_activated_is_used() {
    let room = Room::with(outputs(&["A"]), &["swaybg", "feh"], |config| {
        config.backend.selection_mode = SelectionMode::Auto;
    });
    let with = |activated| WorldState::read(&room.store, &room.backends, activated);
    let image = room
        .store
        .read(|c| images::get(c, room.add("one")))
        .unwrap()
        .unwrap();
    let chosen = |activated| with(activated).unwrap().choose(&image).unwrap().backend;
    assert_eq!(chosen(None), BackendName::Builtin);
    assert_eq!(chosen(Some(BackendName::Swaybg)), BackendName::Swaybg);
    assert!(with(None).unwrap().choice(Kind::Video).is_none());
    assert!(with(None).unwrap().choice(Kind::StaticImage).is_some());
}

#[test]
fn unusable_hyprpaper_is_named_with_the_reason() {
    let room = Room::with(outputs(&["A"]), &["hyprpaper", "hyprctl"], |config| {
        config.builtin.enabled = false;
    });
    let error = Error::no_backend(&room.backends).to_string();
    assert!(
        error.contains("hyprpaper works on Hyprland only"),
        "{error}"
    );
}

#[test]
fn stretched_picture_spans_the_monitors_whose_workspaces_hide_it() {
    let room = Room::new(outputs(&["A", "B"]));
    let [one, two] = ["one", "two"].map(|name| room.add(name));
    room.set(Request {
        mode: Mode::Extend,
        ..request(Ask::Image(one), &[])
    });
    let mut world = room.world();
    let placed = |world: &WorldState| desired(world).remove(&builtin()).unwrap();
    let before = placed(&world);
    assert_eq!(before[0].span, outputs(&["A", "B"]));
    let image = room.store.read(|c| images::get(c, two)).unwrap().unwrap();
    let place = ("2".to_owned(), "B".to_owned());
    let since = Timestamp::from_micros(1);
    let picture = WorkspacePicture::new(place, two, "builtin".to_owned(), since);
    world.over_assignments.push(picture);
    world.pictures.insert(two, image.into());
    assert_eq!(placed(&world)[0], before[0]);
    assert_eq!(
        (placed(&world)[1].image_id, placed(&world)[1].span.len()),
        (two, 0)
    );
}

#[test]
fn requested_position_overrides_that_of_the_image() {
    let room = Room::new(outputs(&["A"]));
    let id = room.add("one");
    room.set(request(Ask::Image(id), &[]));
    let row = room.store.read(assignments::all).unwrap().remove(0);
    let mut image = room.store.read(|c| images::get(c, id)).unwrap().unwrap();
    let [own, asked] = ["top", "5%,6%"].map(|text| text.parse().ok());
    image.position = own;
    let pictures = BTreeMap::from([(id, image.into())]);
    let check = |mode, position, expected| {
        let rows = [Assignment {
            mode,
            position,
            ..row.clone()
        }];
        let choose = |kind| {
            Some(Choice {
                backend: BackendName::Feh,
                kind,
            })
        };
        let desired = assigned(&rows, &pictures, &outputs(&["A"]), choose);
        assert_eq!(desired["A"].placement.position, expected);
    };
    check(Mode::Clone, None, own);
    check(Mode::Each, asked, asked);
    check(Mode::Extend, asked, None);
}

#[test]
fn backend_with_one_fit_for_all_outputs_has_that_of_the_newest_row() {
    let room = Room::new(outputs(&["A", "B"]));
    let id = room.add("one");
    room.set(request(Ask::Image(id), &[]));
    let mut rows = room.store.read(assignments::all).unwrap();
    let set_at = Timestamp::from_micros(3);
    // A disconnected monitor does not count.
    let away = Assignment {
        monitor: "AWAY".to_owned(),
        fit: Some(Fit::Tile),
        set_at,
        ..rows[0].clone()
    };
    rows.push(away);
    let image = room.store.read(|c| images::get(c, id)).unwrap().unwrap();
    let pictures = BTreeMap::from([(id, image.into())]);
    let mut fits = |backend, newest: usize| {
        for (at, (row, fit)) in rows.iter_mut().zip([Fit::Fill, Fit::Contain]).enumerate() {
            row.fit = Some(fit);
            row.set_at = Timestamp::from_micros(if at == newest { 2 } else { 1 });
        }
        let choose = |kind| Some(Choice { backend, kind });
        let desired = assigned(&rows, &pictures, &outputs(&["A", "B"]), choose);
        let placed = desired.into_values().map(|wanted| wanted.placement);
        placed.map(|one| one.fit).collect::<Vec<_>>()
    };
    assert_eq!(fits(BackendName::Feh, 0), [Some(Fit::Fill); 2]);
    assert_eq!(fits(BackendName::Feh, 1), [Some(Fit::Contain); 2]);
    assert_eq!(
        fits(BackendName::Builtin, 1),
        [Some(Fit::Fill), Some(Fit::Contain)]
    );
}
