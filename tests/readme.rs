//! The lines that README gives do what it says of them.

#![allow(clippy::disallowed_methods, clippy::print_stderr, clippy::unwrap_used)]

mod desktop;
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use desktop::Desktop;
use serde_json::{Value, json};
use support::House;

/// The line that sets the variables, and the five, for a monitor that is there.
fn lines() -> (String, Vec<String>) {
    let readme = include_str!("../README.md");
    let (_, section) = readme.split_once("## Five lines that matter").unwrap();
    let block = section.split("```").nth(1).unwrap().trim_start_matches("sh\n");
    let mut lines = block.lines().map(|line| {
        let (command, _) = line.split_once("  #").unwrap_or((line, ""));
        command.trim_end().replace("DP-1", "HEADLESS-1")
    });
    (lines.next().unwrap(), lines.collect())
}

#[test]
fn the_five_lines_work() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut house = House::on(&desktop);
    let pictures = house.root().join("Pictures");
    fs::create_dir(&pictures).unwrap();
    for (name, color) in [("a mountain", [90, 120, 60]), ("a lake", [20, 80, 160])] {
        let picture = image::RgbImage::from_pixel(640, 360, image::Rgb(color));
        picture.save(pictures.join(format!("{name}.png"))).unwrap();
    }
    house.start();
    let (variables, lines) = lines();
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
