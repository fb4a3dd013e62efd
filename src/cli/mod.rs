//! The command: a client of the API.
//!
//! Runs on the only thread of its process. Knows the daemon only over its socket: work that a client
//! cannot do is handed back to `main` (`next.rs`). Prints through `Stdout` and `Error` only, apart from
//! warnings and progress on stderr.

mod arguments;
mod call;
mod connection;
mod edit_lock;
mod error;
mod fields;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/cli.rs"]
pub mod fuzz;
mod help;
mod lookup;
mod next;
mod picture;
mod reference;
mod request;
mod sse;
mod start;
mod stdout;
mod suggest;
mod table;
mod template;
mod terminal;
mod value;
pub(crate) mod verb;
mod verbs;

use crate::paths::Env;

use arguments::Parsed;
use call::{Call, OutputOptions};
use lookup::Verbs;
use next::{daemon_start, database_task, end};
use stdout::Stdout;
use verb::Run;
use verbs::Stopped;

pub(crate) use call::{Elsewhere, Setting};
pub(crate) use next::{Check, Doctor, Next, Start, TakeDown};

pub(crate) use error::Error;
pub use error::Exit;
pub use fields::{FIELDS, Fields};
pub use verb::{Arity, Flag, GLOBAL, Kind, Verb};
pub use verbs::GROUPS;

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
        Parsed::Call(verb, call) => run(verbs, verb, Call { settings, elsewhere, ..*call }, json),
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
            Ok(config) => return database_task(what, config, &call),
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

fn print(text: &str) -> Result<(), Error> {
    let mut stdout = Stdout::new(&OutputOptions::default());
    stdout.raw(text.as_bytes())?;
    stdout.flush()
}
