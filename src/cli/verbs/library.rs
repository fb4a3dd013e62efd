//! `murald library` and `murald watch`: the database, missing images, watched directories.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::super::call::Call;
use super::super::columns::{View, column, more, of, text};
use super::super::connection::{Connection, Method, RequestPath};
use super::super::next::{REPORT, RESTORED};
use super::super::request::{paths, rewrite};
use super::super::stdout::Stdout;
use super::super::table::{Cell, CellStyle};
use super::super::verb::{Argument, Flag, Group, Kind, Task, Verb};
use super::super::{Error, edit_lock};

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Library", verbs: &[
    Verb::main(&["library", "check"], "Look for damage in the database (no daemon needed)",
        Task::CheckDatabase)
        .shows(&[&REPORT])
        .help("Looks at all of it, and changes nothing; the daemon may run meanwhile. Exits with 1 if\n\
               something is wrong; that there is no database yet is not."),
    Verb::main(&["library", "restore"], "Bring back the database from a backup", Task::RestoreDatabase)
        .takes(&[Argument::optional("FILE", Kind::File, "The backup, if not the newest sound one")])
        .shows(&[&RESTORED])
        .help("    murald stop; murald library restore && murald start\n\n\
               The daemon copies the database with the first change of a day and keeps three copies,\n\
               which \"library check\" lists. What changed since then is lost; pictures that were imported\n\
               are taken in again by the next start, as their files are still there. The database as it\n\
               was is kept beside it. A file whose tables are not murald's, or that has rows that cannot\n\
               be read, is refused, and nothing is changed. Exits with 75 while a daemon runs."),
    Verb::send(&["library", "purge-missing"], "Forget all images whose files are missing",
        "POST /library/purge-missing", &[]).shows(&[&PURGED])
        .help("Where over a fifth of the files and over twenty are missing at a start, their images are\n\
               kept, as their disk may only be away. This forgets them, with their tags and their places\n\
               in playlists. Files that return are simply there again."),
]};

#[rustfmt::skip]
pub(super) const WATCHING: Group = Group { title: "Watched directories", verbs: &[
    Verb::own(&["watch", "add"], "Have the pictures of a directory in the library", add)
        .takes(&[Argument::some("DIR", Kind::Directory, "Its path")]).shows(&[&WATCHED]).starting()
        .help("Its pictures, and those in directories below it, are in the library as they come and go.\n\
               They stay where they are, and nothing of yours is changed; `library.in_place false` in\n\
               the configuration copies them instead. Starts the daemon if it is not running."),
    Verb::get(&["watch", "list"], "List the watched directories", "GET /library/watch").shows(&[&WATCHED]),
    Verb::own(&["watch", "remove"], "Watch a directory no more", remove)
        .takes(&[Argument::some("DIR", Kind::Directory, "Its path, as the list shows it")])
        .flags(&[Flag::switch("--forget", "Also take its images out of the library; the files stay")])
        .shows(&[&WATCHED])
        .help("Without --forget its images stay in the library, and their files where they are."),
    Verb::send(&["library", "scan"], "Look at all watched directories again", "POST /library/scan", &[])
        .shows(&[&View::says("POST /library/scan", &[more("status directories")], "looking")])
        .help("Only needed where the kernel cannot tell of changes, as on network disks, or allows no\n\
               more watches. Returns at once."),
]};

const PURGED: View =
    View::says("POST /library/purge-missing", &[more("purged")], "{purged#image} forgotten");
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
    "no directory is watched; `murald watch add DIR` begins",
)
.within("watch");

fn place() -> RequestPath {
    RequestPath::new(&[&"library", &"watch"])
}

fn add(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let more = paths(call, "DIR")?;
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
    let answer = rewrite(call, Method::Put, &place(), |watched| {
        let watched = watched["watch"].as_array().cloned().unwrap_or_default();
        let mut all: Vec<String> = watched.iter().map(|one| text(one, "path")).collect();
        for path in more {
            if !watched.iter().any(|one| is_at(one, &path)) && !all.contains(&path) {
                all.push(path);
            }
        }
        Ok(json!({ "watch": all }))
    })?;
    WATCHED.show(call, stdout, &answer)
}

fn remove(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let words: Vec<&str> = call.all("DIR").into_iter().filter_map(Value::as_str).collect();
    let absolute = paths(call, "DIR")?;
    let answer = rewrite(call, Method::Put, &place(), |watched| {
        let mut left = watched["watch"].as_array().cloned().unwrap_or_default();
        for (word, path) in words.iter().zip(&absolute) {
            let before = left.len();
            left.retain(|one| text(one, "path") != **word && !is_at(one, path));
            if left.len() == before {
                return Err(Error::refused(format!("{word} is not watched"))
                    .hint("`murald watch list` shows what is"));
            }
        }
        let left: Vec<&Value> = left.iter().map(|one| &one["path"]).collect();
        let mut body = json!({ "watch": left });
        if call.has("--forget") {
            body["forget"] = true.into();
        }
        Ok(body)
    })?;
    WATCHED.show(call, stdout, &answer)
}

/// Whether a watched directory has this path, as it was written or where its links lead.
fn is_at(watched: &Value, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["path", "directory"].iter().any(|field| text(watched, field).trim_end_matches('/') == path)
}

/// Has a directory watched, unless one above it is.
pub(super) fn ensure(connection: &Connection, path: &str) -> Result<(), Error> {
    edit_lock::hold(connection, || {
        let watched: Value = connection.get(&place())?.read()?;
        let watched = watched["watch"].as_array().cloned().unwrap_or_default();
        let mut directories = watched.iter().filter_map(|one| one["directory"].as_str());
        if directories.any(|directory| Path::new(path).starts_with(directory)) {
            return Ok(());
        }
        let mut paths: Vec<String> = watched.iter().map(|one| text(one, "path")).collect();
        paths.push(path.to_owned());
        connection.put(&place(), &json!({ "watch": paths })).map(drop)
    })
}
