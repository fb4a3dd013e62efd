//! Commands that change the same thing at the same time: none may undo another's change.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::call::{json_of, ok, pictures};
use crate::support::House;

/// More than there are processors, so that some are interrupted between their two requests.
const TOGETHER: usize = 12;

/// Runs all lines at the same time; each must succeed.
fn at_once(house: &House, lines: impl IntoIterator<Item = String>) {
    let start = |line: String| -> (String, Child) {
        let mut command = house.murald(&line.split(' ').collect::<Vec<_>>());
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        (line, child)
    };
    let running: Vec<_> = lines.into_iter().map(start).collect();
    for (line, mut child) in running {
        assert!(child.wait().unwrap().success(), "{line}");
    }
}

fn numbers() -> impl Iterator<Item = usize> {
    0..TOGETHER
}

#[test]
fn concurrent_changes_lose_no_tag() {
    let house = House::started();
    house.import(&[&pictures(&house, 1)]);
    at_once(&house, numbers().map(|n| format!("images tag p0 --add t{n}")));
    let tags = || json_of(&house, &["images", "show", "p0"])["tags"].as_array().unwrap().len();
    assert_eq!(tags(), TOGETHER);
    let untag = numbers().map(|n| format!("images tag p0 --remove t{n}"));
    at_once(&house, untag.chain(["favourite p0".to_owned()]));
    assert_eq!(json_of(&house, &["images", "tags"])["tags"], json!(["favourite"]));
}

#[test]
fn concurrent_changes_lose_no_image_of_a_playlist() {
    let house = House::started();
    house.import(&[&pictures(&house, TOGETHER as u8 + 1)]);
    ok(&house, &["playlist", "create", "p", &format!("p{TOGETHER}"), "--type", "manual"]);
    at_once(&house, numbers().map(|n| format!("playlist add p p{n} --format {{id}}")));
    let images = || json_of(&house, &["playlist", "show", "p"])["images"].clone();
    assert_eq!(images().as_array().unwrap().len(), TOGETHER + 1);
    at_once(&house, numbers().map(|n| format!("playlist remove p p{n} --format {{id}}")));
    let left: Vec<Value> = images().as_array().unwrap().clone();
    assert_eq!(left.len(), 1);
    let kept = json_of(&house, &["images", "show", &format!("p{TOGETHER}")]);
    assert_eq!(left[0]["image_id"], kept["id"]);
}

#[test]
fn concurrent_changes_lose_no_watched_directory() {
    let house = House::started();
    let directory = |n: usize| house.root().join(format!("watched{n}")).display().to_string();
    numbers().for_each(|n| fs::create_dir(directory(n)).unwrap());
    at_once(&house, numbers().map(|n| format!("watch add {} --format {{in_place}}", directory(n))));
    let watched = || json_of(&house, &["watch", "list"])["watch"].as_array().unwrap().len();
    assert_eq!(watched(), TOGETHER);
    let gone = numbers().map(|n| format!("watch remove {} --format {{in_place}}", directory(n)));
    at_once(&house, gone);
    assert_eq!(watched(), 0);
}
