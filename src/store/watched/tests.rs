//! Tests that records of watched files are found by path, image and content.

use super::*;
use crate::store::images::tests::picture;
use crate::store::images::{self, NewImage};
use crate::store::tests::scratch;
use crate::store::{Store, folders};

fn seen(path: &str, image_id: Option<i64>, checksum: Option<Checksum>) -> WatchedFile {
    let (inode, device) = (u64::MAX - 1, u64::MAX - 2);
    let stamp = Stamp {
        size: 5,
        modified: -7,
        changed: -8,
        inode,
        device,
    };
    WatchedFile {
        path: path.into(),
        image_id,
        checksum,
        stamp,
    }
}

fn add(store: &Store, name: &str, place: Option<&str>) -> i64 {
    let plain = picture(name, 1);
    let path = place.map_or(plain.path.clone(), PathBuf::from);
    let image = NewImage {
        path,
        in_place: place.is_some(),
        ..plain
    };
    store.write(|c| images::insert(c, &image)).unwrap()
}

#[test]
fn files_of_a_directory_are_found_by_path() {
    let (_directory, store) = scratch();
    let [one, other] = ["one", "other"].map(|name| add(&store, name, None));
    let files = [
        seen("/p", None, None),
        seen("/p/a", Some(one), Some([1; 32])),
        seen("/p/b/c", Some(one), Some([1; 32])),
        seen("/p/b/d", None, None),
        seen("/p.d/x", Some(other), None),
        seen("/p0", Some(other), None),
    ];
    for file in &files {
        store.write(|c| note(c, file)).unwrap();
        assert_eq!(
            store.read(|c| get(c, &file.path)).unwrap().as_ref(),
            Some(file)
        );
    }
    let below = |path: &str| store.read(|c| below(c, Path::new(path))).unwrap();
    assert_eq!(below("/p"), files[..4]);
    assert_eq!(below("/p/"), files[1..4]);
    assert_eq!(below("/p/b/d"), files[3..4]);
    assert_eq!(below("/q"), []);
    let mut all = below("/");
    all.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(all.len(), files.len());
    let counts = ["/p", "/p/b", "/p.d", "/", "/p/a"];
    let counts = counts.map(|path| store.read(|c| count(c, Path::new(path))).unwrap());
    assert_eq!(counts.map(|(images, _)| images), [1, 1, 1, 2, 0]);
    assert_eq!(counts[0].1, 2, "files of the same image");
    let of = |id| store.read(|c| of_image(c, id)).unwrap();
    assert_eq!(of(one), [Path::new("/p/a"), Path::new("/p/b/c")]);
    store.write(|c| forget(c, Path::new("/p/a"))).unwrap();
    assert_eq!(of(one), [Path::new("/p/b/c")]);
    let taken = |inode| {
        store
            .write(|c| take(c, Path::new("/p/b/c"), inode))
            .unwrap()
    };
    assert_eq!(taken(1), None, "another file");
    assert_eq!(taken(u64::MAX - 1).as_ref(), Some(&files[2]));
    assert_eq!(of(one), [] as [PathBuf; 0]);
}

#[test]
fn record_is_replaced_when_a_file_changes() {
    let (_directory, store) = scratch();
    let mut file = seen("/p/a", None, Some([1; 32]));
    store.write(|c| note(c, &file)).unwrap();
    file.checksum = Some([2; 32]);
    file.stamp.size = 6;
    store.write(|c| note(c, &file)).unwrap();
    store.write(|c| set_device(c, &file.path, 3)).unwrap();
    let seen = file.stamp;
    assert!(seen.same(&Stamp { device: 1, ..seen }));
    for (other, written) in [
        (Stamp { size: 7, ..seen }, false),
        (
            Stamp {
                modified: 7,
                ..seen
            },
            false,
        ),
        (Stamp { changed: 7, ..seen }, true),
        (Stamp { inode: 7, ..seen }, true),
    ] {
        assert_eq!(
            (seen.same(&other), seen.same_written(&other)),
            (false, written)
        );
    }
    file.stamp.device = 3;
    assert_eq!(store.read(|c| get(c, &file.path)).unwrap(), Some(file));
    assert_eq!(store.read(|c| get(c, Path::new("/p"))).unwrap(), None);
}

#[test]
fn content_is_dismissed_until_an_image_has_it() {
    let (_directory, store) = scratch();
    let new = picture("a", 1);
    let dismissed = |sum| store.read(|c| is_dismissed(c, sum)).unwrap();
    assert!(!dismissed(&new.checksum));
    store
        .write(|c| note(c, &seen("/p/a", None, Some(new.checksum))))
        .unwrap();
    assert!(dismissed(&new.checksum) && !dismissed(&[0; 32]));
    let id = store.write(|c| images::insert(c, &new)).unwrap();
    assert!(!dismissed(&new.checksum));
    assert_eq!(
        store.read(|c| of_image(c, id)).unwrap(),
        [Path::new("/p/a")]
    );
}

#[test]
fn only_images_in_place_are_displaced() {
    let (_directory, store) = scratch();
    add(&store, "copied", None);
    let [near, far] = [("near", "/p/near.png"), ("far", "/q/far.png")]
        .map(|(name, place)| add(&store, name, Some(place)));
    let below = |path: &str| store.read(|c| images_below(c, Path::new(path))).unwrap();
    assert_eq!(below("/p"), [(near, "/p/near.png".into())]);
    assert_eq!(below("/library"), []);
    let found = |path: &str| {
        let image = store.read(|c| images::by_path(c, Path::new(path))).unwrap();
        image.map(|image| image.id)
    };
    let displaced = ["/p/near.png", "/q/far.png", "/library/copied.png"].map(|path| {
        store
            .write(|c| displace(c, Path::new(path), far, 7))
            .unwrap()
    });
    assert_eq!(displaced, [Some(near), None, None]);
    let missing = store.read(missing).unwrap();
    let since = missing
        .iter()
        .map(|(id, one)| (*id, one.since, one.has_files));
    assert_eq!(since.collect::<Vec<_>>(), [(near, 7, false)]);
    let here = |path: &str| store.read(|c| missing_at(c, Path::new(path))).unwrap();
    assert_eq!(
        [here("/p/near.png"), here("/q/far.png")],
        [Some(near), None]
    );
    assert_eq!(found("/p/near.png"), None);
    // Another image may have the path meanwhile, but only one that is there.
    let new = add(&store, "new", Some("/p/near.png"));
    assert_eq!(found("/p/near.png"), Some(new));
    let path = Path::new("/p/near.png");
    assert!(
        store
            .write(|c| crate::store::edits::set_path(c, near, path, None))
            .is_err()
    );
    let plan = "EXPLAIN QUERY PLAN SELECT id FROM image WHERE path = ?1 AND missing_since IS NULL";
    let plan: String = store
        .read(|c| Ok::<_, Error>(c.query_row(plan, ["x"], |row| row.get(3))?))
        .unwrap();
    assert!(plan.contains("image_path"), "{plan}");
}

#[test]
fn only_empty_folders_of_watched_directories_are_found() {
    let (_directory, store) = scratch();
    let make = |name, parent| store.write(|c| folders::insert(c, name, parent)).unwrap();
    let own = make("own", None);
    let inner = make("inner", Some(own));
    let theirs = make("inner", None);
    let find = |name, parent| store.read(|c| folder(c, name, parent)).unwrap();
    assert_eq!(find("inner", None), Some(theirs));
    assert_eq!(find("inner", Some(own)), Some(inner));
    assert_eq!(find("inner", Some(inner)), None);
    let empty = || store.read(empty_folders).unwrap();
    assert_eq!(empty(), [] as [i64; 0]);
    for id in [own, inner] {
        store.write(|c| own_folder(c, id)).unwrap();
    }
    assert_eq!(empty(), [inner], "the other has a folder in it");
    let image = add(&store, "a", None);
    store
        .write(|c| folders::move_images(c, &[image], Some(inner)))
        .unwrap();
    assert_eq!(empty(), [] as [i64; 0]);
}
