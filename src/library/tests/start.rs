//! Tests repairs at a start: files without rows, rows without files, unmounted disks.

use std::fs::{File, FileTimes};

use super::super::disk::stamp;
use super::*;
use crate::events::{Message, Subscription};

#[test]
fn start_cleans_up_after_the_last_run() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths = ["stays.png", "lost.png"].iter().enumerate();
    let paths = paths
        .map(|(n, name)| scene.source(name, png(n as u8)))
        .collect();
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    alive.end();

    let lost = scene.at("images/lost.png");
    fs::remove_file(&lost).unwrap();
    fs::write(scene.at("images/.murald-import-7"), "half").unwrap();
    fs::write(scene.at("thumbnails/default/.new-3"), "half").unwrap();
    fs::write(scene.at("images/half.png"), png(77)).unwrap();
    scene
        .store
        .write(|c| pending_files::mark(c, &scene.at("images/half.png"), None))
        .unwrap();
    // Noted as pending, but it has a row: the file stays.
    scene
        .store
        .write(|c| pending_files::mark(c, &scene.at("images/stays.png"), None))
        .unwrap();
    fs::write(scene.at("images/dropped.png"), png(50)).unwrap();
    fs::write(scene.at("images/stays.jpg"), png(51)).unwrap();
    fs::write(scene.at("images/notes.txt"), "mine").unwrap();

    let mut alive = scene.start();
    alive.reconciled();
    let names = || -> Vec<_> { scene.images().into_iter().map(|image| image.name).collect() };
    assert_eq!(names(), ["lost", "stays"]);
    assert_eq!(alive.library.health().missing, 1);
    for gone in [
        "images/half.png",
        "images/.murald-import-7",
        "thumbnails/default/.new-3",
    ] {
        assert!(!scene.at(gone).exists(), "{gone}");
    }
    for kept in ["images/dropped.png", "images/stays.jpg", "images/notes.txt"] {
        assert!(scene.at(kept).exists(), "{kept}");
    }
    assert_eq!(alive.library.purge_missing().unwrap(), 1);
    assert_eq!(names(), ["stays"]);
    alive.end();
}

#[test]
fn rows_are_kept_while_their_disk_is_unmounted() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths = (0..3)
        .map(|n| scene.source(&format!("{n}.png"), png(n)))
        .collect();
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    alive.end();
    fs::rename(scene.at("images"), scene.at("elsewhere")).unwrap();
    let mut alive = scene.start();
    alive.reconciled();
    assert_eq!(alive.library.health().missing, 3);
    assert_eq!(scene.images().len(), 3);
    assert!(
        !scene.at("images").exists(),
        "it would hide that a disk is away"
    );
    // No file is imported while the directory is missing or empty.
    let other = scene.source("other.png", png(7));
    let take = |alive: &Alive| {
        let started = alive.library.import(vec![other.clone()], None).unwrap();
        let events = alive.batch(&started.batch_id);
        of(&events, "image_error")
            .first()
            .map(|error| error["error"].to_string())
    };
    let refused = "is missing or empty: mount its disk";
    assert!(take(&alive).unwrap().contains(refused));
    assert!(!scene.at("images").exists());
    fs::create_dir(scene.at("images")).unwrap();
    fs::write(scene.at("images/.murald-import-0"), "half").unwrap();
    assert!(take(&alive).unwrap().contains(refused));
    fs::remove_dir_all(scene.at("images")).unwrap();
    fs::rename(scene.at("elsewhere"), scene.at("images")).unwrap();
    assert_eq!(take(&alive), None);
    alive.library.scan().unwrap();
    assert_eq!(alive.library.health().missing, 0, "the files are back");
    alive.end();
    scene.check_agreement();
}

#[test]
fn file_that_replaced_a_pending_one_is_kept() {
    for moved in [true, false] {
        let scene = Scene::new();
        let half = scene.at("images/half.png");
        fs::create_dir_all(scene.at("images")).unwrap();
        fs::write(&half, png(7)).unwrap();
        let noted = stamp(&half.metadata().unwrap());
        scene
            .store
            .write(|c| pending_files::mark(c, &half, Some(&noted)))
            .unwrap();
        // Another file with the same time is moved here, or the same file is rewritten.
        if moved {
            let new = scene.at("new");
            fs::write(&new, png(7)).unwrap();
            let times = FileTimes::new().set_modified(half.metadata().unwrap().modified().unwrap());
            File::options()
                .write(true)
                .open(&new)
                .unwrap()
                .set_times(times)
                .unwrap();
            fs::rename(&new, &half).unwrap();
        } else {
            fs::write(&half, png(8)).unwrap();
        }
        let mut alive = scene.start();
        alive.reconciled();
        alive.end();
        assert!(half.exists());
    }
    // An unchanged pending file is removed, and so is a half-removed package.
    let scene = Scene::new();
    fs::create_dir_all(scene.at("images/page")).unwrap();
    fs::write(scene.at("images/page/index.html"), "<p>").unwrap();
    fs::write(scene.at("images/half.png"), png(7)).unwrap();
    for name in ["images/page", "images/half.png"] {
        let path = scene.at(name);
        let noted = stamp(&path.metadata().unwrap());
        scene
            .store
            .write(|c| pending_files::mark(c, &path, Some(&noted)))
            .unwrap();
    }
    fs::remove_file(scene.at("images/page/index.html")).unwrap();
    // A pending file of the same stem that the last run has already removed.
    scene
        .store
        .write(|c| pending_files::mark(c, &scene.at("images/half.jpg"), None))
        .unwrap();
    let mut alive = scene.start();
    alive.reconciled();
    alive.end();
    assert_eq!(fs::read_dir(scene.at("images")).unwrap().count(), 0);
    assert!(scene.store.read(pending_files::list).unwrap().is_empty());
}

#[test]
fn image_that_a_request_did_not_find_is_removed_only_if_its_file_is_gone_for_good() {
    let check = |why: &str, spoil: &dyn Fn(&Scene), expected: (usize, bool)| {
        let scene = Scene::new();
        let mut alive = scene.start();
        alive.reconciled();
        let paths = (0..2)
            .map(|n| scene.source(&format!("{n}.png"), png(n)))
            .collect();
        let started = alive.library.import(paths, None).unwrap();
        alive.batch(&started.batch_id);
        let id = scene.images()[0].id;
        let events = scene.bus.subscribe(EventFilter::ALL, || ());
        spoil(&scene);
        let (rows, is_marked) = expected;
        alive.library.on_lost()(id, false);
        settle(&alive);
        assert_eq!(scene.images().len(), 2, "{why}: nobody has named it");
        assert_eq!(scene.store.missing().contains(&id), is_marked, "{why}");
        alive.library.on_lost()(id, true);
        settle(&alive);
        assert_eq!(scene.images().len(), rows, "{why}");
        let reasons = purged(&events);
        assert_eq!(reasons.len(), 2 - rows, "{why}: {reasons:?}");
        alive.end();
    };
    let file = |scene: &Scene, name: &str| fs::remove_file(scene.at("images").join(name)).unwrap();
    check("it is there", &|_| (), (2, false));
    check("it is gone", &|scene| file(scene, "0.png"), (1, true));
    check(
        "the library's disk is away",
        &|scene| fs::rename(scene.at("images"), scene.at("away")).unwrap(),
        (2, false),
    );
    check(
        "the library's disk is not mounted",
        &|scene| ["0.png", "1.png"].iter().for_each(|name| file(scene, name)),
        (2, false),
    );
    check(
        "a link's disk is not mounted",
        &|scene| {
            file(scene, "0.png");
            std::os::unix::fs::symlink("/nowhere/a", scene.at("images/0.png")).unwrap();
        },
        (2, false),
    );
}

#[test]
fn references_to_a_lost_row_are_removed_once() {
    let scene = Scene::new();
    let mut alive = scene.start();
    alive.reconciled();
    // No code of murald leaves such a reference.
    let stale = "INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, backend) \
                 VALUES (98, 'x', '[]', 'clone', 1, 'manual', 'feh')";
    scene
        .store
        .write(|c| Ok::<_, store::Error>(c.execute(stale, [])?))
        .unwrap();
    let events = scene.bus.subscribe(EventFilter::ALL, || ());
    let ask = || {
        for id in [98, 99] {
            alive.library.on_lost()(id, true);
        }
        settle(&alive);
        purged(&events)
    };
    assert_eq!(ask(), ["row_missing"]);
    assert_eq!(ask(), [""; 0]);
    alive.end();
}

/// Why images were removed, since the last call.
fn purged(events: &Subscription) -> Vec<String> {
    let messages = events.receiver().try_iter();
    let purged = messages.filter(|message| message.kind.as_str() == "image_orphan_purged");
    let reason = |message: Message| -> String {
        let event: Value = serde_json::from_str(&message.json).unwrap();
        event["reason"].as_str().unwrap().to_owned()
    };
    purged.map(reason).collect()
}

/// Waits until the thread `library` has carried out what was asked of it before.
fn settle(alive: &Alive) {
    alive.library.owner.call(|_| Ok(())).unwrap();
}
