//! `murald watch`: directories that the daemon watches.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::edit_lock;
use super::super::error::Exit;
use super::super::reference::travelling;
use super::super::request::{Record, Request};
use super::super::stdout::Stdout;
use super::super::table::{Cell, CellStyle, Table};
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use crate::wire::{LibraryWatch, WatchState};

pub(super) const GROUP: Group = Group {
    title: "Watched directories",
    verbs: &[
        Verb::new(&["watch", "add"], "Have the pictures of a directory in the library", add)
            .arguments(&[Argument::some("DIR", Kind::Directory, "Its path")])
            .help(
                "Its pictures, and those in directories below it, are in the library as they come and go.\n\
                 They stay where they are, and nothing of yours is changed; `library.in_place false` in\n\
                 the configuration copies them instead. Starts the daemon if it is not running.",
            )
            .starting(),
        Verb::asking(&["watch", "list"], "List the watched directories", LIST),
        Verb::new(&["watch", "remove"], "Watch a directory no more", remove)
            .arguments(&[Argument::some("DIR", Kind::Directory, "Its path, as the list shows it")])
            .flags(&[Flag::switch(
                "--forget",
                "Also take its images out of the library; the files stay",
            )])
            .help("Without --forget its images stay in the library, and their files where they are."),
        Verb::asking(&["library", "scan"], "Look at all watched directories again", SCAN).help(
            "Only needed where the kernel cannot tell of changes, as on network disks, or allows no\n\
             more watches. Returns at once.",
        ),
    ],
};

const LIST: Request = Request::get("/library/watch").shows::<LibraryWatch>();
const SCAN: Request = Request::post("/library/scan", &[]).says("looking");

/// What is watched, as far as it is changed here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Watched {
    watch: Vec<Directory>,
}

#[derive(Deserialize)]
struct Directory {
    path: String,
    directory: Option<String>,
}

fn add(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let more = given(call)?;
    for path in &more {
        match std::fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                return Err(Error::refused(format!("{path} is not a directory")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                stdout.note(format!("{path} is not there; it is watched once it is"))?;
            }
            // Whatever else there is to say of it, the daemon says.
            _ => {}
        }
    }
    change(call, stdout, |watch| {
        let mut paths: Vec<String> = watch.iter().map(|one| one.path.clone()).collect();
        for path in more {
            if !watch.iter().any(|one| one.is(&path)) && !paths.contains(&path) {
                paths.push(path);
            }
        }
        Ok(json!({ "watch": paths }))
    })
}

/// Has a directory watched whose links lead to `real`, unless one above it is; returns whether that
/// is new.
pub(super) fn ensure(connection: &Connection, path: &str, real: &str) -> Result<bool, Error> {
    edit_lock::hold(connection, || {
        let watched: LibraryWatch = connection.get(&library_watch())?.read()?;
        if is_watched(&watched, real) {
            return Ok(false);
        }
        let mut paths: Vec<String> = watched.watch.into_iter().map(|one| one.path).collect();
        paths.push(path.to_owned());
        connection.put(&library_watch(), &json!({ "watch": paths }))?;
        Ok(true)
    })
}

/// Whether a directory is watched, or one above it.
fn is_watched(watched: &LibraryWatch, path: &str) -> bool {
    let mut directories = watched.watch.iter().filter_map(|one| one.directory.as_ref());
    directories.any(|directory| Path::new(path).starts_with(directory))
}

fn library_watch() -> RequestPath {
    RequestPath::new(&[&"library", &"watch"])
}

fn remove(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let words: Vec<String> =
        call.all("DIR").iter().filter_map(|v| v.as_str()).map(str::to_owned).collect();
    let given = given(call)?;
    change(call, stdout, |mut watch| {
        for (word, path) in words.iter().zip(given) {
            let before = watch.len();
            watch.retain(|one| one.path != *word && !one.is(&path));
            if watch.len() == before {
                return Err(Error::new(Exit::Refused, format!("{word} is not watched"))
                    .hint("`murald watch list` shows what is"));
            }
        }
        let paths: Vec<String> = watch.into_iter().map(|one| one.path).collect();
        let mut body = json!({ "watch": paths });
        if call.has("--forget") {
            body["forget"] = true.into();
        }
        Ok(body)
    })
}

/// Writes what `body` makes of the directories that are watched now, while no other command changes
/// them.
fn change(
    call: &Call,
    stdout: &mut Stdout,
    body: impl FnOnce(Vec<Directory>) -> Result<Value, Error>,
) -> Result<(), Error> {
    let connection = call.connect()?;
    let answer = edit_lock::hold(&connection, || {
        let Watched { watch } = connection.get(&library_watch())?.read()?;
        connection.put(&library_watch(), &body(watch)?)
    })?;
    stdout.show(&answer, |stdout, watched: LibraryWatch| table(stdout, watched))
}

/// Absolute: the daemon's directory is not ours.
fn given(call: &Call) -> Result<Vec<String>, Error> {
    let paths = call.all("DIR").into_iter().filter_map(Value::as_str);
    paths.map(|path| travelling(Path::new(path))).collect()
}

impl Directory {
    fn is(&self, path: &str) -> bool {
        let plain = |path: &str| path.trim_end_matches('/').to_owned();
        plain(&self.path) == plain(path)
            || self.directory.as_deref().is_some_and(|own| plain(own) == plain(path))
    }
}

impl Record for LibraryWatch {
    fn show(self, _: &Call, stdout: &mut Stdout) -> Result<(), Error> {
        table(stdout, self)
    }
}

fn table(stdout: &mut Stdout, watched: LibraryWatch) -> Result<(), Error> {
    if watched.watch.is_empty() {
        return stdout.note("no directory is watched; `murald watch add DIR` begins");
    }
    let mut table = Table::new(&["DIRECTORY", "=STATE", ">IMAGES", "MESSAGE"]);
    for one in watched.watch {
        let look = if one.state == WatchState::Watched { CellStyle::Plain } else { CellStyle::Bad };
        table.row([
            one.path.into(),
            Cell::from(one.state.as_str()).look(look),
            one.images.into(),
            one.message.unwrap_or_default().into(),
        ]);
    }
    stdout.table(&table)
}
