//! References to images, playlists and folders: names, prefixes, ids, paths, and standard input.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::call::{fails, json_of, ok, rejected};
use crate::support::TestDaemon;

/// A test daemon with pictures of these names; their ids are 1, 2 and so on.
fn daemon(names: &[&str]) -> TestDaemon {
    let daemon = TestDaemon::started();
    for (number, name) in names.iter().enumerate() {
        let path = daemon.root().join(format!("{name}.png"));
        let color = image::Rgb([number as u8, 90, 200]);
        image::RgbImage::from_pixel(8 + number as u32, 8, color)
            .save(&path)
            .unwrap();
        daemon.import(&[&path]);
    }
    daemon
}

fn id_of(daemon: &TestDaemon, reference: &str) -> Value {
    json_of(daemon, &["images", "show", reference])["id"].clone()
}

#[test]
fn images_are_found_by_id_name_prefix_and_path() {
    let daemon = daemon(&["Sunset", "sunrise", "blue lake", "7", "current", "1"]);
    let check = |reference: &str, id: i64| assert_eq!(id_of(&daemon, reference), id, "{reference}");
    check("2", 2);
    check("Sunset", 1);
    check("sunSET", 1);
    check("sunr", 2);
    check("BLUE", 3);
    check("blue lake.png", 3);
    check("blue lake.PNG", 3);
    // A path may be that of the source, of the library's file, or of a copy.
    let source = daemon.root().join("sunrise.png");
    check(source.to_str().unwrap(), 2);
    check(daemon.images().join("blue lake.png").to_str().unwrap(), 3);
    let copy = daemon.root().join("copy.png");
    fs::copy(&source, &copy).unwrap();
    check(copy.to_str().unwrap(), 2);
    let refused = |reference: &str, code: i32| {
        rejected(&daemon, &["images", "show", reference], code);
    };
    rejected(&daemon, &["images", "tag", "blue", "lake", "--add", "x"], 1);
    rejected(&daemon, &["playlist", "create", "day", "Sunset@7pm"], 1);
    refused("sun", 1);
    refused("sunsat", 1);
    // The extension is not the image's.
    refused("sunset.jpg", 1);
    refused("9", 1);
    // Digits are an id, even if an image has that name.
    refused("7", 1);
    check("id:1", 1);
    check("name:1", 6);
    check("name:7", 4);
    refused("name:sunset", 1);
    refused("id:x", 2);
    rejected(&daemon, &["set", "1e1e2e"], 1);
    rejected(&daemon, &["set", "112233"], 1);
    rejected(&daemon, &["images", "show", "1e1e2e"], 1);
    refused("007", 1);
    refused("1", 1);
    // Reserved words win over names.
    fails(&daemon, &["images", "show", "current"], 1, "");
    refused("0", 2);
    refused("", 2);
    refused("-", 2);
    let other = daemon.root().join("other.png");
    image::RgbImage::new(3, 3).save(&other).unwrap();
    let other = other.to_str().unwrap();
    refused(other, 1);
    refused("/no/such/file.png", 1);
}

#[test]
fn file_comes_after_an_exact_name_and_before_a_prefix() {
    let daemon = daemon(&["lake", "lake two"]);
    let here = daemon.root().join("here");
    fs::create_dir(&here).unwrap();
    fs::copy(daemon.root().join("lake two.png"), here.join("lake t")).unwrap();
    fs::copy(daemon.root().join("lake two.png"), here.join("lake")).unwrap();
    let show = |reference: &str| {
        let mut command = daemon.murald(&["images", "show", reference, "--format", "{id}"]);
        let output = command.current_dir(&here).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(show("lake"), "1\n");
    assert_eq!(show("lake t"), "2\n");
    assert_eq!(show("./lake"), "2\n");
}

#[test]
fn playlists_and_folders_are_found_by_name() {
    let daemon = daemon(&["a", "b"]);
    ok(&daemon, &["playlist", "create", "Evening", "a", "b"]);
    ok(
        &daemon,
        &["playlist", "create", "morning", "b", "--type", "manual"],
    );
    assert_eq!(json_of(&daemon, &["playlist", "show", "even"])["id"], 1);
    assert_eq!(
        json_of(&daemon, &["playlist", "edit", "evening", "--name", "Night"])["name"],
        "Night"
    );
    rejected(&daemon, &["playlist", "show", "nigth"], 1);
    ok(&daemon, &["playlist", "add", "morning", "a"]);
    let images = json_of(&daemon, &["playlist", "show", "morning"])["images"].clone();
    assert_eq!(
        (&images[0]["image_id"], &images[1]["image_id"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        ok(&daemon, &["playlist", "rm", "night"]),
        "Night (1) deleted\n"
    );
    ok(
        &daemon,
        &[
            "playlist",
            "create",
            "day",
            "a@07:00",
            "b@19:30",
            "--type",
            "time_of_day",
        ],
    );
    assert_eq!(
        json_of(&daemon, &["playlist", "show", "day"])["images"][1]["time"],
        1170
    );
    ok(&daemon, &["playlist", "create", "/home/mia/mountains", "a"]);
    assert_eq!(
        json_of(&daemon, &["playlist", "show", "Mountains"])["name"],
        "/home/mia/mountains"
    );
    for (name, parent) in [
        ("sea", "root"),
        ("bay", "sea"),
        ("land", "root"),
        ("bay", "land"),
    ] {
        ok(&daemon, &["folders", "create", name, "--parent", parent]);
    }
    let id = |reference: &str| {
        json_of(&daemon, &["folders", "path", reference])["data"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()["id"]
            .clone()
    };
    assert_eq!([id("sea"), id("SEA/bay"), id("land/b")], [1, 2, 4]);
    rejected(&daemon, &["folders", "show", "bay"], 1);
    rejected(&daemon, &["folders", "show", "root"], 2);
    for name in ["1", "9"] {
        ok(&daemon, &["folders", "create", name]);
    }
    rejected(&daemon, &["folders", "delete", "1", "--contents"], 1);
    ok(&daemon, &["folders", "delete", "name:1", "--contents"]);
    ok(&daemon, &["folders", "show", "1"]);
    // A folder may be named by its digits if no other has this ID.
    assert_eq!(
        ok(&daemon, &["folders", "show", "9", "--format", "{id}"]),
        "6\n"
    );
    rejected(&daemon, &["folders", "delete", "77", "--contents"], 1);
    let list = ok(&daemon, &["folders", "list"]);
    assert!(list.contains("2\tsea/bay\t0\t"), "{list}");
    ok(&daemon, &["images", "move", "a", "b", "land/bay"]);
    assert_eq!(
        json_of(&daemon, &["images", "list", "--folder", "land/bay"])["data"][1]["id"],
        1
    );
}

#[test]
fn folder_names_may_contain_slashes() {
    let daemon = daemon(&[]);
    for (name, parent) in [
        ("a", "root"),
        ("b", "a"),
        ("a/b", "root"),
        ("x/y", "a"),
        ("x/y", "b"),
    ] {
        ok(&daemon, &["folders", "create", name, "--parent", parent]);
    }
    let id = |reference: &str| json_of(&daemon, &["folders", "show", reference])["id"].clone();
    // An exact name comes first; a prefix comes after a path of names.
    assert_eq!([id("a/b"), id("A/B"), id("/a/b"), id("a/b/")], [3, 3, 2, 2]);
    rejected(&daemon, &["folders", "show", "x/y"], 1);
    assert_eq!([id("a/x/y"), id("/a/b/x/y"), id("a/x")], [4, 5, 4]);
    rejected(&daemon, &["folders", "show", "a/c"], 1);
    rejected(&daemon, &["folders", "show", "//"], 2);
}

/// Runs a call with this input; returns exit code, stdout and stderr.
fn fed(daemon: &TestDaemon, line: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut command = daemon.murald(line);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have exited without reading.
    child.stdin.take().unwrap().write_all(input).ok();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn references_are_read_from_standard_input() {
    let daemon = daemon(&["a", "b", "c"]);
    // If one reference is wrong, nothing is done.
    let (code, out, told) = fed(&daemon, &["images", "tag", "-", "--add", "x"], b"a\nnone\n");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        told.starts_with("murald: no image named \"none\"\n"),
        "{told}"
    );
    assert_eq!(json_of(&daemon, &["images", "tags"])["tags"], json!([]));
    for line in [
        &["images", "delete", "-"][..],
        &["images", "tag", "-", "--add", "x"],
        &["images", "move", "-", "root"],
        &["playlist", "create", "n", "-"],
    ] {
        let (code, out, told) = fed(&daemon, line, b"1\n999999\n");
        assert_eq!(
            (code, &*out, &*told),
            (Some(1), "", "murald: no image with ID 999999\n"),
            "{line:?}"
        );
    }
    rejected(&daemon, &["images", "delete", "a", "88", "99"], 1);
    rejected(&daemon, &["images", "tag", "1", "88", "--add", "x"], 1);
    assert_eq!(
        json_of(&daemon, &["images", "list"])["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(json_of(&daemon, &["images", "tags"])["tags"], json!([]));
    let (code, out, _) = fed(&daemon, &["images", "tag", "-", "--add", "x"], b"a\n\n3\n");
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "tags of 2 images changed\n")
    );
    let (code, ..) = fed(&daemon, &["playlist", "create", "p", "-"], b"c\nb\n");
    assert_eq!(code, Some(0));
    assert_eq!(
        json_of(&daemon, &["playlist", "show", "p"])["images"][0]["image_id"],
        3
    );
    // `-` means standard input only as an image, and an empty input selects nothing.
    for (line, code) in [
        (&["images", "delete", "--name", "-"][..], 1),
        (&["images", "delete", "--name-prefix=-"], 1),
        (&["images", "delete", "--folder", "-"], 2),
        (&["images", "move", "1", "-"], 2),
        (&["images", "delete", "-"], 0),
        (&["images", "delete", "-", "-0"], 0),
        (&["images", "delete", "-", "--name-prefix", "a"], 2),
    ] {
        for input in ["", "\n", "\u{feff}\n \r\n"] {
            assert_eq!(
                fed(&daemon, line, input.as_bytes()).0,
                Some(code),
                "{line:?} {input:?}"
            );
        }
    }
    assert_eq!(
        fed(&daemon, &["images", "delete", "-", "-0"], b"\0\0").0,
        Some(0)
    );
    assert_eq!(
        json_of(&daemon, &["images", "list"])["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let (_, out, _) = fed(&daemon, &["images", "delete", "a", "-", "-0"], b"b\0");
    assert_eq!(out, "2 images moved to the trash\n");
    let file = json_of(&daemon, &["images", "show", "c"])["path"].clone();
    assert_eq!(
        ok(&daemon, &["where", "c"]),
        format!("{}\n", file.as_str().unwrap())
    );
    let directory = daemon.root().to_str().unwrap();
    for (picture, code) in [(directory, 1), ("navy", 0), ("playlist:", 2), ("c", 0)] {
        let (found, _, told) = fed(&daemon, &["workspace", "set", "2", picture], b"");
        assert_eq!(found, Some(code), "{picture}: {told}");
    }
    rejected(&daemon, &["workspace", "set", "", "c"], 2);
    assert_eq!(
        ok(&daemon, &["complete", "workspace", "clear", ""]),
        "2\t\n"
    );
    ok(&daemon, &["workspace", "clear", "2"]);
    rejected(&daemon, &["slideshow", directory, "--interval", "0"], 2);
    assert_eq!(json_of(&daemon, &["watch", "list"])["watch"], json!([]));
    // Paths to import, and the ids that the command prints.
    let paths = ["a", "c"].map(|name| daemon.root().join(format!("{name}.png")));
    let list = paths
        .map(|path| path.to_str().unwrap().to_owned())
        .join("\0");
    assert_eq!(
        fed(&daemon, &["import", "-0", "-"], list.as_bytes()).1,
        "4\n3\n"
    );
}

#[test]
fn error_names_the_file_that_cannot_be_shown() {
    let mut daemon = TestDaemon::new();
    daemon.only(&["sh"]);
    daemon.start();
    let root = daemon.root();
    fs::write(root.join("a.svg"), "<svg/>\n").unwrap();
    std::os::unix::fs::symlink("nowhere.heic", root.join("link.heic")).unwrap();
    fs::create_dir(root.join("walls")).unwrap();
    let said = |line: &[&str]| {
        let output = daemon.murald(line).current_dir(root).output().unwrap();
        crate::call::stderr(&output).replace(root.to_str().unwrap(), "DIR")
    };
    assert_eq!(
        said(&["set", "a.svg"]),
        "murald: DIR/a.svg: no installed program decodes this SVG correctly; install rsvg-convert\n"
    );
    let broken = "murald: DIR/link.heic: it is a link to a file that does not exist\n";
    assert_eq!(said(&["set", "link.heic"]), broken);
    assert_eq!(said(&["set", "./link.heic"]), broken);
    for line in [&["set", "walls"][..], &["workspace", "set", "2", "walls"]] {
        let refused = said(line);
        assert!(
            refused.contains("DIR/walls") && refused.contains("\nhint: `murald slideshow DIR`"),
            "{refused}"
        );
    }
}
