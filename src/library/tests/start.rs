//! Tests repairs at a start: files without rows, rows without files, unmounted disks.

use std::fs::{File, FileTimes};

use super::super::disk::stamp;
use super::*;
use crate::store::edits::{self, Rename};
use crate::store::purge;
use crate::wire::LibraryHealth;

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
    let purged = alive.next();
    assert_eq!(purged["event"], "image_orphan_purged");
    assert_eq!(purged["reason"], "file_missing");
    // One event for the purged image, one for the adopted ones.
    assert_eq!(alive.next()["event"], "gallery_changed");
    assert_eq!(alive.next()["event"], "gallery_changed");
    let names: Vec<_> = scene.images().into_iter().map(|image| image.name).collect();
    assert_eq!(names, ["dropped", "stays", "stays_1"]);
    alive.end();
    // A file that is no picture stays, without a row.
    fs::remove_file(scene.at("images/notes.txt")).unwrap();
    scene.check_agreement();
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
    let expected = LibraryHealth {
        missing: 3,
        guarded: true,
    };
    assert_eq!(alive.library.health(), expected);
    assert_eq!(scene.images().len(), 3);
    assert!(
        !scene.at("images").exists(),
        "it would hide that a disk is away"
    );
    // No file is imported while the directory is missing.
    let other = scene.source("other.png", png(7));
    let take = |alive: &Alive| {
        let started = alive.library.import(vec![other.clone()], None).unwrap();
        let events = alive.batch(&started.batch_id);
        of(&events, "image_error")
            .first()
            .map(|error| error["error"].to_string())
    };
    assert!(take(&alive).unwrap().contains("is missing: mount its disk"));
    assert!(!scene.at("images").exists());
    // An empty directory accepts imports. The rows stay, although three missing files of four would
    // not be many.
    fs::create_dir(scene.at("images")).unwrap();
    assert_eq!(take(&alive), None);
    assert_eq!(alive.library.health(), expected);
    alive.end();
    let mut alive = scene.start();
    alive.reconciled();
    assert_eq!(
        (alive.library.health(), scene.images().len()),
        (expected, 4)
    );
    fs::rename(
        scene.at("images/other.png"),
        scene.at("elsewhere/other.png"),
    )
    .unwrap();
    fs::remove_dir(scene.at("images")).unwrap();
    fs::rename(scene.at("elsewhere"), scene.at("images")).unwrap();
    assert_eq!(
        alive.library.health(),
        LibraryHealth::default(),
        "the files are back"
    );
    alive.end();
    scene.check_agreement();
    assert!(!scene.store.read(purge::is_guarded).unwrap());
}

#[test]
fn rows_of_a_former_library_directory_are_kept() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let import = |alive: &Alive, name: &str, seed| {
        let started = alive
            .library
            .import(vec![scene.source(name, png(seed))], None)
            .unwrap();
        alive.batch(&started.batch_id);
    };
    import(&alive, "old.png", 1);
    // A copy in a former directory of the library, whose disk is unmounted.
    let image = scene.images().remove(0);
    let to = scene.at("old/old.png");
    let moved = Rename {
        image_id: image.id,
        from: image.path.clone(),
        to,
    };
    scene
        .store
        .write(|c| edits::finish_rename(c, &image, &moved, "old"))
        .unwrap();
    fs::remove_dir_all(scene.at("images")).unwrap();
    // The next import creates the directory again.
    import(&alive, "new.png", 2);
    import(&alive, "lost.png", 3);
    alive.end();
    fs::remove_file(scene.at("images/lost.png")).unwrap();
    let mut alive = scene.start();
    assert_eq!(alive.next()["event"], "image_orphan_purged");
    assert_eq!(alive.next()["domain"], "images");
    let names: Vec<_> = scene.images().into_iter().map(|image| image.name).collect();
    assert_eq!(names, ["new", "old"]);
    alive.end();
}

#[test]
fn renamed_file_keeps_its_row() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths = ["a.png", "b.png", "c.png"].iter().enumerate();
    let paths = paths
        .map(|(n, name)| scene.source(name, png(n as u8)))
        .collect();
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    alive.end();
    let ids = |name: &str| {
        scene
            .images()
            .iter()
            .find(|image| image.name == name)
            .map(|image| image.id)
    };
    let (a, c) = (ids("a"), ids("c"));
    let rename = |from: &str, to: &str| {
        fs::rename(
            scene.at(&format!("images/{from}")),
            scene.at(&format!("images/{to}")),
        )
        .unwrap();
    };
    rename("a.png", "lake.png");
    fs::copy(scene.at("images/lake.png"), scene.at("images/the lake.png")).unwrap();
    // A file whose new name is not valid for a picture is imported as a new one.
    rename("c.png", ".c.png");
    let mut alive = scene.start();
    while alive.next()["event"] != "gallery_changed" {}
    alive.end();
    let mut alive = scene.start();
    alive.reconciled();
    assert_eq!((ids("lake"), ids("the lake"), ids("a")), (a, None, None));
    // The file is adopted after the reconciliation.
    let deadline = Instant::now() + Duration::from_secs(60);
    while ids("c").is_none_or(|now| Some(now) == c) {
        assert!(Instant::now() < deadline, "{:?} was {c:?}", ids("c"));
        std::thread::sleep(Duration::from_millis(5));
    }
    alive.end();
    fs::remove_file(scene.at("images/the lake.png")).unwrap();
    scene.check_agreement();
}

#[test]
fn rewritten_file_keeps_its_row() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let source = scene.source("a.png", png(1));
    let started = alive.library.import(vec![source.clone()], None).unwrap();
    alive.batch(&started.batch_id);
    alive.end();
    let before = scene.images().remove(0);
    let other = ImageBuffer::from_pixel(9, 7, Rgb([1, 2, 3]));
    DynamicImage::ImageRgb8(other).save(&before.path).unwrap();
    let mut alive = scene.start();
    assert_eq!(alive.next()["event"], "gallery_changed");
    let after = scene.images().remove(0);
    assert_eq!(
        (after.id, &after.name, &after.path),
        (before.id, &before.name, &before.path)
    );
    assert_eq!((after.width, after.height), (9, 7));
    assert_eq!(after.file_size, before.path.metadata().unwrap().len());
    // The replaced content is no longer a duplicate.
    let started = alive.library.import(vec![source], None).unwrap();
    assert_ne!(
        of(&alive.batch(&started.batch_id), "image_processed")[0]["duplicate"],
        true
    );
    alive.end();
    assert_eq!(scene.images().len(), 2);
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
        assert_eq!(alive.next()["event"], "gallery_changed", "it has a row now");
        alive.end();
        scene.check_agreement();
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
