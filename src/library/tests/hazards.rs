//! Tests files that are not what they seem (holes, pipes, links), renamed pages, and the order of
//! imports.

use std::os::unix::fs::{MetadataExt, symlink};

use super::*;
use crate::store::edits;

/// Writes a BMP of one pixel, extended with a hole to `length` bytes.
fn bmp_with_hole(path: &Path, length: u64) {
    let mut bytes = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0".to_vec();
    bytes.extend(b"\x01\0\x18\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\0");
    fs::write(path, bytes).unwrap();
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(length)
        .unwrap();
}

#[test]
fn renamed_page_is_shown_from_its_new_path() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let (tell, told) = unbounded();
    alive
        .library
        .on_rewritten(Box::new(move |id| tell.send(id).unwrap()));
    fs::create_dir(scene.at("source/page")).unwrap();
    scene.source("page/index.html", "<p>");
    let picture = alive
        .library
        .import_web(&scene.source("p.png", png(1)), None);
    assert!(picture.is_err());
    let page = alive
        .library
        .import_web(&scene.at("source/page"), None)
        .unwrap();
    let rename = |id, name| {
        alive
            .library
            .edit(id, Some(name), &edits::ImageChange::default())
    };
    rename(page.id, "page").unwrap();
    assert!(told.is_empty(), "it was called so");
    let renamed = rename(page.id, "other").unwrap();
    assert!(renamed.path.starts_with(scene.at("images/other")));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [page.id]);
    let batch = alive
        .library
        .import(vec![scene.at("source/p.png")], None)
        .unwrap();
    alive.batch(&batch.batch_id);
    let still = scene
        .images()
        .into_iter()
        .find(|image| image.web_meta.is_none())
        .unwrap();
    rename(still.id, "still").unwrap();
    assert!(told.is_empty(), "a picture is read once");
    alive.end();
}

#[test]
fn ids_and_times_follow_the_order_of_the_inputs() {
    let scene = Scene::new();
    let alive = scene.start();
    // Every third picture takes far longer than the others.
    let paths: Vec<_> = (0..9_u8)
        .map(|number| {
            let bytes = if number % 3 == 0 {
                wide(1200 + u32::from(number))
            } else {
                png(number)
            };
            scene.source(&format!("{}.png", 9 - number), bytes)
        })
        .collect();
    let started = alive.library.import(paths.clone(), None).unwrap();
    alive.batch(&started.batch_id);
    let mut images = scene.images();
    images.sort_by_key(|image| image.id);
    let sources: Vec<_> = images
        .iter()
        .map(|image| image.source_path.clone())
        .collect();
    assert_eq!(sources, paths);
    assert!(images.is_sorted_by_key(|image| image.imported_at));
}

#[test]
fn file_with_a_huge_hole_is_refused_before_it_is_copied() {
    let scene = Scene::new();
    let alive = scene.start();
    let path = scene.at("source/huge.bmp");
    bmp_with_hole(&path, 40 << 30);
    let gif = scene.source("holes.gif", b"GIF89a\x01\0\x01\0\0\0\0");
    fs::File::options()
        .write(true)
        .open(&gif)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let started = alive.library.import(vec![path, gif], None).unwrap();
    let events = alive.batch(&started.batch_id);
    let mut errors: Vec<_> = of(&events, "image_error")
        .iter()
        .map(|e| e["error"].as_str().unwrap())
        .collect();
    errors.sort_unstable();
    assert_eq!(
        errors,
        [
            "40960 MiB is too large for an image",
            "the GIF is damaged: unknown block type encountered"
        ]
    );
}

#[test]
fn copy_keeps_the_holes_of_its_source() {
    let scene = Scene::new();
    let alive = scene.start();
    let path = scene.at("source/hole.bmp");
    bmp_with_hole(&path, 64 << 20);
    let started = alive.library.import(vec![path], None).unwrap();
    alive.batch(&started.batch_id);
    let copy = fs::metadata(&scene.images()[0].path).unwrap();
    assert_eq!(copy.len(), 64 << 20);
    assert!(copy.blocks() * 512 < 4 << 20, "{} blocks", copy.blocks());
}

#[test]
fn pipe_in_place_of_an_image_does_not_block() {
    let scene = Scene::new();
    let alive = scene.start();
    let started = alive
        .library
        .import(vec![scene.source("a.png", png(1))], None)
        .unwrap();
    alive.batch(&started.batch_id);
    let image = scene.images().remove(0);
    fs::remove_file(&image.path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &image.path, 0o600.into()).unwrap();
    fs::remove_dir_all(scene.at("thumbnails")).unwrap();
    let refused = alive
        .library
        .thumbnail(&image, Resolution::Default)
        .unwrap_err();
    assert!(matches!(refused, Error::NotFile { .. }), "{refused}");
}

#[test]
fn capabilities_are_not_written_through_a_link() {
    let scene = Scene::new();
    let alive = scene.start();
    let root = scene.at("source/page");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("index.html"), "<html>").unwrap();
    fs::write(root.join("waypaper.json"), r#"{"title": "Page"}"#).unwrap();
    let image = alive.library.import_web(&root, None).unwrap();
    let meta = image.web_meta.unwrap();
    symlink(
        "index.html",
        Path::new(&meta.package_root).join(".new-waypaper.json"),
    )
    .unwrap();
    package::write_capabilities(&meta).unwrap();
    assert_eq!(fs::read_to_string(&meta.entry_path).unwrap(), "<html>");
    assert!(
        fs::read_to_string(&meta.manifest_path)
            .unwrap()
            .contains("capabilities")
    );
}
