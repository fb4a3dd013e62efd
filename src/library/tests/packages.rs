//! Tests packages that are found in a directory: each becomes one image, named by its title.

use super::*;
use crate::wire::MediaType;

fn package(scene: &Scene, at: &str, manifest: (&str, Value), files: &[(&str, Vec<u8>)]) {
    let root = scene.at("source").join(at);
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join(manifest.0), manifest.1.to_string()).unwrap();
    for (name, bytes) in files {
        fs::write(root.join(name), bytes).unwrap();
    }
}

fn project(kind: &str, title: &str, file: &str) -> (&'static str, Value) {
    let fields = serde_json::json!({
        "type": kind, "title": title, "file": file, "preview": "preview.png",
    });
    ("project.json", fields)
}

/// Writes a Wallpaper Engine workshop with packages of every kind, and other pictures and pages.
fn workshop(scene: &Scene) {
    let page = |text: &str| ("index.html", text.as_bytes().to_vec());
    let preview = |seed| ("preview.png", png(seed));
    let own = serde_json::json!({ "title": "Rain / Night" });
    package(
        scene,
        "a/deep/1",
        ("waypaper.json", own),
        &[page("1"), ("part.png", png(1))],
    );
    let web = project("web", "\u{1b}[31mSea", "index.html");
    package(scene, "2", web, &[page("2"), preview(2)]);
    // The package's video is a PNG, as PNG needs no transcoder.
    let film = project("Video", "", "film.png");
    package(scene, "3", film, &[("film.png", png(3)), preview(4)]);
    let film = project("video", "A film", "film.png");
    package(scene, "4", film, &[("film.png", png(5)), preview(6)]);
    package(
        scene,
        "5",
        project("Scene", "Cube", "scene.json"),
        &[preview(7)],
    );
    package(
        scene,
        "6",
        project("application", "Game", "game.exe"),
        &[preview(8)],
    );
    package(
        scene,
        "7",
        project("video", "No file", "none.mp4"),
        &[preview(9)],
    );
    scene.source("a/plain.png", png(10));
    scene.source("a/page.html", "<html>");
}

#[test]
fn directory_import_recognises_packages() {
    let scene = Scene::new();
    let mut alive = scene.start();
    workshop(&scene);
    let started = alive
        .library
        .import(vec![scene.at("source")], None)
        .unwrap();
    assert_eq!(started.total, 9, "the files of a package are not counted");
    let events = alive.batch(&started.batch_id);
    let told = of(&events, "image_error");
    let why = |at: &str| {
        let at = scene.at("source").join(at);
        let event = told
            .iter()
            .find(|event| event["path"] == at.to_str().unwrap())
            .unwrap();
        (
            event["skipped"] == true,
            event["error"].as_str().unwrap().to_owned(),
        )
    };
    for (at, kind) in [("5", "scene"), ("6", "application")] {
        let text = format!("type in project.json is {kind:?}, which murald cannot show");
        assert_eq!(why(at), (true, text));
    }
    assert!(
        why("a/page.html").0,
        "no page is imported without its package"
    );
    let missing = (false, "its video none.mp4 is missing".to_owned());
    assert_eq!(why("7"), missing);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["succeeded"], &last["failed"], &last["skipped"]),
        (&5.into(), &1.into(), &3.into())
    );
    // In the order in which they were found.
    let mut images = scene.images();
    images.sort_by_key(|image| image.id);
    let found: Vec<_> = images
        .iter()
        .map(|image| (&*image.name, image.media_type))
        .collect();
    let (web, still) = (MediaType::Web, MediaType::Image);
    let expected = [
        ("_[31mSea", web),
        ("3", still),
        ("A film", still),
        ("Rain _ Night", web),
        ("plain", still),
    ];
    assert_eq!(found, expected);
    let titles: Vec<_> = images
        .iter()
        .filter_map(|image| image.web_meta.as_ref())
        .map(|meta| &*meta.title)
        .collect();
    assert_eq!(titles, ["\u{1b}[31mSea", "Rain / Night"]);
    let sea = images[0].web_meta.as_ref().unwrap();
    let previews: Vec<_> = images
        .iter()
        .map(|image| image.preview_path.clone())
        .collect();
    assert_eq!(
        previews,
        [
            Some(sea.package_root.join("preview.png")),
            None,
            None,
            None,
            None
        ]
    );
    alive.end();
}

#[test]
fn packages_imported_by_their_paths_are_not_skipped() {
    let scene = Scene::new();
    let mut alive = scene.start();
    workshop(&scene);
    let paths = ["5", "4", "2"]
        .map(|at| scene.at("source").join(at))
        .to_vec();
    let started = alive.library.import(paths, None).unwrap();
    assert_eq!(started.total, 3);
    let events = alive.batch(&started.batch_id);
    assert_ne!(of(&events, "image_error")[0]["skipped"], true);
    let done = of(&events, "image_processed");
    let names: BTreeSet<_> = done
        .iter()
        .map(|event| event["image"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["A film", "_[31mSea"]));
    // A second import of the package finds the same image.
    let again = alive.library.import_one(&scene.at("source/4")).unwrap().0;
    assert_eq!((&*again.name, scene.images().len()), ("A film", 2));
    let content = |at: &str| alive.library.content(&scene.at("source").join(at)).unwrap();
    assert_eq!(
        (content("2").media_type, content("2").name),
        (MediaType::Web, "\u{1b}[31mSea".into())
    );
    assert_eq!(content("4").media_type, MediaType::Video);
    assert_eq!(
        (
            content("a/plain.png").media_type,
            content("a/plain.png").name
        ),
        (MediaType::Image, "plain".into())
    );
    let refused = alive
        .library
        .import_web(&scene.at("source/4"), None)
        .unwrap_err();
    assert_eq!(
        refused.reason(),
        "it is a video: `murald import` imports it"
    );
    alive.end();
}

#[test]
fn thumbnail_of_a_video_package_is_its_preview() {
    let scene = Scene::new();
    let mut alive = scene.start();
    workshop(&scene);
    let image = alive.library.import_one(&scene.at("source/4")).unwrap().0;
    let preview = alive
        .library
        .import_one(&scene.source("p.png", png(6)))
        .unwrap()
        .0;
    let thumbnail = |image| fs::read(alive.library.thumbnail(image, Resolution::Default).unwrap());
    assert_eq!(thumbnail(&image).unwrap(), thumbnail(&preview).unwrap());
    alive.end();
}
