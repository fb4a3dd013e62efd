//! The command: a client of the API.
//!
//! Runs in the only thread of its process, which `main` has given it. Knows the daemon only over its
//! socket: `murald start` is handed back to `main`. It never prints but through `Screen`, to stdout,
//! and `Failure`, to stderr.

mod arguments;
mod call;
mod connection;
mod database;
mod failure;
mod help;
mod lookup;
mod palette;
mod picture;
mod progress;
mod request;
mod screen;
mod sse;
mod table;
mod text;
mod value;
pub mod verb;
mod verbs;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::paths::Env;

use arguments::Parsed;
use call::{Call, Globals};
use connection::Connection;
use lookup::Verbs;
use screen::Screen;
use verb::Run;

pub use database::DatabaseCheck;
pub use database::DatabaseRestore;

pub use failure::{Exit, Failure};
pub use verb::{Arity, Flag, GLOBAL, Verb};
pub use verbs::GROUPS;

/// What is left to do for `main`.
#[derive(Debug)]
pub enum Next {
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
}

/// A file of settings that is to be read.
#[derive(Debug)]
pub struct Check {
    pub file: PathBuf,
    json: bool,
}

/// What the command line says to the daemon.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub config: Option<PathBuf>,
    /// One of `debug`, `info`, `warn`, `error`.
    pub log_level: Option<String>,
    /// From `--socket`, else from `MURALD_SOCKET`.
    pub socket: Option<PathBuf>,
}

/// Reads the command line and does what it says, unless that is to be the daemon.
pub fn main() -> Next {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let json = words.iter().any(|word| word == "--json");
    let verbs = Verbs(GROUPS);
    let parsed = match arguments::parse(verbs, words) {
        Ok(parsed) => parsed,
        Err(failure) => return Next::End(failure.report(json)),
    };
    match parsed {
        Parsed::Help(text) => Next::End(end(print(&text), false)),
        Parsed::Version => {
            Next::End(end(print(concat!("murald ", env!("CARGO_PKG_VERSION"), "\n")), false))
        }
        Parsed::Call(verb, call) => run(verbs, verb, call, json),
    }
}

fn run(verbs: Verbs, verb: &Verb, call: Call, json: bool) -> Next {
    let mut screen = Screen::stdout(json);
    let done = match verb.run {
        Run::Daemon => return Next::Daemon(start(call.globals, &Env::process())),
        Run::Check => match verbs::file_to_check(&call) {
            Ok(file) => return Next::Check(Check { file, json: call.globals.json }),
            Err(failure) => Err(failure),
        },
        Run::Database(what) => match verbs::config_file(&call) {
            Ok(config) => return database::next(what, config, &call),
            Err(failure) => Err(failure),
        },
        Run::Complete => verbs::complete(verbs, &call, &mut screen),
        Run::Request(request) => request.run(&call, &mut screen),
        Run::Client(run) => run(&call, &mut screen),
    };
    Next::End(end(done.and_then(|()| screen.flush()), json))
}

impl Check {
    /// Tells what was found: the warnings, one a line, or why the daemon would not start with it.
    pub fn tell(&self, found: Result<Vec<String>, impl std::error::Error>) -> ExitCode {
        let told = found.map_err(|error| Failure::of_check(&error)).and_then(|warnings| {
            let mut screen = Screen::stdout(self.json);
            if self.json {
                let list = serde_json::Value::from(warnings);
                return screen.body(list.to_string().as_bytes());
            }
            warnings.iter().try_for_each(|warning| screen.line(warning))?;
            if warnings.is_empty() && screen.terminal().is_some() {
                screen.line(format!("{} is in order", self.file.display()))?;
            }
            screen.flush()
        });
        end(told, self.json)
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut screen = Screen::stdout(false);
    screen.raw(text.as_bytes())?;
    screen.flush()
}

fn end(done: Result<(), Failure>, json: bool) -> ExitCode {
    done.map_or_else(|failure| failure.report(json), |()| ExitCode::SUCCESS)
}

fn start(globals: Globals, env: &Env) -> Start {
    let from_env = || env.var("MURALD_SOCKET").filter(|path| !path.is_empty());
    let Globals { config, log_level, socket, .. } = globals;
    // The daemon may well change its directory; what was meant is seen from here.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Start {
        config: config.map(absolute),
        log_level,
        socket: socket.or_else(|| from_env().map(PathBuf::from)).map(absolute),
    }
}

impl Call {
    fn connect(&self) -> Result<Connection, Failure> {
        Ok(Connection::new(&connection::socket(&self.globals, &Env::process())?))
    }
}
