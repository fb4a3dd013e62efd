//! Images without their files that are imported once more, and files that want the same name.

use super::*;
use crate::store::edits;

impl Alive {
    /// Imports one file, and waits for the end.
    fn take(&self, path: &Path, in_place: bool) {
        let started = match in_place {
            true => self.library.import_in_place(vec![path.to_owned()], None).unwrap(),
            false => self.library.import(vec![path.to_owned()], None).unwrap(),
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
fn image_in_place_is_where_it_was_imported_from_last() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let (old, new) = (scene.source("old.png", png(1)), scene.at("source/new.png"));
    alive.take(&old, true);
    let id = only(&scene).id;
    // As long as its file is there it stays.
    fs::copy(&old, &new).unwrap();
    alive.take(&new, true);
    assert_eq!(only(&scene).path, old);
    fs::remove_file(&old).unwrap();
    alive.take(&new, true);
    let image = only(&scene);
    assert_eq!((image.id, image.path, image.in_place), (id, new.clone(), true));
    // Imported as a copy it has one.
    let third = scene.at("source/third.png");
    fs::rename(&new, &third).unwrap();
    alive.take(&third, false);
    let image = only(&scene);
    assert_eq!((image.id, image.in_place), (id, false));
    assert_eq!(image.path.parent().unwrap(), scene.at("images"));
    assert_eq!(fs::read(&image.path).unwrap(), png(1));
    // And what was copied, once more, whichever way it comes.
    fs::remove_file(&image.path).unwrap();
    let before = scene.store.given_back();
    alive.take(&third, true);
    assert_eq!(only(&scene), image);
    assert_eq!(scene.store.given_back(), before + 1, "its row does not tell");
    alive.end();
    assert_eq!(fs::read(&image.path).unwrap(), png(1));
    assert!(scene.store.read(pending_files::list).unwrap().is_empty());
}

#[test]
fn lost_file_of_a_long_name_gets_that_name_again() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let source = scene.source("a.png", png(1));
    alive.take(&source, false);
    let id = only(&scene).id;
    let before = scene.store.given_back();
    let name = "n".repeat(251);
    let renamed = alive.library.edit(id, Some(&name), &Default::default()).unwrap();
    assert_eq!(scene.store.given_back(), before + 1, "it may be a name that it had");
    fs::remove_file(&renamed.path).unwrap();
    alive.take(&source, false);
    assert_eq!(only(&scene).path, renamed.path);
    alive.end();
    scene.check_agreement();
}

#[test]
fn image_of_a_directory_that_is_gone_comes_into_the_present_one() {
    let scene = Scene::new();
    let mut alive = scene.start();
    let source = scene.source("a.png", png(1));
    alive.take(&source, false);
    let before = only(&scene);
    fs::remove_file(&before.path).unwrap();
    scene.store.write(|c| edits::take_home(c, before.id, &scene.at("before/a.png"))).unwrap();
    alive.take(&source, false);
    let image = only(&scene);
    assert_eq!((image.id, image.path.parent().unwrap()), (before.id, &*scene.at("images")));
    alive.end();
    scene.check_agreement();
}

#[test]
fn files_that_want_one_name_are_all_adopted() {
    let scene = Scene::new();
    fs::create_dir(scene.at("images")).unwrap();
    let kinds = [(ImageFormat::Png, "png"), (ImageFormat::Bmp, "bmp"), (ImageFormat::Gif, "gif")];
    for number in 0..16_u8 {
        for (at, (format, extension)) in kinds.into_iter().enumerate() {
            let picture = ImageBuffer::from_pixel(8, 8, Rgb([number, at as u8, 9]));
            let path = scene.at(&format!("images/p{number}.{extension}"));
            DynamicImage::ImageRgb8(picture).save_with_format(path, format).unwrap();
        }
    }
    let mut alive = scene.start();
    while alive.next()["event"] != "gallery_changed" || scene.images().len() < 48 {}
    alive.end();
    scene.check_agreement();
}
