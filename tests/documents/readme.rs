//! The lines that README gives do what it says of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::support::House;

/// The lines of the block under a heading, without what they say of themselves, for a monitor that
/// is there.
fn lines(heading: &str) -> Vec<String> {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once(&format!("## {heading}\n")).unwrap();
    let block = section.split("```").nth(1).unwrap().trim_start_matches("sh\n");
    let lines = block.lines().map(|line| {
        let (command, _) = line.split_once("  #").unwrap_or((line, ""));
        command.trim_end().replace("DP-1", "HEADLESS-1")
    });
    lines.collect()
}

/// A daemon that runs, beside two pictures in ~/Pictures.
fn house(desktop: &Desktop) -> House {
    let mut house = House::on(desktop);
    let pictures = house.root().join("Pictures");
    fs::create_dir(&pictures).unwrap();
    for (name, color) in [("a mountain", [90, 120, 60]), ("a lake", [20, 80, 160])] {
        let picture = image::RgbImage::from_pixel(640, 360, image::Rgb(color));
        picture.save(pictures.join(format!("{name}.png"))).unwrap();
    }
    house.stub("murald", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_murald")));
    house.start();
    house
}

#[test]
fn the_tour_works() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let house = house(&desktop);
    let lines = lines("A tour");
    assert_eq!((lines.len(), &*lines[0]), (13, "murald set \"$HOME/Pictures/a lake.png\""));
    let said: Vec<String> = lines
        .iter()
        .map(|line| {
            let output = house.command("sh").args(["-c", line]).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(said[2].contains("\ta mountain\timage\t"), "{}", said[2]);
    let image = house.client().get("/images/2").ok();
    assert_eq!(image["tags"], json!(["quiet", "evening"]));
    let active = house.client().get("/playlists/active").ok();
    // The slideshow took the monitor over from the evenings.
    let directory = house.root().join("Pictures");
    assert_eq!(active[0]["playlist_name"], json!(directory), "{active}");
}

#[test]
fn the_requests_work() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let house = house(&desktop);
    let mut lines = lines("HTTP API");
    let [_, _, _, _, _, events] = &mut lines[..] else { panic!("{lines:?}") };
    // So that there is one process to end.
    *events = format!("exec {events}");
    // As they are when they are pasted at once.
    let mut shell = house.command("sh");
    let mut shell = shell.args(["-c", &lines.join("\n")]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(shell.stdout.take().unwrap());
    let mut answers = String::new();
    said.read_line(&mut answers).unwrap();
    let answers = answers.strip_suffix(": connected\n").unwrap_or_else(|| panic!("{answers}"));
    let answers: Vec<Value> = serde_json::Deserializer::from_str(answers)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {answers}"));
    let [import, search, set, random] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((&import["status"], &import["images"]), (&json!("complete"), &json!([1, 2])));
    assert_eq!((&import["failed"], &import["errors"]), (&json!(0), &json!([])));
    assert_eq!(search["data"][0]["name"], "a mountain");
    assert_eq!(search["pagination"]["total_items"], 1);
    assert_eq!(set["monitors"], json!(["HEADLESS-1"]));
    assert_eq!(random["image_id"], 2);
    assert!(house.murald(&["random"]).status().unwrap().success());
    let wanted = "event: wallpaper_changed";
    assert!(said.lines().any(|line| line.unwrap() == wanted), "no {wanted}");
    shell.kill().unwrap();
    shell.wait().unwrap();
}

#[test]
fn the_desktop_s_light_and_dark_are_followed_and_told() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut house = house(&desktop);
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("For [darkman], save").unwrap();
    let block = |number: usize| {
        section.split("```").nth(number).unwrap().trim_start_matches("sh\n").to_owned()
    };
    let told = house.root().join("told");
    house.stub("gsettings", &format!("#!/bin/sh\necho \"$@\" >> '{}'\n", told.display()));
    // What darkman calls, with the word that it gives.
    house.stub("darkman-script", &block(1));
    let said = |word: &str| {
        let status = house.command("darkman-script").arg(word).status().unwrap();
        assert!(status.success(), "{word}");
        house.client().get("/appearance").ok()
    };
    assert_eq!(said("light"), json!({ "mode": "light", "now": "light" }));
    assert_eq!(said("dark"), json!({ "mode": "dark", "now": "dark" }));
    // And what GTK's settings are told.
    let mut follows = house.command("sh");
    let mut follows = follows.args(["-c", &block(3)]).process_group(0).spawn().unwrap();
    let calls = || fs::read_to_string(&told).unwrap_or_default();
    crate::desktop::wait_until("listening", || house.log().contains("GET /events 200"));
    for tone in ["light", "dark"] {
        said(tone);
        let last = format!("set org.gnome.desktop.interface color-scheme prefer-{tone}\n");
        crate::desktop::wait_until("word of it", || calls().ends_with(&last));
    }
    // With all that the line has started.
    let group = rustix::process::Pid::from_child(&follows);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    follows.wait().unwrap();
}
