//! Tests a full disk: requests fail with a plain message, the daemon keeps running, and existing
//! data stay.
//!
//! The daemon runs in its own mount namespace, with the library and database on a small tmpfs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::support::client::Answer;
use crate::support::{TestDaemon, may_unshare};

/// A daemon with its data on a disk of 6 MiB.
struct Cramped {
    daemon: TestDaemon,
    child: Child,
}

/// The namespaces in which a test may mount file systems.
const APART: [&str; 3] = ["--user", "--map-root-user", "--mount"];

impl Cramped {
    /// Returns `None` if this machine does not allow tests to mount file systems.
    fn new(test: &str) -> Option<Self> {
        if !may_unshare(test, &APART) {
            return None;
        }
        let daemon = TestDaemon::new();
        fs::create_dir(daemon.root().join("data")).unwrap();
        let script =
            "mount -t tmpfs -o size=6m,mode=700 tmpfs \"$XDG_DATA_HOME\" && exec \"$0\" start";
        let mut command = daemon.command("unshare");
        command.args(APART).args(["sh", "-c", script]);
        command.arg(env!("CARGO_BIN_EXE_murald"));
        let errors = fs::File::create(daemon.root().join("stderr")).unwrap();
        let child = command
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        let cramped = Self { daemon, child };
        wait_until("the socket", || cramped.daemon.socket().exists());
        Some(cramped)
    }

    /// Returns a path of the daemon's namespace.
    fn inside(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.child.id()));
        root.join(path.strip_prefix("/").unwrap())
    }

    /// Fills the disk completely.
    fn fill(&self) -> PathBuf {
        let path = self.inside(&self.daemon.root().join("data/filler"));
        let mut file = fs::File::create(&path).unwrap();
        let full = std::io::copy(&mut std::io::repeat(7), &mut file).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        path
    }
}

impl Drop for Cramped {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Creates images of noise, which cannot be compressed: 750 kB each.
fn pictures(directory: &Path, count: u32) -> PathBuf {
    fs::create_dir(directory).unwrap();
    let mut state = 1_u32;
    for number in 0..count {
        let picture = image::RgbImage::from_fn(500, 500, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [_, b, c, d] = state.to_le_bytes();
            image::Rgb([b, c, d])
        });
        picture
            .save(directory.join(format!("{number:02}.bmp")))
            .unwrap();
    }
    directory.to_owned()
}

/// Imports a directory and returns the errors.
fn import(daemon: &TestDaemon, path: &Path) -> Vec<String> {
    let mut events = daemon.events("image_processed,image_error,processing_complete");
    daemon
        .client()
        .post("/images", &json!({ "paths": [path] }))
        .ok();
    let mut errors = Vec::new();
    loop {
        let (kind, data) = events.next();
        match kind.as_str() {
            "image_error" => errors.push(data["error"].as_str().unwrap().to_owned()),
            "processing_complete" => return errors,
            _ => {}
        }
    }
}

fn images(daemon: &TestDaemon) -> Vec<Value> {
    daemon.client().get("/images?per_page=200").ok()["data"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn import_on_a_full_disk_leaves_nothing_behind() {
    let Some(cramped) = Cramped::new("an import on a full disk") else {
        return;
    };
    let daemon = &cramped.daemon;
    let filler = cramped.inside(&daemon.root().join("data/filler"));
    fs::write(&filler, vec![7; 512 << 10]).unwrap();
    let errors = import(daemon, &pictures(&daemon.root().join("many"), 12));
    let home = daemon.images().display().to_string();
    let file = format!("cannot write {home}: No space left on device");
    // The row may be what did not fit.
    let expected = [&file, "the database cannot be written: its disk is full"];
    for error in &errors {
        assert!(expected.contains(&error.as_str()), "{error}");
    }
    let taken = images(daemon);
    assert_eq!(taken.len() + errors.len(), 12);
    assert!(
        !taken.is_empty() && !errors.is_empty(),
        "{} taken",
        taken.len()
    );
    let library = cramped.inside(&daemon.images());
    let files = || fs::read_dir(&library).unwrap().count();
    assert_eq!(files(), taken.len());
    for image in &taken {
        let path = cramped.inside(Path::new(image["path"].as_str().unwrap()));
        assert_eq!(fs::metadata(path).unwrap().len(), image["file_size"]);
    }

    // Deletions and imports succeed again once there is free space.
    fs::remove_file(&filler).unwrap();
    let ids: Vec<&Value> = taken.iter().map(|image| &image["id"]).collect();
    let body = json!({ "ids": ids }).to_string();
    let gone = daemon
        .client()
        .send("DELETE", "/images", "", body.as_bytes())
        .ok();
    assert_eq!(gone["deleted"], taken.len());
    let two = pictures(&daemon.root().join("two"), 2);
    assert_eq!(import(daemon, &two), [""; 0]);
    assert_eq!((images(daemon).len(), files()), (2, 2));
}

#[test]
fn full_disk_refuses_new_rows_and_keeps_existing_ones() {
    let Some(cramped) = Cramped::new("rows on a full disk") else {
        return;
    };
    let client = cramped.daemon.client();
    let make = |number: u32| -> Answer {
        client.post(
            "/folders",
            &json!({ "name": format!("{number} {}", "x".repeat(200)) }),
        )
    };
    (0..10).for_each(|number| drop(make(number).ok()));
    let filler = cramped.fill();
    // Rows still fit into pages that the database has already.
    let refused = (10..2000)
        .map(make)
        .find(|answer| answer.status != 201)
        .expect("never full");
    let error = refused.fails(500)["error"].clone();
    assert_eq!(error, "the database cannot be written: its disk is full");
    client.get("/healthz").ok();
    let count = || {
        client.get("/folders").ok()["data"]
            .as_array()
            .unwrap()
            .len()
    };
    let before = count();
    assert!(before >= 10);

    fs::remove_file(filler).unwrap();
    assert_eq!(make(5000).status, 201);
    assert_eq!(count(), before + 1);
}

#[test]
fn files_that_cannot_be_removed_are_reported() {
    let Some(cramped) = Cramped::new("a library that becomes read-only") else {
        return;
    };
    let daemon = &cramped.daemon;
    assert_eq!(
        import(daemon, &pictures(&daemon.root().join("two"), 2)),
        [""; 0]
    );
    let folder = daemon
        .client()
        .post("/folders", &json!({ "name": "x" }))
        .ok()["id"]
        .clone();
    let listed = images(daemon);
    let (alone, inside) = (&listed[0], &listed[1]);
    let body = json!({ "image_ids": [inside["id"]], "folder_id": folder });
    daemon.client().post("/folders/move-images", &body).ok();
    let library = daemon.images();
    let mount = |line: &str| {
        let mut command = daemon.command("nsenter");
        command.args([
            "--target",
            &cramped.child.id().to_string(),
            "--user",
            "--mount",
        ]);
        let script = format!("mount {line} \"$0\"");
        command
            .args(["--preserve-credentials", "sh", "-c", &script])
            .arg(&library);
        assert!(command.status().unwrap().success(), "{line}");
    };
    mount("--bind \"$0\"");
    mount("-o remount,bind,ro");
    let body = json!({ "ids": [alone["id"]] }).to_string();
    let answer = daemon
        .client()
        .send("DELETE", "/images", "", body.as_bytes());
    let whole = format!("/folders/{folder}?mode=delete_all");
    for (answer, image) in [(answer, alone), (daemon.client().delete(&whole), inside)] {
        let answer = answer.ok();
        let path = image["path"].as_str().unwrap();
        assert_eq!(answer["files_kept"], json!([path]), "{answer}");
        let warning = format!("cannot remove {path}: Read-only file system");
        assert_eq!(answer["warnings"], json!([warning]));
    }
    assert!(images(daemon).is_empty());
    let kept = fs::read_dir(cramped.inside(&library)).unwrap().count();
    assert_eq!(kept, 2);
}
