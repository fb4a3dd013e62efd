//! Watched files that are created, renamed, rewritten, swapped or removed; their folders; deleted
//! images.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::{Walls, files, picture};
use crate::desktop::wait_until;
use crate::support::TestDaemon;

#[test]
fn watched_files_are_added_to_the_library() {
    let walls = Walls::with(&[("a.png", 1), ("sea/b.png", 2)]);
    let image = &walls.images()["a.png"];
    assert_eq!(
        (&image["in_place"], &image["name"]),
        (&json!(true), &json!("a"))
    );
    walls.draw("c.png", 3);
    walls.draw("sky/high/d.png", 4);
    walls.draw(".hidden/e.png", 5);
    walls.draw("f.png.part", 6);
    fs::write(walls.at("notes.txt"), "no picture").unwrap();
    walls.wait_for(&[
        ("a.png", 1),
        ("sea/b.png", 2),
        ("c.png", 3),
        ("sky/high/d.png", 4),
    ]);
    walls.rename("f.png.part", "f.png");
    let all = [
        ("a.png", 1),
        ("sea/b.png", 2),
        ("c.png", 3),
        ("sky/high/d.png", 4),
        ("f.png", 6),
    ];
    walls.wait_for(&all);
    assert!(
        !walls.daemon.images().exists()
            || fs::read_dir(walls.daemon.images()).unwrap().count() == 0
    );
}

#[test]
fn watched_files_with_invalid_names_are_counted() {
    let walls = Walls::with(&[("a.png", 1)]);
    let (one, two) = (
        OsStr::from_bytes(b"caf\xe9.png"),
        OsStr::from_bytes(b"\xff.png"),
    );
    let told = |message: Value| wait_until("the count", || walls.state()["message"] == message);
    fs::write(walls.directory.join(one), picture(2)).unwrap();
    told(json!("skipped 1 file: its name is not UTF-8"));
    fs::write(walls.directory.join(two), picture(3)).unwrap();
    told(json!("skipped 2 files: their names are not UTF-8"));
    fs::rename(walls.directory.join(one), walls.at("b.png")).unwrap();
    fs::remove_file(walls.directory.join(two)).unwrap();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    told(Value::Null);
}

#[test]
fn watched_file_is_imported_soon_after_its_last_write() {
    let walls = Walls::with(&[("a.png", 1)]);
    let written = Instant::now();
    walls.draw("b.png", 2);
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    // Usually within two seconds; the limit is long because the machine may be busy with other tests.
    let taken = written.elapsed();
    assert!(taken < Duration::from_secs(20), "{taken:?}");
}

#[test]
fn watched_file_that_is_renamed_keeps_its_image() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    walls.rename("a.png", "deep/er/other.png");
    walls.wait_for(&[("deep/er/other.png", 1), ("b.png", 2)]);
    let image = &walls.images()["deep/er/other.png"];
    assert_eq!(
        (&image["id"], &image["name"]),
        (&json!(id), &json!("other"))
    );
    assert_eq!(image["tags"], json!(["treasure"]));
    assert_eq!(walls.in_playlist(playlist), [id]);
    let client = walls.daemon.client();
    client
        .patch(&format!("/images/{id}"), &json!({ "name": "mine" }))
        .ok();
    assert!(
        walls.at("deep/er/other.png").exists(),
        "a rename in murald renames no watched file"
    );
    walls.rename("deep/er/other.png", "c.png");
    walls.wait_for(&[("c.png", 1), ("b.png", 2)]);
    assert_eq!(
        walls.images()["c.png"]["name"],
        "mine",
        "a chosen name is kept"
    );
}

#[test]
fn watched_file_that_is_renamed_while_murald_is_stopped_keeps_its_image() {
    let mut walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    assert_eq!(walls.daemon.stop(), Some(0));
    walls.rename("a.png", "z.png");
    walls.draw("a.png", 3);
    walls.daemon.start();
    walls.wait_for(&[("z.png", 1), ("b.png", 2), ("a.png", 3)]);
    assert_eq!(
        (walls.id("z.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
}

#[test]
fn second_name_of_a_watched_file_that_is_made_while_murald_is_stopped_changes_nothing() {
    let mut walls = Walls::with(&[("b.png", 1), ("c.png", 2)]);
    let id = walls.id("b.png");
    assert_eq!(walls.daemon.stop(), Some(0));
    fs::hard_link(walls.at("b.png"), walls.at("a.png")).unwrap();
    fs::hard_link(walls.at("b.png"), walls.at("z.png")).unwrap();
    walls.daemon.start();
    let path = format!("/images/{id}");
    let image = || walls.daemon.client().get(&path).ok();
    let files = json!(["a.png", "b.png", "z.png"].map(|name| walls.at(name)));
    wait_until("all names", || image()["files"] == files);
    assert_eq!(
        (&image()["path"], &image()["name"]),
        (&json!(walls.at("b.png")), &json!("b"))
    );
}

#[test]
fn watched_file_that_cannot_be_decoded_keeps_its_image_until_it_can() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    let whole = picture(3);
    fs::write(walls.at("a.png"), &whole[..whole.len() / 2]).unwrap();
    let raw = || {
        walls
            .daemon
            .client()
            .get(&format!("/images/{id}/raw"))
            .status
    };
    wait_until("no picture", || raw() == 404);
    walls.rename("a.png", "c.png");
    walls.wait_for(&[("c.png", 1), ("b.png", 2)]);
    std::thread::sleep(Duration::from_secs(12));
    walls.wait_for(&[("c.png", 1), ("b.png", 2)]);
    assert_eq!(raw(), 404);
    walls.draw("c.png", 3);
    walls.wait_for(&[("c.png", 3), ("b.png", 2)]);
    assert_eq!(
        (walls.id("c.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
    assert_eq!(raw(), 200);
    // Without a file, the image goes as others do.
    fs::write(walls.at("c.png"), &whole[..whole.len() / 2]).unwrap();
    wait_until("no picture again", || raw() == 404);
    fs::remove_file(walls.at("c.png")).unwrap();
    walls.wait_for(&[("b.png", 2)]);
}

#[test]
fn watched_file_that_is_rewritten_in_pieces_keeps_its_image() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    fs::write(walls.at("a.png"), b"").unwrap();
    for piece in picture(7).chunks(40) {
        // The file is closed after each piece, as by a program that syncs.
        let mut file = OpenOptions::new()
            .append(true)
            .open(walls.at("a.png"))
            .unwrap();
        file.write_all(piece).unwrap();
    }
    walls.wait_for(&[("a.png", 7), ("b.png", 2)]);
    assert_eq!(
        (walls.id("a.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
    assert_eq!(walls.images()["a.png"]["tags"], json!(["treasure"]));
}

#[test]
fn raw_file_of_an_image_is_its_own_right_after_a_swap_or_an_edit() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let ids = [walls.id("a.png"), walls.id("b.png")];
    let client = walls.daemon.client();
    let raw = |id: i64| client.get(&format!("/images/{id}/raw"));
    for _ in 0..4 {
        walls.rename("a.png", ".away");
        walls.rename("b.png", "a.png");
        walls.rename(".away", "b.png");
        for (id, number) in ids.into_iter().zip([1, 2]) {
            let answer = raw(id);
            assert!(answer.status == 200 && answer.body == picture(number));
        }
    }
    walls.draw(".saved", 3);
    walls.rename(".saved", "a.png");
    let answer = raw(ids[0]);
    assert!(answer.status == 200 && answer.body == picture(3));
}

#[test]
fn watched_files_that_swap_names_keep_their_images() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (one, two) = (walls.id("a.png"), walls.id("b.png"));
    let (first, second) = (walls.treasure("a.png"), walls.treasure("b.png"));
    walls.rename("a.png", ".away");
    walls.rename("b.png", "a.png");
    walls.rename(".away", "b.png");
    walls.wait_for(&[("b.png", 1), ("a.png", 2)]);
    assert_eq!((walls.id("b.png"), walls.id("a.png")), (one, two));
    assert_eq!(
        (walls.in_playlist(first), walls.in_playlist(second)),
        (vec![one], vec![two])
    );
    // The same with files of equal size and modification time.
    let put = |name: &str, number: u32| {
        let mut padded = picture(number);
        padded.resize(8192, 0);
        fs::write(walls.at(".new"), padded).unwrap();
        let new = File::options().write(true).open(walls.at(".new")).unwrap();
        new.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        walls.rename(".new", name);
    };
    let settle = || {
        let rows = || {
            walls
                .images()
                .into_iter()
                .map(|(name, image)| (name, image["checksum"].clone()))
        };
        let found = || rows().collect::<BTreeMap<_, _>>();
        let there = || {
            files(&walls.directory)
                .into_iter()
                .map(|(name, sum)| (name, json!(sum)))
        };
        wait_until("rows that fit the files", || found() == there().collect());
    };
    put("a.png", 4);
    put("b.png", 5);
    settle();
    walls.rename("a.png", ".away");
    walls.rename("b.png", "a.png");
    walls.rename(".away", "b.png");
    settle();
    assert_eq!((walls.id("a.png"), walls.id("b.png")), (one, two));
    // Another file with the content of the old one, as on a file system without stable inodes; then new
    // content.
    put("a.png", 5);
    put("b.png", 6);
    settle();
    assert_eq!((walls.id("a.png"), walls.id("b.png")), (one, two));
    assert_eq!(
        (walls.in_playlist(first), walls.in_playlist(second)),
        (vec![one], vec![two])
    );
}

#[test]
fn duplicate_of_a_watched_file_passes_on_its_tags_and_playlists() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2), ("c.png", 3)]);
    let (playlist, survivor) = (walls.treasure("a.png"), walls.id("b.png"));
    let mut events = walls.daemon.events("gallery_changed");
    walls.draw("a.png", 2);
    wait_until("one image for both files", || walls.images().len() == 2);
    while events.next().1["domain"] != "playlists" {}
    let images = walls.images();
    let image = images
        .values()
        .find(|image| image["id"] == survivor)
        .unwrap();
    assert_eq!(image["tags"], json!(["treasure"]));
    assert_eq!(walls.in_playlist(playlist), [survivor]);
    // Two files have its content; either may be removed.
    let path = image["path"].as_str().unwrap().to_owned();
    fs::remove_file(&path).unwrap();
    wait_until("the other file", || {
        walls
            .images()
            .values()
            .any(|image| image["id"] == survivor && image["path"] != *path)
    });
}

#[test]
fn watched_file_that_replaces_another_one_gets_its_tags_and_playlists() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2), ("c.png", 3)]);
    wait_until("no message about the start", || {
        walls.state()["message"].is_null()
    });
    let (playlist, survivor) = (walls.treasure("a.png"), walls.id("b.png"));
    let raw = format!("/images/{}/raw", walls.id("a.png"));
    walls.rename("b.png", "a.png");
    // A request before the watch has noticed the change.
    walls.daemon.client().get(&raw);
    let has_tag = |image: &Value| image["id"] == survivor && image["tags"][0] == "treasure";
    wait_until("the tag", || {
        walls.images().get("a.png").is_some_and(has_tag)
    });
    assert_eq!(walls.in_playlist(playlist), [survivor]);
}

#[test]
fn removed_watched_file_publishes_no_orphan_event() {
    let walls = Walls::with(&[("a.png", 1), ("sea/b.png", 2), ("c.png", 3), ("d.png", 4)]);
    // Wait until the events of the start are over.
    wait_until("no message about the start", || {
        walls.state()["message"].is_null()
    });
    let mut events = walls.daemon.events("gallery_changed,image_orphan_purged");
    fs::remove_dir_all(walls.at("sea")).unwrap();
    // A pipe is no picture, whatever its name.
    fs::remove_file(walls.at("d.png")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, walls.at("d.png"), 0o600.into()).unwrap();
    assert_eq!(walls.images().len(), 4, "missing files are waited for");
    walls.wait_for(&[("a.png", 1), ("c.png", 3)]);
    let (kind, data) = events.next();
    assert_eq!(
        (kind.as_str(), &data["domain"]),
        ("gallery_changed", &json!("images"))
    );
    let folders = || walls.daemon.client().get("/folders?parent_id=all").ok();
    wait_until("the folder to be removed", || {
        folders()["data"].as_array().unwrap().len() == 1
    });
}

#[test]
fn watched_directory_that_loses_all_files_at_once_is_away() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (id, other) = (walls.id("a.png"), walls.daemon.root().join("elsewhere"));
    fs::create_dir(&other).unwrap();
    for name in ["a.png", "b.png"] {
        fs::rename(walls.at(name), other.join(name)).unwrap();
    }
    walls.wait_for_state("away");
    let purge = walls
        .daemon
        .client()
        .post("/library/purge-missing", &json!({}));
    assert_eq!(purge.ok(), json!({ "purged": 0 }));
    fs::remove_dir_all(walls.daemon.root().join("cache")).ok();
    for of_file in ["raw", "thumbnail"] {
        let told = walls
            .daemon
            .client()
            .get(&format!("/images/{id}/{of_file}"))
            .fails(404);
        let away = format!(
            "the file of image {id} is unavailable: {}",
            walls.at("a.png").display()
        );
        assert_eq!(told["error"], away);
    }
    // The time for missing files is over, and the images still stay.
    std::thread::scope(|scope| {
        scope.spawn(|| wait_until("the log", || walls.daemon.log().contains(" is away: ")));
    });
    for name in ["a.png", "b.png"] {
        fs::rename(other.join(name), walls.at(name)).unwrap();
    }
    walls.wait_for_state("watched");
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    assert_eq!(walls.id("a.png"), id);
}

#[test]
fn watched_tree_that_is_moved_out_and_in_keeps_its_images() {
    let walls = Walls::with(&[("a.png", 1), ("sea/b.png", 2), ("sea/deep/c.png", 3)]);
    let (id, out) = (walls.id("sea/deep/c.png"), walls.daemon.root().join("out"));
    let playlist = walls.treasure("sea/deep/c.png");
    fs::rename(walls.at("sea"), &out).unwrap();
    walls.draw("d.png", 4);
    wait_until("the later file", || walls.images().contains_key("d.png"));
    fs::rename(&out, walls.at("lake")).unwrap();
    walls.wait_for(&[
        ("a.png", 1),
        ("lake/b.png", 2),
        ("lake/deep/c.png", 3),
        ("d.png", 4),
    ]);
    assert_eq!(
        (walls.id("lake/deep/c.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
    // Changes inside the moved tree are noticed.
    walls.draw("lake/deep/e.png", 5);
    wait_until("a file of the moved tree", || {
        walls.images().contains_key("lake/deep/e.png")
    });
}

#[test]
fn deleted_image_is_not_imported_again_until_its_file_changes() {
    let mut walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let id = walls.id("a.png");
    walls
        .daemon
        .client()
        .send(
            "DELETE",
            "/images",
            "",
            json!({ "ids": [id] }).to_string().as_bytes(),
        )
        .ok();
    assert!(
        walls.at("a.png").exists(),
        "the watched file is not deleted"
    );
    walls.daemon.client().post("/library/scan", &json!({})).ok();
    walls.rename("a.png", "c.png");
    walls.draw("d.png", 4);
    walls.wait_for(&[("b.png", 2), ("d.png", 4)]);
    assert_eq!(walls.daemon.stop(), Some(0));
    walls.daemon.start();
    walls.draw("e.png", 5);
    walls.wait_for(&[("b.png", 2), ("d.png", 4), ("e.png", 5)]);
    walls.draw("c.png", 6);
    walls.wait_for(&[("b.png", 2), ("d.png", 4), ("e.png", 5), ("c.png", 6)]);
}

#[test]
fn watched_directory_is_a_folder_and_moved_images_stay_moved() {
    let walls = Walls::with(&[("a.png", 1), ("sea/b.png", 2)]);
    let client = walls.daemon.client();
    let folders = client.get("/folders?parent_id=all").ok();
    let folder = |name: &str| {
        let all = folders["data"].as_array().unwrap().iter();
        all.clone().find(|folder| folder["name"] == name).unwrap()["id"].clone()
    };
    let images = walls.images();
    assert_eq!(images["a.png"]["folder_id"], folder("walls"));
    assert_eq!(images["sea/b.png"]["folder_id"], folder("sea"));
    client
        .patch(
            &format!("/images/{}", images["a.png"]["id"]),
            &json!({ "folder_id": null }),
        )
        .ok();
    walls.draw("a.png", 3);
    walls.wait_for(&[("a.png", 3), ("sea/b.png", 2)]);
    assert_eq!(walls.images()["a.png"]["folder_id"], json!(null));
}

#[test]
fn single_files_are_imported_in_place() {
    let daemon = TestDaemon::started();
    let path = daemon.root().join("mine.png");
    fs::write(&path, picture(1)).unwrap();
    let run = |arguments: &[&str]| {
        let output = daemon.murald(arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, id, told) = run(&["import", "--in-place", path.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{told}");
    let id = id.trim();
    let client = daemon.client();
    let image = client.get(&format!("/images/{id}")).ok();
    assert_eq!(
        (&image["in_place"], &image["path"]),
        (&json!(true), &json!(path))
    );
    assert_eq!(client.get(&format!("/images/{id}/thumbnail")).status, 200);
    client
        .patch(&format!("/images/{id}"), &json!({ "name": "other" }))
        .ok();
    assert_eq!(fs::read(&path).unwrap(), picture(1));
    client
        .send(
            "DELETE",
            "/images",
            "",
            json!({ "ids": [id.parse::<i64>().unwrap()] })
                .to_string()
                .as_bytes(),
        )
        .ok();
    assert_eq!(fs::read(&path).unwrap(), picture(1));
    let (code, _, told) = run(&["import", "--in-place", daemon.root().to_str().unwrap()]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("murald watch add"), "{told}");
}

/// The kernel drops events of a stopped daemon when its queue is full; a rescan must find the changes.
#[test]
fn watched_files_are_found_even_if_their_events_were_dropped() {
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: u32 = kept.trim().parse().unwrap();
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    walls.daemon.signal("-STOP");
    for number in 0..=kept {
        // A hidden link is quickly made, and ignored.
        let link = walls.at(&format!(".{number}"));
        fs::hard_link(walls.at("b.png"), &link).unwrap();
        fs::remove_file(&link).unwrap();
    }
    walls.draw("c.png", 3);
    fs::remove_file(walls.at("a.png")).unwrap();
    walls.daemon.signal("-CONT");
    walls.wait_for(&[("b.png", 2), ("c.png", 3)]);
}
