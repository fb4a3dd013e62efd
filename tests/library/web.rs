//! HTML wallpapers over the socket: imported or refused as a whole, renamed, deleted.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::desktop::{wait_for, wait_until};
use crate::support::TestDaemon;
use crate::support::client::Answer;

/// Makes a package with a manifest, a preview and a file in a subdirectory.
pub fn package(daemon: &TestDaemon, name: &str) -> PathBuf {
    let root = daemon.root().join(name);
    fs::create_dir_all(root.join("assets")).unwrap();
    let manifest = json!({
        "waypaper": "1", "title": "Rain", "author": "somebody", "entry": "page.html",
        "preview": "preview.png", "capabilities": { "keyboard": true },
        "parallax_direction": "vertical", "wallpaper_config": { "speed": { "default": 2, "max": 10 } },
        "wallpaper_config_overrides": { "speed": 4, "gone": 1 },
    });
    fs::write(root.join("waypaper.json"), manifest.to_string()).unwrap();
    fs::write(
        root.join("page.html"),
        format!("<html><title>{name}</title>"),
    )
    .unwrap();
    fs::write(root.join("assets/app.js"), "let x = 1;").unwrap();
    image::RgbImage::from_pixel(64, 36, image::Rgb([200, 30, 30]))
        .save(root.join("preview.png"))
        .unwrap();
    root
}

pub fn import(daemon: &TestDaemon, path: &Path) -> Answer {
    daemon
        .client()
        .post("/images/import-web", &json!({ "path": path }))
}

/// Names in the library's directory.
fn shelf(daemon: &TestDaemon) -> BTreeSet<String> {
    let entries = fs::read_dir(daemon.images())
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

fn rows(daemon: &TestDaemon) -> BTreeSet<String> {
    let page = daemon.client().get("/images?per_page=200").ok();
    let names = page["data"].as_array().unwrap().iter();
    names
        .map(|image| image["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn package_is_imported_with_all_its_files() {
    let daemon = TestDaemon::started();
    let mut events = daemon.events("gallery_changed");
    let source = package(&daemon, "rain, at #1");
    let image = import(&daemon, &source).ok();
    assert_eq!(events.wait_for("gallery_changed")["domain"], "images");
    let root = daemon.images().join("Rain");
    assert_eq!(image["name"], "Rain", "the name is not the title");
    assert_eq!(
        (&image["media_type"], &image["format"]),
        (&json!("web"), &json!("html"))
    );
    assert_eq!(image["path"], json!(root.join("page.html")));
    assert_eq!(
        (&image["width"], &image["height"]),
        (&json!(64), &json!(36))
    );
    assert_eq!(image["colors"], json!(["#c81e1e"]));
    let meta = &image["web_meta"];
    assert_eq!(meta["package_root"], json!(root));
    assert_eq!(meta["manifest_path"], json!(root.join("waypaper.json")));
    assert_eq!(meta["entry_path"], image["path"]);
    assert_eq!(
        (&meta["title"], &meta["author"]),
        (&json!("Rain"), &json!("somebody"))
    );
    assert_eq!(meta["capabilities"]["keyboard"], true);
    assert_eq!(meta["parallax_direction"], "vertical");
    assert_eq!(meta["wallpaper_config"]["speed"]["default"], 2);
    assert_eq!(
        image["wallpaper_config_overrides"],
        json!({ "speed": 4 }),
        "undeclared overrides are dropped"
    );
    assert_eq!(image["preview_path"], json!(root.join("preview.png")));
    assert_eq!(fs::read(root.join("assets/app.js")).unwrap(), b"let x = 1;");
    let id = image["id"].as_i64().unwrap();
    let raw = daemon.client().get(&format!("/images/{id}/raw"));
    assert_eq!(raw.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(raw.text().contains("<html>"));
    let thumbnail = daemon
        .client()
        .get(&format!("/images/{id}/thumbnail?resolution=4k"));
    assert_eq!(thumbnail.header("content-type"), Some("image/webp"));

    // The path of its manifest stands for the package.
    assert_eq!(
        import(&daemon, &source.join("waypaper.json")).ok()["id"],
        id
    );

    // The same content is a duplicate, whatever its directory is called.
    let copy = daemon.root().join("copy");
    fs::rename(&source, &copy).unwrap();
    assert_eq!(import(&daemon, &copy).ok()["id"], id);
    assert_eq!(rows(&daemon).len(), 1);

    // Another package of the same title gets a number; a rename moves the directory.
    let other = package(&daemon, "rain, at #1");
    fs::write(other.join("assets/app.js"), "let x = 2;").unwrap();
    assert_eq!(import(&daemon, &other).ok()["name"], "Rain_1");
    let rename = |name: &str| {
        daemon
            .client()
            .patch(&format!("/images/{id}"), &json!({ "name": name }))
            .ok()
    };
    // A dot is part of a directory's name, not the start of an extension.
    for name in ["sea 1.5", "sea 2.5"] {
        let renamed = rename(name);
        assert_eq!(renamed["name"], name);
        assert_eq!(
            renamed["web_meta"]["package_root"],
            json!(daemon.images().join(name))
        );
    }
    // A search finds the title even after a rename.
    let found = daemon.client().get("/images?search=RAIN").ok();
    assert_eq!(found["pagination"]["total_items"], 2);
    let renamed = rename("sea");
    assert_eq!(
        renamed["path"],
        json!(daemon.images().join("sea/page.html"))
    );
    assert_eq!(
        renamed["web_meta"]["package_root"],
        json!(daemon.images().join("sea"))
    );
    assert_eq!(
        renamed["preview_path"],
        json!(daemon.images().join("sea/preview.png"))
    );
    assert_eq!(
        shelf(&daemon),
        BTreeSet::from(["sea".to_owned(), "Rain_1".to_owned()])
    );
    assert!(
        daemon
            .client()
            .get(&format!("/images/{id}/raw"))
            .text()
            .contains("<html>")
    );

    let deleted = daemon.client().delete_images(&[id]);
    assert_eq!(deleted.ok()["deleted"], 1);
    assert_eq!(shelf(&daemon), BTreeSet::from(["Rain_1".to_owned()]));
}

#[test]
fn page_without_a_manifest_gets_one_and_a_thumbnail() {
    let daemon = TestDaemon::started();
    let source = daemon.root().join("Quiet night");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("index.html"), "<html>").unwrap();
    let image = import(&daemon, &source.join("index.html")).ok();
    assert_eq!(image["web_meta"]["title"], "Quiet night");
    assert!(image.get("preview_path").is_none());
    assert_eq!(
        (&image["colors"], &image["hue_group"]),
        (&json!([]), &json!(99))
    );
    let manifest = image["web_meta"]["manifest_path"].as_str().unwrap();
    let text: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(
        (&text["entry"], &text["title"]),
        (&json!("index.html"), &json!("Quiet night"))
    );
    assert!(
        !source.join("waypaper.json").exists(),
        "the source is left alone"
    );
    assert!(Path::new(image["thumbnails"]["default"].as_str().unwrap()).is_file());
    // A deleted thumbnail is made again.
    fs::remove_file(image["thumbnails"]["default"].as_str().unwrap()).unwrap();
    let thumbnail = daemon
        .client()
        .get(&format!("/images/{}/thumbnail", image["id"]));
    assert_eq!(thumbnail.status, 200);
}

#[test]
fn invalid_package_is_refused_without_leftovers() {
    let daemon = TestDaemon::started();
    let check = |spoil: &dyn Fn(&Path), expected: &str| {
        let root = package(&daemon, "bad");
        spoil(&root);
        let answer = import(&daemon, &root);
        let body = answer.fails(400);
        assert!(body["error"].as_str().unwrap().contains(expected), "{body}");
        assert!(shelf(&daemon).is_empty(), "{:?}", shelf(&daemon));
        fs::remove_dir_all(root).unwrap();
    };
    let manifest = |text: &'static str| {
        move |root: &Path| fs::write(root.join("waypaper.json"), text).unwrap()
    };
    check(
        &|root| symlink("page.html", root.join("assets/link")).unwrap(),
        "its assets/link is a link",
    );
    check(
        &manifest(r#"{"entry": "../page.html"}"#),
        "not a path inside the package",
    );
    check(
        &manifest(r#"{"entry": "/etc/passwd"}"#),
        "not a path inside the package",
    );
    check(
        &manifest(r#"{"preview": "../../secret.png"}"#),
        "not a path inside the package",
    );
    check(
        &manifest(r#"{"entry": "missing.html"}"#),
        "missing.html is missing",
    );
    check(&manifest(r#"{"entry": "assets"}"#), "assets is missing");
    check(
        &manifest(r#"{"dependency": "111", "preset": {}}"#),
        "it is a preset of 111",
    );
    check(&manifest("{"), "line 1 column 1");
    let large = format!(
        r#"{{"wallpaper_config": {{"x": "{}"}}}}"#,
        "x".repeat(64 << 10)
    );
    check(
        &|root| fs::write(root.join("waypaper.json"), &large).unwrap(),
        "wallpaper_config in waypaper.json has 65544 bytes, more than 65536",
    );
    check(
        &|root| {
            fs::remove_file(root.join("waypaper.json")).unwrap();
        },
        "no waypaper.json, project.json or index.html",
    );
    for (path, expected) in [
        ("relative/path", "not absolute"),
        ("/nowhere/at/all", "No such file"),
        ("/etc/hostname", "not a directory"),
    ] {
        let body = import(&daemon, Path::new(path)).fails(400);
        assert!(body["error"].as_str().unwrap().contains(expected), "{body}");
    }
    daemon
        .client()
        .post("/images/import-web", &json!({}))
        .fails(400);
    let body = json!({ "path": package(&daemon, "x"), "folder_id": 7 });
    daemon.client().post("/images/import-web", &body).fails(404);
    let body = json!({ "paths": ["/etc/hostname"], "folder_id": 7 });
    daemon.client().post("/images", &body).fails(404);
    assert!(rows(&daemon).is_empty());
}

#[test]
fn capabilities_and_overrides_of_a_page_can_be_changed() {
    let daemon = TestDaemon::started();
    let image = import(&daemon, &package(&daemon, "rain")).ok();
    let path = format!("/images/{}", image["id"]);
    let patch = |body: Value| daemon.client().patch(&path, &body);
    assert_eq!(image["wallpaper_config_overrides"], json!({ "speed": 4 }));
    let granted = patch(json!({ "web_capabilities": { "network": true, "keyboard": false } })).ok();
    let expected = json!({
        "network": true, "keyboard": false, "audio_reactive": false, "parallax_aware": false,
        "pointer_interactive": false,
    });
    assert_eq!(granted["web_meta"]["capabilities"], expected);
    let manifest = daemon.images().join("Rain/waypaper.json");
    let text: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    assert_eq!(
        (&text["capabilities"], &text["title"]),
        (&expected, &json!("Rain"))
    );
    // The page itself decides about types and ranges.
    let values = json!({ "speed": "fast" });
    let shown = patch(json!({ "wallpaper_config_overrides": values })).ok();
    assert_eq!(shown["wallpaper_config_overrides"], values);
    assert_eq!(daemon.client().get(&path).ok(), shown);
    for bad in [
        json!({ "web_capabilities": { "network": "yes" } }),
        json!({ "web_capabilities": { "autoplay": true } }),
        json!({ "web_capabilities": true }),
        json!({ "wallpaper_config_overrides": [1] }),
    ] {
        patch(bad).fails(400);
    }
    let undeclared = json!({ "speed": 9, "sped": 9 });
    let body = patch(json!({ "wallpaper_config_overrides": undeclared, "tags": ["x"] })).fails(400);
    let error = body["error"].as_str().unwrap();
    assert!(
        error.ends_with(".sped: the package does not declare it"),
        "{error}"
    );
    // Both or neither: as the manifest cannot be written, the row stays as it is.
    fs::write(&manifest, "{").unwrap();
    let body = patch(json!({ "web_capabilities": { "network": false }, "tags": ["x"] })).fails(400);
    assert!(
        body["error"]
            .as_str()
            .unwrap()
            .contains("waypaper.json cannot be read"),
        "{body}"
    );
    assert_eq!(daemon.client().get(&path).ok(), shown);

    let picture = daemon.root().join("one.png");
    image::RgbImage::new(4, 4).save(&picture).unwrap();
    let id = daemon.import(&[&picture])[0];
    let refused = json!({ "wallpaper_config_overrides": {} });
    let body = daemon
        .client()
        .patch(&format!("/images/{id}"), &refused)
        .fails(400);
    assert!(
        body["error"]
            .as_str()
            .unwrap()
            .contains("is not an HTML wallpaper"),
        "{body}"
    );
}

#[test]
fn killed_import_leaves_the_whole_package_or_nothing() {
    let mut daemon = TestDaemon::started();
    let root = package(&daemon, "large");
    for at in 0..1500 {
        fs::write(root.join(format!("assets/{at}")), vec![at as u8; 9000]).unwrap();
    }
    let whole = fs::read_dir(root.join("assets")).unwrap().count();
    let mut cut = 0;
    for round in 0..12 {
        let client = daemon.client();
        let body = json!({ "path": root });
        let asking = std::thread::spawn(move || {
            // The daemon dies before it answers, so the client panics.
            std::panic::catch_unwind(|| client.post("/images/import-web", &body)).ok()
        });
        // An instant during copying, renaming or the answer.
        let wanted = whole * round / 10;
        wait_for(&format!("{wanted} files"), || {
            match (asking.is_finished(), copied(&daemon)) {
                (false, copied) if copied < wanted => Err(copied),
                _ => Ok(()),
            }
        });
        daemon.kill9();
        asking.join().unwrap();
        daemon.start();
        // True after the library was reconciled.
        wait_until("whole packages only", || shelf(&daemon) == rows(&daemon));
        cut += u32::from(shelf(&daemon).is_empty());
        for image in daemon.client().get("/images").ok()["data"]
            .as_array()
            .unwrap()
        {
            let kept = Path::new(image["web_meta"]["package_root"].as_str().unwrap());
            assert_eq!(fs::read_dir(kept.join("assets")).unwrap().count(), whole);
            let id = image["id"].as_i64().unwrap();
            daemon.client().delete_images(&[id]).ok();
        }
        assert!(shelf(&daemon).is_empty());
    }
    assert!(cut > 0, "no kill came in time");
}

/// Number of files that have been copied of the package.
fn copied(daemon: &TestDaemon) -> usize {
    let entries = fs::read_dir(daemon.images())
        .into_iter()
        .flatten()
        .flatten();
    let assets = entries.map(|entry| fs::read_dir(entry.path().join("assets")));
    assets.flatten().map(Iterator::count).max().unwrap_or(0)
}

#[test]
fn packages_survive_a_lost_database() {
    let mut daemon = TestDaemon::started();
    import(&daemon, &package(&daemon, "rain")).ok();
    assert_eq!(daemon.stop(), Some(0));
    fs::remove_dir_all(daemon.database().parent().unwrap()).unwrap();
    // A package that its owner put there, and a directory that is no package.
    fs::rename(package(&daemon, "sun"), daemon.images().join("sun")).unwrap();
    fs::create_dir(daemon.images().join("other")).unwrap();
    fs::remove_file(daemon.images().join("sun/preview.png")).unwrap();
    daemon.start();
    daemon.import(&[&daemon.images()]);
    assert_eq!(
        rows(&daemon),
        BTreeSet::from(["Rain".to_owned(), "sun".to_owned()])
    );
    assert!(daemon.images().join("other").is_dir());
}
