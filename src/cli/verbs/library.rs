//! `murald library` and `murald watch`: the database, missing images, watched directories.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::call::Call;
use super::super::columns::{View, column, items, more, of, text};
use super::super::connection::{Connection, RequestPath};
use super::super::next::{Next, REPORT, RESTORED, Report};
use super::super::request::paths;
use super::super::table::{Cell, CellStyle};
use super::super::template::written;
use super::super::verb::{Argument, Flag, Group, Kind, Run, Verb};
use super::super::{Error, edit_lock};
use super::config;

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Library", verbs: &[
    Verb::of(&["library", "check"], "Check the database for damage (works without a daemon)",
        Run::Main(|call, _| {
            Ok(Some(Next::CheckDatabase(config::file(call)?, Report::of(call))))
        }))
        .shows(&[&REPORT])
        .help("Reads the whole database and changes nothing; the daemon may be running. Exits with 1 \
               if the database is damaged. It is not an error if there is no database \
               yet."),
    Verb::of(&["library", "restore"], "Restore the database from a backup",
        Run::Main(|call, _| {
            let backup = call.text("FILE").map(PathBuf::from);
            Ok(Some(Next::RestoreDatabase(config::file(call)?, backup, Report::of(call))))
        }))
        .takes(&[Argument::optional("FILE", Kind::File, "Backup to restore (default: the newest \
               intact one)")])
        .shows(&[&RESTORED])
        .help("    murald stop; murald library restore && murald start\n\n\
               The daemon backs up the database with the first change of a day and keeps three \
               backups, which \"library check\" lists. Later changes are lost, but pictures that \
               were imported later are imported again at \
               the next start. The old database is kept beside the new one. A file that is not an \
               intact murald database is refused, and nothing is changed. Exits \
               with 75 if the daemon is running."),
    Verb::send(&["library", "purge-missing"], "Remove images whose files are missing",
        "POST /library/purge-missing", &[]).shows(&[&PURGED])
        .help("If more than a fifth of the files, and more than twenty, are missing at startup, their \
               images are kept because the disk may be unmounted. This command removes them from the \
               library, with their tags and playlist entries. Files that come back are imported as \
               new images, without their tags, at the next start."),
]};

#[rustfmt::skip]
pub(super) const WATCHING: Group = Group { title: "Watched directories", verbs: &[
    Verb::change(&["watch", "add"], "Keep the library in sync with a directory",
        "PUT /library/watch", add)
        .takes(&[Argument::some("DIR", Kind::Directory, "Its path")]).shows(&[&ADDED]).starting()
        .help("Pictures that are added to the directory or its subdirectories are added to the \
               library; deleted ones are removed. The files are used where they are and not changed; \
               with `library.in_place` set to false they are copied. Starts the daemon if it is not \
               running."),
    Verb::get(&["watch", "list"], "List the watched directories",
        "GET /library/watch").shows(&[&WATCHED]),
    Verb::change(&["watch", "remove"], "Stop watching a directory", "PUT /library/watch", remove)
        .takes(&[Argument::some("DIR", Kind::Directory, "The path, as in the list")])
        .flags(&[Flag::switch("--forget", "Also remove its images from the library; the files stay")])
        .shows(&[&WATCHED])
        .help("Without --forget, its images stay in the library."),
    Verb::send(&["library", "scan"], "Rescan all watched directories", "POST /library/scan", &[])
        .shows(&[&View::says("POST /library/scan", &[more("status directories")], "looking")])
        .help("Necessary if the kernel does not report changes, as on network disks. Returns at \
               once."),
]};

const PURGED: View =
    View::says("POST /library/purge-missing", &[more("purged")], "{purged#image} removed");
const WATCHED: View = View::table(
    "LibraryWatch",
    &[
        column("DIRECTORY", "path"),
        of("=STATE", "", |one, _| {
            let look = if one["state"] == "watched" { CellStyle::Plain } else { CellStyle::Bad };
            Some(Cell::value(&one["state"]).look(look))
        }),
        column(">IMAGES", "images"),
        column("MESSAGE", "message"),
        more("watch in_place watch_folders"),
    ],
    "no watched directories; add one with `murald watch add DIR`",
)
.within("watch");

const ADDED: View = WATCHED.showing(|call, stdout, watched| {
    let is_missing = |path: &&String| Path::new(path).try_exists().is_ok_and(|exists| !exists);
    for path in paths(call, "DIR")?.iter().filter(is_missing) {
        stdout.note(format!("{path} does not exist; murald will watch it when it does"))?;
    }
    WATCHED.people(call, stdout, watched)
});

fn add(call: &Call, watched: Value) -> Result<Value, Error> {
    let watched = items(&watched, "watch");
    let mut all: Vec<String> = watched.iter().map(|one| text(one, "path")).collect();
    for path in paths(call, "DIR")? {
        // The daemon reports anything else that is wrong.
        if std::fs::metadata(&path).is_ok_and(|found| !found.is_dir()) {
            return Err(Error::refused(format!("{path} is not a directory")));
        }
        if !watched.iter().any(|one| is_at(one, &path)) && !all.contains(&path) {
            all.push(path);
        }
    }
    Ok(json!({ "watch": all }))
}

fn remove(call: &Call, watched: Value) -> Result<Value, Error> {
    let mut left: Vec<&Value> = items(&watched, "watch").iter().collect();
    for (word, path) in call.all("DIR").into_iter().zip(paths(call, "DIR")?) {
        let before = left.len();
        left.retain(|one| one["path"] != *word && !is_at(one, &path));
        if left.len() == before {
            return Err(Error::refused(format!("{} is not watched", written(word)))
                .hint("`murald watch list` lists the watched directories"));
        }
    }
    let mut body = json!({ "watch": left.iter().map(|one| &one["path"]).collect::<Vec<_>>() });
    if call.has("--forget") {
        body["forget"] = true.into();
    }
    Ok(body)
}

/// Whether a watched directory has this path, with or without its links resolved.
fn is_at(watched: &Value, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["path", "directory"].iter().any(|field| text(watched, field).trim_end_matches('/') == path)
}

/// Watches a directory, unless one above it is watched.
pub(super) fn ensure(connection: &Connection, path: &str) -> Result<(), Error> {
    let place = RequestPath::new(&[&"library", &"watch"]);
    edit_lock::hold(connection, || {
        let watched: Value = connection.get(&place)?.read()?;
        let watched = items(&watched, "watch");
        let mut directories = watched.iter().filter_map(|one| one["directory"].as_str());
        if directories.any(|directory| Path::new(path).starts_with(directory)) {
            return Ok(());
        }
        let mut paths: Vec<String> = watched.iter().map(|one| text(one, "path")).collect();
        paths.push(path.to_owned());
        connection.ask("PUT", &place, Some(&json!({ "watch": paths }))).map(drop)
    })
}
