//! The command: a client of the API.
//!
//! Runs in the only thread of its process, which `main` has given it. Knows the daemon only over its
//! socket: `murald start` is handed back to `main`, or run as a program of its own. It prints through
//! `Screen` and `Error` only, but for warnings and progress on stderr.

mod arguments;
mod call;
mod connection;
mod database;
mod doctor;
mod edit_lock;
mod error;
mod fields;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/cli.rs"]
pub mod fuzz;
mod help;
mod lookup;
mod migrate;
mod palette;
mod picture;
mod progress;
mod reference;
mod request;
mod sse;
mod start;
mod stdin;
mod stdout;
mod suggest;
mod table;
mod take_down;
mod template;
mod terminal;
mod text;
mod value;
pub(crate) mod verb;
mod verbs;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::paths::Env;
use crate::sys::is_listened_on;

use arguments::Parsed;
use call::{Call, Globals, Output};
use connection::Connection;
use lookup::Verbs;
use stdout::Stdout;
use verb::Run;
use verbs::Stopped;

pub(crate) use call::{Elsewhere, Setting};
pub(crate) use database::{DatabaseCheck, DatabaseRestore};
pub(crate) use doctor::Doctor;
pub(crate) use take_down::TakeDown;

pub(crate) use error::Error;
pub use error::Exit;
pub use fields::{FIELDS, Fields};
pub use verb::{Arity, Flag, GLOBAL, Kind, Verb};
pub use verbs::GROUPS;

/// What is left to do for `main`.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing but to end.
    End(ExitCode),
    /// To be the daemon.
    Daemon(Start),
    /// To read a file of settings, which a client cannot.
    Check(Check),
    /// To look at all of the database, which a client cannot.
    CheckDatabase(DatabaseCheck),
    /// To put a backup in its place.
    RestoreDatabase(DatabaseRestore),
    /// To look at everything that wallpapers need, which a client does not see.
    Examine(Doctor),
    /// To end what a daemon that does not run has left, which a client does not know.
    TakeDown(TakeDown),
}

/// A file of settings that is to be read.
#[derive(Debug)]
pub(crate) struct Check {
    pub file: PathBuf,
    output: Output,
}

/// What the command line says to the daemon.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub config: Option<PathBuf>,
    /// One of `debug`, `info`, `warn`, `error`.
    pub log_level: Option<String>,
    /// From `--socket`, else from `MURALD_SOCKET`.
    pub socket: Option<PathBuf>,
    /// A command has started it and waits till it is ready; nobody reads its outputs then.
    pub detached: bool,
}

/// Reads the command line and does what it says, unless that is to be the daemon. `settings` are all
/// that the configuration has; `elsewhere` is asked if no daemon listens on the usual socket.
pub(crate) fn main(settings: fn() -> Vec<Setting>, elsewhere: Elsewhere) -> Next {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let json = words.iter().any(|word| word == "--json");
    let verbs = Verbs(GROUPS);
    let parsed = match arguments::parse(verbs, words) {
        Ok(parsed) => parsed,
        Err(error) => return Next::End(error.report(json)),
    };
    match parsed {
        Parsed::Help(text) => Next::End(end(print(&text), false)),
        Parsed::Version => {
            Next::End(end(print(concat!("murald ", env!("CARGO_PKG_VERSION"), "\n")), false))
        }
        Parsed::Call(verb, call) => run(verbs, verb, Call { settings, elsewhere, ..call }, json),
    }
}

fn run(verbs: Verbs, verb: &Verb, mut call: Call, json: bool) -> Next {
    if let Err(error) = prepare(verb, &mut call) {
        return Next::End(error.report(json));
    }
    let mut stdout = Stdout::new(&call.globals.output);
    let done = match verb.run {
        Run::Daemon => return Next::Daemon(daemon_start(call.globals, &Env::process())),
        Run::Check => match verbs::file_to_check(&call) {
            Ok(Some(file)) => return Next::Check(Check { file, output: call.globals.output }),
            Ok(None) => nothing_to_check(&mut stdout),
            Err(error) => Err(error),
        },
        Run::Database(what) => match verbs::config_file(&call) {
            Ok(config) => return database::next(what, config, &call),
            Err(error) => Err(error),
        },
        Run::Doctor => {
            let output = call.globals.output.clone();
            let start = daemon_start(call.globals, &Env::process());
            return Next::Examine(Doctor::new(start, output));
        }
        Run::Stop => match verbs::stop(&call, &mut stdout) {
            Ok(Stopped::NoDaemon) if call.has("--clear") => {
                let output = call.globals.output.clone();
                let start = daemon_start(call.globals, &Env::process());
                return Next::TakeDown(TakeDown { start, output });
            }
            stopped => stopped.map(drop),
        },
        Run::Complete => verbs::complete(verbs, &call, &mut stdout),
        Run::Request(request) => request.run(&call, &mut stdout),
        Run::Client(run) => run(&call, &mut stdout),
    };
    let done = done.map_err(|error| match error.status() {
        Some(404) => match reference::named_like_an_id(verb, &call) {
            Some(hint) => error.hint(hint),
            None => error,
        },
        _ => error,
    });
    Next::End(end(done.and_then(|()| stdout.flush()), json))
}

/// Before anything is asked for: how the answer is to look, a daemon where the verb starts one, and ids
/// for all references.
fn prepare(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    fields::check(verb, call)?;
    match verb.run {
        Run::Request(_) | Run::Client(_) => {
            if verb.starts {
                start::ensure(call)?;
            }
            reference::resolve(verb, call)
        }
        Run::Daemon | Run::Check | Run::Database(_) | Run::Doctor | Run::Stop | Run::Complete => {
            Ok(())
        }
    }
}

/// The daemon would start without a file of settings.
fn nothing_to_check(stdout: &mut Stdout) -> Result<(), Error> {
    match stdout.wants_data() {
        true => stdout.data(&serde_json::json!([])),
        false => stdout.note("there is no file of settings: the defaults count"),
    }
}

impl Check {
    /// Tells what was found: the warnings, one a line, or why the daemon would not start with it.
    pub(crate) fn tell(&self, found: Result<Vec<String>, impl std::error::Error>) -> ExitCode {
        let told = found.map_err(|error| Error::of_check(&error)).and_then(|warnings| {
            let mut stdout = Stdout::new(&self.output);
            if stdout.wants_data() {
                stdout.data(&serde_json::Value::from(warnings))?;
                return stdout.flush();
            }
            warnings.iter().try_for_each(|warning| stdout.line(warning))?;
            if warnings.is_empty() {
                stdout.note(format!("{} is in order", self.file.display()))?;
            }
            stdout.flush()
        });
        end(told, self.output.json)
    }
}

fn print(text: &str) -> Result<(), Error> {
    let mut stdout = Stdout::new(&Output::default());
    stdout.raw(text.as_bytes())?;
    stdout.flush()
}

fn end(done: Result<(), Error>, json: bool) -> ExitCode {
    done.map_or_else(|error| error.report(json), |()| ExitCode::SUCCESS)
}

fn daemon_start(globals: Globals, env: &Env) -> Start {
    let from_env = || env.var("MURALD_SOCKET").filter(|path| !path.is_empty());
    let Globals { config, log_level, socket, .. } = globals;
    // The daemon may well change its directory; what was meant is seen from here.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Start {
        config: config.map(absolute),
        log_level,
        socket: socket.or_else(|| from_env().map(PathBuf::from)).map(absolute),
        detached: start::is_detached(env),
    }
}

impl Call {
    fn connect(&self) -> Result<Connection, Error> {
        if let Some(known) = self.connection.get() {
            return Ok(known.clone());
        }
        let mut socket = connection::socket(self.globals.socket.clone(), &Env::process())?;
        if !self.names_socket() && !is_listened_on(&socket) {
            socket = self.elsewhere().unwrap_or(socket);
        }
        Ok(self.connection.get_or_init(|| Connection::new(&socket)).clone())
    }

    /// Whether the user has said where the daemon listens.
    fn names_socket(&self) -> bool {
        let variable = std::env::var_os("MURALD_SOCKET");
        self.globals.socket.is_some() || variable.is_some_and(|path| !path.is_empty())
    }

    /// Where the daemon listens that has the library, as its lock says.
    fn elsewhere(&self) -> Option<PathBuf> {
        (self.elsewhere)(self.globals.config.as_deref())
    }
}
