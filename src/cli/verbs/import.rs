//! `murald import`: imports files and directories, and shows the progress.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::error::Exit;
use super::super::reference::travelling;
use super::super::request::{From, Request};
use super::super::sse::{Item, listen};
use super::super::stdout::Progress;
use super::super::stdout::Stdout;
use super::super::terminal::count;
use super::super::verb::{Argument, Flag, Group, Kind, NULL, Verb};
use super::{FOLDER, events};
use crate::wire::Image;
use crate::wire::collate::path_key;

pub(super) const GROUP: Group =
    Group { title: "Import", verbs: &[IMPORT, IMPORT_WEB, IMPORT_CANCEL, super::migrate::MIGRATE] };

const IMPORT: Verb = Verb::new(&["import"], "Import files and directories into the library", import)
        .arguments(&[Argument::some(
            "PATH",
            Kind::File,
            "Files, or directories with everything in them; - reads paths from standard input",
        )])
        .flags(&[
            FOLDER,
            Flag::switch("--in-place", "Leave the files where they are, instead of copying them"),
            Flag::switch("--no-wait", "Return at once, while the daemon goes on importing"),
            NULL,
        ])
        .starting()
        .help(
            "The files are copied into the library; yours stay as they are. What is in the library\n\
             already is not imported again. A directory with a waypaper.json or project.json is imported as\n\
             one wallpaper under its title. Other files in directories are skipped if they are not\n\
             pictures or videos.\n\
             Ctrl-C stops the import, and what was imported by then stays. Exit code 1 when a file\n\
             could not be imported. Where the output is not a terminal it is the id of each image, in\n\
             the order of the paths; with --json it is a line for each event.",
        );

const IMPORT_WEB: Verb = Verb::new(
    &["import-web"],
    "Import an HTML wallpaper into the library",
    import_web,
)
.arguments(&[Argument::one("PATH", Kind::Directory, "Its directory")])
.flags(&[FOLDER])
.starting()
.help(
    "The directory must have a waypaper.json, a project.json or an index.html. The image has the\n\
             manifest's title as its name, otherwise the directory's name.",
);

const IMPORT_CANCEL: Verb =
    Verb::asking(&["import-cancel"], "Stop an import that was begun with --no-wait", CANCEL)
        .arguments(&[Argument::one(
            "BATCH",
            Kind::Text,
            "Which one, as `import --no-wait` printed it",
        )])
        .help("It ends before its next file; what was imported by then stays.");

const CANCEL: Request =
    Request::post("/images/cancel-import", &[("batch_id", From::Given("BATCH"))])
        .says("cancelled; what was imported by then stays");

const EVENTS: &str =
    "processing_started,image_processed,image_error,processing_complete,processing_cancelled";
const ENDS: &str = "processing_complete,processing_cancelled";

#[derive(Deserialize)]
struct Batch {
    total: u64,
    batch_id: String,
}

/// The fields of an import's events that are printed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportProgress {
    batch_id: String,
    current: u64,
    total: u64,
    succeeded: u64,
    failed: u64,
    skipped: Skipped,
    duplicate: bool,
    image: Named,
    path: String,
    error: String,
}

/// Whether this file was, or how many were at the end.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Skipped {
    One(bool),
    All(u64),
}

impl Default for Skipped {
    fn default() -> Self {
        Self::One(false)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    id: i64,
    name: String,
}

fn import(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    let mut body = json!({"paths": paths(call)?});
    if let Some(folder) = call.value("--folder") {
        body["folder_id"] = folder.clone();
    }
    if call.has("--in-place") {
        body["in_place"] = true.into();
    }
    let place = RequestPath::new(&[&"images"]);
    if call.has("--no-wait") {
        let answer = connection.post(&place, &body)?;
        return stdout.show(&answer, |stdout, batch: Batch| {
            let (files, id) = (count(batch.total, "file"), batch.batch_id);
            match stdout.terminal() {
                Some(_) => {
                    stdout.say(format!("importing {files}; `murald import-cancel {id}` stops it"))
                }
                None => stdout.line(id),
            }
        });
    }
    let interrupt = interrupt()
        .map_err(|error| Error::new(Exit::Internal, "cannot listen for Ctrl-C").because(error))?;
    // Before the import begins, or its first events would be missed.
    let mut events = listen(&connection.interruptible(interrupt), EVENTS)?;
    let batch: Batch = connection.post(&place, &body)?.read()?;
    let mut watch = Watch::new(&batch, body["paths"].take(), stdout);
    loop {
        match events.next() {
            Ok(Some(item)) => {
                if watch.hear(&item)? {
                    return watch.end();
                }
            }
            Ok(None) => {
                return Err(Error::new(Exit::Unavailable, "the daemon ended during the import")
                    .hint("what was imported by then stays; import again for the rest"));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return cancel(&connection, watch);
            }
            Err(error) => return Err(Error::of_lost_daemon(error)),
        }
    }
}

fn import_web(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let mut body = json!({"path": paths(call)?.pop()});
    if let Some(folder) = call.value("--folder") {
        body["folder_id"] = folder.clone();
    }
    let answer = call.connect()?.post(&RequestPath::new(&[&"images", &"import-web"]), &body)?;
    stdout.show(&answer, |stdout, image: Image| super::image_sheet::show(call, stdout, &image))
}

/// Absolute: the daemon's directory is not ours.
fn paths(call: &Call) -> Result<Vec<String>, Error> {
    let paths = call.all("PATH").into_iter().filter_map(Value::as_str);
    paths.map(|path| travelling(Path::new(path))).collect()
}

/// Becomes readable with the first SIGINT or SIGTERM; the second one ends us.
fn interrupt() -> io::Result<OwnedFd> {
    let (reader, writer) = UnixStream::pair()?;
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down, and raises it.
        flag::register_conditional_default(signal, Arc::clone(&told))?;
        flag::register(signal, Arc::clone(&told))?;
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader.into())
}

fn cancel(connection: &Connection, mut watch: Watch<'_>) -> Result<(), Error> {
    // The stream that was interrupted is of no use any more. This one is open before the import is
    // cancelled, so that its end is not missed.
    let mut events = listen(connection, ENDS)?;
    let place = RequestPath::new(&[&"images", &"cancel-import"]);
    match connection.post(&place, &json!({"batch_id": watch.batch_id})) {
        // It has ended meanwhile: there is nothing to wait for.
        Err(error) if error.exit == Exit::Refused => return watch.end(),
        answer => answer?,
    };
    while let Some(item) = events.next().map_err(Error::of_lost_daemon)? {
        if watch.hear(&item)? {
            break;
        }
    }
    watch.end()
}

/// What is known of the import so far.
struct Watch<'a> {
    batch_id: String,
    total: u64,
    taken: u64,
    known: u64,
    skipped: u64,
    /// As they were named, and where each image came from.
    paths: Vec<String>,
    images: Vec<(PathBuf, i64, String)>,
    cancelled: bool,
    failures: Vec<(String, String)>,
    /// Packages of kinds that cannot be shown: each is named.
    packages: Vec<(String, String)>,
    progress: Progress,
    stdout: &'a mut Stdout,
}

impl<'a> Watch<'a> {
    fn new(batch: &Batch, paths: Value, stdout: &'a mut Stdout) -> Self {
        let mut progress = Progress::stderr(!stdout.wants_data() && !stdout.is_quiet());
        progress.draw(0, batch.total, "");
        Self {
            batch_id: batch.batch_id.clone(),
            total: batch.total,
            taken: 0,
            known: 0,
            skipped: 0,
            paths: serde_json::from_value(paths).unwrap_or_default(),
            images: Vec::new(),
            cancelled: false,
            failures: Vec::new(),
            packages: Vec::new(),
            progress,
            stdout,
        }
    }

    /// Takes an event in; true with the last one.
    fn hear(&mut self, item: &Item) -> Result<bool, Error> {
        let Item::Event { kind, data } = item else {
            return events::print(self.stdout, item).map(|()| false);
        };
        let Ok(told) = serde_json::from_str::<ImportProgress>(data) else { return Ok(false) };
        if told.batch_id != self.batch_id {
            return Ok(false);
        }
        if self.stdout.wants_data() {
            events::print(self.stdout, item)?;
        }
        match kind.as_str() {
            "image_processed" => {
                self.taken += 1;
                self.known += u64::from(told.duplicate);
                self.progress.draw(told.current, told.total, &told.image.name);
                self.images.push((told.path.into(), told.image.id, told.image.name));
            }
            "image_error" if matches!(told.skipped, Skipped::One(true)) => {
                self.progress.draw(told.current, told.total, &told.path);
                if Path::new(&told.path).is_dir() {
                    self.packages.push((told.path, told.error));
                }
            }
            "image_error" => {
                self.progress.draw(told.current, told.total, &told.path);
                self.failures.push((told.path, told.error));
            }
            "processing_complete" | "processing_cancelled" => {
                self.cancelled = kind == "processing_cancelled";
                self.taken = told.succeeded;
                self.total = told.total;
                if let Skipped::All(skipped) = told.skipped {
                    self.skipped = skipped;
                }
                // Events may have been lost: the count is right all the same.
                let unheard = told.failed.saturating_sub(self.failures.len() as u64);
                if unheard > 0 {
                    let files = count(unheard, "more file");
                    self.failures.push((files, "the log says why".to_owned()));
                }
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn end(mut self) -> Result<(), Error> {
        self.progress.clear();
        if !self.stdout.wants_data() {
            self.tell()?;
        }
        let mut problem = String::new();
        if self.cancelled {
            write!(problem, "cancelled after {} of {}", self.taken, count(self.total, "file"))
                .expect("a String takes all");
        }
        if !self.failures.is_empty() {
            let failed = count(self.failures.len() as u64, "file");
            let and = if self.cancelled { "; " } else { "" };
            write!(problem, "{and}{failed} could not be imported").expect("a String takes all");
        }
        let exit = if self.cancelled { Exit::Interrupted } else { Exit::Refused };
        let lines = self.failures.iter().map(line);
        let lines = lines.collect::<Vec<_>>().join("\n  ");
        match (problem.is_empty(), lines.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::new(exit, problem)),
            (false, false) => Err(Error::new(exit, problem).hint(lines)),
        }
    }

    /// The images, in the order in which their paths were given and directories are walked.
    fn tell(&mut self) -> Result<(), Error> {
        // A file may be there by its own name and by its directory's, too.
        let mut seen: HashMap<PathBuf, usize> = HashMap::new();
        self.images.sort_by_cached_key(|(path, ..)| {
            let before = seen.entry(path.clone()).or_default();
            let fitting =
                self.paths.iter().enumerate().filter(|(_, given)| path.starts_with(given));
            let place = fitting.map(|(at, _)| at).nth(*before);
            *before += 1;
            (place, path_key(path), path.clone())
        });
        for package in &self.packages {
            self.stdout.warn(format!("skipped {}", line(package)));
        }
        let files = self.skipped.saturating_sub(self.packages.len() as u64);
        if files > 0 {
            let files = count(files, "file");
            self.stdout.warn(format!("skipped {files}: not pictures, videos or packages"));
        }
        if self.stdout.terminal().is_none() {
            self.images.iter().try_for_each(|(_, id, _)| self.stdout.line(id))?;
            return self.stdout.flush();
        }
        let known = match self.known {
            0 => String::new(),
            known => format!(", {known} in the library already"),
        };
        let new = count(self.taken.saturating_sub(self.known), "image");
        match self.images.as_slice() {
            [(_, id, name)] => self.stdout.say(format!("{name} ({id}): {new} imported{known}"))?,
            _ => self.stdout.say(format!("{new} imported{known}"))?,
        }
        self.stdout.flush()
    }
}

/// A name may have a line break: it must not look like another file's line.
fn line((path, error): &(String, String)) -> String {
    format!("{path}: {error}").replace('\n', " ")
}
