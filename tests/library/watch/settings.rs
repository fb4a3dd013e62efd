//! Settings of watched directories, by file, API and command.

use std::fs;

use serde_json::{Value, json};

use super::{Walls, picture};
use crate::desktop::wait_until;
use crate::support::TestDaemon;

fn put(daemon: &TestDaemon, body: &Value) -> crate::support::client::Answer {
    daemon
        .client()
        .send("PUT", "/library/watch", "", body.to_string().as_bytes())
}

#[test]
fn invalid_watched_directories_are_refused() {
    let daemon = TestDaemon::started();
    let check = |body: Value, part: &str| {
        let told = put(&daemon, &body).fails(400);
        assert!(told.to_string().contains(part), "{told} lacks {part}");
    };
    let data = daemon.root().join("data");
    check(json!({ "watch": ["pictures"] }), "not absolute");
    check(
        json!({ "watch": [daemon.images()] }),
        "murald stores its files in",
    );
    check(
        json!({ "watch": [daemon.images().join("x")] }),
        "murald stores its files in",
    );
    check(json!({ "watch": [data] }), "murald stores its files in");
    check(json!({ "watch": ["~"] }), "murald stores its files in");
    check(json!({ "watch_folders": true }), "watch");
    check(json!({ "watch": [], "forgot": true }), "forgot");
    check(
        json!({ "watch": [], "watch_folders": null }),
        "watch_folders",
    );
    check(json!({ "watch": "/x" }), "watch");
    let patched = daemon
        .client()
        .patch("/config/library", &json!({ "watch": ["x"] }))
        .fails(400);
    assert!(patched.to_string().contains("cannot watch x"), "{patched}");
    assert_eq!(
        daemon.client().get("/library/watch").ok()["watch"],
        json!([])
    );
}

#[test]
fn watch_command_adds_and_removes_directories() {
    let daemon = TestDaemon::started();
    let directory = daemon.root().join("walls");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a.png"), picture(1)).unwrap();
    let mut events = daemon.events("config_changed");
    let run = |words: &[&str]| {
        let output = daemon
            .murald(words)
            .current_dir(daemon.root())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            told,
        )
    };
    let (code, shown, told) = run(&["watch", "add", "walls"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        shown.starts_with(&format!("{}\twatched\t", directory.display())),
        "{shown}"
    );
    assert_eq!(events.next().1["sections"], json!(["library"]));
    let total = || daemon.client().get("/images").ok()["pagination"]["total_items"].clone();
    wait_until("its picture", || total() == 1);
    assert_eq!(
        run(&["watch", "add", "walls"]).0,
        Some(0),
        "it is watched already"
    );
    // The count follows a moment after the row.
    let listed = format!("{}\twatched\t1\t\n", directory.display());
    wait_until("the line of the directory", || {
        run(&["watch", "list"]).1 == listed
    });
    assert_eq!(run(&["library", "scan"]).0, Some(0));
    let (code, _, told) = run(&["watch", "remove", "others"]);
    assert_eq!(
        (code, told.contains("others is not watched")),
        (Some(1), true),
        "{told}"
    );
    assert_eq!(run(&["watch", "remove", "walls"]).0, Some(0));
    assert_eq!(total(), 1, "its images stay");
    assert_eq!(run(&["watch", "add", "walls"]).0, Some(0));
    wait_until("the count", || {
        run(&["watch", "list"]).1.ends_with("\t1\t\n")
    });
    assert_eq!(run(&["watch", "remove", "walls", "--forget"]).0, Some(0));
    assert_eq!(
        (total(), directory.join("a.png").exists()),
        (json!(0), true)
    );
    assert_eq!(run(&["watch", "list"]).1, "");
}

#[test]
fn missing_watched_directory_is_away_until_it_exists() {
    let daemon = TestDaemon::started();
    let directory = daemon.root().join("later");
    let answer = put(&daemon, &json!({ "watch": [directory] })).ok();
    assert_eq!(answer["watch"][0]["images"], 0);
    let state = || daemon.client().get("/library/watch").ok()["watch"][0]["state"].clone();
    wait_until("away", || state() == "away");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a.png"), picture(1)).unwrap();
    wait_until("watched", || state() == "watched");
    let total = || daemon.client().get("/images").ok()["pagination"]["total_items"].clone();
    wait_until("its picture", || total() == 1);
    fs::rename(&directory, daemon.root().join("gone")).unwrap();
    wait_until("away again", || state() == "away");
    assert_eq!(total(), 1);
}

#[test]
fn files_in_place_are_deleted_only_on_request() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2), ("c.png", 3)]);
    let delete = |body: Value| {
        let text = body.to_string();
        walls
            .daemon
            .client()
            .send("DELETE", "/images", "", text.as_bytes())
            .ok()
    };
    delete(json!({ "ids": [walls.id("a.png")] }));
    assert!(walls.at("a.png").exists());
    let output = walls
        .daemon
        .murald(&["images", "delete", "c"])
        .output()
        .unwrap();
    assert!(
        output.status.success() && walls.at("c.png").exists(),
        "{output:?}"
    );
    delete(json!({ "ids": [walls.id("b.png")], "files": true }));
    assert!(!walls.at("b.png").exists());
    walls.draw("d.png", 4);
    wait_until("a new one", || walls.images().len() == 1);
    delete(json!({ "ids": [walls.id("d.png")], "trash": true }));
    assert!(!walls.at("d.png").exists());
    let trash = walls.daemon.root().join("data/Trash/files/d.png");
    assert_eq!(fs::read(trash).unwrap(), picture(4));
}

#[test]
fn image_in_place_is_not_replaced_by_a_loop_export() {
    let walls = Walls::with(&[("a.png", 1)]);
    let id = walls.id("a.png");
    let body = json!({
        "in_seconds": 0, "out_seconds": 1, "preset": "mp4_h264", "action": "replace",
    });
    // It is not a video either, but the request is refused before the file is read.
    walls
        .daemon
        .client()
        .post(&format!("/images/{id}/video-loop-export"), &body)
        .fails(400);
    assert_eq!(fs::read(walls.at("a.png")).unwrap(), picture(1));
}

#[test]
fn links_are_followed_once() {
    let walls = Walls::prepared("", &[("a.png", 1)]);
    let other = walls.daemon.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("b.png"), picture(2)).unwrap();
    std::os::unix::fs::symlink(&other, walls.at("link")).unwrap();
    std::os::unix::fs::symlink("..", walls.at("circle")).unwrap();
    let mut walls = walls;
    walls.daemon.start();
    wait_until("both", || walls.images().len() >= 2);
    walls.wait_for_state("watched");
    let images = walls.images();
    assert!(
        images.contains_key("a.png") || images.contains_key("circle/walls/a.png"),
        "{images:?}"
    );
    assert_eq!(images.len(), 2);
}

#[test]
fn each_setting_of_the_library_has_its_effect() {
    for (settings, folders) in [("", true), ("watch_folders = false", false)] {
        let mut walls = Walls::prepared(settings, &[("sea/a.png", 1)]);
        walls.daemon.start();
        wait_until("the image", || walls.images().len() == 1);
        let image = walls.images().into_values().next().unwrap();
        assert_eq!(image["folder_id"].is_i64(), folders, "{image}");
        let shown = walls.daemon.client().get("/config/library").ok();
        let expected = json!({
            "watch": [walls.directory], "watch_folders": folders, "exclude": [],
        });
        assert_eq!(shown, expected);
    }
}

#[test]
fn earlier_copies_of_watched_files_are_put_into_the_directorys_folder() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 2)]);
    let watch = fs::read_to_string(walls.daemon.config_file()).unwrap();
    walls.daemon.configure("");
    walls.daemon.start();
    let ids = walls
        .daemon
        .import(&[&walls.at("a.png"), &walls.at("b.png")]);
    let client = walls.daemon.client();
    let chosen = client.post("/folders", &json!({ "name": "chosen" })).ok()["id"].clone();
    client
        .patch(
            &format!("/images/{}", ids[1]),
            &json!({ "folder_id": chosen }),
        )
        .ok();
    walls.daemon.ends_well();
    walls.daemon.configure(&watch);
    walls.daemon.start();
    let folder =
        |id: i64| walls.daemon.client().get(&format!("/images/{id}")).ok()["folder_id"].clone();
    wait_until("the folder", || folder(ids[0]).is_i64());
    wait_until("both images", || walls.state()["images"] == 2);
    assert_ne!(folder(ids[0]), chosen);
    assert_eq!(folder(ids[1]), chosen, "the user has chosen this folder");
    assert_eq!(walls.images().len(), 2);
}

#[test]
fn directory_inside_a_forgotten_one_keeps_its_images_while_it_is_watched() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("inside/b.png", 2)]);
    let inside = walls.at("inside");
    let watched = [&walls.directory, &inside];
    walls
        .daemon
        .configure(&format!("[library]\nwatch = {watched:?}\n"));
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("inside/b.png", 2)]);
    let (id, playlist) = (walls.id("inside/b.png"), walls.treasure("inside/b.png"));
    put(&walls.daemon, &json!({ "watch": [inside], "forget": true })).ok();
    walls.wait_for(&[("inside/b.png", 2)]);
    assert_eq!(walls.id("inside/b.png"), id);
    assert_eq!(walls.images()["inside/b.png"]["tags"], json!(["treasure"]));
    assert_eq!(walls.in_playlist(playlist), [id]);
    walls.rename("inside/b.png", "inside/c.png");
    walls.wait_for(&[("inside/c.png", 2)]);
    assert_eq!(walls.id("inside/c.png"), id);
}

#[test]
fn directory_around_follows_the_files_of_one_that_is_no_longer_watched() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("inside/b.png", 2)]);
    let watched = [&walls.directory, &walls.at("inside")];
    walls
        .daemon
        .configure(&format!("[library]\nwatch = {watched:?}\n"));
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("inside/b.png", 2)]);
    walls.rename("a.png", "inside/c.png");
    walls.wait_for(&[("inside/c.png", 1), ("inside/b.png", 2)]);
    let id = walls.id("inside/b.png");
    put(&walls.daemon, &json!({ "watch": [walls.directory] })).ok();
    walls.rename("inside/b.png", "inside/d.png");
    walls.wait_for(&[("inside/c.png", 1), ("inside/d.png", 2)]);
    assert_eq!(walls.id("inside/d.png"), id);
}

#[test]
fn files_of_phones_network_disks_and_downloads_are_skipped() {
    let walls = Walls::with(&[("a.png", 1)]);
    fs::create_dir(walls.at("phone")).unwrap();
    fs::write(walls.at("phone/.nomedia"), "").unwrap();
    for (name, number) in [
        ("phone/b.png", 2),
        ("@eaDir/c.png", 3),
        ("d.png.opdownload", 4),
        ("z.png", 5),
    ] {
        walls.draw(name, number);
    }
    walls.wait_for(&[("a.png", 1), ("z.png", 5)]);
    walls.daemon.client().post("/library/scan", &json!({}));
    walls.draw("phone/e.png", 6);
    walls.draw("y.png", 7);
    let all = [("a.png", 1), ("y.png", 7), ("z.png", 5)];
    walls.wait_for(&all);
    walls.daemon.import(&[&walls.directory]);
    walls.wait_for(&all);
    // A mark that is removed or made later counts, too.
    fs::remove_file(walls.at("phone/.nomedia")).unwrap();
    let marked = [("phone/b.png", 2), ("phone/e.png", 6)];
    walls.wait_for(&[&all[..], &marked[..]].concat());
    fs::write(walls.at("phone/.nomedia"), "").unwrap();
    walls.wait_for(&all);
}

#[test]
fn excluded_files_are_not_imported_and_known_images_stay() {
    let pictures = [("sea/a.png", 1), ("raw/b.png", 2), ("c.png", 3)];
    let mut walls = Walls::prepared("exclude = ['raw/']", &pictures);
    walls.daemon.start();
    let first = [("sea/a.png", 1), ("c.png", 3)];
    walls.wait_for(&first);
    let client = walls.daemon.client();
    let exclude = |patterns: Value| {
        let changed = client
            .patch("/library/watch", &json!({ "exclude": patterns }))
            .ok();
        assert_eq!(changed["exclude"], patterns);
        wait_until("the scan", || walls.state()["message"].is_null());
    };
    let invalid = client
        .patch("/library/watch", &json!({ "exclude": ["["] }))
        .fails(400);
    let message = invalid.to_string();
    assert!(
        message.contains("must be a pattern as in .gitignore"),
        "{message}"
    );
    exclude(json!(["raw/", "c*.png", "sea"]));
    walls.draw("c2.png", 4);
    walls.draw("sea/d.png", 5);
    walls.draw("e.png", 6);
    walls.wait_for(&[("sea/a.png", 1), ("c.png", 3), ("e.png", 6)]);
    // They follow their files at each scan.
    walls.draw("sea/a.png", 7);
    client.post("/library/scan", &json!({})).ok();
    walls.wait_for(&[("sea/a.png", 7), ("c.png", 3), ("e.png", 6)]);
    // Imports skip the same files.
    let other = walls.daemon.root().join("other");
    fs::create_dir_all(other.join("raw")).unwrap();
    fs::write(other.join("raw/f.png"), picture(8)).unwrap();
    fs::write(other.join("g.png"), picture(9)).unwrap();
    let body = json!({ "paths": [other], "wait": true });
    assert_eq!(client.post("/images", &body).ok()["total"], 1);
    exclude(json!([]));
    wait_until("all images", || walls.images().len() == 7);
}

#[test]
fn what_cannot_be_read_is_named_until_it_can() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 1)]);
    let drawing = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 9'>\
                   <rect width='16' height='9' fill='#123456'/></svg>";
    fs::write(walls.at("c.svg"), drawing).unwrap();
    let paths = std::env::var_os("PATH").unwrap();
    let program = std::env::split_paths(&paths)
        .map(|directory| directory.join("rsvg-convert"))
        .find(|path| path.is_file())
        .expect("rsvg-convert is not installed");
    walls.daemon.only(&[]);
    walls.daemon.start();
    wait_until("the state", || walls.state()["unreadable"] == 1);
    let state = walls.state();
    assert_eq!(state["state"], "partial");
    assert_eq!(state["message"], "cannot read c.svg");
    assert_eq!((&state["images"], &state["copies"]), (&json!(1), &json!(1)));
    let fields = "{images} {copies} {unreadable}";
    let listed = walls
        .daemon
        .murald(&["watch", "list", "--format", fields])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "1 1 1\n");
    let status = walls.daemon.murald(&["status"]).output().unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("cannot read c.svg"), "{status}");
    std::os::unix::fs::symlink(program, walls.daemon.root().join("only/rsvg-convert")).unwrap();
    let client = walls.daemon.client();
    client.post("/library/scan", &json!({})).ok();
    wait_until("the drawing", || walls.images().contains_key("c.svg"));
    wait_until("the state", || walls.state()["state"] == "watched");
    assert_eq!(walls.state()["unreadable"], 0);
}
