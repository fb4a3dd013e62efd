//! Commands that change the same thing at the same time: none may undo another's change.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::call::{json_of, ok, pictures};
use crate::support::TestDaemon;

/// More than there are processors, so that some are interrupted between their two requests.
const TOGETHER: usize = 12;

/// Runs all lines at the same time; each must succeed.
fn at_once(daemon: &TestDaemon, lines: impl IntoIterator<Item = String>) {
    let start = |line: String| -> (String, Child) {
        let mut command = daemon.murald(&line.split(' ').collect::<Vec<_>>());
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
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, 1)]);
    at_once(
        &daemon,
        numbers().map(|n| format!("images tag p0 --add t{n}")),
    );
    let tags = || {
        json_of(&daemon, &["images", "show", "p0"])["tags"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(tags(), TOGETHER);
    let untag = numbers().map(|n| format!("images tag p0 --remove t{n}"));
    at_once(&daemon, untag.chain(["favourite p0".to_owned()]));
    assert_eq!(
        json_of(&daemon, &["images", "tags"])["tags"],
        json!(["favourite"])
    );
}

#[test]
fn concurrent_changes_lose_no_image_of_a_playlist() {
    let daemon = TestDaemon::started();
    daemon.import(&[&pictures(&daemon, TOGETHER as u8 + 1)]);
    ok(
        &daemon,
        &[
            "playlist",
            "create",
            "p",
            &format!("p{TOGETHER}"),
            "--type",
            "manual",
        ],
    );
    at_once(
        &daemon,
        numbers().map(|n| format!("playlist add p p{n} --format {{id}}")),
    );
    let images = || json_of(&daemon, &["playlist", "show", "p"])["images"].clone();
    assert_eq!(images().as_array().unwrap().len(), TOGETHER + 1);
    at_once(
        &daemon,
        numbers().map(|n| format!("playlist remove p p{n} --format {{id}}")),
    );
    let left: Vec<Value> = images().as_array().unwrap().clone();
    assert_eq!(left.len(), 1);
    let kept = json_of(&daemon, &["images", "show", &format!("p{TOGETHER}")]);
    assert_eq!(left[0]["image_id"], kept["id"]);
}

#[test]
fn concurrent_changes_lose_no_watched_directory() {
    let daemon = TestDaemon::started();
    let directory = |n: usize| {
        daemon
            .root()
            .join(format!("watched{n}"))
            .display()
            .to_string()
    };
    numbers().for_each(|n| fs::create_dir(directory(n)).unwrap());
    at_once(
        &daemon,
        numbers().map(|n| format!("watch add {} --format {{watch_folders}}", directory(n))),
    );
    let watched = || {
        json_of(&daemon, &["watch", "list"])["watch"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(watched(), TOGETHER);
    let rows = ok(&daemon, &["watch", "list", "--format", "{directory}"]);
    let mut listed: Vec<&str> = rows.lines().collect();
    listed.sort_unstable();
    let mut expected: Vec<String> = numbers().map(directory).collect();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    let gone =
        numbers().map(|n| format!("watch remove {} --format {{watch_folders}}", directory(n)));
    at_once(&daemon, gone);
    assert_eq!(watched(), 0);
}
