//! Slideshows of a directory, from the command to the screen.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::{COLORS, active, known, middle, see};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

fn draw(path: &std::path::Path, at: usize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    image::RgbImage::from_pixel(64, 36, image::Rgb(COLORS[at]))
        .save(path)
        .unwrap();
}

fn run(daemon: &TestDaemon, words: &[&str]) -> (Option<i32>, String) {
    let output = daemon.murald(words).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn slideshow_shows_the_pictures_of_a_directory() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let directory = daemon.root().join("walls");
    let path = directory.to_str().unwrap();
    let (code, said) = run(&daemon, &["slideshow", path]);
    assert!(code == Some(1) && said.contains("cannot read"), "{said}");
    draw(&directory.join("a.png"), 0);
    draw(&directory.join("below/b.png"), 1);
    let (code, said) = run(&daemon, &["slideshow", &format!("{path}/a.png")]);
    assert!(code == Some(1) && said.contains("murald set"), "{said}");
    let (code, said) = run(&daemon, &["slideshow", path, "--interval", "1h"]);
    assert!(
        code == Some(0) && said.starts_with(&format!("started slideshow of {path}")),
        "{said}"
    );
    assert!(
        said.ends_with(
            "(1) on HEADLESS-1: 2 pictures, every 1 h; `murald playlist stop 1` stops it\n"
        ),
        "{said}"
    );
    wait_until("a picture of the slideshow", || {
        known(middle(&desktop, "HEADLESS-1")).is_some_and(|at| at < 2)
    });
    let playlists = daemon.client().get("/playlists").ok();
    let made = &playlists[0];
    assert_eq!(
        (&made["name"], &made["configuration"]["interval"]),
        (&json!(path), &json!(3600))
    );
    let listed = format!("/playlists/{}/images", made["id"]);
    let total = || daemon.client().get(&listed).ok()["pagination"]["total_items"].clone();
    wait_until("both pictures", || total() == 2);
    // New files join the slideshow; the same command again changes the same playlist.
    draw(&directory.join("c.png"), 2);
    wait_until("three pictures", || total() == 3);
    let (code, said) = run(&daemon, &["slideshow", path, "--shuffle"]);
    assert_eq!(code, Some(0), "{said}");
    let again = daemon.client().get("/playlists").ok();
    assert_eq!(again.as_array().unwrap().len(), 1);
    let configuration = &again[0]["configuration"];
    assert_eq!(
        (&configuration["order"], &configuration["interval"]),
        (&json!("random"), &json!(3600))
    );
    assert_eq!(active(&daemon).len(), 1);
    // A directory inside a watched one is not watched again.
    let below = directory.join("below");
    let (code, said) = run(&daemon, &["slideshow", below.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    see(&desktop, "HEADLESS-1", 1);
    let watched = daemon.client().get("/library/watch").ok()["watch"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(watched, 1);
    // The images of these copies have their paths in the other directory.
    let favourites = daemon.root().join("favourites");
    fs::create_dir(&favourites).unwrap();
    for name in ["a.png", "below/b.png"] {
        fs::copy(
            directory.join(name),
            favourites.join(name.rsplit('/').next().unwrap()),
        )
        .unwrap();
    }
    let (code, said) = run(&daemon, &["slideshow", favourites.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    let source = json!({ "directory": favourites });
    let playlists = daemon.client().get("/playlists").ok();
    let made = playlists
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["source"] == source)
        .unwrap();
    let listed = format!("/playlists/{}/images", made["id"]);
    let total = || daemon.client().get(&listed).ok()["pagination"]["total_items"].clone();
    wait_until("both copies", || total() == 2);
    fs::copy(directory.join("c.png"), favourites.join("late.png")).unwrap();
    wait_until("a copy that came later", || total() == 3);
    fs::remove_file(favourites.join("late.png")).unwrap();
    wait_until("the removal of the copy", || total() == 2);
    assert_eq!(
        daemon.client().get("/images").ok()["pagination"]["total_items"],
        3
    );
}

#[test]
fn slideshow_each_shows_a_different_picture_on_each_monitor() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let directory = daemon.root().join("walls");
    (0..4).for_each(|at| draw(&directory.join(format!("{at}.png")), at));
    let (code, said) = run(&daemon, &["watch", "add", directory.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    let total = || daemon.client().get("/images").ok()["pagination"]["total_items"].clone();
    wait_until("all pictures", || total() == 4);
    let (code, said) = run(
        &daemon,
        &["slideshow", directory.to_str().unwrap(), "--each"],
    );
    assert_eq!(code, Some(0), "{said}");
    let shown = || {
        let of = |name| known(middle(&desktop, name));
        [of("HEADLESS-1"), of("HEADLESS-2")]
    };
    wait_until("two pictures", || {
        matches!(shown(), [Some(0), Some(1)] | [Some(1), Some(0)])
    });
    // A step on one monitor leaves the other.
    let [Some(first), Some(second)] = shown() else {
        panic!("{:?}", shown())
    };
    for (command, expected) in [("next", 2), ("next", 3), ("previous", 2)] {
        let (code, said) = run(&daemon, &[command, "--monitor", "HEADLESS-2"]);
        assert!(
            code == Some(0) && said.lines().count() == 1 && said.contains("is on HEADLESS-2"),
            "{said}"
        );
        wait_until("the step", || shown() == [Some(first), Some(expected)]);
    }
    let (code, said) = run(&daemon, &["previous", "--monitor", "HEADLESS-2"]);
    assert_eq!(code, Some(0), "{said}");
    wait_until("the first picture", || {
        shown() == [Some(first), Some(second)]
    });
}

#[test]
fn slideshows_of_a_directory_on_two_monitors_are_two_playlists() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let directory = daemon.root().join("walls");
    let path = directory.to_str().unwrap();
    (0..2).for_each(|at| draw(&directory.join(format!("{at}.png")), at));
    let show = |words: &[&str]| {
        let (code, said) = run(&daemon, &[&["slideshow", path], words].concat());
        assert_eq!(code, Some(0), "{said}");
    };
    let running = || -> Vec<(Value, Value)> {
        let all = active(&daemon).into_iter();
        all.map(|one| (one["playlist_name"].clone(), one["applied_to"].clone()))
            .collect()
    };
    let [one, two] =
        ["HEADLESS-1", "HEADLESS-2"].map(|on| (json!(format!("{path} on {on}")), json!([on])));
    show(&["--monitor", "HEADLESS-1", "--interval", "1h"]);
    show(&["--monitor", "HEADLESS-2", "--shuffle"]);
    assert_eq!(running(), [one.clone(), two.clone()]);
    let configuration = &daemon.client().get("/playlists/1").ok()["configuration"];
    assert_eq!(
        (&configuration["interval"], &configuration["order"]),
        (&json!(3600), &json!("ordered"))
    );
    show(&["--monitor", "HEADLESS-1"]);
    assert_eq!(running(), [one, two]);
    // Without --monitor, the slideshow of all monitors stops the others.
    show(&[]);
    let all = running();
    let [(name, monitors)] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(name, path);
    // Their order is that of the compositor.
    let monitors: Vec<String> = serde_json::from_value(monitors.clone()).unwrap();
    assert_eq!(
        BTreeSet::from(["HEADLESS-1".to_owned(), "HEADLESS-2".to_owned()]),
        monitors.into_iter().collect()
    );
    assert_eq!(
        daemon
            .client()
            .get("/playlists")
            .ok()
            .as_array()
            .unwrap()
            .len(),
        3
    );
}
