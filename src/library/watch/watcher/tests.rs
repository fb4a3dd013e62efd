//! Tests how the thread `watch` follows renamed files and handles failures of the database.

use std::fs;

use super::super::findings::Difference;
use super::super::inbox::StatusList;
use super::super::settings::GRACE;
use super::*;
use crate::library::tests::{Alive, Scene, png};
use crate::store::images;
use crate::store::watched::WatchedFile;

fn watcher(alive: &Alive, one: Watched) -> Watcher {
    let mut watcher = Watcher::new(
        (Inbox::new().unwrap(), StatusList::default()),
        Arc::clone(alive.context()),
        alive.owner(),
    );
    watcher.state.directories.push(one);
    watcher
}

#[test]
fn directory_is_listed_again_if_the_database_fails() {
    let scene = Scene::new();
    let alive = scene.start();
    alive.reconciled();
    let now = Instant::now();
    let task = task::Directory {
        path: scene.at("source"),
        ..task::Directory::default()
    };
    let mut one = Watched::new(1, "source".to_owned(), task, now);
    one.next_look(7, now).unwrap();
    let mut watcher = watcher(&alive, one);
    scene.damage("ALTER TABLE watched_file RENAME TO away");
    watcher
        .on_findings(7, &Findings::default(), Notices::new(|_| ()), now)
        .unwrap_err();
    let one = &mut watcher.state.directories[0];
    let due = one.due().expect("another look");
    assert!(due > now, "not at once: it may go on failing");
    assert_eq!(one.next_look(8, due).unwrap().0, Scope::All);
}

#[test]
fn file_stays_while_its_new_name_cannot_be_written() {
    let scene = Scene::new();
    let alive = scene.start();
    alive.reconciled();
    let begun = Instant::now();
    let task = task::Directory {
        path: scene.at("source"),
        ..task::Directory::default()
    };
    let mut one = Watched::new(1, "source".to_owned(), task, begun);
    let gone = || {
        let (path, stamp) = (scene.at("source/a"), Stamp::default());
        let file = WatchedFile {
            path,
            image_id: Some(1),
            checksum: None,
            stamp,
        };
        Difference {
            gone: vec![file],
            ..Difference::default()
        }
    };
    let now = begun + GRACE;
    one.absorb(gone(), &Scope::All, begun);
    one.absorb(gone(), &Scope::All, now);
    assert_eq!(one.leaving().len(), 1);
    let mut watcher = watcher(&alive, one);
    watcher.hear(Message::Taken {
        directory: 1,
        is_unsaved: false,
    });
    assert_eq!(watcher.state.directories[0].leaving().len(), 1);
    watcher.hear(Message::Taken {
        directory: 1,
        is_unsaved: true,
    });
    let one = &mut watcher.state.directories[0];
    assert_eq!(one.leaving().len(), 0);
    let due = one.due().expect("another look");
    one.look_for_gone(due);
    assert_eq!(one.next_look(8, due).unwrap().0, Scope::All);
}

#[test]
fn renamed_files_are_followed_without_an_import() {
    let scene = Scene::new();
    let alive = scene.start();
    alive.reconciled();
    let (context, now) = (Arc::clone(alive.context()), Instant::now());
    let files = [("a", 1), ("b", 2), ("c", 3)].map(|(name, seed)| scene.source(name, png(seed)));
    let take = |file| context.take_named(file, None, context.tools());
    let ids = files.each_ref().map(|file| {
        take(file)
            .and_then(|ready| alive.owner().call(move |files| files.land_one(ready)))
            .unwrap()
            .image
            .id
    });
    let [a, b, c] = &files;
    let [between, d] = ["source/.between", "source/d"].map(|name| scene.at(name));
    for (from, to) in [(a, &between), (b, a), (&between, b), (c, &d)] {
        fs::rename(from, to).unwrap();
    }
    let task = task::Directory {
        path: scene.at("source"),
        ..task::Directory::default()
    };
    let mut one = Watched::new(1, "source".to_owned(), task, now);
    let (scope, life) = one.next_look(7, now).unwrap();
    let directory = scene.at("source");
    let look = DirectoryLook {
        directory,
        scope,
        only: None,
        own: vec![],
        notices: None,
        life,
    };
    let (findings, notices) = look.run(|| Notices::new(|_| ()));
    let mut watcher = watcher(&alive, one);
    watcher.on_findings(7, &findings, notices, now).unwrap();
    let files = watcher.state.directories[0].next_files(|_, _| false);
    assert!(files.is_none(), "{files:?}");
    let at = |path| {
        context
            .store
            .read(|c| images::by_path(c, path))
            .unwrap()
            .unwrap()
    };
    assert_eq!([at(b).id, at(a).id, at(&d).id], ids);
    assert_eq!(at(&d).name, "d");
}
