//! Deletions when the file at a path is not the one that murald knows: only the file that was meant is
//! ever removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rusqlite::TransactionBehavior;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::{Walls, picture};
use crate::desktop::wait_until;
use crate::support::PATIENCE;

/// Changes `walls/NAME.png` before the call. `letters` is another file, which must not be touched.
type Before = fn(&Walls, &Path);

/// The deletion of a watched picture that murald knows.
struct Case {
    what: &'static str,
    before: Before,
    /// Fields of `DELETE /images` beside `ids`.
    call: Value,
    status: u16,
    /// Removed paths, relative to the test's directory and without the trash.
    removed: &'static [&'static str],
}

fn case(
    what: &'static str,
    before: Before,
    call: Value,
    status: u16,
    removed: &'static [&'static str],
) -> Case {
    Case {
        what,
        before,
        call,
        status,
        removed,
    }
}

fn cases() -> Vec<Case> {
    let (files, trash) = (json!({ "files": true }), json!({ "trash": true }));
    vec![
        case("a", |_, _| {}, files.clone(), 200, &["walls/a.png"]),
        case("b", |_, _| {}, json!({}), 200, &[]),
        case("c", |_, _| {}, trash.clone(), 200, &["walls/c.png"]),
        case(
            "d gone",
            |_, at| fs::remove_file(at).unwrap(),
            files.clone(),
            409,
            &[],
        ),
        case(
            "e gone",
            |_, at| fs::remove_file(at).unwrap(),
            trash.clone(),
            409,
            &[],
        ),
        case(
            "f directory",
            |_, at| directory(at),
            files.clone(),
            409,
            &[],
        ),
        case(
            "g directory",
            |_, at| directory(at),
            trash.clone(),
            409,
            &[],
        ),
        case(
            "h other content",
            |_, at| replace(at, &picture(900)),
            files.clone(),
            409,
            &[],
        ),
        case(
            "i other content",
            |_, at| replace(at, &picture(901)),
            trash.clone(),
            409,
            &[],
        ),
        case(
            "j text",
            |_, at| replace(at, b"a letter"),
            files.clone(),
            409,
            &[],
        ),
        case(
            "k same content",
            |_, at| replace(at, &fs::read(at).unwrap()),
            files.clone(),
            409,
            &[],
        ),
        case(
            "l same size and time",
            |_, at| disguise(at),
            files.clone(),
            409,
            &[],
        ),
        case(
            "m rewritten",
            |_, at| fs::write(at, picture(902)).unwrap(),
            files.clone(),
            409,
            &[],
        ),
        case("n link", link, files.clone(), 409, &[]),
        case("o pipe", |_, at| pipe(at), files.clone(), 409, &[]),
        case(
            "p/p other directory",
            |walls, at| lead(walls, at, "other"),
            files.clone(),
            409,
            &[],
        ),
        case(
            "q/q other directory",
            |walls, at| lead(walls, at, "other"),
            trash,
            409,
            &[],
        ),
        case(
            "r/r gone with its directory",
            |_, at| file_above(at),
            files.clone(),
            409,
            &[],
        ),
        // Changed, but still the same file.
        case(
            "aa other mode",
            |_, at| make_executable(at),
            files.clone(),
            200,
            &["walls/aa.png"],
        ),
        case(
            "cc other time",
            |_, at| {
                let file = fs::File::options().write(true).open(at).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                    .unwrap();
            },
            files.clone(),
            200,
            &["walls/cc.png"],
        ),
        case("bb two names", name_twice, files, 200, &["walls/bb.png"]),
    ]
}

fn name(case: &Case) -> String {
    format!("{}.png", case.what.split(' ').next().unwrap())
}

fn directory(at: &Path) {
    fs::remove_file(at).unwrap();
    fs::create_dir(at).unwrap();
    fs::write(at.join("letters"), "x").unwrap();
}

fn replace(at: &Path, content: &[u8]) {
    let new = at.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, at).unwrap();
}

/// Puts another file there, with the same size and modification time.
fn disguise(at: &Path) {
    let meta = fs::metadata(at).unwrap();
    replace(at, &vec![7; meta.len() as usize]);
    let file = fs::File::options().write(true).open(at).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
}

fn link(walls: &Walls, at: &Path) {
    fs::remove_file(at).unwrap();
    symlink(walls.daemon.root().join("letters"), at).unwrap();
}

fn pipe(at: &Path) {
    fs::remove_file(at).unwrap();
    mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// Replaces the directory by a link to one that has another file of that name.
fn lead(walls: &Walls, at: &Path, to: &str) {
    let (directory, to) = (at.parent().unwrap(), walls.daemon.root().join(to));
    fs::create_dir_all(&to).unwrap();
    fs::write(to.join(at.file_name().unwrap()), "x").unwrap();
    fs::rename(directory, directory.with_extension("moved")).unwrap();
    symlink(to, directory).unwrap();
}

fn file_above(at: &Path) {
    let directory = at.parent().unwrap();
    fs::rename(directory, directory.with_extension("moved")).unwrap();
    fs::write(directory, "x").unwrap();
}

fn make_executable(at: &Path) {
    fs::set_permissions(at, fs::Permissions::from_mode(0o700)).unwrap();
}

fn name_twice(walls: &Walls, at: &Path) {
    fs::hard_link(at, walls.daemon.root().join("twice.png")).unwrap();
}

/// All paths below the test's directory, except those that murald writes by itself.
fn all(walls: &Walls) -> BTreeSet<PathBuf> {
    let root = walls.daemon.root();
    let (mut found, mut pending) = (BTreeSet::new(), vec![root.to_owned()]);
    let own = [
        "run",
        "cache",
        "config",
        "notify",
        "data/Trash",
        "data/murald/db",
    ];
    let own = own.map(|name| root.join(name));
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if own.contains(&path) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                pending.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned());
        }
    }
    found
}

impl Walls {
    /// The paths that a call removes; checks its status.
    #[track_caller]
    fn removes(&self, what: &str, path: &str, body: Option<&Value>, status: u16) -> Vec<String> {
        let before = all(self);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = self
            .daemon
            .client()
            .send("DELETE", path, "", body.as_bytes());
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        let after = all(self);
        assert!(after.is_subset(&before), "{what}: there is a new file");
        before
            .difference(&after)
            .map(|path| path.to_str().unwrap().to_owned())
            .collect()
    }

    /// Runs `work` while the database is locked, so that the daemon cannot record the new file before.
    fn unseen<T>(&self, work: impl FnOnce() -> T) -> T {
        let mut connection = rusqlite::Connection::open(self.daemon.database()).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        let held = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .unwrap();
        let done = work();
        held.rollback().unwrap();
        done
    }

    fn has_row(&self, id: i64) -> bool {
        let connection = rusqlite::Connection::open(self.daemon.database()).unwrap();
        let found = "SELECT count(*) FROM image WHERE id = ?1";
        connection
            .query_row(found, [id], |row| row.get::<_, i64>(0))
            .unwrap()
            == 1
    }

    fn change(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.daemon.database()).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

#[test]
fn only_the_known_file_is_deleted() {
    let names: Vec<String> = cases().iter().map(name).collect();
    let pictures: Vec<(&str, u32)> = names
        .iter()
        .map(String::as_str)
        .zip(1..)
        .chain([("s.png", 80), ("t.png", 81)])
        .collect();
    let mut walls = Walls::with(&pictures);
    let root = walls.daemon.root().to_owned();
    fs::write(root.join("letters"), "a letter").unwrap();
    let ids: Vec<i64> = names.iter().map(|name| walls.id(name)).collect();
    let (s, t) = (walls.id("s.png"), walls.id("t.png"));
    for ((case, name), id) in cases().iter().zip(&names).zip(&ids) {
        let mut body = case.call.clone();
        body["ids"] = json!([id]);
        let call = || {
            (case.before)(&walls, &walls.at(name));
            let removed = walls.removes(case.what, "/images", Some(&body), case.status);
            assert_eq!(removed, case.removed, "{}", case.what);
            assert_eq!(walls.has_row(*id), case.status == 409, "{}", case.what);
        };
        match case.status {
            200 => call(),
            _ => walls.unseen(call),
        }
    }
    let in_trash = || fs::read_dir(root.join("data/Trash/files")).unwrap().count();
    assert_eq!(in_trash(), 1);
    // If one of several files is not the known one, none is deleted.
    walls.unseen(|| {
        replace(&walls.at("t.png"), b"a letter");
        for how in ["files", "trash"] {
            let body = json!({ "ids": [s, t], how: true });
            assert_eq!(
                walls.removes("s and t", "/images", Some(&body), 409),
                [""; 0]
            );
        }
        let line = ["images", "delete", "t", "--files", "--forever", "--yes"];
        let output = walls.daemon.murald(&line).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            told.contains("t.png is no longer the file of the image"),
            "{told}"
        );
        assert_eq!(
            (output.status.code(), walls.at("t.png").exists()),
            (Some(1), true)
        );
    });
    assert_eq!(in_trash(), 1);
    copies(&mut walls, s);
}

/// The same for copies, and for a database with paths from elsewhere.
fn copies(walls: &mut Walls, in_place: i64) {
    let root = walls.daemon.root().to_owned();
    let sources: Vec<PathBuf> = ["u", "v", "w", "x", "y", "z"]
        .into_iter()
        .zip(90..)
        .map(|(name, number)| {
            let path = root.join(format!("{name}.png"));
            fs::write(&path, picture(number)).unwrap();
            path
        })
        .collect();
    let paths: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
    walls.daemon.import(&paths);
    let images = walls.daemon.images();
    let at = |name: &str| images.join(name);
    let id = |path: &&Path| {
        walls.id(at(path.file_name().unwrap().to_str().unwrap())
            .to_str()
            .unwrap())
    };
    let ids: Vec<i64> = paths.iter().map(id).collect();
    let one = |id: i64| json!({ "ids": [id] });
    let removed = walls.removes("a copy", "/images", Some(&one(ids[0])), 200);
    assert_eq!(removed, ["data/murald/images/u.png"]);
    directory(&at("v.png"));
    assert_eq!(
        walls.removes("a directory", "/images", Some(&one(ids[1])), 409),
        [""; 0]
    );
    link(walls, &at("w.png"));
    let removed = walls.removes("a link", "/images", Some(&one(ids[2])), 200);
    assert_eq!(removed, ["data/murald/images/w.png"]);
    let folder = walls
        .daemon
        .client()
        .post("/folders", &json!({ "name": "both" }))
        .ok()["id"]
        .clone();
    let both = json!({ "image_ids": [ids[3], in_place], "folder_id": folder });
    walls
        .daemon
        .client()
        .post("/folders/move-images", &both)
        .ok();
    let path = format!("/folders/{folder}?mode=delete_all");
    assert_eq!(
        walls.removes("a folder", &path, None, 200),
        ["data/murald/images/x.png"]
    );
    assert_eq!(walls.daemon.stop(), Some(0));
    let mine = root.join("mine");
    fs::create_dir_all(mine.join("deep")).unwrap();
    fs::write(mine.join("deep/index.html"), "x").unwrap();
    fs::write(mine.join("letter"), "x").unwrap();
    let mine = mine.to_str().unwrap();
    let (y, z) = (ids[4], ids[5]);
    walls.change(&format!(
        "UPDATE image SET path = '{mine}/letter', preview_path = '{mine}/letter' WHERE id = {y};
         UPDATE image SET path = '{mine}/deep/index.html', web_meta = json_object(
             'package_root', '{mine}/deep', 'manifest_path', '{mine}/deep/project.json',
             'entry_path', '{mine}/deep/index.html', 'title', '', 'description', '', 'author', '',
             'capabilities', json('{{}}'), 'wallpaper_config', json('{{}}')) WHERE id = {z};
         INSERT INTO pending_file (path) VALUES ('{mine}'), ('{mine}/letter');
         INSERT INTO rename VALUES ({y}, '{mine}/renamed', '{mine}/letter');"
    ));
    let before = all(walls);
    walls.daemon.start();
    wait_until("the notes are read", || {
        let connection = rusqlite::Connection::open(walls.daemon.database()).unwrap();
        let notes = "SELECT count(*) FROM pending_file WHERE path LIKE '%/mine%'";
        connection
            .query_row(notes, [], |row| row.get::<_, i64>(0))
            .unwrap()
            == 0
    });
    assert_eq!(before.difference(&all(walls)).next(), None, "a start");
    let name = json!({ "name": "renamed" });
    let renamed = walls.daemon.client().patch(&format!("/images/{y}"), &name);
    renamed.fails(404);
    for id in [y, z] {
        assert_eq!(
            walls.removes("a row from elsewhere", "/images", Some(&one(id)), 200),
            [""; 0]
        );
    }
}

#[test]
fn file_behind_a_link_in_a_watched_directory_is_not_deleted() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("sub/b.png", 2)]);
    // The watched directory itself may be a link.
    let real = walls.daemon.root().join("real");
    fs::rename(&walls.directory, &real).unwrap();
    symlink(&real, &walls.directory).unwrap();
    fs::rename(real.join("sub"), walls.daemon.root().join("moved")).unwrap();
    symlink(walls.daemon.root().join("moved"), real.join("sub")).unwrap();
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("sub/b.png", 2)]);
    let both = json!({ "ids": [walls.id("a.png"), walls.id("sub/b.png")], "files": true });
    assert_eq!(walls.removes("both", "/images", Some(&both), 409), [""; 0]);
    let one = json!({ "ids": [walls.id("a.png")], "files": true });
    assert_eq!(
        walls.removes("the one", "/images", Some(&one), 200),
        ["real/a.png"]
    );
}

#[test]
fn all_names_of_a_file_are_removed() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    for (name, link, how) in [("a.png", "a2.png", "files"), ("b.png", "b2.png", "trash")] {
        fs::hard_link(walls.at(name), walls.at(link)).unwrap();
        let id = walls.id(name);
        let path = format!("/images/{id}");
        let files = json!([walls.at(name), walls.at(link)]);
        let client = walls.daemon.client();
        wait_until("both names", || client.get(&path).ok()["files"] == files);
        let body = json!({ "ids": [id], "files": true, how: true });
        let answer = client.send("DELETE", "/images", "", body.to_string().as_bytes());
        assert_eq!(answer.ok(), json!({ "deleted": 1, "files": files }));
        assert!(!walls.at(name).exists() && !walls.at(link).exists());
    }
}
