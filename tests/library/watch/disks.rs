//! Disks that are unmounted and mounted, and a kernel that allows no more inotify watches.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Walls, picture};
use crate::desktop::wait_until;
use crate::support::{left_out, may_unshare};

/// Unmounts when dropped, whether or not the test succeeds.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    /// Mounts a tmpfs; `None` if this user may not mount.
    fn new(at: &'a Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "walls"])
            .arg(at)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self(at))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0).output().ok();
    }
}

fn bind(from: &Path, at: &Path) {
    let mounted = Command::new("mount")
        .arg("--bind")
        .args([from, at])
        .status()
        .unwrap();
    assert!(mounted.success());
}

#[test]
fn images_stay_while_their_disk_is_unmounted() {
    let mut walls = Walls::prepared("", &[]);
    let disk = walls.daemon.root().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_disk) = Mount::new(&disk) else {
        return left_out("a disk that is unmounted", "this user may not mount");
    };
    let directory = walls.directory.clone();
    bind(&disk, &directory);
    let _bound = Mount(&directory);
    for (name, number) in [("a.png", 1), ("b.png", 2), ("sea/c.png", 3)] {
        walls.draw(name, number);
    }
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2), ("sea/c.png", 3)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    assert!(
        Command::new("umount")
            .arg("-l")
            .arg(&directory)
            .status()
            .unwrap()
            .success()
    );
    walls.wait_for_state("away");
    assert_eq!(walls.images().len(), 3);
    let told = walls
        .daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }));
    assert!([404, 503].contains(&told.status), "{}", told.text());
    // The images stay even if a file appears in the empty mount point.
    fs::write(directory.join("stray.png"), picture(9)).unwrap();
    wait_until("the new file", || walls.images().contains_key("stray.png"));
    bind(&disk, &directory);
    walls.wait_for_state("watched");
    walls.draw("d.png", 4);
    wait_until("a new one", || walls.images().contains_key("d.png"));
    let images = walls.images();
    assert_eq!(
        (&images["a.png"]["id"], walls.in_playlist(playlist)),
        (&json!(id), vec![id])
    );
    assert_eq!(images["a.png"]["tags"], json!(["treasure"]));
    assert_eq!(images.len(), 5, "{images:?}");
}

#[test]
fn images_stay_while_a_mounted_subdirectory_is_unmounted() {
    let mut walls = Walls::prepared("", &[("a.png", 1)]);
    let (out, place) = (walls.daemon.root().join("out"), walls.at("out"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&place).unwrap();
    let Some(_disk) = Mount::new(&out) else {
        return left_out("a directory that is mounted", "this user may not mount");
    };
    bind(&out, &place);
    let _bound = Mount(&place);
    walls.draw("out/b.png", 2);
    walls.draw("out/c.png", 3);
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("out/b.png", 2), ("out/c.png", 3)]);
    let (id, playlist) = (walls.id("out/b.png"), walls.treasure("out/b.png"));
    assert!(
        Command::new("umount")
            .arg("-l")
            .arg(&place)
            .status()
            .unwrap()
            .success()
    );
    let message = || walls.state()["message"].clone();
    wait_until("both files are away", || {
        message() == "2 files are missing; their images are kept"
    });
    // Rescans change nothing.
    walls.daemon.client().post("/library/scan", &json!({})).ok();
    walls.draw("d.png", 4);
    wait_until("a new one", || walls.images().len() == 4);
    assert_eq!(message(), "2 files are missing; their images are kept");
    fs::remove_file(out.join("c.png")).unwrap();
    bind(&out, &place);
    walls.wait_for(&[("a.png", 1), ("out/b.png", 2), ("d.png", 4)]);
    assert_eq!(
        (walls.id("out/b.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
}

#[test]
fn images_leave_when_a_link_to_another_disk_is_removed() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 2)]);
    let out = walls.daemon.root().join("out");
    fs::create_dir(&out).unwrap();
    let Some(_disk) = Mount::new(&out) else {
        return left_out("a link to another disk", "this user may not mount");
    };
    fs::create_dir(out.join("sea")).unwrap();
    for (name, number) in [("sea/c.png", 3), ("d.png", 4)] {
        fs::write(out.join(name), picture(number)).unwrap();
    }
    symlink(out.join("sea"), walls.at("sea")).unwrap();
    symlink(out.join("d.png"), walls.at("d.png")).unwrap();
    walls.daemon.start();
    let all = [("a.png", 1), ("b.png", 2), ("d.png", 4), ("sea/c.png", 3)];
    walls.wait_for(&all);
    // The disk is away as long as the links are there.
    assert!(
        Command::new("umount")
            .arg("-l")
            .arg(&out)
            .status()
            .unwrap()
            .success()
    );
    let message = || walls.state()["message"].clone();
    wait_until("both files are away", || {
        message() == "2 files are missing; their images are kept"
    });
    fs::remove_file(walls.at("d.png")).unwrap();
    walls.wait_for(&[("a.png", 1), ("b.png", 2), ("sea/c.png", 3)]);
    fs::remove_file(walls.at("sea")).unwrap();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
}

#[test]
fn image_whose_last_file_is_on_an_unmounted_disk_is_missing() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 2)]);
    let (out, place) = (walls.daemon.root().join("out"), walls.at("out"));
    for directory in [&out, &place] {
        fs::create_dir(directory).unwrap();
    }
    let Some(_disk) = Mount::new(&out) else {
        return left_out("a directory that is mounted", "this user may not mount");
    };
    bind(&out, &place);
    let _bound = Mount(&place);
    walls.draw("out/a.png", 1);
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    wait_until("the second file", || walls.state()["copies"] == 1);
    let id = walls.id("a.png");
    let unmount_and_remove = || {
        let unmounted = Command::new("umount").arg("-l").arg(&place).status();
        assert!(unmounted.unwrap().success());
        fs::remove_file(walls.at("a.png")).unwrap();
        wait_until("the image is kept", || {
            walls.state()["message"] == "1 file is missing; its image is kept"
        });
    };
    unmount_and_remove();
    bind(&out, &place);
    walls.wait_for(&[("b.png", 2), ("out/a.png", 1)]);
    wait_until("nothing is missing", || walls.state()["message"].is_null());
    assert_eq!(walls.id("out/a.png"), id);
    // A third file is found: only the one that is away stays a copy.
    walls.draw("a.png", 1);
    wait_until("the second file", || walls.state()["copies"] == 1);
    unmount_and_remove();
    walls.draw("c.png", 1);
    walls.wait_for(&[("b.png", 2), ("c.png", 1)]);
    wait_until("the third file", || walls.state()["copies"] == 1);
    assert_eq!(walls.id("c.png"), id);
}

#[test]
fn exceeded_watch_limit_is_reported_and_rescans_find_the_rest() {
    if !may_unshare("the limit of watches", &["-U", "-r"]) {
        return;
    }
    let mut walls = Walls::prepared(
        "",
        &[
            ("a.png", 1),
            ("b/c/d.png", 2),
            ("e/f.png", 3),
            ("g/h.png", 4),
        ],
    );
    let murald = env!("CARGO_BIN_EXE_murald");
    walls.daemon.start_after(&format!(
        "exec unshare -U -r /bin/sh -c 'echo 6 > /proc/sys/user/max_inotify_watches; \
         exec {murald} start'"
    ));
    walls.wait_for(&[
        ("a.png", 1),
        ("b/c/d.png", 2),
        ("e/f.png", 3),
        ("g/h.png", 4),
    ]);
    walls.wait_for_state("partial");
    let message = walls.state()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("fs.inotify.max_user_watches"), "{message}");
    let info = walls.daemon.client().get("/info").ok();
    assert!(
        info["warnings"].to_string().contains("max_user_watches"),
        "{info}"
    );
    for name in ["b/c/1.png", "e/1.png", "g/1.png"] {
        walls.draw(name, u32::from(name.as_bytes()[0]));
    }
    walls.daemon.client().post("/library/scan", &json!({})).ok();
    wait_until("the rescan", || walls.images().len() == 7);
    // A SIGHUP rescans, too.
    for name in ["b/c/2.png", "e/2.png", "g/2.png"] {
        walls.draw(name, 100 + u32::from(name.as_bytes()[0]));
    }
    walls.daemon.signal("-HUP");
    wait_until("the rescan by SIGHUP", || walls.images().len() == 10);
}
