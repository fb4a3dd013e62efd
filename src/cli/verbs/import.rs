//! Bringing pictures in, and watching them come.

use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::{Connection, Place};
use super::super::failure::Exit;
use super::super::progress::Progress;
use super::super::request::{From, Request};
use super::super::screen::Screen;
use super::super::sse::{Events, Item};
use super::super::text::count;
use super::super::verb::{Argument, Flag, Group, Kind, Verb};
use super::daemon::lost;
use super::{FOLDER, events};
use crate::wire::Image;

pub(super) const GROUP: Group =
    Group { title: "Import", verbs: &[IMPORT, IMPORT_WEB, IMPORT_CANCEL] };

const IMPORT: Verb = Verb::new(&["import"], "Import files and directories into the library", import)
        .arguments(&[Argument::some("PATH", Kind::File, "Files, or directories with everything in them")])
        .flags(&[
            FOLDER,
            Flag::switch("--no-wait", "Return at once, while the daemon goes on importing"),
        ])
        .help(
            "The files are copied into the library; yours stay as they are. What is in the library\n\
             already is not imported again. Ctrl-C stops the import, and what was imported by then\n\
             stays. Exit code 1 when a file could not be imported. Where the output is not a terminal\n\
             it is a line of JSON for each event.",
        );

const IMPORT_WEB: Verb =
    Verb::new(&["import-web"], "Import an HTML wallpaper into the library", import_web)
        .arguments(&[Argument::one("PATH", Kind::Directory, "Its directory")])
        .flags(&[FOLDER])
        .help("The directory must have a waypaper.json, a project.json or an index.html.");

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

/// What the events of an import tell, as far as a person cares.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    batch_id: String,
    current: u64,
    total: u64,
    succeeded: u64,
    failed: u64,
    duplicate: bool,
    image: Named,
    path: String,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

fn import(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let connection = call.connect()?;
    let mut body = json!({"paths": paths(call)?});
    if let Some(folder) = call.value("--folder") {
        body["folder_id"] = folder.clone();
    }
    let place = Place::new(&[&"images"]);
    if call.has("--no-wait") {
        let answer = connection.post(&place, &body)?;
        return screen.show(&answer, |screen, batch: Batch| {
            let files = count(batch.total, "file");
            screen.line(format!(
                "importing {files}; `murald import-cancel {}` stops it",
                batch.batch_id
            ))
        });
    }
    let interrupt = interrupt()
        .map_err(|error| Failure::new(Exit::Internal, "cannot listen for Ctrl-C").because(error))?;
    // Before the import begins, or its first events would be missed.
    let mut events = listen(&connection.interruptible(interrupt), EVENTS)?;
    let batch: Batch = connection.post(&place, &body)?.read()?;
    let mut watch = Watch::new(&batch, screen);
    loop {
        match events.next() {
            Ok(Some(item)) => {
                if watch.hear(&item)? {
                    return watch.end();
                }
            }
            Ok(None) => {
                return Err(Failure::new(Exit::Unavailable, "the daemon ended during the import")
                    .hint("what was imported by then stays; import again for the rest"));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return cancel(&connection, watch);
            }
            Err(error) => return Err(lost(error)),
        }
    }
}

fn import_web(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let mut body = json!({"path": paths(call)?.pop()});
    if let Some(folder) = call.value("--folder") {
        body["folder_id"] = folder.clone();
    }
    let answer = call.connect()?.post(&Place::new(&[&"images", &"import-web"]), &body)?;
    screen.show(&answer, |screen, image: Image| super::images::show(screen, &image))
}

/// Absolute: the daemon's directory is not ours.
fn paths(call: &Call) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for path in call.all("PATH").into_iter().filter_map(Value::as_str) {
        let whole = std::path::absolute(path)
            .map_err(|error| Failure::usage(format!("{path} is not a path")).because(error))?;
        paths.push(
            whole
                .into_os_string()
                .into_string()
                .map_err(|_| Failure::usage("the current directory's name is not UTF-8"))?,
        );
    }
    Ok(paths)
}

fn listen(connection: &Connection, types: &str) -> Result<Events<impl io::Read + use<>>, Failure> {
    let place = Place::new(&[&"events"]).query("types", Some(types));
    Ok(Events::new(connection.stream(&place)?))
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

fn cancel(connection: &Connection, mut watch: Watch<'_>) -> Result<(), Failure> {
    // The stream that was interrupted is of no use any more. This one is open before the import is
    // cancelled, so that its end is not missed.
    let mut events = listen(connection, ENDS)?;
    let place = Place::new(&[&"images", &"cancel-import"]);
    match connection.post(&place, &json!({"batch_id": watch.batch_id})) {
        // It has ended meanwhile: there is nothing to wait for.
        Err(failure) if failure.exit == Exit::Refused => return watch.end(),
        answer => answer?,
    };
    while let Some(item) = events.next().map_err(lost)? {
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
    cancelled: bool,
    failures: Vec<(String, String)>,
    progress: Progress,
    screen: &'a mut Screen,
}

impl<'a> Watch<'a> {
    fn new(batch: &Batch, screen: &'a mut Screen) -> Self {
        let mut progress = Progress::stderr(!screen.is_json());
        progress.draw(0, batch.total, "");
        Self {
            batch_id: batch.batch_id.clone(),
            total: batch.total,
            taken: 0,
            known: 0,
            cancelled: false,
            failures: Vec::new(),
            progress,
            screen,
        }
    }

    /// Takes an event in; true with the last one.
    fn hear(&mut self, item: &Item) -> Result<bool, Failure> {
        let Item::Event { kind, data } = item else {
            return events::print(self.screen, item).map(|()| false);
        };
        let Ok(told) = serde_json::from_str::<Told>(data) else { return Ok(false) };
        if told.batch_id != self.batch_id {
            return Ok(false);
        }
        if self.screen.is_json() {
            events::print(self.screen, item)?;
        }
        match kind.as_str() {
            "image_processed" => {
                self.taken += 1;
                self.known += u64::from(told.duplicate);
                self.progress.draw(told.current, told.total, &told.image.name);
            }
            "image_error" => {
                self.progress.draw(told.current, told.total, &told.path);
                self.failures.push((told.path, told.error));
            }
            "processing_complete" | "processing_cancelled" => {
                self.cancelled = kind == "processing_cancelled";
                self.taken = told.succeeded;
                self.total = told.total;
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

    fn end(mut self) -> Result<(), Failure> {
        self.progress.clear();
        if !self.screen.is_json() {
            let known = match self.known {
                0 => String::new(),
                known => format!(", {known} in the library already"),
            };
            let new = count(self.taken.saturating_sub(self.known), "image");
            self.screen.line(format!("{new} imported{known}"))?;
            self.screen.flush()?;
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
        // A name may have a line break: it must not look like another file's line.
        let line = |(path, error): &(String, String)| format!("{path}: {error}").replace('\n', " ");
        let lines = self.failures.iter().map(line);
        let lines = lines.collect::<Vec<_>>().join("\n  ");
        match (problem.is_empty(), lines.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => Err(Failure::refused(problem)),
            (false, false) => Err(Failure::refused(problem).hint(lines)),
        }
    }
}
