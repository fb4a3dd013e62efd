//! `murald library`, `watch` and `slideshow`: the database, missing images, watched directories.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::image_sheet::TOTAL;
use super::playlist_sheet::{START, on_monitors};
use super::{
    Argument, Call, Cell, CellStyle, Connection, EACH, Error, Exit, Flag, From, Group, INTERVAL,
    Kind, MONITORS, RequestPath, Stdout, Verb, View, column, computed, count, each, items, more,
    number, paths, span, text, travelling, written,
};
use crate::wire::Format;

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Library", verbs: &[
    Verb::own(&["library", "check"], "Check the database for damage (works without a daemon)", check)
        .shows(&[&REPORT])
        .help("Reads the whole database and changes nothing; the daemon may be running. Exits with 1 \
               if the database is damaged. It is not an error if there is no database \
               yet."),
    Verb::own(&["library", "restore"], "Restore the database from a backup", restore)
        .takes(&[Argument::optional("FILE", Kind::File, "Backup to restore (default: the newest \
               intact one)")])
        .shows(&[&RESTORED])
        .help("    murald stop; murald library restore && murald start\n\n\
               The daemon backs up the database with the first change of a day and keeps three \
               backups, which \"library check\" lists. Later changes are lost, but pictures that \
               were imported later are imported again at \
               the next start. The old database is kept beside the new one. A file that is not an \
               intact database is refused, and nothing is changed. Exits \
               with 75 if the daemon is running."),
    Verb::send(&["library", "purge-missing"], "Remove images whose files are missing",
        "POST /library/purge-missing", &[]).shows(&[&PURGED])
        .help("Images stay in the library when their files are missing, as the disk may be unmounted. \
               This command removes them, with their tags and playlist entries. Images of watched \
               directories stay."),
]};

#[rustfmt::skip]
pub(super) const WATCHING: Group = Group { title: "Watched directories", verbs: &[
    Verb::send(&["watch", "add"], "Keep the library in sync with a directory",
        "PATCH /library/watch", &[("watch", From::Object(&[("add", From::Paths("DIR"))]))])
        .takes(&[Argument::some("DIR", Kind::Directory, "Path of the directory")])
        .needs(are_directories).shows(&[&ADDED]).starting()
        .help("Pictures that are added to the directory or its subdirectories are added to the \
               library; deleted ones are removed. The files are used where they are and not changed; only HTML \
               packages are copied, and copied again when they change. Starts the daemon if it is not running."),
    Verb::get(&["watch", "list"], "List the watched directories",
        "GET /library/watch").shows(&[&WATCHED]),
    Verb::change(&["watch", "remove"], "Stop watching a directory", "PATCH /library/watch", remove)
        .takes(&[Argument::some("DIR", Kind::Directory, "The path, as in the list")])
        .flags(&[Flag::switch("--forget", "Also remove its images from the library; the files stay")])
        .shows(&[&WATCHED])
        .help("Without --forget, its images stay in the library."),
    Verb::send(&["library", "scan"], "Rescan all watched directories", "POST /library/scan", &[])
        .shows(&[&View::new("POST /library/scan", &[more("status directories")])
            .saying("rescanning the watched directories")])
        .help("Necessary if the kernel does not report changes, as on network disks. Returns at \
               once."),
]};

const REPORT: View = View::new(
    "",
    &[
        column("database", "database"),
        column("images", "images"),
        column("missing", "missing"),
        each("problem", "problems", written),
        each("backup", "backups", written),
    ],
);
const RESTORED: View = View::new("", &[more("from aside")]).showing(|_, stdout, restored| {
    stdout.say(format!(
        "restored the database from {}",
        written(&restored["from"])
    ))?;
    match restored["aside"].as_str() {
        Some(aside) => stdout.say(format!("the old database is kept in {aside}")),
        None => Ok(()),
    }
});
const PURGED: View =
    View::new("POST /library/purge-missing", &[more("purged")]).saying("{purged#image} removed");
const WATCHED: View = View::table(
    "LibraryWatch",
    &[
        column("DIRECTORY", "path directory"),
        computed("=STATE", "state", |one, _| {
            let look = if one["state"] == "watched" {
                CellStyle::Plain
            } else {
                CellStyle::Bad
            };
            Some(Cell::value(&one["state"]).look(look))
        }),
        computed("IMAGES", "images copies unreadable", |one, _| {
            let copies = match number(one, "copies") {
                0 => String::new(),
                1 => ", 1 copy".to_owned(),
                more => format!(", {more} copies"),
            };
            let unreadable = match number(one, "unreadable") {
                0 => String::new(),
                some => format!(", {some} not readable"),
            };
            let images = count(number(one, "images"), "image");
            Some(Cell::from(images + &copies + &unreadable).raw(number(one, "images")))
        }),
        column("MESSAGE", "message"),
        more("watch watch_folders exclude"),
    ],
    "no watched directories; add one with `murald watch add DIR`",
)
.within("watch");

const ADDED: View = WATCHED.showing(|call, stdout, watched| {
    let is_missing = |path: &&String| Path::new(path).try_exists().is_ok_and(|exists| !exists);
    for path in paths(call, "DIR")?.iter().filter(is_missing) {
        stdout.warn(format!(
            "{path} does not exist; murald will watch it when it does"
        ));
    }
    WATCHED.people(call, stdout, watched)
});

fn check(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let mut report = (call.host().check_database)(&call.config_file()?)?;
    // Before the first start, there is no database that could be damaged.
    let is_new = !report.database.exists() && report.backups.is_empty();
    if is_new {
        report.problems.clear();
    }
    REPORT.tell(call, stdout, &json!(report))?;
    if is_new {
        return stdout.note("no database yet (created when the daemon first starts)");
    }
    let Some(problem) = report.problems.first() else {
        return Ok(());
    };
    let error = Error::refused(format!("the database is damaged: {problem}"));
    Err(error.hint(match report.backups.first() {
        Some(_) => "stop murald, then run `murald library restore`",
        None => "there is no backup",
    }))
}

fn restore(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let backup = call.text("FILE").map(Path::new);
    let done = (call.host().restore_database)(&call.config_file()?, backup);
    let (from, aside) = done.map_err(|error| match error.exit {
        Exit::Running => error.hint("`murald stop` stops it"),
        Exit::Config => error,
        _ => Error::refused(error.reason()).hint("`murald library check` lists backups"),
    })?;
    RESTORED.tell(call, stdout, &json!({ "from": from, "aside": aside }))
}

/// Refuses paths of files. The daemon reports anything else that is wrong.
fn are_directories(call: &Call) -> Result<(), Error> {
    let is_other = |path: &&String| fs::metadata(path).is_ok_and(|found| !found.is_dir());
    match paths(call, "DIR")?.iter().find(is_other) {
        Some(path) => Err(Error::refused(format!("{path} is not a directory"))),
        None => Ok(()),
    }
}

fn remove(call: &Call, watched: Value) -> Result<Value, Error> {
    let mut gone = Vec::new();
    for (word, path) in call.all("DIR").into_iter().zip(paths(call, "DIR")?) {
        let is_meant = |one: &&Value| one["path"] == *word || is_at(one, &path);
        match items(&watched, "watch").iter().find(is_meant) {
            Some(one) => gone.push(&one["path"]),
            None => {
                return Err(Error::refused(format!("{} is not watched", written(word)))
                    .hint("`murald watch list` lists the watched directories"));
            }
        }
    }
    let mut body = json!({ "watch": { "remove": gone } });
    if call.has("--forget") {
        body["forget"] = true.into();
    }
    Ok(body)
}

/// Whether a watched directory has this path, with or without its links resolved.
fn is_at(watched: &Value, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["path", "directory"]
        .iter()
        .any(|field| text(watched, field).trim_end_matches('/') == path)
}

/// Watches a directory, unless one above it is watched.
fn ensure(connection: &Connection, path: &str) -> Result<(), Error> {
    let place = RequestPath::new(&[&"library", &"watch"]);
    let watched: Value = connection.get(&place)?.read()?;
    let mut directories = items(&watched, "watch")
        .iter()
        .filter_map(|one| one["directory"].as_str());
    if directories.any(|directory| Path::new(path).starts_with(directory)) {
        return Ok(());
    }
    let body = json!({ "watch": { "add": [path] } });
    connection.patch(&place, &body).map(drop)
}

/// The time limit for the first picture. The scan of a large directory takes longer.
const WITHIN: Duration = Duration::from_secs(10);
const PACE: Duration = Duration::from_millis(50);

const STARTED: View = View::new("POST /playlists/{id}/start", &[more("status warnings")]);

#[rustfmt::skip]
pub(super) const SLIDESHOW: Verb =
    Verb::own(&["slideshow"], "Cycle through the images in a directory", slideshow)
        .takes(&[Argument::one("DIR", Kind::Directory, "Path of the directory")])
        .shows(&[&STARTED]).starting()
        .flags(&[
            INTERVAL,
            Flag::switch("--shuffle", "Shuffle the images (default: sorted by name)"),
            EACH,
            MONITORS,
        ])
        .help("    murald slideshow ~/Pictures/mountains --interval 10m --shuffle\n\n\
               The directory is watched, as by `murald watch add`; new pictures are included. This \
               creates a playlist named after the directory (with --monitor, and the monitors), and \
               stops the one that runs on these monitors. Running the command again updates and \
               restarts it. `murald playlist stop` stops all playlists. Starts the daemon if it is not running.");

fn slideshow(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let word = call.word("DIR");
    let unread = |error| Error::refused(format!("cannot read {word}")).because(error);
    let real = fs::canonicalize(&word).map_err(unread)?;
    if !real.is_dir() {
        return Err(Error::refused(format!("{word} is not a directory"))
            .hint("`murald set PICTURE` shows one picture"));
    }
    let path = travelling(&real)?;
    let connection = call.connect()?;
    ensure(&connection, &path)?;
    let images = first_pictures(&connection, &word, &path)?;
    // The scan of a large directory goes on, so its files are counted, too.
    let images = images.max(pictures_below(&real));
    let playlist = playlist(call, &connection, &path)?;
    let mut start = call.clone();
    start.values.push(("PLAYLIST", playlist["id"].clone()));
    let answer = START.send(&start, "slideshow")?;
    stdout.show(&answer, |stdout, answer: Value| {
        stdout.warn_all(&answer);
        let of = count(images, "picture");
        let id = &playlist["id"];
        let on = on_monitors(call, Some(id));
        let every = span(number(&playlist, "configuration.interval"));
        stdout.say(format!(
            "started slideshow of {path} ({id}){on}: {of}, every {every}; `murald playlist stop {id}` \
             stops it"
        ))
    })
}

/// Waits for the first image of a watched directory and returns the number of images.
fn first_pictures(connection: &Connection, word: &str, directory: &str) -> Result<u64, Error> {
    let deadline = Instant::now() + WITHIN;
    let place = RequestPath::new(&[&"images"]).query("directory", Some(directory));
    let place = place
        .query("recursive", Some(true))
        .query("per_page", Some(1));
    loop {
        let page: Value = connection.get(&place)?.read()?;
        match number(&page, TOTAL) {
            0 if Instant::now() > deadline => {
                return Err(Error::refused(format!("no pictures found in {word}"))
                    .hint("it is now watched; `murald watch list` shows its state"));
            }
            0 => std::thread::sleep(PACE),
            images => return Ok(images),
        }
    }
}

/// Creates the playlist of a directory and the monitors in the call, or updates it.
fn playlist(call: &Call, connection: &Connection, directory: &str) -> Result<Value, Error> {
    let mut monitors: Vec<&str> = (call.all("--monitor").iter())
        .filter_map(|monitor| monitor.as_str())
        .collect();
    monitors.sort_unstable();
    monitors.dedup();
    let name = if monitors.is_empty() {
        directory.to_owned()
    } else {
        format!("{directory} on {}", monitors.join(", "))
    };
    let order = if call.has("--shuffle") {
        "random"
    } else {
        "ordered"
    };
    let mut configuration = json!({ "type": "timer", "order": order });
    if let Some(interval) = call.value("--interval") {
        configuration["interval"] = interval.clone();
    }
    let source = json!({ "directory": directory });
    let body = json!({ "name": name, "source": source, "configuration": configuration });
    let place = RequestPath::new(&[&"playlists"]);
    let all: Vec<Value> = connection.get(&place)?.read()?;
    match all.iter().find(|one| one["name"] == name) {
        Some(one) => connection
            .patch(&RequestPath::new(&[&"playlists", &one["id"]]), &body)?
            .read(),
        None => connection.post(&place, &body)?.read(),
    }
}

/// The number of pictures and videos in a directory, by their extensions.
fn pictures_below(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let visible = entries
        .flatten()
        .filter(|one| !one.file_name().as_encoded_bytes().starts_with(b"."));
    let count = visible.map(|entry| {
        // Links to directories are not followed: one could lead in a circle.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            pictures_below(&entry.path())
        } else {
            u64::from(is_picture(&entry.path()))
        }
    });
    count.sum()
}

fn is_picture(path: &Path) -> bool {
    Format::ALL
        .iter()
        .any(|&format| format != Format::Html && format.is_named(path))
}
