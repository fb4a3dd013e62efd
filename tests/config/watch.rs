//! Each way to change the file publishes one event.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Watched;
use crate::wait::wait_until;

#[test]
fn config_written_in_place_is_applied() {
    let room = Watched::new();
    fs::write(room.handle.path(), room.themed("x")).unwrap();
    room.hears_once(&["app"]);
    assert_eq!(room.theme(), "x");
}

#[test]
fn config_replaced_by_a_rename_is_applied() {
    let room = Watched::new();
    for theme in ["x", "y"] {
        fs::write(room.path("murald/new"), room.themed(theme)).unwrap();
        fs::rename(room.path("murald/new"), room.handle.path()).unwrap();
        room.hears_once(&["app"]);
    }
    // Another file has the name now; it is watched, too.
    fs::write(room.handle.path(), room.themed("z")).unwrap();
    room.hears_once(&["app"]);
    assert_eq!(room.theme(), "z");
}

/// Number of tries, for a busy machine.
const TRIES: u32 = 30;

/// A writer's pause: longer than the watch waits after a close, shorter than it waits for an open or
/// empty file. Returns false if the machine was too busy to keep that time.
fn pause() -> bool {
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(400));
    began.elapsed() < Duration::from_millis(900)
}

#[test]
fn config_written_in_pieces_is_applied_once() {
    for _ in 0..TRIES {
        let room = Watched::new();
        let text = room
            .themed("x")
            .replace("\nmode = \"fill\"", "\nmode = \"max\"");
        let mut file = File::create(room.handle.path()).unwrap();
        let in_time = text.as_bytes().chunks(text.len() / 4 + 1).all(|piece| {
            file.write_all(piece).unwrap();
            file.sync_all().unwrap();
            pause()
        });
        drop(file);
        if in_time {
            return room.hears_once(&["backend.feh", "app"]);
        }
    }
    panic!("this machine is never in time");
}

#[test]
fn config_that_is_emptied_first_is_applied_once() {
    for _ in 0..TRIES {
        let room = Watched::new();
        let text = room.themed("x");
        drop(File::create(room.handle.path()).unwrap());
        let in_time = pause();
        fs::write(room.handle.path(), text).unwrap();
        if in_time {
            return room.hears_once(&["app"]);
        }
    }
    panic!("this machine is never in time");
}

#[test]
fn config_link_with_a_new_target_is_followed() {
    let room = Watched::prepared("config.toml", |dir| {
        symlink("first.toml", dir.path().join("config.toml")).unwrap();
    });
    fs::write(room.path("second.toml"), room.themed("x")).unwrap();
    symlink("second.toml", room.path("new")).unwrap();
    fs::rename(room.path("new"), room.path("config.toml")).unwrap();
    room.hears_once(&["app"]);
    // The new target is watched, too.
    fs::write(room.path("second.toml"), room.themed("y")).unwrap();
    room.hears_once(&["app"]);
    fs::write(room.path("first.toml"), "app.theme = 'none of it'").unwrap();
    room.hears_nothing();
}

#[test]
fn config_directory_behind_a_replaced_link_is_followed() {
    let room = Watched::prepared("murald/config.toml", |dir| {
        fs::create_dir_all(dir.path().join("generation-1")).unwrap();
        symlink("generation-1", dir.path().join("murald")).unwrap();
    });
    fs::create_dir(room.path("generation-2")).unwrap();
    fs::write(room.path("generation-2/config.toml"), room.themed("x")).unwrap();
    fs::remove_file(room.path("murald")).unwrap();
    symlink("generation-2", room.path("murald")).unwrap();
    room.hears_once(&["app"]);
    assert_eq!(room.theme(), "x");
    fs::write(room.path("generation-2/config.toml"), room.themed("y")).unwrap();
    room.hears_once(&["app"]);
    assert_eq!(room.theme(), "y");
}

#[test]
fn config_directory_that_is_removed_and_created_again_is_followed() {
    let room = Watched::prepared("home/config/murald/config.toml", |_| ());
    let text = room.themed("x");
    fs::remove_dir_all(room.path("home/config")).unwrap();
    wait_until("the warning about the missing file", || {
        !room.handle.current().warnings.is_empty()
    });
    assert_eq!(room.theme(), "dark");
    fs::create_dir_all(room.path("home/config/murald")).unwrap();
    fs::write(room.handle.path(), text).unwrap();
    room.hears_once(&["app"]);
    assert!(room.handle.current().warnings.is_empty());
}

#[test]
fn config_written_through_a_hard_link_is_applied() {
    let room = Watched::new();
    fs::hard_link(room.handle.path(), room.path("other")).unwrap();
    fs::write(room.path("other"), room.themed("x")).unwrap();
    room.hears_once(&["app"]);
}

#[test]
fn broken_config_is_a_warning_until_it_is_fixed() {
    let room = Watched::new();
    let good = room.text();
    fs::write(room.handle.path(), "[app").unwrap();
    wait_until("the warning", || !room.handle.current().warnings.is_empty());
    assert!(room.handle.current().warnings[0].contains("line 1"));
    fs::write(room.handle.path(), &good).unwrap();
    wait_until("the file is valid again", || {
        room.handle.current().warnings.is_empty()
    });
    room.hears_nothing();
    fs::write(room.handle.path(), room.themed("x")).unwrap();
    room.hears_once(&["app"]);
}

#[test]
fn config_file_that_stays_empty_is_a_warning() {
    let room = Watched::new();
    let text = room.themed("x");
    drop(File::create(room.handle.path()).unwrap());
    wait_until("the warning", || !room.handle.current().warnings.is_empty());
    assert!(room.handle.current().warnings[0].contains("is empty"));
    assert_eq!(room.theme(), "dark");
    room.forget();
    fs::write(room.handle.path(), text).unwrap();
    room.hears_once(&["app"]);
    assert!(room.handle.current().warnings.is_empty());
}

#[test]
fn broken_config_is_reported_while_its_writer_keeps_it_open() {
    let room = Watched::new();
    let mut file = File::options()
        .write(true)
        .truncate(true)
        .open(room.handle.path())
        .unwrap();
    file.write_all(b"[app").unwrap();
    wait_until("the warning", || !room.handle.current().warnings.is_empty());
    assert!(room.handle.current().warnings[0].contains("line 1"));
}

#[test]
fn config_edits_without_change_publish_nothing() {
    let room = Watched::new();
    fs::write(room.handle.path(), format!("# a comment\n{}", room.text())).unwrap();
    fs::write(room.path("murald/other.toml"), "app.theme = 'none of it'").unwrap();
    room.hears_nothing();
}

#[test]
fn own_writes_publish_once_and_keep_the_watch() {
    let room = Watched::new();
    for theme in ["a", "b", "c"] {
        let body = json!({"app": {"theme": theme}});
        room.handle.patch(body.as_object().unwrap()).unwrap();
    }
    room.handle.reset_all().unwrap();
    room.forget();
    room.hears_nothing();
    fs::write(room.handle.path(), room.themed("x")).unwrap();
    room.hears_once(&["app"]);
}

#[test]
fn config_file_that_is_created_later_is_applied() {
    let room = Watched::new();
    let text = room.themed("x");
    fs::remove_file(room.handle.path()).unwrap();
    wait_until("the warning about the missing file", || {
        !room.handle.current().warnings.is_empty()
    });
    fs::write(room.handle.path(), text).unwrap();
    room.hears_once(&["app"]);
}
