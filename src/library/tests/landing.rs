//! Files that land together: in their order and in one transaction, and each with an end of its own.

use super::*;
use crate::library::commit_order::{Turn, Turns};
use crate::library::name::Name;
use crate::library::task::{Landed, Ready};

impl Alive {
    fn ready(&self, source: &Path) -> Ready {
        let (context, never) = (&self.library.context, || false);
        let mut copy = context.new_copy();
        copy.fill(source, &mut fs::File::open(source).unwrap(), &never).unwrap();
        let row = context.describe(source, &copy, None, &never).unwrap();
        Ready { name: Name::of(source, row.format).unwrap(), copy, row }
    }
}

/// Its name and whether it was there, or why not.
fn end(landed: &Landed) -> Result<(String, bool), String> {
    match landed {
        Ok(imported) => Ok((imported.image.name.clone(), imported.duplicate)),
        Err(error) => Err(error.reason()),
    }
}

/// With the ids of what is new in their order, a transaction for all.
#[test]
fn what_is_ready_together_lands_together() {
    let scene = Scene::new();
    let mut alive = scene.start();
    alive.reconciled();
    fs::create_dir(scene.at("source/b")).unwrap();
    let files = [("a.png", 1), ("b/a.png", 2), ("same.png", 1), ("gone.png", 3), ("c.png", 4)];
    let ready = files.map(|(name, seed)| alive.ready(&scene.source(name, png(seed))));
    fs::remove_file(&ready[3].copy.path).unwrap();
    let before = scene.store.generation();
    let landed = alive.library.context.land_all(ready.into());
    assert_eq!(scene.store.generation(), before + 1);
    let ids: Vec<_> = landed.iter().flatten().map(|one| one.image.id).collect();
    assert!(ids[0] == ids[2] && ids[0] < ids[1] && ids[1] < ids[3], "{ids:?}");
    let expected = [("a", false), ("a_1", false), ("a", true), ("", false), ("c", false)];
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
fn what_lands_in_a_folder_that_was_deleted_meanwhile_is_at_the_root() {
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
    let landed = alive.library.context.land_all(ready.into());
    let folders: Vec<_> = landed.iter().map(|one| one.as_ref().unwrap().image.folder_id).collect();
    assert_eq!(folders, [Some(there), None]);
    alive.end();
}

fn until_it_waits(turn: &Turn) {
    let deadline = Instant::now() + PATIENCE;
    while !turn.is_waiting() {
        assert!(Instant::now() < deadline, "it never waits");
        std::thread::yield_now();
    }
}

#[test]
fn the_first_in_line_lands_what_is_ready_behind_it() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let mut turns = Turns::default();
    let line: [Turn; 5] = std::array::from_fn(|_| turns.next());
    let ready = |number: u8| alive.ready(&scene.source(&format!("{number}.png"), png(number)));
    let [first, second, third, fourth, last] = &line;
    let (first_ready, last_ready) = (ready(0), ready(4));
    let copy = last_ready.copy.path.clone();
    std::thread::scope(|scope| {
        let none = |_: Vec<Ready>| -> Vec<Landed> { panic!("it is not the first") };
        let (third_ready, fourth_ready) = (ready(2), ready(3));
        let behind = scope.spawn(move || third.land(third_ready, none));
        let beside = scope.spawn(move || fourth.land(fourth_ready, none));
        let late = scope.spawn(move || last.land(last_ready, none));
        [third, fourth, last].into_iter().for_each(until_it_waits);
        // One has nothing to land, and one is given up.
        second.leave();
        last.leave();
        assert!(late.join().unwrap().is_err_and(|error| error.is_stopped()));
        assert!(!copy.exists());
        let landed = first.land(first_ready, |all| {
            assert_eq!(all.len(), 3);
            alive.library.context.land_all(all)
        });
        let landed = [landed, behind.join().unwrap(), beside.join().unwrap()];
        let name = |one: &Landed| one.as_ref().unwrap().image.name.clone();
        assert_eq!(landed.each_ref().map(name), ["0", "2", "3"]);
    });
    alive.end();
}

#[test]
fn a_panic_while_several_land_is_told_to_each() {
    let scene = Scene::new();
    let alive = scene.start();
    let mut turns = Turns::default();
    let [first, second] = std::array::from_fn(|_| Arc::new(turns.next()));
    let [own, behind] =
        [0, 1].map(|number: u8| alive.ready(&scene.source(&format!("{number}.png"), png(number))));
    let cursed = |_: Vec<Ready>| -> Vec<Landed> { panic!("on purpose") };
    let ((tell, told), turn) = (unbounded(), Arc::clone(&second));
    std::thread::spawn(move || tell.send(end(&turn.land(behind, cursed))));
    until_it_waits(&second);
    let why = Err("a mistake of murald: on purpose".to_owned());
    assert_eq!(end(&first.land(own, cursed)), why);
    assert_eq!(told.recv_timeout(PATIENCE).expect("it is told"), why);
    assert!(scene.images().is_empty());
}
