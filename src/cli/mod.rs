//! The command: a client of the API.
//!
//! Runs on the only thread of its process. Knows the daemon only over its socket: work that a client
//! cannot do is handed back to `main` (`next.rs`). Prints through `Stdout` and `Error` only, apart from
//! warnings and progress on stderr.

mod arguments;
mod call;
mod columns;
mod connection;
mod edit_lock;
mod error;
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

use std::path::Path;

use arguments::Parsed;
use call::{Call, OutputOptions};
use lookup::Verbs;
use next::end;
use request::Request;
use stdout::{Progress, Stdout};
use verb::Run;

pub(crate) use call::{Elsewhere, Setting};
pub(crate) use next::{Next, Start};

pub use columns::View;
pub(crate) use error::Error;
pub use error::Exit;
pub use verb::{Arity, Flag, GLOBAL, Kind, Verb};
pub use verbs::GROUPS;

/// Reads the command line and runs the verb, unless that is work of `main`. `settings` lists all of the
/// configuration; `elsewhere` is asked if no daemon listens on the usual socket.
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
        Run::Main(run) => match run(&call, &mut stdout) {
            Ok(Some(next)) => return next,
            done => done.map(drop),
        },
        Run::Complete => verbs::complete(verbs, &call, &mut stdout),
        Run::Request(request) => send(verb, &request, &call, &mut stdout),
        Run::Client(run) => run(&call, &mut stdout),
    };
    let done = done.map_err(|error| hinted(error, verb, &call));
    Next::End(end(done.and_then(|()| stdout.flush()), json))
}

/// Confirms, asks, and prints.
fn send(verb: &Verb, request: &Request, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    if verb.chooses && !call.has("IMAGE") {
        return stdout.say("no image matches");
    }
    if let Some(question) = verb.confirm {
        verbs::confirm(call, question)?;
    }
    let mut progress = Progress::stderr(!verb.waiting.is_empty() && !stdout.wants_data());
    progress.wait(verb.waiting);
    let answer = request.send(call, &verb.name())?;
    progress.clear();
    if let Some(check) = verb.check {
        check(call, &answer.read()?)?;
    }
    match verb.views.first() {
        Some(view) => view.show(call, stdout, &answer),
        None => stdout.say("done"),
    }
}

fn hinted(error: Error, verb: &Verb, call: &Call) -> Error {
    match error.status() {
        Some(404) => match reference::named_like_an_id(verb, call) {
            Some(hint) => error.hint(hint),
            None => error,
        },
        Some(400) if call.text("PICTURE").is_some_and(|path| Path::new(path).is_dir()) => error
            .hint(
                "`murald slideshow DIR` shows the pictures of a directory one after another, \
             `murald import DIR` imports them",
            ),
        Some(400) if call.has("--transition") && has_no_transitions(&error) => {
            error.hint("`murald backends activate builtin` draws with transitions")
        }
        Some(500) if verb.confirm.is_some() && !call.has("--forever") => {
            error.hint("--forever deletes without the trash")
        }
        _ => error,
    }
}

/// Whether the error is of a backend that has no transitions at all.
fn has_no_transitions(error: &Error) -> bool {
    let reason = error.reason();
    ["feh", "hyprpaper", "mpvpaper", "swaybg"]
        .iter()
        .any(|name| reason.starts_with(&format!("{name} has no transition")))
}

/// Before the request: checks the format, starts a daemon if the verb does so, and looks up all
/// references.
fn prepare(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    check_format(verb, call)?;
    if matches!(verb.run, Run::Main(_) | Run::Complete) {
        return Ok(());
    }
    if verb.starts {
        start::ensure(call)?;
    }
    for argument in verb.arguments {
        let default = argument.default.filter(|_| !call.has(argument.name));
        call.values.extend(default.map(|word| (argument.name, word.into())));
    }
    if verb.chooses {
        verbs::are_named(call)?;
    }
    reference::resolve(verb, call)?;
    if verb.chooses { verbs::choose(verb, call) } else { Ok(()) }
}

/// Refuses a `--format` that names what the command's answer never has, before anything is done.
fn check_format(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    let names = verbs::fields(verb, call);
    match &mut call.globals.output.format {
        Some(template) if !verb.views.is_empty() => template.check(&names),
        _ => Ok(()),
    }
}

fn print(text: &str) -> Result<(), Error> {
    let mut stdout = Stdout::new(&OutputOptions::default());
    stdout.raw(text.as_bytes())?;
    stdout.flush()
}
