//! Lets the n-th system call of an operation fail, for every n until the operation needs no more calls.
//! Each time the answer must be a success or a plain failure, the daemon must go on serving, rows and
//! files must agree, and acknowledged changes must be there, also after `kill -9`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use serde_json::{Value, json};

use super::every;
use super::gate::Call;
use super::scene::{Scene, is_done, text};
use crate::web;

const ERRORS: [Errno; 5] = [
    Errno::NOSPC,
    Errno::IO,
    Errno::MFILE,
    Errno::NOMEM,
    Errno::INTR,
];

/// An operation under test. `prepare` runs while no call fails; `act` returns whether the operation was
/// done.
struct Operation {
    name: &'static str,
    prepare: fn(&mut Scene, u32) -> Value,
    act: fn(&Scene, &Value, &str) -> bool,
}

const OPERATIONS: [Operation; 6] = [
    Operation {
        name: "import",
        prepare: |scene, _| json!(scene.picture()),
        act: |scene, path, when| import(scene, path, when),
    },
    Operation {
        name: "rename",
        prepare: |_, round| json!({ "name": format!("name {round}"), "tags": [format!("{round}")] }),
        act: |scene, body, when| {
            let answer = scene
                .daemon
                .client()
                .patch(&format!("/images/{}", scene.kept), body);
            is_done(&answer, when)
        },
    },
    Operation {
        name: "delete",
        prepare: |scene, _| {
            let path = scene.picture();
            json!({ "ids": scene.daemon.import(&[&path]) })
        },
        act: |scene, body, when| {
            let body = body.to_string();
            let answer = scene
                .daemon
                .client()
                .send("DELETE", "/images", "", body.as_bytes());
            is_done(&answer, when)
        },
    },
    Operation {
        name: "playlist",
        prepare: |scene, round| {
            let items = vec![json!({ "image_id": scene.kept }); 1 + round as usize % 3];
            json!({ "name": format!("list {round}"), "images": items })
        },
        act: |scene, body, when| {
            let path = format!("/playlists/{}", scene.playlist);
            is_done(&scene.daemon.client().patch(&path, body), when)
        },
    },
    Operation {
        name: "settings",
        prepare: |_, round| json!({ "hooks": { "timeout_seconds": 10 + round % 50 } }),
        act: |scene, body, when| is_done(&scene.daemon.client().patch("/config", body), when),
    },
    Operation {
        name: "reset",
        prepare: |scene, round| {
            backups(scene)
                .iter()
                .for_each(|backup| fs::remove_file(backup).unwrap());
            let setting = json!({ "hooks": { "timeout_seconds": 10 + round % 50 } });
            scene.daemon.client().patch("/config", &setting).ok()
        },
        act: |scene, _, when| {
            let done = is_done(
                &scene.daemon.client().post("/config/reset", &json!({})),
                when,
            );
            let kept = backups(scene);
            assert!(kept.len() == 1 || !done, "{when}: {done}: {kept:?}");
            done
        },
    },
];

fn backups(scene: &Scene) -> Vec<PathBuf> {
    let entries = fs::read_dir(scene.daemon.config_file().parent().unwrap()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().contains(".bak"))
        .collect()
}

/// Imports a picture. Returns whether its event says that it was imported.
fn import(scene: &Scene, path: &Value, when: &str) -> bool {
    let mut events = scene
        .daemon
        .events("image_processed,image_error,processing_complete");
    let answer = scene
        .daemon
        .client()
        .post("/images", &json!({ "paths": [path] }));
    if !is_done(&answer, when) {
        return false;
    }
    let mut done = false;
    loop {
        let (kind, data) = events.next();
        match kind.as_str() {
            "image_processed" => done = true,
            "image_error" => assert_ne!(data["error"], "internal error", "{when}: {data}"),
            _ => return done,
        }
    }
}

/// Whether the kernel can fail this call with this error.
fn is_answer(call: &Call, error: Errno) -> bool {
    let writes = [
        "write",
        "writev",
        "pwrite64",
        "copy_file_range",
        "sendfile",
        "ftruncate",
    ];
    // Reads are included: decoding processes make these calls as well, and get no signals.
    let reads = ["pread64"];
    let opens = ["open", "openat"];
    let is = |names: &[&str]| names.contains(&call.name);
    match error {
        _ if is(&["fcntl", "flock"]) => {
            call.locks() && matches!(error, Errno::IO | Errno::NOMEM | Errno::INTR)
        }
        _ if is(&["mmap"]) => error == Errno::NOMEM,
        Errno::NOSPC => {
            let names = [
                "mkdir",
                "mkdirat",
                "rename",
                "renameat",
                "renameat2",
                "link",
                "linkat",
            ];
            is(&writes) || call.flushes() || is(&names) || is(&["fallocate"]) || call.creates()
        }
        Errno::MFILE => is(&opens),
        Errno::INTR => {
            is(&writes) || is(&reads) || is(&opens) || is(&["fallocate"]) || call.flushes()
        }
        _ => true,
    }
}

/// The number of calls so far, and the one that failed.
#[derive(Default)]
struct Count {
    calls: AtomicUsize,
    failed: Mutex<Option<String>>,
}

/// Lets the n-th call on a file of the test's directory fail.
fn fail(scene: &Scene, nth: usize, error: Errno) -> Arc<Count> {
    fail_of(scene, nth, error, is_answer)
}

/// The same, counting only the calls for which `counts` is true.
fn fail_of(
    scene: &Scene,
    nth: usize,
    error: Errno,
    counts: fn(&Call, Errno) -> bool,
) -> Arc<Count> {
    let count = Arc::new(Count::default());
    let (counted, root) = (Arc::clone(&count), scene.daemon.root().to_owned());
    scene.gate.keep(move |call| {
        let path = call.path().filter(|path| is_tried(path, &root))?;
        if !counts(call, error) || counted.calls.fetch_add(1, Ordering::Relaxed) + 1 != nth {
            return None;
        }
        let path = path.strip_prefix(&root).unwrap();
        *counted.failed.lock().unwrap() = Some(format!("{} {}", call.name, path.display()));
        Some(error.raw_os_error())
    });
    count
}

fn is_tried(path: &Path, root: &Path) -> bool {
    let kept: [PathBuf; 3] = ["data", "config", "cache"].map(|name| root.join(name));
    let source = path.parent() == Some(root) && path.extension().is_some_and(|end| end == "png");
    source || kept.iter().any(|kept| path.starts_with(kept))
}

fn try_all(operation: &Operation) {
    let mut scene = Scene::new();
    let (step, mut round) = (every(11), 0);
    for error in ERRORS {
        let (mut refused, mut nth, mut tried) = (0, 1, 0);
        loop {
            round += 1;
            let given = (operation.prepare)(&mut scene, round);
            let before = scene.holdings();
            let count = fail(&scene, nth, error);
            let when = format!("{} {error:?} {nth}", operation.name);
            let done = (operation.act)(&scene, &given, &when);
            scene.gate.open();
            let Some(failed) = count.failed.lock().unwrap().take() else {
                break;
            };
            tried += 1;
            let when = format!("{when}, {failed}");
            let after = scene.holdings();
            assert!(
                done != (after == before),
                "{when}: {done}\n{before:#?}\n{after:#?}"
            );
            // SQLite does not retry a flush that a signal interrupted: it treats that as a disk error.
            let by_sqlite = failed.contains("sync ") && failed.contains("/db");
            let asked_again = error == Errno::INTR && !by_sqlite;
            assert!(done || !asked_again, "{when}");
            refused += usize::from(!done);
            scene.agrees(&when);
            // With `MURALD_EVERY=1`, each failure is followed by a kill.
            if step == 1 || tried % 6 == 1 {
                scene.again();
                scene.agrees_wholly(&when);
                assert_eq!(scene.holdings(), after, "{when}, killed");
            }
            nth += step;
        }
        eprintln!(
            "{}: {error:?}: {tried} tried, {refused} refused",
            operation.name
        );
    }
    let log = scene.daemon.log();
    assert!(!log.contains("panicked"), "{log}");
}

/// A commit whose flush failed is in the database's log nevertheless; a kill must not bring it back.
#[test]
fn refused_deletion_stays_refused_after_a_kill() {
    let operation = &OPERATIONS[2];
    let mut scene = Scene::new();
    for nth in 1.. {
        let given = (operation.prepare)(&mut scene, 0);
        let count = fail_of(&scene, nth, Errno::IO, |call, _| call.flushes());
        let when = format!("flush {nth}");
        let done = (operation.act)(&scene, &given, &when);
        scene.gate.open();
        if count.failed.lock().unwrap().is_none() {
            assert!(nth > 1, "nothing was flushed");
            return;
        }
        let told = scene.holdings();
        scene.again();
        scene.agrees_wholly(&when);
        assert_eq!(scene.holdings(), told, "{when}: {done}");
    }
}

#[test]
fn file_that_cannot_be_removed_is_kept_and_reported() {
    let mut scene = Scene::new();
    let (path, twin) = (scene.picture(), scene.daemon.root().join("twin.png"));
    fs::copy(&path, &twin).unwrap();
    let murald = |words: &[&str]| scene.daemon.murald(words).output().unwrap();
    let [own, other] = [&path, &twin].map(|path| path.to_str().unwrap());
    for file in [own, other] {
        assert!(murald(&["import", "--in-place", file]).status.success());
    }
    let kept = path.clone();
    scene.gate.keep(move |call| {
        let is_it = call.name.starts_with("unlink") && call.path().as_ref() == Some(&kept);
        is_it.then_some(Errno::PERM.raw_os_error())
    });
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let output = murald(&["images", "delete", stem, "--files", "--forever", "--yes"]);
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    for part in [&format!("cannot remove {own}")[..], "1 file not deleted"] {
        assert!(told.contains(part), "{told} lacks {part}");
    }
    assert_eq!((path.exists(), twin.exists()), (true, false), "{told}");
    scene.gate.open();
    scene.again();
    scene.agrees_wholly("a file that was kept");
    let connection = rusqlite::Connection::open(scene.daemon.database()).unwrap();
    let notes = "SELECT count(*) FROM pending_file";
    let notes: i64 = connection.query_row(notes, [], |row| row.get(0)).unwrap();
    assert_eq!((notes, path.exists()), (0, true));
}

/// The host of web pages reads the manifest: if it were written before the row, it could grant what was
/// refused.
#[test]
fn refused_change_grants_a_page_nothing() {
    let mut scene = Scene::empty();
    scene.start(|_| None);
    let (client, root) = (scene.daemon.client(), web::package(&scene.daemon, "page"));
    let page = web::import(&scene.daemon, &root).ok();
    let path = format!("/images/{}", page["id"]);
    let granted = |image: &Value| {
        let manifest = fs::read(text(&image["web_meta"]["manifest_path"])).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let [row, file] = [&image["web_meta"], &manifest].map(|of| &of["capabilities"]["network"]);
        (row.clone(), file.as_bool().unwrap_or(false))
    };
    for renames in [true, false] {
        for nth in 1.. {
            let before = client.get(&path).ok();
            let network = !granted(&before).1;
            let mut body = json!({ "web_capabilities": { "network": network } });
            if renames {
                body["name"] = json!(format!("page {nth}"));
            }
            let count = fail_of(&scene, nth, Errno::IO, |call, _| call.changes());
            let when = format!("change {nth}, renames: {renames}");
            let done = is_done(&client.patch(&path, &body), &when);
            scene.gate.open();
            let Some(failed) = count.failed.lock().unwrap().take() else {
                break;
            };
            let after = client.get(&path).ok();
            let expected = json!(if done { network } else { !network });
            let (row, file) = granted(&after);
            assert_eq!(
                (&row, json!(file)),
                (&expected, expected.clone()),
                "{when}: {failed}"
            );
            assert!(done || after == before, "{when}: {failed}");
        }
    }
}

#[test]
fn import_survives_failing_calls() {
    try_all(&OPERATIONS[0]);
}

#[test]
fn rename_survives_failing_calls() {
    try_all(&OPERATIONS[1]);
}

#[test]
fn deletion_survives_failing_calls() {
    try_all(&OPERATIONS[2]);
}

#[test]
fn playlist_edit_survives_failing_calls() {
    try_all(&OPERATIONS[3]);
}

#[test]
fn settings_change_survives_failing_calls() {
    try_all(&OPERATIONS[4]);
}

#[test]
fn reset_survives_failing_calls() {
    try_all(&OPERATIONS[5]);
}
