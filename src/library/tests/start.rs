//! Tests repairs at a start: files without rows, rows without files, unmounted disks.

use std::fs::{File, FileTimes};

use super::super::disk::stamp;
use super::*;

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
