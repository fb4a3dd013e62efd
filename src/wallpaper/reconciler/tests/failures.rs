//! Tests the handling of failed orders.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::compositor::ipc::Visible;
use crate::config::BackendName::{Awww, Mpvpaper, Swaybg, WalQt};
use crate::config::SelectionMode;
use crate::store::purge;

fn away() -> backends::Error {
    backends::Error::Unavailable("on purpose".to_owned())
}

fn refused() -> backends::Error {
    backends::Error::Refused("on purpose".to_owned())
}

fn moved(name: &str) -> Output {
    Output {
        x: 7,
        ..Output::plain(name)
    }
}

#[test]
fn outage_is_reported_when_it_begins_and_when_the_retries_end() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.room.set(request(Ask::Image(id), &[]));
    let both = [
        EventKind::WallpaperRestoreFailed,
        EventKind::BackendUnavailable,
    ];
    for attempt in 0..6 {
        desk.fail(Swaybg, "A", away());
        desk.reconcile();
        assert_eq!(desk.orders(), [format!("swaybg: A={id}")]);
        let expected = match attempt {
            0 => &both[..],
            5 => &both[1..],
            _ => &[],
        };
        assert_eq!(desk.heard(), expected, "attempt {attempt}");
        // There is no retry before its time.
        desk.reconcile();
        assert_eq!(desk.orders(), [""; 0]);
        let at = desk.reconciler.slots.backoffs.next_retry();
        assert_eq!(at.is_some(), attempt < 5);
        desk.reconciler
            .slots
            .backoffs
            .wake(at.unwrap_or_else(Instant::now));
    }
    desk.set(id, &["A"]).unwrap();
    assert_eq!(desk.heard(), [EventKind::WallpaperChanged]);
}

#[test]
fn backend_that_refuses_a_picture_is_not_unavailable() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.room.set(request(Ask::Image(id), &[]));
    desk.fail(Swaybg, "A", refused());
    desk.reconcile();
    assert_eq!(desk.heard(), [EventKind::WallpaperRestoreFailed]);
    assert!(desk.reconciler.slots.backoffs.next_retry().is_none());
}

#[test]
fn failure_during_a_change_of_outputs_is_planned_again() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.fail(Swaybg, "A", refused());
    let answer = desk.ask(id, &["A"]);
    desk.connect(vec![moved("A")]);
    desk.settle();
    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!(desk.orders().len(), 2);
    assert_eq!(
        desk.reconciler.slots.shown()[&WorkerKey::new(Swaybg, "A")][0]
            .output
            .x,
        7
    );
    // Steps without a request are planned again too, without an error.
    desk.heard();
    desk.connect(vec![moved("A"), Output::plain("B")]);
    desk.room.set(request(Ask::Image(id), &["A", "B"]));
    desk.fail(Swaybg, "A", away());
    desk.reconciler.reconcile();
    desk.connect(vec![moved("A"), moved("B")]);
    desk.settle();
    assert_eq!(desk.orders().len(), 2);
    assert_eq!(desk.heard(), [EventKind::WallpaperChanged]);
    // A failure is reported if the outputs have not changed.
    desk.fail(Swaybg, "A", refused());
    assert!(matches!(
        desk.set(id, &["A"]),
        Err(Error::Backend {
            backend: Swaybg,
            ..
        })
    ));
}

#[test]
fn request_fails_if_its_monitor_is_disconnected() {
    let mut desk = Desk::new(&["A", "B"], &["mpvpaper"], |_| ());
    let video = desk.video("video");
    desk.fail(Mpvpaper, "B", away());
    let answer = desk.ask(video, &["B"]);
    desk.connect(outputs(&["A"]));
    desk.settle();
    let answer = answer.try_recv().unwrap();
    assert!(matches!(
        answer,
        Err(Error::Backend {
            backend: Mpvpaper,
            ..
        })
    ));
    assert_eq!(desk.heard(), [EventKind::WallpaperApplyFailed]);
}

#[test]
fn picture_shown_on_only_some_monitors_is_taken_back() {
    let mut desk = Desk::new(&["A", "B"], &["mpvpaper"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.video(name));
    desk.set(one, &[]).unwrap();
    desk.orders();
    desk.fail(Mpvpaper, "B", refused());
    assert!(desk.set(two, &[]).is_err());
    let orders = desk.orders();
    assert!(
        orders.contains(&format!("mpvpaper on A: A={one}")),
        "{orders:?}"
    );
    let shown = |name: &str| desk.image(Mpvpaper, name).unwrap();
    assert_eq!([shown("A"), shown("B")], [one, one]);
}

#[test]
fn worker_that_fails_shows_its_old_pictures_again() {
    let mut desk = Desk::new(&["A", "B"], &["awww", "awww-daemon"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    desk.set(one, &[]).unwrap();
    desk.orders();
    // The backend may have shown the picture on A before it failed on B.
    desk.fail(Awww, "A", refused());
    assert!(desk.set(two, &[]).is_err());
    let [old, new] = [one, two].map(|id| format!("awww: A={id} B={id}"));
    assert_eq!(desk.orders(), [old, new]);
}

#[test]
fn activation_fails_if_the_new_backend_fails_but_not_if_the_old_one_does() {
    let mut desk = Desk::new(&["A"], &["awww", "awww-daemon", "swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.set(id, &[]).unwrap();
    assert_eq!(desk.orders(), [format!("awww: A={id}")]);
    desk.fail(Swaybg, "A", refused());
    assert!(matches!(
        desk.activate("swaybg"),
        Err(Error::Backend {
            backend: Swaybg,
            ..
        })
    ));
    assert!(desk.reconciler.inputs.activated.is_none());
    assert_eq!(desk.image(Awww, "A"), Some(id));
    desk.fail(Awww, "A", refused());
    assert_eq!(desk.activate("swaybg").unwrap().backend, Swaybg);
    assert_eq!(desk.image(Swaybg, "A"), Some(id));
}

#[test]
fn partial_activation_that_fails_is_undone() {
    let mut desk = Desk::new(&["A", "B"], &["wal-qt-host", "mpvpaper"], |config| {
        config.backend.kind = WalQt;
    });
    let video = desk.video("video");
    assert_eq!(desk.set(video, &[]).unwrap().backend, WalQt);
    desk.orders();
    desk.fail(Mpvpaper, "B", refused());
    assert!(matches!(
        desk.activate("mpvpaper"),
        Err(Error::Backend {
            backend: Mpvpaper,
            ..
        })
    ));
    assert!(desk.orders().contains(&"mpvpaper on A: -".to_owned()));
    let shown = desk.reconciler.slots.shown();
    assert!(shown.keys().eq([&WorkerKey::new(WalQt, "A")]));
}

#[test]
fn request_fails_if_its_image_is_deleted_meanwhile() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    desk.set(one, &["A"]).unwrap();
    desk.heard();
    let answer = desk.ask(two, &["A"]);
    desk.room
        .store
        .write(|c| purge::delete(c, &[two], false))
        .unwrap();
    desk.settle();
    let answer = answer.try_recv().unwrap();
    assert!(
        matches!(answer, Err(Error::NoImage { id }) if id == two),
        "{answer:?}"
    );
    assert_eq!(desk.image(Swaybg, "A").unwrap(), one);
    assert_eq!(desk.heard(), [], "the other was never announced");
}

#[test]
fn picture_that_cannot_be_saved_is_replaced_by_the_previous_one() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.room.add(name));
    desk.set(one, &["A"]).unwrap();
    let full = "CREATE TRIGGER full BEFORE INSERT ON assignments \
                BEGIN SELECT RAISE(FAIL, 'full'); END";
    desk.room
        .store
        .write(|c| Ok::<_, store::Error>(c.execute_batch(full)?))
        .unwrap();
    desk.orders();
    desk.heard();
    assert!(desk.set(two, &["A"]).is_err());
    assert_eq!(
        desk.orders(),
        [format!("swaybg: A={one}"), format!("swaybg: A={two}")]
    );
    assert_eq!(desk.heard(), []);
    assert_eq!(desk.image(Swaybg, "A").unwrap(), one);
}

#[test]
fn picture_that_no_backend_can_show_any_more_is_reported_once() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |config| {
        config.backend.selection_mode = SelectionMode::Auto;
    });
    let video = desk.video("video");
    desk.set(video, &["A"]).unwrap();
    desk.heard();
    let program = desk.room.directory.path().join("bin/mpvpaper");
    let bytes = fs::read(&program).unwrap();
    fs::remove_file(&program).unwrap();
    desk.reconcile();
    assert_eq!(desk.heard(), [], "it runs still");
    let key = WorkerKey::new(Mpvpaper, "A");
    desk.reconciler.on_report(Report {
        key,
        worker: 1,
        news: News::Lost,
    });
    desk.settle();
    assert_eq!(desk.heard(), [EventKind::WallpaperRestoreFailed]);
    let failure = |desk: &Desk| desk.reconciler.status.failure("A");
    let failed = failure(&desk).unwrap();
    assert_eq!(failed.image_id, video);
    assert!(
        failed
            .error
            .ends_with("cannot show \"video\", which is a video"),
        "{}",
        failed.error
    );
    desk.reconcile();
    assert_eq!(desk.heard(), []);
    // The program is installed again.
    fs::write(&program, bytes).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    desk.reconcile();
    assert_eq!(desk.heard(), [EventKind::WallpaperChanged]);
}

#[test]
fn assignment_is_shown_if_the_picture_of_a_workspace_cannot_be() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |config| {
        let entries = [("3", "good"), ("4", "bad")];
        config.workspaces = entries
            .map(|(key, image)| (key.into(), image.into()))
            .into();
    });
    let [still, good, bad] = ["still", "good", "bad"].map(|name| desk.room.add(name));
    desk.set(still, &[]).unwrap();
    desk.orders();
    let show = |desk: &mut Desk, name: &str| {
        let (output, name) = ("A".to_owned(), name.to_owned());
        desk.reconciler.status.show_workspaces(
            true,
            vec![Visible {
                output,
                name,
                place: 0,
            }],
        );
        desk.reconcile();
        desk.settle();
        desk.orders()
    };
    assert_eq!(show(&mut desk, "3"), [format!("swaybg: A={good}")]);
    let both = [format!("swaybg: A={still}"), format!("swaybg: A={bad}")];
    for _ in 0..2 {
        desk.fail(Swaybg, "A", refused());
        assert_eq!(show(&mut desk, "4"), both);
        let (reply, answer) = reply();
        desk.reconciler.command(|one| reply(one.workspaces()));
        let entry = answer.try_recv().unwrap().unwrap().pop().unwrap();
        assert_eq!(
            (entry.image_id, entry.warning.as_deref()),
            (None, Some("on purpose"))
        );
        // The picture is tried again when the workspace is shown again.
        assert_eq!(show(&mut desk, "1"), [""; 0]);
    }
    assert_eq!(show(&mut desk, "4"), [format!("swaybg: A={bad}")]);
}

#[test]
fn settle_is_answered_once_no_order_is_in_flight() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    let shown = desk.ask(id, &[]);
    let (reply, settled) = reply();
    desk.reconciler.command(|one| one.settle(reply));
    assert!(settled.is_empty());
    desk.settle();
    assert!(shown.try_recv().unwrap().is_ok() && settled.try_recv().unwrap().is_ok());
}
