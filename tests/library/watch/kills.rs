//! Kills at random instants while watched files come, go and change: no image of an existing file is
//! lost.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Walls, files};
use crate::support::kills::{self, kills};

#[test]
fn kills_lose_no_tag_or_playlist_of_a_watched_file() {
    let stay: Vec<(String, u32)> = (0..6)
        .map(|n| (format!("stay/{n}.png"), 1000 + n))
        .collect();
    let all: Vec<(&str, u32)> = stay.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let mut walls = Walls::with(&all);
    let treasures: Vec<(i64, i64)> = all
        .iter()
        .map(|(name, _)| (walls.id(name), walls.treasure(name)))
        .collect();
    let mut names: Vec<String> = stay.iter().map(|(name, _)| name.clone()).collect();
    let (mut renamed, mut rewritten) = (0, 0);
    kills(|round| {
        // Only files that the library knows: one that changes name and content at once is a new image.
        let (images, now) = (walls.images(), files(&walls.directory));
        let is_known = |name: &String| {
            images
                .get(name)
                .is_some_and(|image| image["checksum"] == now[name])
        };
        for (at, name) in names
            .iter_mut()
            .enumerate()
            .filter(|(_, name)| is_known(name))
        {
            match (round as usize + at) % 3 {
                0 => {
                    let to = format!("stay/{at}-{round}.png");
                    walls.rename(name, &to);
                    *name = to;
                    renamed += 1;
                }
                1 => {
                    walls.draw(name, 9000 + round * 10 + at as u32);
                    rewritten += 1;
                }
                _ => {}
            }
        }
        for number in 0..5 {
            walls.draw(&format!("new-{number}.png"), 5000 + round * 10 + number);
            fs::remove_file(walls.at(&format!("new-{}.png", (number + 2) % 5))).ok();
        }
        // An instant between the first event and the last row.
        sleep(kills::instant(round, Duration::from_millis(1500)));
        let in_the_middle = settled(&walls).is_none();
        walls.daemon.kill9();
        walls.daemon.start();
        in_the_middle
    });
    assert!(renamed > 0 && rewritten > 0, "{renamed} {rewritten}");
    let begun = Instant::now();
    let images = loop {
        if let Some(images) = settled(&walls) {
            break images;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(90),
            "{:?} {:?}",
            walls.images().keys(),
            files(&walls.directory).keys()
        );
        sleep(Duration::from_millis(50));
    };
    for ((id, playlist), name) in treasures.iter().zip(&names) {
        assert_eq!(images[name]["id"], *id, "{name}");
        assert_eq!(
            images[name]["tags"],
            serde_json::json!(["treasure"]),
            "{name}"
        );
        assert_eq!(walls.in_playlist(*playlist), [*id], "{name}");
    }
    assert!(
        walls
            .daemon
            .log()
            .lines()
            .all(|line| !line.contains("\"panic")),
        "no thread died"
    );
}

/// The images, if they are those of the files.
fn settled(walls: &Walls) -> Option<BTreeMap<String, Value>> {
    let (images, files) = (walls.images(), files(&walls.directory));
    let is_there = |(name, content): (&String, &String)| {
        let image = images.get(name);
        image.is_some_and(|image| image["checksum"] == *content)
    };
    (files.iter().all(is_there) && images.len() == files.len()).then_some(images)
}
