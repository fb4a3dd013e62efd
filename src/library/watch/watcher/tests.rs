//! Tests how the thread `watch` handles failures of the database.

use super::super::inbox::StatusList;
use super::*;
use crate::library::tests::Scene;

#[test]
fn directory_is_listed_again_if_the_database_fails() {
    let scene = Scene::new();
    let alive = scene.start();
    alive.reconciled();
    let now = Instant::now();
    let mut watcher = Watcher::new(
        (Inbox::new().unwrap(), StatusList::default()),
        Arc::clone(alive.context()),
        crossbeam_channel::bounded(1).0,
    );
    let task = task::Directory { path: scene.at("source"), ..task::Directory::default() };
    let mut one = Watched::new(1, "source".to_owned(), task, now);
    one.next_look(7, now).unwrap();
    watcher.state.directories.push(one);
    scene.damage("ALTER TABLE watched_file RENAME TO away");
    watcher.on_findings(7, &Findings::default(), Notices::new(|_| ()), now).unwrap_err();
    let one = &mut watcher.state.directories[0];
    let due = one.due().expect("another look");
    assert!(due > now, "not at once: it may go on failing");
    assert_eq!(one.next_look(8, due).unwrap().0, Scope::All);
}
