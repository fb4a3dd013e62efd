//! Single files that were imported in place: followed as those of a watched directory are.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Walls, checksum, picture};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// The id that `murald import` prints.
fn import(daemon: &TestDaemon, words: &[&str], path: &Path) -> i64 {
    let output = daemon
        .murald(&[&["import"], words, &[path.to_str().unwrap()]].concat())
        .output();
    let output = output.unwrap();
    let said = String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{said}");
    said.trim().parse().unwrap_or_else(|_| panic!("{said}"))
}

fn delete(daemon: &TestDaemon, id: i64, files: bool) -> u16 {
    let body = json!({ "ids": [id], "files": files }).to_string();
    daemon
        .client()
        .send("DELETE", "/images", "", body.as_bytes())
        .status
}

#[test]
fn file_that_was_imported_in_place_is_followed() {
    let walls = Walls::with(&[("a.png", 1)]);
    let daemon = &walls.daemon;
    let own = daemon.root().join("own/.hidden/wall.png");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, picture(2)).unwrap();
    let id = import(daemon, &["--in-place"], &own);
    let image = || -> Value { daemon.client().get(&format!("/images/{id}")).ok() };
    let follows = |number| {
        wait_until(&format!("picture {number}"), || {
            image()["checksum"] == checksum(number)
        });
    };
    assert_eq!(image()["path"], json!(own));
    // Replaced by a rename, as programs save a file.
    let new = own.with_extension("new");
    fs::write(&new, picture(3)).unwrap();
    fs::rename(&new, &own).unwrap();
    follows(3);
    // Replaced together with its parent directory.
    let (home, other) = (daemon.root().join("own"), daemon.root().join("other"));
    fs::create_dir_all(other.join(".hidden")).unwrap();
    fs::write(other.join(".hidden/wall.png"), picture(4)).unwrap();
    fs::rename(&home, daemon.root().join("old")).unwrap();
    fs::rename(&other, &home).unwrap();
    follows(4);
    // A request right after the change already sees the new content.
    fs::write(&own, picture(5)).unwrap();
    assert_eq!(import(daemon, &["--in-place"], &own), id);
    assert_eq!(image()["checksum"], checksum(5));
    fs::write(&own, picture(6)).unwrap();
    let raw = daemon.client().get(&format!("/images/{id}/raw"));
    assert_eq!(raw.body, picture(6));
    follows(6);
    // A copy of the earlier content is another image.
    let copy = daemon.root().join("copy.png");
    fs::write(&copy, picture(6)).unwrap();
    fs::write(&own, picture(7)).unwrap();
    follows(7);
    let second = import(daemon, &[], &copy);
    assert_ne!(second, id);
    let [one, other] = [id, second].map(|id| daemon.client().get(&format!("/images/{id}")).ok());
    assert_eq!(
        (&one["checksum"], &other["checksum"]),
        (&json!(checksum(7)), &json!(checksum(6)))
    );
    // If two files have the same content, both are deleted with the image, or none.
    let twin = daemon.root().join("twin.png");
    fs::write(&twin, picture(7)).unwrap();
    assert_eq!(import(daemon, &["--in-place"], &twin), id);
    fs::write(&twin, "a letter").unwrap();
    assert_eq!(delete(daemon, id, true), 409);
    assert!(own.exists());
    fs::write(&twin, picture(7)).unwrap();
    // While the other file was no picture, it was none of the image.
    let files = json!([own, twin]);
    wait_until("both files are known", || {
        image()["files"] == files && delete(daemon, id, true) == 200
    });
    assert!(!own.exists() && !twin.exists());
    // If one of two equal files goes, the other stands for the image; if the other changes, it is a new
    // image.
    [&own, &twin]
        .into_iter()
        .for_each(|path| fs::write(path, picture(7)).unwrap());
    let [id, same] = [&own, &twin].map(|path| import(daemon, &["--in-place"], path));
    assert_eq!(id, same);
    let image = || -> Value { daemon.client().get(&format!("/images/{id}")).ok() };
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    wait_until("the other path", || image()["path"] == json!(twin));
    let third = daemon.root().join("third.png");
    fs::write(&third, picture(7)).unwrap();
    assert_eq!(import(daemon, &["--in-place"], &third), id);
    let before = walls.images().len();
    fs::write(&third, picture(10)).unwrap();
    wait_until("a new image", || walls.images().len() == before + 1);
    // An image that was deleted in murald does not return.
    [second, id]
        .into_iter()
        .for_each(|id| assert_eq!(delete(daemon, id, false), 200));
    fs::write(&twin, picture(8)).unwrap();
    walls.draw("b.png", 9);
    walls.wait_for(&[("a.png", 1), ("b.png", 9), (third.to_str().unwrap(), 10)]);
    // A removed file removes its image.
    fs::remove_file(&third).unwrap();
    walls.wait_for(&[("a.png", 1), ("b.png", 9)]);
}

/// The file is shown as it is now; its record follows.
#[test]
fn rewritten_file_is_shown_with_its_new_content() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut walls = Walls::prepared_on(&desktop, &[("a.png", 1), ("b.png", 2)]);
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    let (a, b, client) = (walls.id("a.png"), walls.id("b.png"), walls.daemon.client());
    client
        .post("/wallpaper/set", &json!({ "image_id": a }))
        .ok();
    let both = json!([{ "image_id": a }, { "image_id": b }]);
    let playlist = client
        .post("/playlists", &json!({ "name": "both", "images": both }))
        .ok();
    let of = |action: &str| format!("/playlists/{}/{action}", playlist["id"]);
    let asked = [
        (b, "/wallpaper/set".to_owned(), json!({ "image_id": b })),
        (a, "/wallpaper/back".to_owned(), json!({})),
        // `random` picks an image that is not shown.
        (b, "/wallpaper/random".to_owned(), json!({})),
        (a, of("start"), json!({})),
        (b, of("next"), json!({})),
        (a, of("previous"), json!({})),
    ];
    for (number, (id, path, body)) in (3..).zip(asked) {
        walls.draw(if id == a { "a.png" } else { "b.png" }, number);
        client.post(&path, &body).ok();
        wait_until(&format!("the record after {path}"), || {
            client.get(&format!("/images/{id}")).ok()["checksum"] == checksum(number)
        });
        let shown = client.get("/wallpaper/current").ok();
        assert_eq!(shown["monitors"][0]["image_id"], id, "{path}");
    }
}
