//! Deletions: the question on a terminal, the trash, favourites.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::call::{json_of, ok, pictures, rejected};
use crate::support::TestDaemon;
use crate::support::pty::Pty;

fn daemon(count: u8) -> TestDaemon {
    let daemon = TestDaemon::started();
    let directory = pictures(&daemon, count);
    daemon.import(&[&directory]);
    daemon
}

fn ids(daemon: &TestDaemon) -> usize {
    json_of(daemon, &["images", "list"])["data"]
        .as_array()
        .unwrap()
        .len()
}

/// The names of the files in the trash.
fn trash(daemon: &TestDaemon) -> Vec<String> {
    let Ok(entries) = fs::read_dir(daemon.root().join("data/Trash/files")) else {
        return vec![];
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn deletion_on_a_terminal_is_confirmed_first() {
    let daemon = daemon(3);
    let asked = |line: &[&str]| Pty::new(daemon.murald(line), 80, 24);
    for answer in [&b"n\n"[..], b"\n", b"\x04", b"yesterday\n"] {
        let mut terminal = asked(&["images", "delete", "p0"]);
        terminal.until("Move p0 (1) to the trash? [y/N] ");
        terminal.types(answer);
        let (code, shown) = terminal.end();
        assert_eq!(code, Some(1), "{answer:?}: {shown}");
        assert!(shown.ends_with("murald: nothing was deleted\n"), "{shown}");
        assert_eq!((ids(&daemon), trash(&daemon).len()), (3, 0));
    }
    let mut terminal = asked(&["images", "delete", "--name-prefix", "p", "--forever"]);
    terminal.until("Delete 3 images, ");
    terminal.until(" for good? [y/N] ");
    terminal.types(b"no\n");
    assert_eq!(terminal.end().0, Some(1));
    let mut terminal = asked(&["images", "delete", "p0"]);
    terminal.until("[y/N] ");
    terminal.types(b"Y\n");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.ends_with("1 image moved to the trash\n"), "{shown}");
    assert_eq!(
        (ids(&daemon), trash(&daemon)),
        (2, vec!["p0.png".to_owned()])
    );
    // `--yes` skips the question.
    let (code, shown) = asked(&["images", "delete", "p1", "--yes", "--forever"]).end();
    assert_eq!((code, shown.as_str()), (Some(0), "1 image deleted\n"));
    assert_eq!((ids(&daemon), trash(&daemon).len()), (1, 1));
    // A missing image is an error before any question.
    let (code, shown) = asked(&["images", "delete", "77"]).end();
    assert_eq!(
        (code, shown.as_str()),
        (Some(1), "murald: no image with ID 77\n")
    );
}

#[test]
fn trash_moves_the_files_of_images_in_place_too() {
    let daemon = daemon(1);
    let file = daemon.root().join("walls/q.png");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let color = image::Rgb([9, 99, 199]);
    image::RgbImage::from_pixel(16, 9, color)
        .save(&file)
        .unwrap();
    ok(&daemon, &["import", "--in-place", file.to_str().unwrap()]);
    let mut terminal = Pty::new(daemon.murald(&["trash", "q"]), 80, 24);
    terminal.until("Move q (2) to the trash? [y/N] ");
    terminal.types(b"n\n");
    assert_eq!(terminal.end().0, Some(1));
    assert!(file.exists());
    // Nothing is asked if there is no terminal.
    assert_eq!(ok(&daemon, &["trash", "q"]), "1 image moved to the trash\n");
    assert!(!file.exists());
    assert_eq!(
        ok(&daemon, &["trash", "p0"]),
        "1 image moved to the trash\n"
    );
    assert_eq!(
        (ids(&daemon), trash(&daemon)),
        (0, vec!["p0.png".to_owned(), "q.png".to_owned()])
    );
}

#[test]
fn trash_has_the_file_its_path_and_the_date() {
    let daemon = daemon(1);
    let image = json_of(&daemon, &["images", "show", "p0"]);
    let path = image["path"].as_str().unwrap();
    let before = fs::read(path).unwrap();
    assert_eq!(
        ok(&daemon, &["images", "delete", "p0"]),
        "1 image moved to the trash\n"
    );
    assert!(!Path::new(path).exists());
    let trash = daemon.root().join("data/Trash");
    assert_eq!(fs::read(trash.join("files/p0.png")).unwrap(), before);
    let info = fs::read_to_string(trash.join("info/p0.png.trashinfo")).unwrap();
    let path = fs::canonicalize(daemon.images()).unwrap().join("p0.png");
    assert!(
        info.contains(&format!("\nPath={}\n", path.display())),
        "{info}"
    );
    assert!(info.contains("\nDeletionDate=20"), "{info}");
}

#[test]
fn file_stays_if_the_trash_fails() {
    let daemon = daemon(4);
    let trash = daemon.root().join("data/Trash");
    fs::write(&trash, "no directory").unwrap();
    let delete = |body| daemon.client().send("DELETE", "/images", "", body);
    // A mistyped field deletes nothing.
    for body in [
        &br#"{"ids":[1],"trahs":true}"#[..],
        br#"{"ids":[1],"trash":"yes"}"#,
        br#"{"ids":[1],"files":1}"#,
        br#"{"ids":[1],"files":null}"#,
    ] {
        delete(body).fails(400);
    }
    assert_eq!(ids(&daemon), 4);
    let path = json_of(&daemon, &["images", "show", "p0"])["path"].clone();
    let told = delete(br#"{"ids":[1],"trash":true}"#).ok();
    assert_eq!(
        (&told["deleted"], &told["files"], &told["files_kept"]),
        (&json!(1), &json!([]), &json!([path]))
    );
    let warning = told["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with(&format!("cannot trash {}: ", path.as_str().unwrap())),
        "{warning}"
    );
    assert_eq!(
        (ids(&daemon), Path::new(path.as_str().unwrap()).exists()),
        (3, true)
    );
    let output = daemon.murald(&["images", "delete", "p1"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot trash ") && told.ends_with("murald: 1 file not deleted\n"));
    let line = ["images", "delete", "p3", "--json"];
    let output = daemon.murald(&line).output().unwrap();
    let read = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read(&output.stderr)["error"], "1 file not deleted");
    assert_eq!(
        read(&output.stdout)["files_kept"].as_array().unwrap().len(),
        1
    );
    fs::remove_file(&trash).unwrap();
    let path = json_of(&daemon, &["images", "show", "p2"])["path"].clone();
    assert_eq!(
        delete(br#"{"ids":[3],"files":true}"#).ok(),
        json!({ "deleted": 1, "files": [path] })
    );
}

#[test]
fn favourite_toggles_the_tag() {
    let daemon = daemon(2);
    let tags = || json_of(&daemon, &["images", "show", "p0"])["tags"].clone();
    ok(&daemon, &["images", "tag", "p0", "--add", "sea"]);
    assert_eq!(ok(&daemon, &["favourite", "p0"]), "p0 (1) is a favourite\n");
    assert_eq!(tags(), json!(["sea", "favourite"]));
    assert_eq!(
        ok(&daemon, &["favorite", "p0"]),
        "p0 (1) is no longer a favourite\n"
    );
    assert_eq!(tags(), json!(["sea"]));
    assert_eq!(
        json_of(&daemon, &["favourite", "p0"])["tags"],
        json!(["sea", "favourite"])
    );
    rejected(&daemon, &["favourite"], 1);
    rejected(&daemon, &["favourite", "none"], 1);
}

#[test]
fn unknown_id_is_an_error_and_deletes_nothing() {
    let daemon = daemon(1);
    rejected(&daemon, &["images", "delete", "999"], 1);
    rejected(&daemon, &["images", "delete", "998", "999"], 1);
    rejected(&daemon, &["images", "delete", "1", "999"], 1);
    assert_eq!(ids(&daemon), 1);
}

#[test]
fn empty_filter_is_refused_by_commands_that_change_images() {
    let daemon = daemon(3);
    ok(&daemon, &["playlist", "create", "p", "p0"]);
    for verb in [
        &["images", "delete"][..],
        &["images", "tag", "--add", "x"],
        &["images", "move", "root"],
        &["playlist", "add", "p"],
        &["playlist", "create", "n"],
        &["playlist", "create", "n", "--fixed"],
    ] {
        let refused = |flags: &[&str]| rejected(&daemon, &[verb, flags].concat(), 2);
        refused(&["--recursive"]);
        refused(&["--max-delta-e", "5"]);
        refused(&["--tags", "x", "--recursive"]);
        for flag in ["--name-prefix", "--name", "--tags", "--colors"] {
            refused(&[flag, ""]);
        }
    }
    for verb in [&["playlist", "add", "p"][..], &["playlist", "create", "n"]] {
        let line = [verb, &["--search", " "]].concat();
        rejected(&daemon, &line, 2);
    }
    let images = json_of(&daemon, &["images", "list", "--name-prefix", ""])["data"].clone();
    let tags = images
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["tags"].clone());
    assert_eq!(
        tags.collect::<Vec<_>>(),
        [json!([]), json!([]), json!([])],
        "a list accepts an empty filter"
    );
    let playlists = json_of(&daemon, &["playlist", "list"]);
    assert_eq!(playlists.as_array().unwrap().len(), 1);
    assert_eq!(playlists[0]["images"].as_array().unwrap().len(), 1);
}

#[test]
fn concurrent_deletions_delete_each_image_once() {
    let daemon = TestDaemon::started();
    let mut in_trash = 0;
    for round in 0..6 {
        let directory = daemon.root().join(format!("round{round}"));
        fs::create_dir(&directory).unwrap();
        for number in 0..30_u8 {
            let path = directory.join(format!("r{round}n{number}.png"));
            image::RgbImage::from_pixel(2, 2, image::Rgb([round, number, 7]))
                .save(path)
                .unwrap();
        }
        daemon.import(&[&directory]);
        let images = daemon.client().get("/images?per_page=200").ok();
        let taken: Vec<_> = images["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| &i["id"])
            .collect();
        // All three move the images to the trash, or one of them deletes them for good, in another
        // order.
        let mixed = round % 2 == 1;
        let bodies = [false, mixed, false].map(|forever| {
            let ids: Vec<_> = if forever {
                taken.iter().rev().collect()
            } else {
                taken.iter().collect()
            };
            json!({ "ids": ids, "trash": !forever })
                .to_string()
                .into_bytes()
        });
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asking = bodies.each_ref().map(|body| {
                let daemon = &daemon;
                scope.spawn(move || daemon.client().send("DELETE", "/images", "", body))
            });
            asking
                .into_iter()
                .map(|asked| asked.join().unwrap())
                .collect()
        });
        let deleted = answers.iter().map(|answer| {
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.json()["deleted"].as_u64().unwrap()
        });
        assert_eq!(deleted.sum::<u64>(), 30);
        // The next start would import a file without a row again.
        assert_eq!(
            (ids(&daemon), fs::read_dir(daemon.images()).unwrap().count()),
            (0, 0)
        );
        let before = std::mem::replace(&mut in_trash, trash(&daemon).len());
        assert!(mixed || in_trash == before + 30);
    }
}

#[test]
fn files_in_place_are_kept_when_their_folder_is_deleted() {
    let daemon = daemon(2);
    let file = daemon.root().join("own.png");
    image::RgbImage::from_pixel(9, 9, image::Rgb([1, 2, 3]))
        .save(&file)
        .unwrap();
    ok(&daemon, &["folders", "create", "f"]);
    ok(
        &daemon,
        &[
            "import",
            "--in-place",
            file.to_str().unwrap(),
            "--folder",
            "f",
        ],
    );
    ok(&daemon, &["images", "move", "p0", "f"]);
    let line = ["folders", "delete", "f", "--contents"];
    daemon
        .client()
        .delete("/folders/1?mode=delete_all&trash=yes")
        .fails(400);
    assert_eq!(ok(&daemon, &line), "1 folder and 2 images deleted\n");
    assert_eq!(
        (ids(&daemon), self::trash(&daemon)),
        (1, vec!["p0.png".to_owned()])
    );
    assert!(file.is_file(), "files in place are kept");
}
