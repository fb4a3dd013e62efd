//! `murald import`: imports files and directories, and shows the progress.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::image_sheet::IMAGE;
use super::{
    Argument, Body, Call, Connection, Error, Events, Exit, FOLDER, Flag, From, Group, Item, Kind,
    NULL, Progress, Request, RequestPath, Stdout, Verb, View, at, count, events, listen, more,
    number, paths, text,
};
use crate::wire::collate::path_key;

#[rustfmt::skip]
pub(super) const GROUP: Group = Group { title: "Import", verbs: &[
    Verb::own(&["import"], "Import files and directories into the library", import)
        .takes(&[Argument::some("PATH", Kind::File,
            "Files or directories; - reads paths from standard input")])
        .flags(&[
            FOLDER,
            Flag::switch("--in-place", "Use the files where they are instead of copying them"),
            Flag::switch("--no-wait", "Return at once, without waiting for the import"),
            NULL,
        ])
        .shows(&[&BEGUN, &events::EVENT]).starting()
        .help("The files are copied into the library; the originals are not changed. Images that are \
               already in the library are not imported again. A directory with a waypaper.json or \
               project.json is imported as one wallpaper, named \
               after its title. Other files in directories are skipped if they are not pictures or \
               videos.\n\
               Ctrl-C stops the import; imported images stay. Exits with 1 if a file could not be \
               imported. When not on a terminal, prints the ID of each image, in the order of the \
               paths; with \
               --json, one line per event."),
    Verb::send(&["import-web"], "Import an HTML wallpaper into the library", "POST /images/import-web",
        &[("path", From::Path("PATH")), INTO])
        .takes(&[Argument::one("PATH", Kind::Directory, "The directory")]).flags(&[FOLDER])
        .shows(&[&IMAGE]).starting()
        .help("The directory must have a waypaper.json, a project.json or an index.html. The image \
               is named after the title in the manifest, or after the directory."),
    Verb::send(&["import-cancel"], "Stop an import that was started with --no-wait",
        "POST /images/cancel-import", &[("batch_id", From::Given("BATCH"))])
        .takes(&[Argument::one("BATCH", Kind::Text, "The import, as printed by `import --no-wait`")])
        .shows(&[&CANCELLED])
        .help("Files in progress are finished, and imported images stay."),
    super::scripts::MIGRATE,
]};

const INTO: (&str, From) = ("folder_id", From::Given("--folder"));
const START: Request = Request::new(
    "POST /images",
    Body::Fields(&[
        ("paths", From::Paths("PATH")),
        INTO,
        ("in_place", From::Switch("--in-place")),
    ]),
);
const CANCELLED: View = View::new("POST /images/cancel-import", &[more("status batch_id")])
    .saying("cancelled; imported images stay");
const BEGUN: View =
    View::new("POST /images", &[more("status total batch_id")]).showing(|_, stdout, batch| {
        let files = count(number(batch, "total"), "file");
        let id = text(batch, "batch_id");
        match stdout.terminal() {
            Some(_) => stdout.say(format!(
                "importing {files}; `murald import-cancel {id}` stops it"
            )),
            None => stdout.line(id),
        }
    });

const EVENTS: &str =
    "processing_started,image_processed,image_error,processing_complete,processing_cancelled";
const ENDS: &str = "processing_complete,processing_cancelled";

fn import(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let connection = call.connect()?;
    if call.has("--no-wait") {
        return BEGUN.show(call, stdout, &START.send(call, "import")?);
    }
    let interrupt = interrupt()
        .map_err(|error| Error::new(Exit::Internal, "cannot listen for Ctrl-C").because(error))?;
    // Subscribed before the import begins, so that no event is missed.
    let mut events = listen(&connection.interruptible(interrupt), EVENTS)?;
    let batch: Value = START.send(call, "import")?.read()?;
    let mut watch = Watch::new(batch, paths(call, "PATH")?, stdout);
    match watch.follow(&mut events) {
        Ok(true) => {}
        Ok(false) => {
            return Err(
                Error::new(Exit::Unavailable, "the daemon stopped during the import")
                    .hint("imported images stay; import again to complete"),
            );
        }
        Err(error) if error.is_interrupt() => cancel(&connection, &mut watch)?,
        Err(error) => return Err(error),
    }
    watch.end()
}

/// A descriptor that becomes readable at the first SIGINT or SIGTERM. A second signal kills the process.
pub(super) fn interrupt() -> io::Result<OwnedFd> {
    let (reader, writer) = UnixStream::pair()?;
    let told = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Registered in this order: the first signal finds the flag unset, and sets it.
        flag::register_conditional_default(signal, Arc::clone(&told))?;
        flag::register(signal, Arc::clone(&told))?;
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader.into())
}

/// Stops the import and waits for its end.
fn cancel(connection: &Connection, watch: &mut Watch<'_>) -> Result<(), Error> {
    // The interrupted stream cannot be used again. The new one is open before the import is cancelled,
    // so that its last event is not missed.
    let mut events = listen(connection, ENDS)?;
    let place = RequestPath::new(&[&"images", &"cancel-import"]);
    match connection.post(&place, &json!({ "batch_id": watch.batch["batch_id"] })) {
        // The import has ended by itself: there is nothing to wait for.
        Err(error) if error.exit == Exit::Refused => Ok(()),
        answer => answer.and_then(|_| watch.follow(&mut events)).map(drop),
    }
}

/// The state of the import so far.
struct Watch<'a> {
    /// The daemon's answer to the request.
    batch: Value,
    /// The paths as they were given.
    paths: Vec<String>,
    /// The path, the id and the name of each image.
    images: Vec<(PathBuf, i64, String)>,
    /// How many of them were in the library before.
    known: u64,
    /// A line for each file that could not be imported.
    failures: Vec<String>,
    /// A line for each package of a kind that cannot be shown.
    packages: Vec<String>,
    /// A line for each file that is damaged but was imported.
    notes: Vec<String>,
    /// The last event; null until it arrives.
    end: Value,
    cancelled: bool,
    progress: Progress,
    stdout: &'a mut Stdout,
}

impl<'a> Watch<'a> {
    fn new(batch: Value, paths: Vec<String>, stdout: &'a mut Stdout) -> Self {
        let mut progress = Progress::stderr(!stdout.wants_data() && !stdout.is_quiet());
        progress.draw(0, number(&batch, "total"), "");
        Self {
            batch,
            paths,
            images: Vec::new(),
            known: 0,
            failures: Vec::new(),
            packages: Vec::new(),
            notes: Vec::new(),
            end: Value::Null,
            cancelled: false,
            progress,
            stdout,
        }
    }

    /// Reads events until the import is over; false if the stream ends before.
    fn follow(&mut self, events: &mut Events<impl Read>) -> Result<bool, Error> {
        while let Some(item) = events.next().map_err(Error::lost_daemon)? {
            if self.hear(&item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles an event; true if it was the last.
    fn hear(&mut self, item: &Item) -> Result<bool, Error> {
        let Item::Event { kind, data } = item else {
            return events::print(self.stdout, item).map(|()| false);
        };
        let Ok(told) = serde_json::from_str::<Value>(data) else {
            return Ok(false);
        };
        if told["batch_id"] != self.batch["batch_id"] {
            return Ok(false);
        }
        if self.stdout.wants_data() {
            events::print(self.stdout, item)?;
        }
        let (path, name) = (text(&told, "path"), text(&told, "image.name"));
        let (current, total) = (number(&told, "current"), number(&told, "total"));
        match kind.as_str() {
            "image_processed" => {
                self.progress.draw(current, total, &name);
                self.known += u64::from(told["duplicate"] == true);
                let id = at(&told, "image.id").as_i64().unwrap_or_default();
                self.notes
                    .extend(told["note"].as_str().map(|note| line(&path, note)));
                self.images.push((path.into(), id, name));
            }
            "image_error" => {
                self.progress.draw(current, total, &path);
                let line = line(&path, &text(&told, "error"));
                match (told["skipped"] == true, Path::new(&path).is_dir()) {
                    (false, _) => self.failures.push(line),
                    (true, true) => self.packages.push(line),
                    (true, false) => {}
                }
            }
            "processing_complete" | "processing_cancelled" => {
                self.cancelled = kind == "processing_cancelled";
                self.conclude(told);
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    /// Stores the last event, whose counts are right even if other events were lost.
    fn conclude(&mut self, end: Value) {
        let unheard = number(&end, "failed").saturating_sub(self.failures.len() as u64);
        if unheard > 0 {
            self.failures
                .push(format!("{}: the log says why", count(unheard, "more file")));
        }
        self.end = end;
    }

    /// How many images were imported, or were known already.
    fn taken(&self) -> u64 {
        if self.end.is_null() {
            self.images.len() as u64
        } else {
            number(&self.end, "succeeded")
        }
    }

    fn end(mut self) -> Result<(), Error> {
        self.progress.clear();
        if !self.stdout.wants_data() {
            self.tell()?;
        }
        let mut problems = Vec::new();
        if self.cancelled {
            let total = count(number(&self.end, "total"), "file");
            problems.push(format!("cancelled after {} of {total}", self.taken()));
        }
        if !self.cancelled && self.failures.is_empty() && self.taken() == 0 {
            problems.push(format!("no images found in {}", self.paths.join(", ")));
        }
        if !self.failures.is_empty() {
            let failed = count(self.failures.len() as u64, "file");
            problems.push(format!("{failed} could not be imported"));
        }
        let exit = if self.cancelled {
            Exit::Interrupted
        } else {
            Exit::Refused
        };
        if problems.is_empty() {
            return Ok(());
        }
        let lines = [
            vec![problems.join("; ")],
            std::mem::take(&mut self.failures),
        ]
        .concat();
        Err(Error::new(exit, lines.join("\n  ")))
    }

    /// Prints the images in the order in which their paths were given and directories are walked.
    fn tell(&mut self) -> Result<(), Error> {
        // A file may be given by its own path and by its directory's.
        let mut seen: HashMap<PathBuf, usize> = HashMap::new();
        self.images.sort_by_cached_key(|(path, ..)| {
            let before = seen.entry(path.clone()).or_default();
            let fitting = self
                .paths
                .iter()
                .enumerate()
                .filter(|(_, given)| path.starts_with(given));
            let place = fitting.map(|(at, _)| at).nth(*before);
            *before += 1;
            (place, path_key(path), path.clone())
        });
        for package in &self.packages {
            self.stdout.warn(format!("skipped {package}"));
        }
        for note in &self.notes {
            self.stdout.warn(format!("imported {note}"));
        }
        let files = number(&self.end, "skipped").saturating_sub(self.packages.len() as u64);
        if files > 0 {
            let files = count(files, "file");
            self.stdout
                .warn(format!("skipped {files}: not pictures, videos or packages"));
        }
        if self.stdout.terminal().is_none() {
            self.images
                .iter()
                .try_for_each(|(_, id, _)| self.stdout.line(id))?;
            return self.stdout.flush();
        }
        let known = match self.known {
            0 => String::new(),
            known => format!(", {known} in the library already"),
        };
        let new = count(self.taken().saturating_sub(self.known), "image");
        match self.images.as_slice() {
            [(_, id, name)] if self.known > 0 => self
                .stdout
                .say(format!("{name} ({id}) is already in the library"))?,
            [(_, id, name)] => self.stdout.say(format!("imported {name} ({id})"))?,
            _ => self.stdout.say(format!("{new} imported{known}"))?,
        }
        self.stdout.flush()
    }
}

/// A line break in a name must not look like the line of another file.
fn line(path: &str, problem: &str) -> String {
    format!("{path}: {problem}").replace('\n', " ")
}
