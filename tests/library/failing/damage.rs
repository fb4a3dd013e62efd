//! Databases that are damaged in some two hundred ways. The daemon must refuse each with a remedy, or
//! serve the intact part with a warning. Nothing may panic or hang, no picture may be lost, and the
//! remedy must work.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use murald::internals::store::{Connection, Error, Store};
use serde_json::{Value, json};

use super::every;
use super::scene::{Scene, text};
use crate::desktop::wait_until;
use crate::support::{TestDaemon, end_of};

const PICTURES: u32 = 12;
const PAGE: usize = 4096;

/// The database file and its write-ahead log.
#[derive(Clone)]
struct Files {
    base: Vec<u8>,
    log: Vec<u8>,
}

enum Kind {
    /// Changes bytes of the files; the number says where.
    Bytes(fn(&mut Files, usize), usize),
    /// Runs SQL on the database.
    Sql(String),
    /// Puts something else in its place.
    Else(fn(&Path)),
}

struct Damage {
    name: String,
    kind: Kind,
}

fn bytes(
    name: &str,
    change: fn(&mut Files, usize),
    at: impl IntoIterator<Item = usize>,
) -> Vec<Damage> {
    let one = |at| Damage {
        name: format!("{name} {at}"),
        kind: Kind::Bytes(change, at),
    };
    at.into_iter().map(one).collect()
}

/// All damages; `pages` is the size of the database, `log` the size of its log in bytes.
fn all(pages: usize, log: usize, tables: &[String]) -> Vec<Damage> {
    let end = pages.min(36);
    let mut all = Vec::new();
    all.extend(bytes(
        "cut after page",
        |f, n| f.base.truncate(n * PAGE),
        0..end,
    ));
    all.extend(bytes(
        "cut within page",
        |f, n| f.base.truncate(n * PAGE + 1234),
        0..end / 2,
    ));
    all.extend(bytes(
        "header flipped at",
        |f, n| f.base[n] ^= 0xff,
        (0..100).step_by(3),
    ));
    all.extend(bytes(
        "zeros in page",
        |f, n| f.base[n * PAGE..][..PAGE].fill(0),
        0..end,
    ));
    all.extend(bytes(
        "rubbish in page",
        |f, n| f.base[n * PAGE..][..PAGE].fill(0xa5),
        0..end,
    ));
    let flips = |f: &mut Files, n: usize| {
        let mut at = n as u64 + 1;
        for _ in 0..20 {
            at = at
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let place = at / 65_536 % f.base.len() as u64;
            f.base[place as usize] ^= 1 << (at % 8);
        }
    };
    all.extend(bytes("flipped bits, seed", flips, 0..24));
    all.extend(bytes(
        "log flipped at",
        |f, n| f.log[n] ^= 0xff,
        (0..log).step_by(log / 12),
    ));
    all.extend(bytes(
        "log cut at",
        |f, n| f.log.truncate(n),
        (0..log).step_by(log / 12),
    ));
    all.extend(bytes(
        "log without its database",
        |f, _| f.base.clear(),
        [0],
    ));
    all.extend(bytes("log of rubbish", |f, _| f.log.fill(0x5a), [0]));
    let sql = |name: String, sql: String| Damage {
        name,
        kind: Kind::Sql(sql),
    };
    all.push(sql(
        "newer version".into(),
        "PRAGMA user_version = 99".into(),
    ));
    all.push(sql(
        "negative version".into(),
        "PRAGMA user_version = -1".into(),
    ));
    all.push(sql(
        "version of nothing".into(),
        "PRAGMA user_version = 0".into(),
    ));
    all.push(sql(
        "older than it is".into(),
        "PRAGMA user_version = 3".into(),
    ));
    for table in tables {
        let drop = format!("PRAGMA foreign_keys = OFF; DROP TABLE \"{table}\"");
        all.push(sql(format!("no table {table}"), drop));
        all.push(sql(
            format!("{table} under another name"),
            format!("ALTER TABLE \"{table}\" RENAME TO x"),
        ));
    }
    for (name, kind) in [
        (
            "text",
            (|at| fs::write(at, "no database\n").unwrap()) as fn(&Path),
        ),
        ("one byte", |at| fs::write(at, "S").unwrap()),
        ("directory", |at| fs::create_dir(at).unwrap()),
        ("link to nowhere", |at| {
            std::os::unix::fs::symlink("/nowhere/x", at).unwrap()
        }),
        ("pipe", |at| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
            rustix::fs::mknodat(rustix::fs::CWD, at, kind, mode, 0).unwrap();
        }),
        ("another program's", |at| {
            let sql =
                "CREATE TABLE image (x); CREATE TABLE moz_places (url); PRAGMA user_version = 7";
            Connection::open(at).unwrap().execute_batch(sql).unwrap();
        }),
    ] {
        all.push(Damage {
            name: name.to_owned(),
            kind: Kind::Else(kind),
        });
    }
    all
}

/// A test daemon in good order, whose database is damaged again and again.
struct Patient {
    daemon: TestDaemon,
    files: Files,
    tables: Vec<String>,
    /// The contents of the pictures' files.
    pictures: BTreeSet<Vec<u8>>,
}

impl Patient {
    fn new() -> Self {
        let mut scene = Scene::empty();
        scene.daemon.start();
        let paths: Vec<PathBuf> = (0..PICTURES).map(|_| scene.picture()).collect();
        let ids = scene
            .daemon
            .import(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let client = scene.daemon.client();
        for id in &ids {
            let change = json!({ "tags": [format!("tag {id} {}", "x".repeat(200))] });
            client.patch(&format!("/images/{id}"), &change).ok();
        }
        scene.make_list(&ids);
        let mut daemon = scene.daemon;
        assert_eq!(daemon.stop(), Some(0));
        // An intact backup of the current state.
        let backups = daemon.database().with_file_name("backup");
        fs::remove_dir_all(&backups).ok();
        daemon.start();
        daemon
            .client()
            .post("/folders", &json!({ "name": "last" }))
            .ok();
        wait_until("the backup", || {
            let all = fs::read_dir(&backups).into_iter().flatten().flatten();
            all.into_iter()
                .any(|e| e.file_name().to_string_lossy().starts_with("murald-"))
        });
        daemon
            .client()
            .post("/folders", &json!({ "name": "in the log" }))
            .ok();
        daemon.kill9();
        let log = daemon.database().with_file_name("murald.sqlite3-wal");
        let files = Files {
            base: fs::read(daemon.database()).unwrap(),
            log: fs::read(log).unwrap(),
        };
        let store = Store::open(&daemon.database()).unwrap();
        let tables = store.read(|c| -> Result<Vec<String>, Error> {
            let sql =
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
            let mut statement = c.prepare(sql)?;
            let names = statement.query_map([], |row| row.get(0))?;
            Ok(names.collect::<Result<_, _>>()?)
        });
        let pictures = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        Self {
            daemon,
            files,
            tables: tables.unwrap(),
            pictures,
        }
    }

    /// Removes the database with all its files, and puts the damaged one in its place.
    fn put(&self, kind: &Kind) {
        let at = self.daemon.database();
        let log = at.with_file_name("murald.sqlite3-wal");
        for entry in fs::read_dir(at.parent().unwrap()).unwrap().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            if !name.to_string_lossy().starts_with("murald.sqlite3") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all(path).unwrap()
            } else {
                fs::remove_file(path).unwrap()
            }
        }
        let mut files = self.files.clone();
        match kind {
            Kind::Bytes(change, place) => change(&mut files, *place),
            Kind::Else(make) => return make(&at),
            Kind::Sql(_) => {}
        }
        fs::write(&at, &files.base).unwrap();
        fs::write(log, &files.log).unwrap();
        if let Kind::Sql(sql) = kind {
            Connection::open(&at).unwrap().execute_batch(sql).unwrap();
        }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = self.daemon.murald(words);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The output is too short to fill the pipe; `end_of` kills a program that hangs.
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let status = end_of(child);
        let read = |from| std::io::read_to_string(from).unwrap().into_bytes();
        let stderr = std::io::read_to_string(stderr).unwrap().into_bytes();
        Output {
            status,
            stdout: read(stdout),
            stderr,
        }
    }

    #[track_caller]
    fn has_all_pictures(&self, when: &str) {
        let entries = fs::read_dir(self.daemon.images()).unwrap().flatten();
        let found: BTreeSet<Vec<u8>> = entries.map(|e| fs::read(e.path()).unwrap()).collect();
        let lost = self.pictures.difference(&found).count();
        assert_eq!(lost, 0, "{when}: pictures are lost");
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Fate {
    Refused,
    /// Served with a warning, or with errors that say so.
    Told,
    /// Served as if nothing were wrong.
    Whole,
}

/// Starts the daemon; `None` if it refuses the database.
fn started(patient: &Patient, when: &str) -> Option<Child> {
    let socket = patient.daemon.socket();
    fs::remove_file(&socket).ok();
    let errors = fs::File::create(patient.daemon.root().join("stderr")).unwrap();
    let mut command = patient.daemon.murald(&["start"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap();
    let mut ended = None;
    wait_until(&format!("{when}: the daemon starts or exits"), || {
        ended = child.try_wait().unwrap();
        ended.is_some() || socket.exists()
    });
    let told = fs::read_to_string(patient.daemon.root().join("stderr")).unwrap();
    assert!(!told.contains("panicked"), "{when}: {told}");
    let Some(status) = ended else {
        return Some(child);
    };
    assert_eq!(status.code(), Some(70), "{when}: {told}");
    let ways = [
        "library restore",
        "start the newer murald",
        "cannot open the database",
    ];
    assert!(ways.iter().any(|way| told.contains(way)), "{when}: {told}");
    None
}

/// Checks what clients of a started daemon see, and whether all data is there.
fn served(patient: &Patient, when: &str) -> Fate {
    let client = patient.daemon.client();
    client.get("/healthz").ok();
    let ask = |path: &str| -> Result<Value, String> {
        let answer = client.get(path);
        match answer.status {
            200 => Ok(answer.ok()),
            _ => Err(answer.fails(500).to_string()),
        }
    };
    let warned = || ask("/info").is_ok_and(|info| info["warnings"][0].is_string());
    let is_whole = || {
        let images = ask("/images?per_page=200").unwrap_or_default();
        let images = images["data"].as_array().cloned().unwrap_or_default();
        let has_tags = |image: &Value| {
            let first = &image["tags"][0];
            first.is_string() && text(first).starts_with("tag ")
        };
        let lists = ask("/playlists").unwrap_or_default();
        images.len() == PICTURES as usize
            && images.iter().all(has_tags)
            && lists[0]["images"].as_array().map(Vec::len) == Some(PICTURES as usize)
    };
    let refuses = || {
        [
            "/images",
            "/playlists",
            "/folders",
            "/images/history",
            "/images/tags",
        ]
        .iter()
        .any(|path| ask(path).is_err())
    };
    let mut fate = None;
    wait_until(&format!("{when}: all data or a warning"), || {
        fate = match (is_whole(), warned() || refuses()) {
            (_, true) => Some(Fate::Told),
            (true, false) => Some(Fate::Whole),
            _ => None,
        };
        fate.is_some()
    });
    // Writes are done or refused as well.
    let write = client.patch("/images/1", &json!({ "tags": ["tag new"] }));
    assert!(
        [200, 404, 500].contains(&write.status),
        "{when}: {}",
        write.text()
    );
    fate.unwrap()
}

#[test]
fn damaged_databases_are_refused_or_served_with_a_warning() {
    let patient = Patient::new();
    let (pages, log) = (patient.files.base.len() / PAGE, patient.files.log.len());
    let all = all(pages, log, &patient.tables);
    assert!(all.len() >= 200, "{} of {pages} pages", all.len());
    let mut fates = Vec::new();
    for Damage { name, kind } in all.iter().step_by(every(29)) {
        patient.put(kind);
        let looked = patient.run(&["library", "check"]);
        let told = String::from_utf8_lossy(&looked.stderr);
        assert!(
            [0, 1, 70].contains(&looked.status.code().unwrap()),
            "{name}: {told}"
        );
        assert!(!told.contains("panicked"), "{name}: {told}");
        patient.put(kind);
        let fate = match started(&patient, name) {
            None => Fate::Refused,
            Some(child) => {
                let fate = served(&patient, name);
                patient.daemon.client().post("/shutdown", &json!({})).ok();
                assert_eq!(end_of(child).code(), Some(0), "{name}");
                fate
            }
        };
        eprintln!("{name}: {fate:?}");
        patient.has_all_pictures(name);
        fates.push(fate);
        if fate == Fate::Refused {
            patient.put(kind);
            let restored = patient.run(&["library", "restore"]);
            let told = String::from_utf8_lossy(&restored.stderr);
            assert_eq!(restored.status.code(), Some(0), "{name}: {told}");
            let child = started(&patient, name).unwrap_or_else(|| panic!("{name}: not restored"));
            assert_eq!(served(&patient, name), Fate::Whole, "{name}: restored");
            patient.daemon.client().post("/shutdown", &json!({})).ok();
            end_of(child);
            patient.has_all_pictures(name);
        }
    }
    let log = patient.daemon.log();
    assert!(!log.contains("panicked"), "{log}");
    let count = |of: Fate| fates.iter().filter(|fate| **fate == of).count();
    let (refused, told, whole) = (count(Fate::Refused), count(Fate::Told), count(Fate::Whole));
    eprintln!(
        "{} databases: {refused} refused, {told} served with a warning, {whole} whole",
        fates.len()
    );
}
