//! Changes to the library over the socket: names, tags, folders, searches, colour themes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::TestDaemon;

/// A test daemon with plain pictures of these names and colours, and their ids.
fn daemon(pictures: &[(&str, [u8; 3])]) -> (TestDaemon, Vec<i64>) {
    let daemon = TestDaemon::started();
    let ids = pictures.iter().map(|&(name, color)| {
        let path = daemon.root().join(name);
        image::RgbImage::from_pixel(40, 30, image::Rgb(color))
            .save(&path)
            .unwrap();
        daemon.import(&[&path])[0]
    });
    let ids = ids.collect();
    (daemon, ids)
}

fn names(daemon: &TestDaemon, query: &str) -> Vec<String> {
    let page = daemon
        .client()
        .get(&format!("/images?sort_by=name&sort_order=asc&{query}"))
        .ok();
    let data = page["data"].as_array().unwrap().clone();
    assert_eq!(page["pagination"]["total_items"], data.len());
    data.iter()
        .map(|image| image["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn renaming_an_image_renames_its_file() {
    let (daemon, ids) = daemon(&[("one.png", [9, 9, 9]), ("two.png", [200, 9, 9])]);
    let client = daemon.client();
    let rename =
        |id: i64, name: &str| client.patch(&format!("/images/{id}"), &json!({ "name": name }));
    let mut events = daemon.events("gallery_changed");
    let image = rename(ids[0], "  Lake at night.png ").ok();
    assert_eq!(image["name"], "Lake at night");
    let path: PathBuf = image["path"].as_str().unwrap().into();
    assert_eq!(path, daemon.images().join("Lake at night.png"));
    assert!(path.is_file() && !daemon.images().join("one.png").exists());
    assert_eq!(events.wait_for("gallery_changed")["domain"], "images");
    // A name in use, the image's own name, and invalid names.
    assert_eq!(
        rename(ids[1], "Lake at night").ok()["name"],
        "Lake at night_1"
    );
    assert_eq!(
        rename(ids[1], "Lake at night_1.png").ok()["name"],
        "Lake at night_1"
    );
    // The same request again keeps the number.
    assert_eq!(
        rename(ids[1], "Lake at night").ok()["name"],
        "Lake at night_1"
    );
    let ours = ".murald-import-7";
    for bad in [
        "",
        " ",
        ".",
        "..",
        ours,
        "a/b",
        "a\\b",
        "a\nb",
        "a\u{0}b",
        &"x".repeat(255),
    ] {
        rename(ids[0], bad).fails(400);
    }
    assert_eq!(
        rename(ids[0], &"ö".repeat(125)).ok()["name"],
        "ö".repeat(125)
    );
    rename(999, "x").fails(404);
    let files: Vec<_> = fs::read_dir(daemon.images()).unwrap().collect();
    assert_eq!(files.len(), 2);
}

#[test]
fn invalid_change_is_refused_as_a_whole() {
    let (daemon, ids) = daemon(&[("one.png", [9, 9, 9])]);
    let client = daemon.client();
    let path = format!("/images/{}", ids[0]);
    let patch = |body: Value| client.patch(&path, &body);
    let before = client.get(&path).ok();
    for bad in [
        json!({ "idd": 77 }),
        json!({ "name": "x", "widht": 3 }),
        json!({ "tags": "blue" }),
        json!({ "tags": ["a\nb"] }),
        json!({ "colors": ["reddish"] }),
        json!({ "colors": vec!["#010203"; 13] }),
        json!({ "folder_id": "root" }),
        json!({ "is_selected": 1 }),
        json!({ "description": "a\nb" }),
        json!({ "description": "x".repeat(4097) }),
    ] {
        patch(bad).fails(400);
    }
    patch(json!({ "folder_id": 42 })).fails(404);
    assert_eq!(client.get(&path).ok(), before);

    let changed = patch(json!({
        "tags": [" blue ", "calm,,blue", " "], "colors": ["#F00", "00ff00"], "is_selected": true,
        "audio_enabled": true, "description": " A lake at dawn ",
    }))
    .ok();
    assert_eq!(changed["description"], "A lake at dawn");
    let total = |path| client.get(path).ok()["pagination"]["total_items"].clone();
    assert_eq!(
        (
            total("/images?search=DAWN+one"),
            total("/images?search=dusk")
        ),
        (1.into(), 0.into())
    );
    assert_eq!(changed["tags"], json!(["blue", "calm"]));
    assert_eq!(changed["colors"], json!(["#ff0000", "#00ff00"]));
    assert_eq!(changed["hue_group"], 0);
    // A client may set more colours than the daemon extracts.
    let twelve: Vec<String> = (0..12).map(|at| format!("#{:02x}0000", at * 20)).collect();
    assert_eq!(
        patch(json!({ "colors": twelve })).ok()["colors"],
        json!(twelve)
    );
    let found = client.get("/images?colors=%23dc0000").ok();
    assert_eq!(found["pagination"]["total_items"], 1);
    patch(json!({ "colors": ["#ff0000", "#00ff00"] })).ok();
    assert_eq!(
        (&changed["is_selected"], &changed["audio_enabled"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        client.get("/images/tags").ok(),
        json!({ "tags": ["blue", "calm"] })
    );
    let none = client
        .post("/images/select-all", &json!({ "selected": false }))
        .ok();
    assert_eq!(none, json!({ "updated": 1, "selected": false }));
    client.post("/images/select-all", &json!({})).fails(400);
}

#[test]
fn searches_combine_all_filters() {
    let red = [220, 20, 20];
    let (daemon, ids) = daemon(&[
        ("Red lake.png", red),
        ("Red forest.png", [200, 40, 30]),
        ("Blue lake.png", [20, 30, 220]),
        ("Grey.png", [120, 120, 120]),
    ]);
    let client = daemon.client();
    client
        .patch(
            &format!("/images/{}", ids[0]),
            &json!({ "tags": ["Calm", "water"] }),
        )
        .ok();
    client
        .patch(
            &format!("/images/{}", ids[2]),
            &json!({ "tags": ["water"] }),
        )
        .ok();
    let check =
        |query: &str, expected: &[&str]| assert_eq!(names(&daemon, query), expected, "{query}");
    check("search=LAKE", &["Blue lake", "Red lake"]);
    check("search=calm%20red", &["Red lake"]);
    check("tags=water", &["Blue lake", "Red lake"]);
    check("tags=water,Calm", &["Red lake"]);
    check("tags=WATER,calm", &["Red lake"]);
    check("hue_group=0", &["Red forest", "Red lake"]);
    check("hue_group=99", &["Grey"]);
    check("colors_near=%23dc1414~15", &["Red forest", "Red lake"]);
    check("colors_near=%23dc1414~1", &["Red lake"]);
    check(
        &format!("palette_similar_to={}&palette_max_delta_e=20", ids[0]),
        &["Red forest"],
    );
    check("media_type=video", &[]);
    check("search=lake&hue_group=0", &["Red lake"]);
    for bad in [
        "colors=reddish",
        "colors_near=%23ff0000",
        "colors_near=%23ff0000~-1",
        "hue_group=12",
        "palette_similar_to=x",
        "folder_id=x",
        "media_type=film",
        "animated=yes",
        "sort_order=up",
        "tags=a,,b",
    ] {
        client.get(&format!("/images?{bad}")).fails(400);
    }
    client.get("/images?palette_similar_to=999").fails(404);
}

#[test]
fn media_type_gif_lists_animated_pictures() {
    let (daemon, _) = daemon(&[("Still.png", [9, 9, 9])]);
    for (name, frames) in [
        ("Moving.gif", &["xc:red", "xc:blue"][..]),
        ("Standing.gif", &["xc:red"]),
    ] {
        let path = daemon.root().join(name);
        let made = Command::new("convert")
            .args(["-size", "8x8"])
            .args(frames)
            .arg(&path)
            .status();
        assert!(made.unwrap().success());
        daemon.import(&[&path]);
    }
    let check =
        |query: &str, expected: &[&str]| assert_eq!(names(&daemon, query), expected, "{query}");
    check("media_type=gif", &["Moving"]);
    check("animated=true", &["Moving"]);
    check("animated=false", &["Standing", "Still"]);
    check("media_type=image&animated=false", &["Standing", "Still"]);
    check("media_type=image", &["Moving", "Standing", "Still"]);
    check("media_type=gif&animated=false", &[]);
}

#[test]
fn change_without_effect_publishes_no_event() {
    let (daemon, ids) = daemon(&[("one.png", [9, 9, 9])]);
    let client = daemon.client();
    let image = format!("/images/{}", ids[0]);
    let folder = client.post("/folders", &json!({ "name": "Lakes" })).ok();
    let home = format!("/folders/{}", folder["id"]);
    let mut events = daemon.events("gallery_changed");
    for same in [
        json!({}),
        json!({ "name": "one.png" }),
        json!({ "tags": [], "folder_id": null }),
    ] {
        client.patch(&image, &same).ok();
    }
    for same in [json!({}), json!({ "name": "Lakes", "parent_id": null })] {
        assert_eq!(client.patch(&home, &same).ok(), folder);
    }
    let into = |folder: &Value| {
        let body = json!({ "image_ids": [ids[0], ids[0], 99], "folder_id": folder });
        assert_eq!(
            client.post("/folders/move-images", &body).ok(),
            json!({ "moved": 1 })
        );
    };
    into(&json!(null));
    client
        .post("/images/select-all", &json!({ "selected": false }))
        .ok();
    // The next event is of the first request that does change something.
    into(&folder["id"]);
    into(&folder["id"]);
    client.delete(&home).ok();
    for domain in ["images", "images", "folders"] {
        assert_eq!(events.next().1["domain"], domain);
    }
}

#[test]
fn missing_file_is_named_in_the_error() {
    let (daemon, ids) = daemon(&[("one.png", [9, 9, 9])]);
    let client = daemon.client();
    let image = format!("/images/{}", ids[0]);
    fs::remove_file(daemon.images().join("one.png")).unwrap();
    client.get(&format!("{image}/raw")).fails(404);
    let refused = client.patch(&image, &json!({ "name": "two" })).fails(404);
    assert_eq!(
        refused["error"],
        format!("the file of image {} is missing", ids[0])
    );
    client.patch(&image, &json!({ "tags": ["kept"] })).ok();
    assert_eq!(client.get(&image).ok()["name"], "one");
}

#[test]
fn folders_can_be_created_moved_searched_and_deleted() {
    let (daemon, ids) = daemon(&[("a.png", [1, 2, 3]), ("b.png", [200, 2, 3])]);
    let client = daemon.client();
    let make = |name: &str, parent: Value| {
        client.post("/folders", &json!({ "name": name, "parent_id": parent }))
    };
    let top = make(" Nature ", json!(null));
    assert_eq!(top.status, 201);
    let top = top.ok();
    assert_eq!(
        (&top["name"], &top["parent_id"]),
        (&json!("Nature"), &json!(null))
    );
    let lakes = make("Lakes", top["id"].clone()).ok();
    assert_eq!(make("Nature", json!(null)).ok()["id"], top["id"]);
    make("x", json!(99)).fails(404);
    make("", json!(null)).fails(400);
    let moved = client.post(
        "/folders/move-images",
        &json!({ "image_ids": ids, "folder_id": lakes["id"] }),
    );
    assert_eq!(moved.ok(), json!({ "moved": 2 }));
    client
        .post("/folders/move-images", &json!({ "image_ids": ids }))
        .fails(400);
    assert_eq!(
        names(&daemon, &format!("folder_id={}", lakes["id"])),
        ["a", "b"]
    );
    assert!(names(&daemon, "folder_id=root").is_empty());

    let path = client.get(&format!("/folders/{}/path", lakes["id"])).ok();
    let path: Vec<&Value> = path["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| &f["name"])
        .collect();
    assert_eq!(path, ["Nature", "Lakes"]);
    let cycle = client.patch(
        &format!("/folders/{}", top["id"]),
        &json!({ "parent_id": lakes["id"] }),
    );
    cycle.fails(409);
    client
        .patch(&format!("/folders/{}", top["id"]), &json!({ "colour": 1 }))
        .fails(400);
    client.get("/folders?parent_id=x").fails(400);
    client.get("/folders?parent_id=-58800").fails(400);
    let folders = |query: &str| {
        let found = client.get(&format!("/folders{query}")).ok();
        let data = found["data"].as_array().unwrap().clone();
        data.iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let below = format!("?parent_id={}", top["id"]);
    make("Deep lakes", lakes["id"].clone()).ok();
    make("Seas", json!(null)).ok();
    assert_eq!(folders(""), ["Nature", "Seas"], "a client's first page");
    assert_eq!(folders("?parent_id=null&search="), ["Nature", "Seas"]);
    assert_eq!(
        folders("?parent_id=all"),
        ["Deep lakes", "Lakes", "Nature", "Seas"]
    );
    assert_eq!(folders(&below), ["Lakes"]);
    assert_eq!(folders("?search=LAKES"), ["Deep lakes", "Lakes"]);
    assert_eq!(
        folders("?parent_id=all&search=s"),
        ["Deep lakes", "Lakes", "Seas"]
    );
    assert_eq!(
        folders(&format!("{below}&search=s")),
        ["Deep lakes", "Lakes"]
    );
    assert_eq!(
        folders(&format!("?parent_id={}&search=s", lakes["id"])),
        ["Deep lakes"]
    );

    let kept = client.delete(&format!("/folders/{}", lakes["id"])).ok();
    let expected = json!({
        "deleted": true, "mode": "keep_contents", "images_deleted": 0, "folders_deleted": 1,
    });
    assert_eq!(kept, expected);
    assert_eq!(
        names(&daemon, &format!("folder_id={}", top["id"])),
        ["a", "b"]
    );
    client
        .delete(&format!("/folders/{}?mode=everything", top["id"]))
        .fails(400);
    let gone = client
        .delete(&format!("/folders/{}?mode=delete_all", top["id"]))
        .ok();
    assert_eq!(
        (&gone["images_deleted"], &gone["folders_deleted"]),
        (&json!(2), &json!(2))
    );
    assert!(names(&daemon, "").is_empty());
    assert_eq!(fs::read_dir(daemon.images()).unwrap().count(), 0);
    client.get(&format!("/folders/{}", top["id"])).fails(404);
}

#[test]
fn themes_of_the_user_are_served() {
    let (daemon, _) = daemon(&[]);
    let directory = daemon.root().join("config/murald/themes");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("night-sky.css"), ":root { --a: #000 }").unwrap();
    let client = daemon.client();
    let expected = json!([{
        "name": "night-sky", "display_name": "Night Sky", "displayName": "Night Sky",
        "source": "user", "url": "/api/themes/night-sky.css",
    }]);
    assert_eq!(client.get("/api/themes").ok(), expected);
    let css = client.get("/api/themes/night-sky.css");
    assert_eq!(
        (css.status, css.text().as_str()),
        (200, ":root { --a: #000 }")
    );
    assert_eq!(css.header("content-type"), Some("text/css; charset=utf-8"));
    for bad in [
        "none.css",
        "night-sky",
        "..%2Fconfig.toml",
        ".css",
        "%2e%2e.css",
    ] {
        client.get(&format!("/api/themes/{bad}")).fails(404);
    }
}
