//! Links to directories inside a watched one: they appear, change their target and disappear, and the
//! names of images follow the rules.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Walls, picture};

impl Walls {
    /// Adds a picture and waits for it; the library has seen all earlier changes by then.
    fn settle(&self, pictures: &mut Vec<(&'static str, u32)>, later: &'static str) {
        pictures.push((later, 100 + pictures.len() as u32));
        let (name, number) = pictures[pictures.len() - 1];
        self.draw(name, number);
        self.wait_for(pictures);
    }
}

#[test]
fn link_to_a_watched_directory_changes_no_names() {
    let mut pictures = vec![("real/a.png", 1), ("top.png", 2)];
    let walls = Walls::with(&pictures);
    symlink("real", walls.at("fav")).unwrap();
    walls.settle(&mut pictures, "b.png");
    walls.settle(&mut pictures, "real/c.png");
    fs::remove_file(walls.at("fav")).unwrap();
    walls.settle(&mut pictures, "d.png");
    walls.settle(&mut pictures, "real/e.png");
}

#[test]
fn watched_path_with_a_new_target_shows_the_files_of_that_target() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 2)]);
    let root = walls.daemon.root().to_owned();
    let at = |name: &str| root.join(name);
    let (current, place) = (at("current"), at("parent/place"));
    let lead_to = |end: &str| {
        symlink(at(end), at("new")).unwrap();
        fs::rename(at("new"), &current).unwrap();
    };
    fs::create_dir(at("parent")).unwrap();
    fs::rename(&walls.directory, &place).unwrap();
    symlink(&current, &walls.directory).unwrap();
    lead_to("parent/place");
    for (directory, first) in [("other", 3), ("parent.new/place", 5)] {
        fs::create_dir_all(at(directory)).unwrap();
        for (name, number) in [("a.png", first), ("b.png", first + 1)] {
            fs::write(at(directory).join(name), picture(number)).unwrap();
        }
    }
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    lead_to("other");
    walls.wait_for(&[("a.png", 3), ("b.png", 4)]);
    lead_to("parent/place");
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    fs::rename(at("parent"), at("parent.old")).unwrap();
    fs::rename(at("parent.new"), at("parent")).unwrap();
    walls.wait_for(&[("a.png", 5), ("b.png", 6)]);
    assert_eq!(
        (walls.id("a.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
    // A path that leads to another, empty directory is "away", and the images stay. They go when a file is
    // there, as the directory is not away then.
    fs::create_dir(at("empty")).unwrap();
    lead_to("empty");
    walls.wait_for_state("away");
    walls.wait_for(&[("a.png", 5), ("b.png", 6)]);
    walls.draw("c.png", 9);
    walls.wait_for(&[("c.png", 9)]);
    assert_eq!(walls.state()["state"], "watched");
}

#[test]
fn circular_link_does_not_stop_the_watch() {
    let mut pictures = vec![("a.png", 1), ("sea/b.png", 2)];
    let walls = Walls::with(&pictures);
    symlink(&walls.directory, walls.at("loop")).unwrap();
    walls.settle(&mut pictures, "sea/c.png");
    fs::remove_file(walls.at("loop")).unwrap();
    walls.settle(&mut pictures, "sea/d.png");
    walls.settle(&mut pictures, "e.png");
}

#[test]
fn directories_keep_their_own_names_despite_links_to_them() {
    let mut pictures = vec![("2024/a.png", 1), ("2025/b.png", 2)];
    let mut walls = Walls::prepared("", &pictures);
    // In whatever order the entries are listed.
    let links: Vec<_> = (0..8)
        .map(|number| walls.at(&format!("{number}-now")))
        .collect();
    links.iter().for_each(|link| symlink("2024", link).unwrap());
    walls.daemon.start();
    walls.wait_for(&pictures);
    for link in &links {
        fs::remove_file(link).unwrap();
        symlink("2025", link).unwrap();
    }
    walls.settle(&mut pictures, "2024/c.png");
    walls.settle(&mut pictures, "2025/d.png");
    links.iter().for_each(|link| fs::remove_file(link).unwrap());
    walls.settle(&mut pictures, "2024/e.png");
    walls.settle(&mut pictures, "2025/f.png");
    assert_eq!(walls.state()["state"], "watched");
}

#[test]
fn directory_is_named_by_another_link_when_the_first_is_removed() {
    let mut walls = Walls::prepared("", &[("top.png", 1)]);
    let (out, moved) = (walls.daemon.root().join("out"), walls.at("c"));
    fs::create_dir(&out).unwrap();
    symlink(&out, walls.at("a")).unwrap();
    walls.draw("a/x.png", 2);
    walls.daemon.start();
    walls.wait_for(&[("top.png", 1), ("a/x.png", 2)]);
    symlink(&out, walls.at("b")).unwrap();
    walls.settle(&mut vec![("top.png", 1), ("a/x.png", 2)], "y.png");
    let (id, playlist) = (walls.id("a/x.png"), walls.treasure("a/x.png"));
    fs::remove_file(walls.at("a")).unwrap();
    let mut pictures = vec![("top.png", 1), ("b/x.png", 2), ("y.png", 102)];
    walls.wait_for(&pictures);
    walls.settle(&mut pictures, "b/z.png");
    // The directory itself moves here, which leaves the link dangling.
    fs::rename(&out, moved).unwrap();
    walls.wait_for(&[
        ("top.png", 1),
        ("c/x.png", 2),
        ("y.png", 102),
        ("c/z.png", 103),
    ]);
    let image = &walls.images()["c/x.png"];
    assert_eq!(
        (&image["id"], &image["tags"]),
        (&json!(id), &json!(["treasure"]))
    );
    assert_eq!(walls.in_playlist(playlist), [id]);
}
