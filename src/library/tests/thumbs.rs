//! Thumbnails that nobody asked for, and those that many ask for at once.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use super::*;
use crate::media;
use crate::store::query::Query;

/// How often the machine was looked at; the one test that counts is the only one to use it.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

fn counted() -> bool {
    LOOKS.fetch_add(1, Ordering::SeqCst);
    true
}

/// The same for the machine that is never idle.
static REFUSALS: AtomicUsize = AtomicUsize::new(0);

fn refused() -> bool {
    REFUSALS.fetch_add(1, Ordering::SeqCst);
    false
}

fn soon(is_idle: fn() -> bool) -> Option<Idle> {
    Some(Idle { after: Duration::from_millis(5), is_idle })
}

fn large(width: u32, height: u32) -> Vec<u8> {
    let picture =
        ImageBuffer::from_fn(width, height, |x, y| Rgb([x as u8, y as u8, (x / 9) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Size in the cache to width and height, of all thumbnails there are.
fn cached(directory: &Path) -> BTreeMap<String, Vec<(u32, u32)>> {
    let mut sizes = BTreeMap::new();
    for size in fs::read_dir(directory).into_iter().flatten().flatten() {
        for file in fs::read_dir(size.path()).unwrap().flatten() {
            let mut input = Cursor::new(fs::read(file.path()).unwrap());
            // One that is being written has no end yet.
            let Ok(probe) = media::probe(&mut input) else { continue };
            let name = size.file_name().into_string().unwrap();
            sizes.entry(name).or_insert_with(Vec::new).push((probe.width, probe.height));
        }
    }
    sizes
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::yield_now();
    }
}

fn expected(all: &[(&str, (u32, u32))]) -> BTreeMap<String, Vec<(u32, u32)>> {
    all.iter().map(|&(size, pixels)| (size.to_owned(), vec![pixels])).collect()
}

#[test]
fn many_who_ask_at_once_get_the_one_that_is_made() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let path = scene.source("a.png", large(1600, 1200));
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    let (library, barrier) = (&alive.library, Barrier::new(16));
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
fn a_page_knows_what_is_there_until_a_directory_changes() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths =
        [("a.png", 640), ("b.png", 600)].map(|(name, width)| scene.source(name, large(width, 400)));
    let started = alive.library.import(paths.to_vec(), None).unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    let thumbnails = alive.library.thumbnails();
    let file = alive.library.thumbnail(&image, Resolution::Default).unwrap();
    let settled = || SystemTime::now() + Duration::from_secs(60);
    let page = |now| -> Vec<bool> {
        let look = thumbnails.look_at(now);
        let (mut json, query) = (b"[".to_vec(), Query::default());
        scene.store.write_page(&query, &mut json, |row, json| look.write(row, json)).unwrap();
        json.push(b']');
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
        rows.iter().map(|row| row["thumbnails"]["default"].is_string()).collect()
    };
    assert_eq!(page(SystemTime::UNIX_EPOCH), [true, true]);
    assert_eq!(thumbnails.seen().len(), 0, "it may yet change without a trace");
    assert_eq!((page(settled()), thumbnails.seen().len()), (vec![true, true], 2));
    assert_eq!((page(settled()), thumbnails.seen().len()), (vec![true, true], 2));
    // By a stranger's hand.
    let away = scene.at("away.webp");
    fs::rename(&file, &away).unwrap();
    assert_eq!((page(settled()), thumbnails.seen().len()), (vec![true, false], 2));
    fs::rename(&away, &file).unwrap();
    assert_eq!((page(settled()), thumbnails.seen().len()), (vec![true, true], 2));
    fs::rename(scene.at("thumbnails/default"), scene.at("elsewhere")).unwrap();
    assert_eq!(page(settled()), [false, false]);
    fs::create_dir(scene.at("thumbnails/default")).unwrap();
    assert_eq!(page(settled()), [false, false]);
    alive.end();
}

#[test]
fn previews_are_looked_at_once_a_page_speaks_of_one() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let started = alive.library.import(vec![scene.source("a.png", png(1))], None).unwrap();
    alive.batch(&started.batch_id);
    let thumbnails = alive.library.thumbnails();
    let page = || {
        let look = thumbnails.look();
        let (mut json, query) = (Vec::new(), Query::default());
        scene.store.write_page(&query, &mut json, |row, json| look.write(row, json)).unwrap();
        let row: serde_json::Value = serde_json::from_slice(&json).unwrap();
        (look.generation(), row["preview_path"].is_string())
    };
    let without = page();
    assert_eq!((page(), without.1), (without, false));
    let image = scene.images().remove(0);
    let preview = thumbnails.preview(&image);
    fs::create_dir_all(preview.parent().unwrap()).unwrap();
    fs::write(&preview, "a preview").unwrap();
    let path = preview.to_str().unwrap();
    scene
        .store
        .write(|c| Ok::<_, store::Error>(c.execute("UPDATE image SET preview_path = ?1", [path])?))
        .unwrap();
    assert!(page().1);
    let with = page();
    assert_eq!((page(), with.1), (with, true));
    fs::remove_file(&preview).unwrap();
    let after = page();
    assert!(after.0 != with.0 && !after.1);
    alive.end();
}

#[test]
fn what_is_missing_is_made_in_quiet_times_and_then_there_is_rest() {
    let scene = Scene::new();
    let path = scene.source("a.png", large(1400, 900));
    let mut alive = scene.start_with(soon(counted), &scene.at("thumbnails"));
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    // It fits into 1080p as it is: larger ones would be the same.
    let all = expected(&[("default", (500, 321)), ("720p", (1120, 720)), ("1080p", (1400, 900))]);
    wait_for("the rest", || cached(&scene.at("thumbnails")) == all);
    // The cache is deleted; somebody looks at one picture, and the others come back, too.
    fs::remove_dir_all(scene.at("thumbnails")).unwrap();
    let image = scene.images().remove(0);
    alive.library.thumbnail(&image, Resolution::Default).unwrap();
    wait_for("the cache", || cached(&scene.at("thumbnails")) == all);
    // Nothing is missing: nobody looks at the machine any more.
    wait_for("rest", || {
        let looks = LOOKS.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
        LOOKS.load(Ordering::SeqCst) == looks
    });
    alive.end();

    // What a run did not come round to is made by the next.
    fs::remove_dir_all(scene.at("thumbnails/720p")).unwrap();
    let mut alive = scene.start_with(soon(counted), &scene.at("thumbnails"));
    wait_for("what the last run left", || cached(&scene.at("thumbnails")) == all);
    alive.end();
}

#[test]
fn a_busy_machine_is_left_alone_and_a_broken_picture_holds_nobody_up() {
    let scene = Scene::new();
    let paths =
        vec![scene.source("a.png", large(900, 600)), scene.source("b.png", large(900, 601))];
    let mut alive = scene.start_with(soon(refused), &scene.at("thumbnails"));
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    wait_for("a look at the machine", || REFUSALS.load(Ordering::SeqCst) > 0);
    assert_eq!(cached(&scene.at("thumbnails")).len(), 1, "only what an import makes");
    alive.end();
    let broken = scene.images().remove(0);
    fs::write(&broken.path, "no picture any more").unwrap();
    let mut alive = scene.start_with(soon(|| true), &scene.at("thumbnails"));
    wait_for("the other one", || {
        cached(&scene.at("thumbnails")).get("720p") == Some(&vec![(900, 601)])
    });
    alive.end();
}

#[test]
fn the_cache_may_lie_on_another_file_system() {
    let scene = Scene::new();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(elsewhere.path()) == device(scene.directory.path()) {
        return;
    }
    let path = scene.source("a.png", large(900, 600));
    let cache = elsewhere.path().join("thumbnails");
    let mut alive = scene.start_with(soon(|| true), &cache);
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let all = expected(&[("default", (500, 333)), ("720p", (900, 600))]);
    wait_for("both sizes", || cached(&cache) == all);
    let id = scene.images()[0].id;
    assert_eq!(
        alive.library.delete(&DeleteImages { ids: vec![id], ..DeleteImages::default() }).unwrap(),
        (1, 0)
    );
    assert!(cached(&cache).is_empty());
    alive.end();
}

#[test]
fn a_name_that_another_picture_has_by_now_gives_nobody_its_thumbnail() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let paths = vec![scene.source("a.png", large(1600, 1200)), scene.source("b.png", png(1))];
    let started = alive.library.import(paths, None).unwrap();
    alive.batch(&started.batch_id);
    let mut images = scene.images();
    images.sort_by(|one, other| one.name.cmp(&other.name));
    // As somebody has read them who comes to the files only now.
    let (a, b) = (&images[0], &images[1]);
    for (image, name) in [(a, "c"), (b, "a")] {
        alive.library.edit(image.id, Some(name), &Default::default()).unwrap();
    }
    let made = alive.library.thumbnail(a, Resolution::P720).unwrap();
    let probe = media::probe(&mut Cursor::new(fs::read(made).unwrap())).unwrap();
    assert_eq!((probe.width, probe.height), (960, 720));
    alive.end();
}

#[test]
fn a_look_where_an_image_has_gone_changes_nothing() {
    let scene = Scene::new();
    let alive = scene.start();
    let started = alive.library.import(vec![scene.source("a.png", png(1))], None).unwrap();
    alive.batch(&started.batch_id);
    alive.reconciled();
    let (image, before) = (scene.images().remove(0), scene.store.generation());
    assert_eq!(alive.library.moved(&image).unwrap(), None);
    assert_eq!(scene.store.generation(), before, "lists are as they were");
}
