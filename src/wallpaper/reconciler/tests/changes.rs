//! Tests the effects of requests, settings and other changes on the pictures shown.

use super::*;
use crate::compositor::Session;
use crate::config::BackendName::{Builtin, Feh, Mpvpaper, Swaybg};
use crate::config::SelectionMode;
use crate::wallpaper::handle::{Handle, INBOX};
use crate::wire::PauseReason;

#[test]
fn reconciler_ends_despite_a_full_inbox_and_answers_every_command() {
    let Desk {
        room, reconciler, ..
    } = Desk::new(&["A"], &["swaybg"], |_| ());
    let (handle, end, mailbox) = Handle::new(reconciler.status.clone());
    let ask = || {
        let (reply, answer) = reply();
        handle.activate("nothing".to_owned(), reply);
        answer
    };
    // Notes of changes take no place in the inbox.
    (0..99).for_each(|_| handle.rewritten());
    let answers: Vec<_> = (0..INBOX).map(|_| ask()).collect();
    assert!(answers.iter().all(Receiver::is_empty));
    assert!(matches!(ask().try_recv(), Ok(Err(Error::Busy))));
    drop(end);
    reconciler.run(&mailbox);
    assert!(answers.iter().all(|answer| answer.len() == 1));
    drop(room);
}

#[test]
fn still_stays_on_each_monitor_until_the_video_over_it_is_visible() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |_| ());
    let (still, video) = (desk.room.add("still"), desk.video("video"));
    desk.set(still, &[]).unwrap();
    desk.orders();
    desk.script.lock().unwrap().unseen = vec!["A".to_owned()];
    desk.set(video, &["A"]).unwrap();
    assert_eq!(desk.orders(), [format!("mpvpaper on A: A={video}")]);
    let seen = |desk: &mut Desk, worker, unseen: &[&str]| {
        let news = News::Unseen(unseen.iter().map(ToString::to_string).collect());
        let key = WorkerKey::new(Mpvpaper, "A");
        desk.reconciler.on_report(Report { key, worker, news });
        desk.settle();
        desk.orders()
    };
    assert_eq!(seen(&mut desk, 2, &["A"]), [""; 0]);
    // Reports of a replaced worker are ignored.
    assert_eq!(seen(&mut desk, 1, &[]), [""; 0]);
    assert_eq!(seen(&mut desk, 2, &[]), [format!("swaybg: B={still}")]);
}

#[test]
fn pictures_that_another_program_covers_get_new_surfaces_once() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |_| ());
    let (still, video) = (desk.room.add("still"), desk.video("video"));
    let bury = || Changes {
        buried: true,
        ..Changes::default()
    };
    assert_eq!(desk.change(bury()), [""; 0], "nothing is shown");
    desk.set(still, &["A"]).unwrap();
    desk.set(video, &["B"]).unwrap();
    desk.orders();
    let renewed = [
        "mpvpaper on B renewed".to_owned(),
        format!("mpvpaper on B: B={video}"),
        "swaybg renewed".to_owned(),
        format!("swaybg: A={still}"),
    ];
    assert_eq!(desk.change(bury()), renewed);
    desk.reconcile();
    assert_eq!(desk.orders(), [""; 0]);
    // An order that was sent before does not count.
    let answer = desk.ask(still, &["A"]);
    desk.reconciler.status.note(bury());
    desk.reconciler.on_settings();
    desk.settle();
    answer.try_recv().unwrap().unwrap();
    let orders = desk.orders();
    assert_eq!(orders[..3], renewed[..3]);
    assert_eq!(orders[3..], [&*renewed[3], &*renewed[3]]);
}

#[test]
fn waiting_video_is_restarted_above_a_still_whose_backend_restarts() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |_| ());
    let (still, video) = (desk.room.add("still"), desk.video("video"));
    desk.set(still, &[]).unwrap();
    desk.orders();
    desk.script.lock().unwrap().unseen = vec!["B".to_owned()];
    desk.set(video, &[]).unwrap();
    // The video on B is not restarted yet.
    assert_eq!(
        desk.orders(),
        ["A", "B"].map(|name| format!("mpvpaper on {name}: {name}={video}"))
    );
    let other = desk.room.add("other");
    desk.set(other, &["A"]).unwrap();
    let orders = [
        "mpvpaper on A: -".to_owned(),
        "mpvpaper on B renewed".to_owned(),
        format!("mpvpaper on B: B={video}"),
        format!("swaybg: A={other} B={still}"),
    ];
    assert_eq!(desk.orders(), orders);
    desk.reconcile();
    assert_eq!(desk.orders(), [""; 0]);
}

#[test]
fn random_request_skips_a_limited_number_of_missing_files() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let gone: Vec<i64> = (0..PICKS + 2)
        .map(|at| desk.room.add(&format!("gone{at}")))
        .collect();
    for at in 0..gone.len() {
        std::fs::remove_file(desk.room.path(&format!("gone{at}"))).unwrap();
    }
    let (tell, lost) = unbounded();
    desk.reconciler.tools.on_lost =
        Box::new(move |id, is_named| tell.send((id, is_named)).unwrap());
    let mut feasible = |ask| desk.reconciler.feasible(&request(ask, &[]));
    assert!(matches!(
        feasible(Ask::Image(gone[0])),
        Err(Error::FileGone { .. })
    ));
    assert!(lost.is_empty(), "one that is named is no random one");
    assert!(matches!(feasible(Ask::Random), Err(Error::FileGone { .. })));
    let lost = BTreeSet::from_iter(lost.try_iter());
    assert_eq!(lost.len(), PICKS, "each is reported once");
    assert!(lost.iter().all(|(_, is_named)| !is_named));
    let there = desk.room.add("there");
    let store = desk.room.store.clone();
    store
        .write(|c| store::images::set_missing(c, &gone, true))
        .unwrap();
    assert_eq!(feasible(Ask::Random).unwrap().applied.image.id, there);
}

#[test]
fn changed_settings_of_a_backend_show_its_pictures_again() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |_| ());
    let (still, video) = (desk.room.add("still"), desk.video("video"));
    desk.set(still, &["A"]).unwrap();
    desk.set(video, &["B"]).unwrap();
    desk.orders();
    assert_eq!(desk.change(settings_of(&[])), [""; 0]);
    assert_eq!(
        desk.change(settings_of(&[Swaybg])),
        [format!("swaybg: A={still}")]
    );
    assert_eq!(
        desk.change(settings_of(&[Mpvpaper])),
        [format!("mpvpaper on B: B={video}")]
    );
    // A rewritten file of an image that is not shown causes no order.
    let rewritten = Changes {
        rewritten: true,
        ..Changes::default()
    };
    assert_eq!(desk.change(rewritten), [""; 0]);
}

#[test]
fn settings_changed_during_a_request_apply_to_its_picture_too() {
    let mut desk = Desk::new(&["A", "B"], &["mpvpaper"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.video(name));
    desk.set(one, &[]).unwrap();
    desk.orders();
    let answer = desk.ask(two, &["A"]);
    let orders = desk.change(settings_of(&[Mpvpaper]));
    let [a, b] = [
        format!("mpvpaper on A: A={two}"),
        format!("mpvpaper on B: B={one}"),
    ];
    assert_eq!(orders, [a.clone(), a, b]);
    assert!(answer.try_recv().unwrap().is_ok());
    // The same for the first picture of a backend.
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let still = desk.room.add("still");
    let answer = desk.ask(still, &[]);
    let orders = format!("swaybg: A={still}");
    assert_eq!(
        desk.change(settings_of(&[Swaybg])),
        [orders.clone(), orders]
    );
    assert!(answer.try_recv().unwrap().is_ok());
}

#[test]
fn activated_backend_is_used_until_the_settings_change() {
    let mut desk = Desk::new(&["A"], &["awww", "awww-daemon", "swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.set(id, &[]).unwrap();
    let back = [format!("awww: A={id}"), "swaybg: -".to_owned()];
    let activate = |desk: &mut Desk| {
        desk.activate("swaybg").unwrap();
        desk.orders();
    };
    activate(&mut desk);
    assert_eq!(desk.change(settings_of(&[])), [""; 0]);
    // The activation could not be written to the settings.
    let deactivated = Changes {
        deactivated: true,
        ..settings_of(&[])
    };
    assert_eq!(desk.change(deactivated), back);
    activate(&mut desk);
    let mut config = Config::clone(&(desk.room.backends.settings)());
    config.backend.selection_mode = SelectionMode::Auto;
    let config = Arc::new(config);
    desk.reconciler.tools.backends.settings = Arc::new(move || Arc::clone(&config));
    assert_eq!(desk.change(settings_of(&[])), back);
}

#[test]
fn backend_installed_while_builtin_draws_is_used_once_activated() {
    let mut desk = Desk::from_room(Room::new(outputs(&["A"])));
    let id = desk.room.add("one");
    assert_eq!(desk.set(id, &[]).unwrap().backend, Builtin);
    desk.room.install("swaybg");
    desk.orders();
    desk.reconcile();
    assert_eq!(desk.orders(), [""; 0]);
    assert_eq!(desk.set(id, &[]).unwrap().backend, Builtin);
    desk.orders();
    desk.activate("swaybg").unwrap();
    assert_eq!(
        desk.orders(),
        ["builtin: -".to_owned(), format!("swaybg: A={id}")]
    );
}

#[test]
fn backend_installed_while_builtin_is_restarted_is_not_used_either() {
    let prefer = |config: &mut Config| config.backend.kind = Swaybg;
    let mut desk = Desk::from_room(Room::with(outputs(&["A"]), &[], prefer));
    let id = desk.room.add("one");
    assert_eq!(desk.set(id, &[]).unwrap().backend, Builtin);
    desk.reconciler.on_report(Report {
        key: WorkerKey::new(Builtin, "A"),
        worker: 1,
        news: News::Lost,
    });
    desk.room.install("swaybg");
    let answer = desk.ask(id, &["A"]);
    desk.settle();
    assert_eq!(answer.try_recv().unwrap().unwrap().backend, Builtin);
}

#[test]
fn process_of_an_earlier_daemon_is_adopted_without_its_image() {
    let mut room = Room::with(outputs(&["A"]), &["feh"], |config| {
        config.builtin.enabled = false
    });
    let session = Session::X11 {
        display: ":7".to_owned(),
    };
    room.backends.outputs = Outputs::fixed(session, outputs(&["A"]));
    let path = room.path("file");
    std::fs::write(&path, "").unwrap();
    let shown = Placement {
        path,
        ..placement("A", 99)
    };
    let left = Placements::from([(WorkerKey::new(Feh, "A"), vec![shown])]);
    Recovery::open(&room.backends).note(&left);
    let mut desk = Desk::from_room(room);
    desk.reconcile();
    assert_eq!(desk.orders(), ["feh: A=99"]);
    assert_eq!(desk.reconciler.slots.shown(), left);
    desk.reconcile();
    assert_eq!(desk.orders(), [""; 0]);
}

#[test]
fn clearing_does_not_wait_for_orders_in_flight() {
    let mut desk = Desk::new(&["A", "B"], &["mpvpaper"], |_| ());
    let video = desk.video("video");
    desk.set(video, &["B"]).unwrap();
    let refused = [desk.ask(video, &["A"]), desk.ask(video, &["A"])];
    let (reply, cleared) = reply();
    desk.reconciler.command(|one| one.clear(reply));
    assert!(
        refused
            .iter()
            .all(|one| matches!(one.try_recv().unwrap(), Err(Error::Ending)))
    );
    desk.settle();
    cleared.try_recv().unwrap().unwrap();
    assert!(desk.orders().contains(&"mpvpaper on B: -".to_owned()));
    assert!(desk.reconciler.slots.shown().is_empty());
}

#[test]
fn videos_are_paused_during_a_pause() {
    let mut desk = Desk::new(&["A"], &["mpvpaper"], |_| ());
    let video = desk.video("video");
    desk.set(video, &[]).unwrap();
    let mut rest = |rests: bool| {
        desk.change(Changes {
            paused: Some(rests.then_some(PauseReason::Idle)),
            ..Changes::default()
        });
        let expected = rests.then(|| "A".to_owned()).into_iter().collect();
        // A video that an earlier daemon paused stays paused until it is known whether there is a pause.
        assert_eq!(desk.paused.recv_timeout(PATIENCE), Ok(expected));
    };
    rest(true);
    // A video does not play before it is known whether a window covers it.
    desk.change(Changes {
        paused: Some(None),
        ..Changes::default()
    });
    assert!(desk.paused.is_empty());
    desk.change(Changes {
        covered: Some(BTreeSet::new()),
        ..Changes::default()
    });
    assert_eq!(desk.paused.recv_timeout(PATIENCE), Ok(BTreeSet::new()));
}
