//! Tests the answers to requests for a wallpaper, and compares them with the screen.

use serde_json::{Value, json};

use crate::colors::{NIGHT, see_everywhere};
use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, see, set, three};
use crate::support::TestDaemon;

/// The names in a list of the answer; none without the list.
fn names(answer: &Value, field: &str) -> Vec<String> {
    let list = answer[field].as_array().into_iter().flatten();
    list.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn monitors_that_are_not_connected_are_skipped_and_named() {
    let desktop = Desktop::x11(&["2"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    let mut events = daemon.events("wallpaper_changed");
    let wanted = ["DP-8", "VIRTUAL-2", "DP-9"];
    let body = json!({ "image_id": red, "monitors": wanted });
    let answer = daemon.client().post("/wallpaper/set", &body).ok();
    assert_eq!(names(&answer, "skipped"), ["DP-8", "DP-9"]);
    assert_eq!(names(&answer, "monitors"), ["VIRTUAL-2"]);
    assert_eq!(answer["monitor"], "VIRTUAL-2");
    assert_eq!(
        names(&events.wait_for("wallpaper_changed"), "monitors"),
        ["VIRTUAL-2"]
    );
    let history = daemon.client().get("/images/history").ok();
    assert_eq!(names(&history[0], "monitors"), ["VIRTUAL-2"]);
    see(&desktop, &daemon, "VIRTUAL-2", RED);
    // If none is connected, nothing happens.
    let body = json!({ "image_id": green, "monitors": ["DP-8", "DP-9"] });
    let failed = daemon.client().post("/wallpaper/set", &body);
    failed.fails(400);
    let text = failed.text();
    assert!(
        text.contains("DP-8, DP-9") && text.contains("VIRTUAL-1, VIRTUAL-2"),
        "{text}"
    );
    set(&daemon, green, "DP-9").fails(400);
    see(&desktop, &daemon, "VIRTUAL-2", RED);
    // In the mode `individual`, each of several monitors shows the picture.
    let all = json!({ "image_id": blue, "monitors": ["VIRTUAL-1", "VIRTUAL-2"] });
    let answer = daemon.client().post("/wallpaper/set", &all).ok();
    assert_eq!(answer.get("skipped"), None);
    assert_eq!(answer["mode"], "individual");
    see(&desktop, &daemon, "VIRTUAL-1", BLUE);
    see(&desktop, &daemon, "VIRTUAL-2", BLUE);
    set(&daemon, green, "VIRTUAL-1").ok();
    see(&desktop, &daemon, "VIRTUAL-1", GREEN);
    see(&desktop, &daemon, "VIRTUAL-2", BLUE);
}

#[test]
fn path_is_imported_once_and_shown() {
    let desktop = Desktop::x11(&["1"]);
    let daemon = TestDaemon::started_on(&desktop);
    let path = daemon.root().join("one file.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb(RED))
        .save(&path)
        .unwrap();
    let client = daemon.client();
    let set = |body: Value| client.post("/wallpaper/set", &body);
    let mut events = daemon.events("gallery_changed,processing_started,wallpaper_changed");
    let answer = set(json!({ "path": path })).ok();
    assert_eq!(answer["image_name"], "one file");
    see(&desktop, &daemon, "VIRTUAL-1", RED);
    assert_eq!(events.next().1["domain"], "images");
    assert_eq!(events.next().0, "wallpaper_changed");
    let image = client.get(&format!("/images/{}", answer["image_id"])).ok();
    assert_eq!(
        (&image["path"], &image["folder_id"]),
        (&answer["image_path"], &Value::Null)
    );
    // A file is recognized by its content, and as the library's own.
    let other = daemon.root().join("other.png");
    std::fs::copy(&path, &other).unwrap();
    let link = daemon.root().join("link.png");
    std::os::unix::fs::symlink(image["path"].as_str().unwrap(), &link).unwrap();
    for path in [&other, &link] {
        assert_eq!(
            set(json!({ "path": path })).ok()["image_id"],
            answer["image_id"]
        );
    }
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 1);
    // Requests that cannot be carried out name the reason.
    let says = |body: Value, status: u16, what: &str| {
        let told = set(body).fails(status);
        assert!(told.to_string().contains(what), "{told}");
    };
    says(json!({}), 400, "image_id, path or color is missing");
    says(
        json!({ "image_id": 1, "path": path }),
        400,
        "give one of image_id, path and color",
    );
    says(json!({ "image_id": -1 }), 404, "no image");
    says(
        json!({ "color": "1e1e2e" }),
        400,
        "did you mean \\\"#1e1e2e\\\"?",
    );
    says(
        json!({ "color": "#1e1e" }),
        400,
        "color must be #rrggbb or #rgb, not \\\"#1e1e\\\"",
    );
    says(json!({ "path": "one file.png" }), 400, "not absolute");
    says(
        json!({ "path": daemon.root().join("none.png") }),
        404,
        "none.png: cannot read it",
    );
    says(json!({ "path": daemon.root() }), 400, "`murald import`");
    says(json!({ "path": "/dev/null" }), 404, "/dev/null");
    let text = daemon.root().join("text.png");
    std::fs::write(&text, "no picture").unwrap();
    says(
        json!({ "path": text }),
        400,
        "text.png: not a supported image",
    );
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 1);
    // A request that is refused leaves no picture in the library.
    let blue = daemon.root().join("blue.png");
    image::RgbImage::from_pixel(64, 36, image::Rgb(BLUE))
        .save(&blue)
        .unwrap();
    says(
        json!({ "path": blue, "monitor": "DP-9" }),
        400,
        "(connected: VIRTUAL-1",
    );
    says(
        json!({ "path": blue, "transition": "spiral" }),
        400,
        "transition must be none with feh, not",
    );
    says(
        json!({ "path": blue, "default": true, "monitor": "VIRTUAL-1" }),
        400,
        "default cannot be combined with monitors",
    );
    let page = daemon.root().join("rain");
    std::fs::create_dir(&page).unwrap();
    std::fs::write(page.join("index.html"), "<html>").unwrap();
    let refused = set(json!({ "path": page })).fails(400);
    assert_eq!(refused["error_code"], "incompatible_backend");
    let meta =
        json!({ "backend": "feh", "media_type": "web", "image_id": null, "image_name": "rain" });
    assert_eq!(refused["meta"], meta);
    std::fs::write(page.join("project.json"), r#"{"type": "scene"}"#).unwrap();
    says(json!({ "path": page }), 400, "which murald cannot show");
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 1);
    // feh has one fit for all monitors, and a colour needs none.
    client
        .patch(
            "/config",
            &json!({ "backend": { "feh": { "mode": "center" } } }),
        )
        .ok();
    set(json!({ "color": "#1e1e2e" })).ok();
    see_everywhere(&desktop, &daemon, "VIRTUAL-1", NIGHT);
    // A command in another session reports whose screens it changes.
    let display = desktop.var("DISPLAY").unwrap();
    let session = client.get("/info").ok()["session"].clone();
    assert_eq!(session, json!({ "kind": "x11", "display": display }));
    let from = |display: &str, words: &[&str]| {
        let output = daemon
            .murald(words)
            .env("DISPLAY", display)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let file = path.to_str().unwrap();
    let there = format!("the X11 session {display}");
    let (code, told) = from(":58000", &["set", file]);
    assert!(
        code == Some(0) && told.contains(&format!("changed {there}")),
        "{told}"
    );
    let (code, told) = from(":58000", &["start"]);
    assert!(
        code == Some(75) && told.contains(&format!("it draws in {there}")),
        "{told}"
    );
    assert_eq!(from(display, &["set", file]), (Some(0), String::new()));
    let (code, told) = from(display, &["start"]);
    assert!(code == Some(75) && !told.contains("session"), "{told}");
}

#[test]
fn animated_picture_is_shown_as_a_still_if_no_backend_animates_it() {
    let desktop = Desktop::x11(&["1"]);
    let daemon = TestDaemon::started_on(&desktop);
    let path = daemon.root().join("moves.gif");
    let frames = [
        "xc:rgb(30,180,60)",
        "xc:rgb(200,30,30)",
        path.to_str().unwrap(),
    ];
    desktop.output("convert", &[&["-size", "64x36"][..], &frames].concat());
    let id = daemon.import(&[&path])[0];
    assert_eq!(
        daemon.client().get(&format!("/images/{id}")).ok()["animated"],
        true
    );
    let answer = daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }))
        .ok();
    let note = answer["note"].as_str().unwrap();
    assert!(note.contains("first frame"), "{note}");
    see(&desktop, &daemon, "VIRTUAL-1", GREEN);
    // The answer for a still has no note.
    let still = three(&daemon)[2];
    let answer = daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": still }))
        .ok();
    assert_eq!(answer.get("note"), None);
}

#[test]
fn one_backend_is_active_as_soon_as_it_is_activated() {
    let desktop = Desktop::x11(&["1"]);
    let mut daemon = TestDaemon::on(&desktop);
    // The configured backend belongs to another session, and is only asked for its version.
    daemon.configure("[backend]\ntype = 'swaybg'\n");
    daemon.start();
    wait_until("the monitor", || {
        daemon.client().get("/monitors").ok() != json!([])
    });
    let active = || {
        let all = daemon.client().get("/backends").ok();
        let all = all
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["active"] == true);
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    for _ in 0..20 {
        daemon
            .client()
            .post("/backends/feh/activate", &json!({}))
            .ok();
        assert_eq!(active(), ["feh"]);
    }
    assert_eq!(
        daemon.client().get("/config").ok()["backend"]["type"],
        "feh"
    );
}

#[test]
fn backend_that_is_not_installed_is_stored_with_a_warning() {
    let desktop = Desktop::x11(&["1"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.only(&["feh"]);
    daemon.configure("[backend]\ntype = 'feh'\n");
    daemon.start();
    let warnings = || names(&daemon.client().get("/config").ok(), "warnings");
    assert!(warnings().is_empty());
    let patch = json!({ "backend": { "type": "hyprpaper" } });
    let answer = daemon.client().patch("/config", &patch).ok();
    assert_eq!(answer["backend"]["type"], "hyprpaper");
    let said = names(&answer, "warnings");
    assert!(said[0].contains("hyprpaper is not installed") && said[0].contains("using builtin"));
    assert_eq!(warnings(), said);
    // Even if installed, it works only in another session.
    for program in ["hyprpaper", "hyprctl"] {
        let path = daemon.root().join("only").join(program);
        std::os::unix::fs::symlink("/bin/false", path).unwrap();
    }
    let said = warnings();
    assert!(
        said[0].contains("hyprpaper works on Wayland only"),
        "{said:?}"
    );
    daemon
        .client()
        .patch("/config", &json!({ "backend": { "type": "feh" } }))
        .ok();
    assert!(warnings().is_empty());
}
