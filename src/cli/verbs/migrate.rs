//! `murald migrate`: reads the configuration of another wallpaper program and carries it over.
//!
//! Writes nothing of the other program, and changes no wallpaper: playlists are made, but not started.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::{Connection, RequestPath};
use super::super::error::Exit;
use super::super::migrate::{Disk, Known, Library, PROGRAMS, Program, Step};
use super::super::start;
use super::super::stdout::Stdout;
use super::super::verb::{Argument, Flag, Kind, Verb};
use super::migrate_steps::{Done, carry_out};
use crate::paths::{Dirs, open_regular};

pub(super) const MIGRATE: Verb =
    Verb::new(&["migrate"], "Take over from another wallpaper program", migrate)
        .arguments(&[Argument::one("PROGRAM", Kind::Words(PROGRAMS), "The program")])
        .flags(&[
            Flag::value(
                "--from",
                "FILE",
                Kind::File,
                "Its configuration, if not where it usually is",
            ),
            Flag::switch("--dry-run", "Only tell what would be done"),
        ])
        .help(
            "    murald migrate variety --dry-run\n\n\
             Reads its configuration, and tells in a line for each thing what becomes of it: a\n\
             directory that is watched, a playlist, a tag, a setting, or why it is not taken. What is\n\
             that way already stays (\"as before\"), so that it can be said again.\n\n\
             Nothing of the other program is changed, and no other picture comes up: playlists are made,\n\
             and not started. A playlist of the same name that is another one, and a hook that you\n\
             have, stay as they are. Waypaper Engine keeps playlists and tags in a database\n\
             that only its daemon reads: it must run. Where no murald runs, one is started, but not\n\
             by --dry-run. murald-migrate(7) has the new lines for old habits.",
        );

fn migrate(call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let word = call.word("PROGRAM");
    let program = Program::of(&word);
    let no_home = |error| Error::refused("cannot tell where your files are").because(error);
    let dirs = Dirs::of_process().map_err(no_home)?;
    let (file, text) = configuration(call, &word, program, &dirs)?;
    let disk = Disk::of(dirs.home());
    let state = program.state(&text, &dirs).and_then(|path| fs::read_to_string(path).ok());
    let library = match program.socket(&text, &disk, &dirs) {
        Some(socket) => library(&socket)?,
        None => None,
    };
    let known = Known {
        disk: &disk,
        settings: &(call.settings)(),
        library: library.as_ref(),
        usual_images: Program::usual_images(&dirs),
        state: state.as_deref(),
    };
    let steps = program
        .steps(&text, &known)
        .map_err(|broken| Error::refused(format!("{}, {broken}", file.display())))?;
    let mut told = MigrationLog { stdout, records: Vec::new() };
    if call.has("--dry-run") {
        steps.iter().try_for_each(|step| told.tell(step, Done::Planned))?;
        return told.end("nothing was changed");
    }
    start::ensure(call)?;
    let connection = call.connect()?;
    for step in &steps {
        for (step, done) in carry_out(&connection, step)? {
            told.tell(&step, done)?;
        }
    }
    told.end("no other picture has come up; `murald playlist start PLAYLIST` starts a playlist")
}

/// The file, and what is in it.
fn configuration(
    call: &Call,
    word: &str,
    program: Program,
    dirs: &Dirs,
) -> Result<(PathBuf, String), Error> {
    let files = match call.text("--from") {
        Some(file) => vec![PathBuf::from(file)],
        None => program.files(dirs),
    };
    for file in &files {
        let mut bytes = Vec::new();
        let read = open_regular(file).and_then(|mut file| file.read_to_end(&mut bytes));
        match read {
            Ok(_) => {
                let not = |_| Error::refused(format!("{} is not UTF-8", file.display()));
                return Ok((file.clone(), String::from_utf8(bytes).map_err(not)?));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let failed = format!("{} cannot be read", file.display());
                return Err(Error::refused(failed).because(error));
            }
        }
    }
    let looked: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let error = format!("there is no configuration of {word} at {}", looked.join(" or "));
    Err(Error::refused(error).hint("`--from FILE` names another place"))
}

/// What Waypaper Engine's daemon has; none where it does not run.
fn library(socket: &Path) -> Result<Option<Library>, Error> {
    let theirs = Connection::new(socket);
    match playlists_and_images(&theirs) {
        Ok(library) => Ok(Some(library)),
        Err(error) if error.exit == Exit::Unavailable => Ok(None),
        Err(error) => {
            let failed =
                format!("Waypaper Engine's daemon on {} is not understood", socket.display());
            Err(Error::refused(format!("{failed}: {}", error.reason())))
        }
    }
}

fn playlists_and_images(theirs: &Connection) -> Result<Library, Error> {
    let list = |value: Value| match value {
        Value::Array(list) => list,
        mut other => match other["data"].take() {
            Value::Array(list) => list,
            _ => Vec::new(),
        },
    };
    let playlists = list(theirs.get(&RequestPath::new(&[&"playlists"]))?.read()?);
    let mut images = Vec::new();
    for page in 1_u64.. {
        let place = RequestPath::new(&[&"images"]);
        let place = place.query("page", Some(page)).query("per_page", Some(100));
        let answer: Value = theirs.get(&place)?.read()?;
        let pages = answer["pagination"]["total_pages"].as_u64().unwrap_or(1);
        let more = list(answer);
        if more.is_empty() {
            break;
        }
        images.extend(more);
        if page >= pages {
            break;
        }
    }
    Ok(Library { images, playlists })
}

/// The output of a migration: lines as things are done, or all records at the end.
struct MigrationLog<'a> {
    stdout: &'a mut Stdout,
    records: Vec<Value>,
}

impl MigrationLog<'_> {
    fn tell(&mut self, step: &Step, done: Done) -> Result<(), Error> {
        if self.stdout.wants_data() {
            self.records.push(json!({
                "kind": step.kind(),
                "subject": step.subject(),
                "text": step.detail(),
                "state": done.word(step),
            }));
            return Ok(());
        }
        let line = step.to_string().replace('\n', " ");
        match done {
            Done::Before => self.stdout.line(format!("{line}, as before"))?,
            Done::Planned | Done::Now => self.stdout.line(line)?,
        }
        // A directory of many pictures takes its time.
        self.stdout.flush()
    }

    fn end(self, note: &str) -> Result<(), Error> {
        match self.stdout.wants_data() {
            true => self.stdout.data(&Value::from(self.records)),
            false => self.stdout.note(note),
        }
    }
}
