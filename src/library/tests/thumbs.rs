//! Tests thumbnails that several threads request at once, and the cache of existing thumbnails.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Barrier;

use super::*;
use crate::library::disk::stamp;
use crate::media;
use crate::store::query::Query;
use crate::store::watched::{self, WatchedFile};

fn large(width: u32, height: u32) -> Vec<u8> {
    let picture =
        ImageBuffer::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, (x / 9) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

/// The width and height of each existing thumbnail, by the directory of its size.
fn cached(directory: &Path) -> BTreeMap<String, Vec<(u32, u32)>> {
    let mut sizes = BTreeMap::new();
    for size in fs::read_dir(directory).into_iter().flatten().flatten() {
        for file in fs::read_dir(size.path()).unwrap().flatten() {
            let mut input = Cursor::new(fs::read(file.path()).unwrap());
            // A thumbnail that is being written cannot be read yet.
            let Ok(probe) = media::probe(&mut input) else {
                continue;
            };
            let name = size.file_name().into_string().unwrap();
            sizes
                .entry(name)
                .or_insert_with(Vec::new)
                .push((probe.width, probe.height));
        }
    }
    sizes
}

fn expected(all: &[(&str, (u32, u32))]) -> BTreeMap<String, Vec<(u32, u32)>> {
    all.iter()
        .map(|&(size, pixels)| (size.to_owned(), vec![pixels]))
        .collect()
}

#[test]
fn simultaneous_requests_make_a_thumbnail_once() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let path = scene.source("a.png", large(1600, 1200));
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    let library = &alive.library;
    let barrier = Barrier::new(16);
    let made = library.thumbnails().made();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                library.thumbnail(&image, Resolution::P1080).unwrap();
            });
        }
    });
    assert_eq!(library.thumbnails().made() - made, 1);
    alive.end();
}

#[test]
fn thumbnail_of_another_file_at_the_path_is_not_kept() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let path = scene.source("a.png", large(1600, 1200));
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    let mut file = WatchedFile {
        path: image.path.clone(),
        image_id: Some(image.id),
        checksum: Some(image.checksum),
        stamp: stamp(&fs::metadata(&image.path).unwrap()),
    };
    let note = |file: &WatchedFile| scene.store.write(|c| watched::note(c, file)).unwrap();
    file.stamp.inode += 1;
    note(&file);
    let thumbnail = || alive.library.thumbnail(&image, Resolution::P1080);
    assert!(thumbnail().is_err());
    file.stamp.inode -= 1;
    note(&file);
    thumbnail().unwrap();
    alive.end();
}

#[test]
fn page_names_only_existing_thumbnails() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths =
        [("a.png", 640), ("b.png", 600)].map(|(name, width)| scene.source(name, large(width, 400)));
    let started = alive.library.import(paths.to_vec(), None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    let file = alive
        .library
        .thumbnail(&image, Resolution::Default)
        .unwrap();
    let page = || -> Vec<bool> {
        let look = alive.library.thumbnails();
        let mut json = b"[".to_vec();
        let query = Query::default();
        scene
            .store
            .write_page(&query, &mut json, |row, json| look.write(row, json))
            .unwrap();
        json.push(b']');
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
        rows.iter()
            .map(|row| row["thumbnails"]["default"].is_string())
            .collect()
    };
    assert_eq!(page(), [true, true]);
    // Another program moves the file away.
    let away = scene.at("away.webp");
    fs::rename(&file, &away).unwrap();
    assert_eq!(page(), [true, false]);
    fs::rename(&away, &file).unwrap();
    assert_eq!(page(), [true, true]);
    fs::rename(scene.at("thumbnails/default"), scene.at("elsewhere")).unwrap();
    assert_eq!(page(), [false, false]);
    alive.end();
}

#[test]
fn page_names_only_existing_previews() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let started = alive
        .library
        .import(vec![scene.source("a.png", png(1))], None)
        .unwrap();
    alive.batch(&started.batch_id);
    let thumbnails = alive.library.thumbnails();
    let page = || {
        let look = &thumbnails;
        let mut json = Vec::new();
        let query = Query::default();
        scene
            .store
            .write_page(&query, &mut json, |row, json| look.write(row, json))
            .unwrap();
        let row: serde_json::Value = serde_json::from_slice(&json).unwrap();
        row["preview_path"].is_string()
    };
    assert!(!page());
    let image = scene.images().remove(0);
    let preview = thumbnails.preview(&image);
    fs::create_dir_all(preview.parent().unwrap()).unwrap();
    fs::write(&preview, "a preview").unwrap();
    let path = preview.to_str().unwrap();
    scene
        .store
        .write(|c| Ok::<_, store::Error>(c.execute("UPDATE image SET preview_path = ?1", [path])?))
        .unwrap();
    assert!(page());
    fs::remove_file(&preview).unwrap();
    assert!(!page());
    alive.end();
}

#[test]
fn cache_may_be_on_another_file_system() {
    let scene = Scene::new();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(elsewhere.path()) == device(scene.directory.path()) {
        return;
    }
    let path = scene.source("a.png", large(900, 600));
    let cache = elsewhere.path().join("thumbnails");
    let mut alive = scene.start_with(&cache);
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    alive.library.thumbnail(&image, Resolution::P720).unwrap();
    let all = expected(&[("default", (500, 333)), ("720p", (900, 600))]);
    assert_eq!(cached(&cache), all);
    let id = image.id;
    assert_eq!(
        alive
            .library
            .delete(&DeleteImages {
                ids: vec![id],
                ..DeleteImages::default()
            })
            .unwrap()
            .images,
        1
    );
    assert!(cached(&cache).is_empty());
    alive.end();
}

#[test]
fn thumbnail_is_not_made_from_another_image_that_has_the_old_name() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths = vec![
        scene.source("a.png", large(1600, 1200)),
        scene.source("b.png", png(1)),
    ];
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    let mut images = scene.images();
    images.sort_by(|one, other| one.name.cmp(&other.name));
    // The records were read before the images were renamed.
    let (a, b) = (&images[0], &images[1]);
    for (image, name) in [(a, "c"), (b, "a")] {
        alive
            .library
            .edit(image.id, Some(name), &Default::default())
            .unwrap();
    }
    let made = alive.library.thumbnail(a, Resolution::P720).unwrap();
    let probe = media::probe(&mut Cursor::new(fs::read(made).unwrap())).unwrap();
    assert_eq!((probe.width, probe.height), (960, 720));
    alive.end();
}

#[test]
fn look_for_an_image_that_has_not_moved_changes_nothing() {
    let scene = Scene::new();
    let alive = scene.start();
    let started = alive
        .library
        .import(vec![scene.source("a.png", png(1))], None)
        .unwrap();
    alive.batch(&started.batch_id);
    alive.reconciled();
    let image = scene.images().remove(0);
    let before = scene.store.generation();
    assert_eq!(alive.library.moved(&image).unwrap(), None);
    assert_eq!(scene.store.generation(), before, "lists are as they were");
}
