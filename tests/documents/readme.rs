//! The lines that README gives do what it says of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

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
fn the_five_lines_work() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let house = house(&desktop);
    let mut lines = lines("Five lines that matter");
    let variables = lines.remove(0);
    let [import, search, set, random, events] = &lines[..] else { panic!("{lines:?}") };
    let shell = |line: &str| -> Command {
        let mut command = house.command("sh");
        command.args(["-c", &format!("{variables}\nexec {line}")]);
        command
    };
    let answer = |line: &str| -> Value {
        let output = shell(line).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };

    // Its talk tells when the answer has begun, so when events are listened for.
    let mut listening = shell(&format!("{events} -v"));
    let mut listening = listening.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = BufReader::new(listening.stderr.take().unwrap()).lines();
    assert!(talk.any(|line| line.unwrap().starts_with("< HTTP/1.1 200")), "no answer");
    let mut heard = BufReader::new(listening.stdout.take().unwrap()).lines();
    let mut hear = |event: &str| {
        let wanted = format!("event: {event}");
        assert!(heard.any(|line| line.unwrap() == wanted), "no {event}");
    };
    assert_eq!(answer(import)["total"], 2);
    hear("processing_complete");
    let found = answer(search);
    assert_eq!(found["data"][0]["name"], "a mountain");
    assert_eq!(found["pagination"]["total_items"], 1);
    assert_eq!(answer(set)["monitors"], json!(["HEADLESS-1"]));
    hear("wallpaper_changed");
    assert_eq!(answer(random)["image_id"], 2);
    hear("wallpaper_changed");
    listening.kill().unwrap();
    listening.wait().unwrap();
}
