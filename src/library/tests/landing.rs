//! Tests files that land together: in their order, in one transaction, each with its own result.

use super::*;
use crate::library::task::{Landed, Prepared, Ready};

impl Alive {
    fn ready(&self, source: &Path) -> Ready {
        let context = &self.library.context;
        match context.prepare(source, None, context.tools()) {
            Ok(Prepared::Copy(ready)) => *ready,
            _ => panic!("{} is not new", source.display()),
        }
    }

    fn land(&self, run: Vec<Prepared>) -> Vec<Landed> {
        let owner = &self.library.owner;
        owner.call(move |files| Ok(files.land_run(run))).unwrap()
    }
}

/// The image's name and whether it is a duplicate, or why the file has failed.
fn end(landed: &Landed) -> Result<(String, bool), String> {
    match landed {
        Ok(imported) => Ok((imported.image.name.clone(), imported.duplicate)),
        Err(error) => Err(error.reason()),
    }
}

/// New images get ascending ids in one transaction.
#[test]
fn files_that_are_ready_together_land_together() {
    let scene = Scene::new();
    let mut alive = scene.start();
    alive.reconciled();
    fs::create_dir(scene.at("source/b")).unwrap();
    let files = [
        ("a.png", 1),
        ("b/a.png", 2),
        ("same.png", 1),
        ("gone.png", 3),
        ("c.png", 4),
    ];
    let ready = files.map(|(name, seed)| alive.ready(&scene.source(name, png(seed))));
    fs::remove_file(&ready[3].copy.path).unwrap();
    let before = scene.store.generation();
    let landed = alive.land(ready.map(|one| Prepared::Copy(Box::new(one))).into());
    assert_eq!(scene.store.generation(), before + 1);
    let ids: Vec<_> = landed.iter().flatten().map(|one| one.image.id).collect();
    assert!(
        ids[0] == ids[2] && ids[0] < ids[1] && ids[1] < ids[3],
        "{ids:?}"
    );
    let expected = [
        ("a", false),
        ("a_1", false),
        ("a", true),
        ("", false),
        ("c", false),
    ];
    for (place, (name, duplicate)) in expected.into_iter().enumerate() {
        match end(&landed[place]) {
            Err(why) => assert!(place == 3 && why.starts_with("cannot rename "), "{why}"),
            end => assert_eq!(end, Ok((name.to_owned(), duplicate))),
        }
    }
    alive.end();
    assert_eq!(fs::read_dir(scene.at("images")).unwrap().count(), 3);
    assert!(scene.store.read(pending_files::list).unwrap().is_empty());
}

#[test]
fn image_for_a_deleted_folder_lands_at_the_root() {
    let scene = Scene::new();
    let mut alive = scene.start();
    alive.reconciled();
    let [there, gone] =
        ["there", "gone"].map(|name| alive.library.create_folder(name, None).unwrap().id);
    let ready = [(1, there), (2, gone)].map(|(seed, folder)| {
        let mut ready = alive.ready(&scene.source(&format!("{seed}.png"), png(seed)));
        ready.row.folder_id = Some(folder);
        ready
    });
    alive.library.delete_folder(gone, false).unwrap();
    let landed = alive.land(ready.map(|one| Prepared::Copy(Box::new(one))).into());
    let folders: Vec<_> = landed
        .iter()
        .map(|one| one.as_ref().unwrap().image.folder_id)
        .collect();
    assert_eq!(folders, [Some(there), None]);
    alive.end();
}

/// Each row follows its content, also if both files land in one run.
#[test]
fn files_in_place_that_swap_their_names_keep_their_rows() {
    let scene = Scene::new();
    let mut alive = scene.start();
    alive.reconciled();
    let files = [("a.png", 1), ("b.png", 2)].map(|(name, seed)| scene.source(name, png(seed)));
    let context = Arc::clone(alive.context());
    let take = || {
        let ready = |file: &PathBuf| match context.read_named(file, None, context.tools()) {
            Ok(ready) => ready,
            Err(error) => panic!("{}", error.reason()),
        };
        let landed = alive.land(files.iter().map(ready).collect());
        landed
            .iter()
            .map(|one| one.as_ref().unwrap().image.id)
            .collect::<Vec<_>>()
    };
    let [a, b] = take()[..] else {
        panic!("two files are two images")
    };
    let between = scene.at("source/between");
    for (from, to) in [
        (&files[0], &between),
        (&files[1], &files[0]),
        (&between, &files[1]),
    ] {
        fs::rename(from, to).unwrap();
    }
    assert_eq!(take(), [b, a]);
    let at = |path| {
        scene
            .store
            .read(|c| images::by_path(c, path))
            .unwrap()
            .map(|image| image.id)
    };
    assert_eq!([at(&files[0]), at(&files[1])], [Some(b), Some(a)]);
    alive.end();
}
