//! Tests the rules for orders that avoid flashes and failures for another's picture. The random
//! sequences find none of these.

use super::*;
use crate::config::BackendName::{Mpvpaper, Swaybg, WalQt};
use crate::config::SelectionMode;
use crate::store::purge;
use crate::wallpaper::tests::images_of;

fn desk(names: &[&str]) -> Desk {
    Desk::new(names, &["swaybg", "mpvpaper"], |config| {
        config.backend.selection_mode = SelectionMode::Auto;
        config.auto_priorities.image = vec![Swaybg];
    })
}

impl Desk {
    /// Handles the next report.
    fn hear(&mut self) {
        let reports = self.reconciler.workers.reports();
        let report = reports.recv_timeout(PATIENCE).expect("a report");
        self.reconciler.on_report(report);
    }

    /// Whether an order to the worker is in flight.
    fn is_told(&self, backend: BackendName, output: &str) -> bool {
        let slot = self.reconciler.slots.get(&WorkerKey::new(backend, output));
        slot.is_some_and(|slot| slot.sent.is_some())
    }
}

#[test]
fn order_carries_one_request() {
    let mut desk = desk(&["A", "B"]);
    let [one, two, three, four] = ["one", "two", "three", "four"].map(|name| desk.room.add(name));
    desk.set(one, &[]).unwrap();
    desk.script.lock().unwrap().orders.clear();
    let asked = [(two, "A"), (three, "A"), (four, "B")];
    let answers = asked.map(|(image, monitor)| desk.ask(image, &[monitor]));
    desk.settle();
    assert!(
        answers
            .iter()
            .all(|answer| answer.try_recv().unwrap().is_ok())
    );
    let order = |a, b| format!("swaybg: A={a} B={b}");
    let orders = desk.script.lock().unwrap().orders.clone();
    assert_eq!(
        orders,
        [order(two, one), order(three, one), order(three, four)]
    );
}

#[test]
fn worker_waits_while_another_brings_something_new_to_its_output() {
    let mut desk = desk(&["A"]);
    let (video, still) = (desk.video("video"), desk.room.add("still"));
    let (first, second) = (desk.ask(video, &["A"]), desk.ask(still, &["A"]));
    assert!(desk.is_told(Mpvpaper, "A") && !desk.is_told(Swaybg, "A"));
    desk.hear();
    assert!(first.try_recv().unwrap().is_ok() && desk.is_told(Swaybg, "A"));
    desk.settle();
    assert!(second.try_recv().unwrap().is_ok());
    // The same picture again is something new, too.
    let (first, second) = (desk.ask(still, &["A"]), desk.ask(video, &["A"]));
    assert!(desk.is_told(Swaybg, "A") && !desk.is_told(Mpvpaper, "A"));
    desk.settle();
    assert!(first.try_recv().unwrap().is_ok() && second.try_recv().unwrap().is_ok());
}

#[test]
fn worker_that_restarts_does_not_leave_outputs_one_by_one() {
    let mut desk = desk(&["A", "B"]);
    let (still, video) = (desk.room.add("still"), desk.video("video"));
    desk.set(still, &[]).unwrap();
    desk.orders();
    desk.set(video, &[]).unwrap();
    let shown = ["A", "B"].map(|name| format!("mpvpaper on {name}: {name}={video}"));
    assert_eq!(
        desk.orders(),
        [&shown[..], &["swaybg: -".to_owned()]].concat()
    );
}

#[test]
fn process_without_a_note_gets_the_pictures_of_all_requests_at_once() {
    let mut desk = desk(&["A", "B"]);
    let (video, [one, two]) = (
        desk.video("video"),
        ["one", "two"].map(|name| desk.room.add(name)),
    );
    desk.room.set(request(Ask::Image(video), &["B"]));
    let left = [WorkerKey::new(Swaybg, "A")];
    desk.reconciler.recovery.add_processes(left.into_iter());
    // The video is on its way, so that both requests wait.
    desk.reconciler.reconcile();
    let answers = [desk.ask(one, &["A"]), desk.ask(two, &["B"])];
    assert!(!desk.is_told(Swaybg, "A"));
    desk.settle();
    for answer in answers {
        assert!(answer.try_recv().unwrap().is_ok());
    }
}

#[test]
fn output_that_was_left_empty_stays_empty() {
    let mut desk = desk(&["A", "B"]);
    let id = desk.room.add("one");
    desk.set(id, &["A"]).unwrap();
    desk.reconcile();
    assert_eq!(desk.orders(), [format!("swaybg: A={id}")]);
}

#[test]
fn worker_leaves_an_output_only_for_the_desired_picture() {
    let mut desk = desk(&["A"]);
    let still = desk.room.add("still");
    let [older, newer] = ["older", "newer"].map(|name| desk.video(name));
    desk.set(still, &[]).unwrap();
    let answers = [older, newer].map(|video| desk.ask(video, &["A"]));
    desk.hear();
    assert_eq!(desk.image(Mpvpaper, "A"), Some(older));
    assert!(desk.is_told(Mpvpaper, "A") && !desk.is_told(Swaybg, "A"));
    desk.hear();
    assert!(desk.is_told(Swaybg, "A"));
    desk.settle();
    assert!(
        answers
            .iter()
            .all(|answer| answer.try_recv().unwrap().is_ok())
    );
}

#[test]
fn superseded_request_leaves_no_trace_and_a_request_settles_where_it_is_not_overtaken() {
    let mut desk = desk(&["A", "B"]);
    let [one, two, three, four] = ["one", "two", "three", "four"].map(|name| desk.room.add(name));
    let answers = [
        desk.ask(one, &[]),
        desk.ask(two, &[]),
        desk.ask(three, &["A", "B"]),
        desk.ask(four, &["B"]),
    ];
    desk.settle();
    let told = answers.map(|answer| {
        let applied = answer.try_recv().unwrap().unwrap();
        let (shown, lost) = (applied.monitors.join(" "), applied.overtaken.join(" "));
        (applied.outcome.as_str(), shown, lost)
    });
    let told: Vec<_> = told
        .iter()
        .map(|(status, shown, lost)| (*status, shown.as_str(), lost.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("set", "A B", ""),
            ("superseded", "A B", ""),
            ("set", "A", "B"),
            ("set", "B", "")
        ]
    );
    let rows = [("A".to_owned(), three), ("B".to_owned(), four)];
    assert_eq!(desk.room.rows(), rows.into());
    let history: Vec<i64> = desk
        .room
        .history()
        .iter()
        .map(|entry| entry.image_id)
        .collect();
    assert_eq!(history, [four, three, one]);
}

#[test]
fn step_back_over_a_waiting_picture_leads_to_the_one_that_is_shown() {
    let mut desk = desk(&["A"]);
    let ids = ["one", "two", "three", "four"].map(|name| desk.room.add(name));
    for id in &ids[..3] {
        desk.set(*id, &["A"]).unwrap();
    }
    let back = |desk: &mut Desk| {
        let (reply, answer) = reply();
        let back = request(Ask::Back(1), &["A"]);
        desk.reconciler.command(|one| one.set(back, reply));
        answer
    };
    // The first is in flight, so that the others wait.
    let shown = desk.ask(ids[3], &["A"]);
    let backs = [(); 3].map(|()| back(&mut desk));
    desk.settle();
    assert!(shown.try_recv().unwrap().is_ok());
    let outcomes = backs.map(|one| one.try_recv().unwrap().unwrap().outcome.as_str());
    assert_eq!(outcomes, ["superseded", "superseded", "set"]);
    // From the fourth to the third, to the second, to the first.
    assert_eq!(desk.room.rows()["A"], ids[0]);
}

#[test]
fn picture_of_a_playlist_for_a_new_monitor_does_not_replace_what_waits_there() {
    let mut desk = desk(&["A", "B"]);
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    let first = desk.ask(one, &["B"]);
    let (reply, second) = reply();
    let joins = Request {
        joins: true,
        ..request(Ask::Image(two), &["A", "B"])
    };
    desk.reconciler.set(joins, reply);
    desk.settle();
    assert_eq!(images_of(&first.try_recv().unwrap().unwrap()), [("B", one)]);
    let second = second.try_recv().unwrap().unwrap();
    assert_eq!(images_of(&second), [("A", two)]);
    assert_eq!(second.overtaken, ["B"]);
    let rows = [("A".to_owned(), two), ("B".to_owned(), one)];
    assert_eq!(desk.room.rows(), rows.into());
}

/// The playlist hears of a new monitor late, when a client has set a picture there.
#[test]
fn picture_of_a_playlist_for_a_new_monitor_does_not_replace_what_was_set_there_since_its_last_change()
 {
    let mut desk = desk(&["A", "B"]);
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    let playlist = |desk: &mut Desk, monitors: &[&str], joins| {
        let (reply, answer) = reply();
        let mut request = Request {
            joins,
            ..request(Ask::Image(two), monitors)
        };
        request.source.kind = Source::Playlist;
        request.source.playlist_id = Some(7);
        desk.reconciler.set(request, reply);
        desk.settle();
        answer.try_recv().unwrap().unwrap().outcome.as_str()
    };
    let shown = |desk: &Desk| ["A", "B"].map(|name| desk.room.rows().get(name).copied());
    assert_eq!(playlist(&mut desk, &["A"], false), "set");
    desk.set(one, &["B"]).unwrap();
    assert_eq!(playlist(&mut desk, &["B"], true), "superseded");
    assert_eq!(playlist(&mut desk, &["A", "B"], true), "set");
    assert_eq!(shown(&desk), [Some(two), Some(one)]);
    // The next change of the playlist takes the monitor.
    assert_eq!(playlist(&mut desk, &["A"], false), "set");
    assert_eq!(playlist(&mut desk, &["B"], true), "set");
    assert_eq!(shown(&desk), [Some(two), Some(two)]);
}

#[test]
fn failed_order_fails_no_request_that_waits_for_another_worker() {
    let mut desk = desk(&["A", "B"]);
    let (video, [one, two]) = (
        desk.video("video"),
        ["one", "two"].map(|name| desk.room.add(name)),
    );
    desk.set(one, &["B"]).unwrap();
    let failure = backends::Error::Refused("on purpose".to_owned());
    desk.fail(Swaybg, "B", failure);
    // The order that fails shows the picture on B again.
    let answers = [desk.ask(video, &["A"]), desk.ask(two, &["A"])];
    desk.change(settings_of(&[Swaybg]));
    for answer in answers {
        assert!(answer.try_recv().unwrap().is_ok());
    }
}

#[test]
fn requests_for_all_pictures_of_an_order_are_answered() {
    for fails in [false, true] {
        let mut desk = desk(&["A", "B"]);
        let [one, two, three, four] =
            ["one", "two", "three", "four"].map(|name| desk.room.add(name));
        desk.set(one, &[]).unwrap();
        let first = desk.ask(two, &["A"]);
        let answers = [desk.ask(three, &["A"]), desk.ask(four, &["B"])];
        // swaybg loads all files again, so its next order cannot keep this one on B.
        std::fs::remove_file(desk.room.path("one")).unwrap();
        let reports = desk.reconciler.workers.reports();
        let report = reports.recv_timeout(PATIENCE).expect("a report");
        if fails {
            let failure = backends::Error::Refused("on purpose".to_owned());
            desk.fail(Swaybg, "A", failure);
        }
        desk.reconciler.on_report(report);
        assert!(first.try_recv().unwrap().is_ok());
        let slot = desk.reconciler.slots.get(&WorkerKey::new(Swaybg, "A"));
        let sent = slot.and_then(|slot| slot.sent.clone()).unwrap();
        let images = sent.scene.values().map(|one| one.image_id);
        assert_eq!(images.collect::<Vec<_>>(), [three, four]);
        desk.settle();
        for answer in answers {
            assert_eq!(answer.try_recv().unwrap().is_err(), fails);
        }
    }
}

#[test]
fn output_whose_picture_was_deleted_shows_that_of_a_request_for_another() {
    let mut desk = desk(&["A", "B"]);
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    desk.set(one, &[]).unwrap();
    let delete = |c: &store::Transaction<'_>| purge::delete(c, &[one], false);
    desk.room.store.write(delete).unwrap();
    std::fs::remove_file(desk.room.path("one")).unwrap();
    desk.reconcile();
    desk.orders();
    desk.set(two, &["A"]).unwrap();
    assert_eq!(desk.orders(), [format!("swaybg: A={two} B={two}")]);
}

#[test]
fn backend_that_covers_every_output_shows_everything_unless_it_waits_for_a_retry() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "wal-qt-host"], |config| {
        config.backend.selection_mode = SelectionMode::Auto;
        config.auto_priorities.image = vec![Swaybg];
        config.auto_priorities.video = vec![WalQt];
    });
    let (still, video) = (desk.room.add("still"), desk.video("video"));
    desk.set(still, &[]).unwrap();
    desk.orders();
    desk.set(video, &["B"]).unwrap();
    let covers = format!("wal-qt: A={still} B={video}");
    assert_eq!(desk.orders(), ["swaybg: -", &covers]);
    let failure = backends::Error::Unavailable("on purpose".to_owned());
    desk.fail(WalQt, "B", failure);
    desk.reconciler.on_report(Report {
        key: WorkerKey::new(WalQt, "B"),
        worker: 2,
        news: News::Lost,
    });
    desk.settle();
    assert_eq!(desk.orders(), [format!("swaybg: A={still}"), covers]);
}
