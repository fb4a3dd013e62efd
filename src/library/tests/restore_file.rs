//! Tests images whose missing files are imported again, and files that compete for a name.

use super::*;
use crate::store::edits;

impl Alive {
    /// Imports one file and waits for the end of the batch.
    fn take(&self, path: &Path, in_place: bool) {
        let started = if in_place {
            self.library
                .import_in_place(vec![path.to_owned()], None)
                .unwrap()
        } else {
            self.library.import(vec![path.to_owned()], None).unwrap()
        };
        let events = self.batch(&started.batch_id);
        assert!(of(&events, "image_error").is_empty(), "{events:?}");
    }
}

fn only(scene: &Scene) -> Image {
    let mut images = scene.images();
    assert_eq!(images.len(), 1);
    images.pop().unwrap()
}

#[test]
fn image_in_place_moves_to_the_file_imported_after_its_own_is_gone() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let (old, new) = (scene.source("old.png", png(1)), scene.at("source/new.png"));
    alive.take(&old, true);
    let id = only(&scene).id;
    // The image keeps its path while its file exists.
    fs::copy(&old, &new).unwrap();
    alive.take(&new, true);
    assert_eq!(only(&scene).path, old);
    fs::remove_file(&old).unwrap();
    alive.take(&new, true);
    // The look after the import misses the old file.
    let deadline = Instant::now() + PATIENCE;
    while only(&scene).path == old {
        assert!(Instant::now() < deadline, "the image keeps its path");
        std::thread::yield_now();
    }
    let image = only(&scene);
    assert_eq!(
        (image.id, image.path, image.in_place),
        (id, new.clone(), true)
    );
    // An import as a copy gives the image a copy.
    let third = scene.at("source/third.png");
    fs::rename(&new, &third).unwrap();
    alive.take(&third, false);
    let image = only(&scene);
    assert_eq!((image.id, image.in_place), (id, false));
    assert_eq!(image.path.parent().unwrap(), scene.at("images"));
    assert_eq!(fs::read(&image.path).unwrap(), png(1));
    // A missing copy is restored, even by an import in place.
    fs::remove_file(&image.path).unwrap();
    alive.context().mark_missing().unwrap();
    assert_eq!(alive.library.health().missing, 1);
    alive.take(&third, true);
    assert_eq!(only(&scene), image);
    assert_eq!(alive.library.health().missing, 0);
    alive.end();
    assert_eq!(fs::read(&image.path).unwrap(), png(1));
    assert!(scene.store.read(pending_files::list).unwrap().is_empty());
}

#[test]
fn missing_file_with_a_long_name_is_restored_under_that_name() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let source = scene.source("a.png", png(1));
    alive.take(&source, false);
    let id = only(&scene).id;
    let name = "n".repeat(251);
    let renamed = alive
        .library
        .edit(id, Some(&name), &Default::default())
        .unwrap();
    fs::remove_file(&renamed.path).unwrap();
    alive.take(&source, false);
    assert_eq!(only(&scene).path, renamed.path);
    alive.end();
    scene.check_agreement();
}

#[test]
fn image_of_a_former_directory_is_restored_in_the_present_one() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let source = scene.source("a.png", png(1));
    alive.take(&source, false);
    let before = only(&scene);
    fs::remove_file(&before.path).unwrap();
    scene
        .store
        .write(|c| edits::move_into_library(c, before.id, &scene.at("before/a.png")))
        .unwrap();
    alive.take(&source, false);
    let image = only(&scene);
    assert_eq!(
        (image.id, image.path.parent().unwrap()),
        (before.id, &*scene.at("images"))
    );
    alive.end();
    scene.check_agreement();
}

#[test]
fn imported_files_of_the_library_directory_are_not_copied() {
    let scene = Scene::new();
    fs::create_dir(scene.at("images")).unwrap();
    let kinds = [
        (ImageFormat::Png, "png"),
        (ImageFormat::Bmp, "bmp"),
        (ImageFormat::Gif, "gif"),
    ];
    for number in 0..16_u8 {
        for (at, (format, extension)) in kinds.into_iter().enumerate() {
            let picture = ImageBuffer::from_pixel(8, 8, Rgb([number, at as u8, 9]));
            let path = scene.at(&format!("images/p{number}.{extension}"));
            DynamicImage::ImageRgb8(picture)
                .save_with_format(path, format)
                .unwrap();
        }
    }
    let mut alive = scene.start();
    let started = alive
        .library
        .import(vec![scene.at("images")], None)
        .unwrap();
    alive.batch(&started.batch_id);
    assert_eq!(scene.images().len(), 48);
    // A file that was renamed by hand is given back to its image.
    let image = scene.images().remove(0);
    let other = scene.at("images/other.png");
    fs::rename(&image.path, &other).unwrap();
    let started = alive.library.import(vec![other.clone()], None).unwrap();
    alive.batch(&started.batch_id);
    let now = scene.images().into_iter().find(|now| now.id == image.id);
    assert_eq!(now.unwrap().path, other);
    alive.end();
    scene.check_agreement();
}
