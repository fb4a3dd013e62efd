//! Tests the reports of pictures that a request shows on monitors other than its own.

use super::*;
use crate::compositor::Session;
use crate::store::purge;

impl Desk {
    /// The source and the monitors of each published change.
    fn changes(&self) -> Vec<String> {
        let tell = |message: crate::events::Message| {
            let event: serde_json::Value = serde_json::from_str(&message.json).unwrap();
            let is_change = message.kind == EventKind::WallpaperChanged;
            is_change.then(|| format!("{} {}", event["source"], event["monitors"]))
        };
        self.events.receiver().try_iter().filter_map(tell).collect()
    }

    fn shown(&self, name: &str) -> i64 {
        let shown = self.reconciler.slots.shown().into_values().flatten();
        shown
            .into_iter()
            .find(|one| one.output.name == name)
            .expect("a picture")
            .image_id
    }
}

#[test]
fn picture_that_replaces_a_deleted_one_is_saved_and_reported() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg"], |_| ());
    let [red, green, blue] = ["red", "green", "blue"].map(|name| desk.room.add(name));
    desk.set(green, &[]).unwrap();
    desk.set(blue, &[]).unwrap();
    desk.room
        .store
        .write(|c| purge::delete(c, &[blue], false))
        .unwrap();
    desk.changes();
    desk.orders();
    desk.set(red, &["A"]).unwrap();
    assert_eq!((desk.shown("A"), desk.shown("B")), (red, green));
    let rows = |a, b| [("A".to_owned(), a), ("B".to_owned(), b)].into();
    assert_eq!(desk.room.rows(), rows(red, green));
    assert_eq!(desk.changes(), [r#""manual" ["A"]"#, r#""restore" ["B"]"#]);
    assert_eq!(desk.orders().len(), 1, "it is there already");
    desk.reconcile();
    assert_eq!(desk.changes(), [""; 0], "reported once");
}

#[test]
fn picture_of_a_monitor_that_returns_during_a_request_is_reported() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    desk.set(one, &[]).unwrap();
    desk.connect(outputs(&["A"]));
    desk.reconcile();
    desk.connect(outputs(&["A", "B"]));
    desk.changes();
    desk.set(two, &["A"]).unwrap();
    assert_eq!((desk.shown("A"), desk.shown("B")), (two, one));
    assert_eq!(desk.changes(), [r#""manual" ["A"]"#, r#""restore" ["B"]"#]);
}

#[test]
fn picture_replaced_by_the_next_request_is_not_reported_itself() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg"], |_| ());
    let [one, two, three] = ["one", "two", "three"].map(|name| desk.room.add(name));
    desk.set(one, &[]).unwrap();
    desk.connect(outputs(&["A"]));
    desk.reconcile();
    desk.connect(outputs(&["A", "B"]));
    desk.changes();
    let (first, second) = (desk.ask(two, &["A"]), desk.ask(three, &["B"]));
    desk.settle();
    assert!(first.try_recv().unwrap().is_ok() && second.try_recv().unwrap().is_ok());
    assert_eq!((desk.shown("A"), desk.shown("B")), (two, three));
    assert_eq!(desk.changes(), [r#""manual" ["A"]"#, r#""manual" ["B"]"#]);
}

#[test]
fn picture_of_an_earlier_daemon_is_reported_once_it_is_restored() {
    let mut room = Room::with(outputs(&["A"]), &["feh"], |config| {
        config.builtin.enabled = false
    });
    let session = Session::X11 {
        display: ":7".to_owned(),
    };
    room.backends.outputs = Outputs::fixed(session, outputs(&["A"]));
    let id = room.add("one");
    room.set(request(Ask::Image(id), &[]));
    let left = Placements::from([(
        WorkerKey::new(BackendName::Feh, "A"),
        vec![placement("A", id)],
    )]);
    Recovery::open(&room.backends).note(&left);
    let mut desk = Desk::from_room(room);
    desk.reconciler.reconcile();
    desk.reconciler.reconcile();
    assert_eq!(desk.changes(), [""; 0], "the backend has not answered");
    desk.settle();
    desk.reconcile();
    assert_eq!(desk.changes(), [r#""restore" ["A"]"#]);
}

#[test]
fn picture_that_the_backend_before_still_shows_is_reported_once() {
    let mut desk = Desk::new(&["A"], &["awww", "awww-daemon", "swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.set(id, &[]).unwrap();
    let mut config = Config::clone(&(desk.room.backends.settings)());
    config.backend.kind = BackendName::Swaybg;
    let config = Arc::new(config);
    desk.reconciler.tools.backends.settings = Arc::new(move || Arc::clone(&config));
    desk.changes();
    assert_eq!(desk.set(id, &[]).unwrap().backend, BackendName::Swaybg);
    assert_eq!(desk.changes(), [r#""manual" ["A"]"#]);
}
