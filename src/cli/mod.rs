//! Implements the command line, which is a client of the API.
//!
//! Runs on the only thread of its process. Knows the daemon only over its socket: functions of `main`
//! (`Host`) do what a client cannot do. Prints through `Stdout` and `Error` only, apart from warnings
//! and progress on stderr.

mod arguments;
mod call;
mod columns;
mod connection;
mod error;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/cli.rs"]
pub mod fuzz;
mod gallery;
mod help;
mod lookup;
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

use std::process::ExitCode;

use arguments::Parsed;
use call::{Call, OutputOptions};
use lookup::Verbs;
use request::Request;
use stdout::{Progress, Stdout};
use verb::Run;

pub(crate) use call::{Host, Setting, Start};

pub use columns::View;
pub(crate) use error::Error;
pub use error::Exit;
pub use verb::{Arity, Flag, GLOBAL, Kind, Verb};
pub use verbs::GROUPS;

/// Reads the command line and runs the verb.
pub(crate) fn main(host: &'static Host) -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let json = words.iter().any(|word| word == "--json");
    let verbs = Verbs(GROUPS);
    let done = arguments::parse(verbs, words).and_then(|parsed| match parsed {
        Parsed::Help(text) => print(&text),
        Parsed::Version => print(concat!("murald ", env!("CARGO_PKG_VERSION"), "\n")),
        Parsed::Call(verb, call) => run(
            verbs,
            verb,
            Call {
                host: Some(host),
                ..*call
            },
        ),
    });
    done.map_or_else(|error| error.report(json), |()| ExitCode::SUCCESS)
}

fn run(verbs: Verbs, verb: &Verb, mut call: Call) -> Result<(), Error> {
    prepare(verb, &mut call)?;
    let mut stdout = Stdout::new(&call.globals.output);
    let done = match verb.run {
        Run::Complete => verbs::complete(verbs, &call, &mut stdout),
        Run::Request(request) => send(verb, &request, &call, &mut stdout),
        Run::Client(run) => run(&call, &mut stdout),
    };
    let printed = stdout.flush();
    done.map_err(|error| hinted(error, verb, &call))
        .and(printed)
}

/// Asks for confirmation, sends the request and prints the answer.
fn send(verb: &Verb, request: &Request, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
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

/// Replaces the API's parameters in the daemon's error by the flags that were typed, and adds a hint.
fn hinted(error: Error, verb: &Verb, call: &Call) -> Error {
    let given = verb.flags.iter().filter(|flag| call.has(flag.name));
    let error = given.fold(error, |error, flag| {
        error.renamed(&verbs::in_api(flag.name), flag.name)
    });
    match error.status() {
        Some(404) => {
            let advice = || verbs::advice(call).map(str::to_owned);
            match reference::colored_like_an_id(verb, call).or_else(advice) {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
        Some(500) if verb.confirm.is_some() && !call.has("--forever") => {
            error.hint("--forever deletes without the trash")
        }
        _ => error,
    }
}

/// Before the request: checks the format, starts a daemon if the verb does so, and looks up all
/// references.
fn prepare(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    check_format(verb, call)?;
    verb.usage.map_or(Ok(()), |judge| judge(call))?;
    if verb.starts {
        start::ensure(call)?;
    }
    for argument in verb.arguments {
        let default = argument.default.filter(|_| !call.has(argument.name));
        call.values
            .extend(default.map(|word| (argument.name, word.into())));
    }
    if verb.chooses {
        verbs::are_named(call)?;
    }
    reference::resolve(verb, call)?;
    if verb.chooses {
        verbs::choose(verb, call)
    } else {
        Ok(())
    }
}

/// Refuses a `--format` with fields that the command's answer never has, before anything is done.
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
