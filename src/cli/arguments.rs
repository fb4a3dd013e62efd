//! Parses the command line against the verbs table: the result is complete and of the right kinds.
//!
//! Reads no environment and prints nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use pico_args::{Arguments, Keys};
use serde_json::Value;

use super::call::{Call, Globals, OutputOptions};
use super::lookup::{OFF, VerbMatch, Verbs};
use super::template::{Template, written};
use super::value::{one_of, read_value, utf8};
use super::verb::{Arity, Flag, GLOBAL, LOG_LEVELS, Verb};
use super::{Error, help, suggest};

/// The request of a command line.
#[derive(Debug)]
pub(super) enum Parsed {
    Help(String),
    Version,
    Call(&'static Verb, Box<Call>),
}

/// Without the program's own name.
pub(super) fn parse(verbs: Verbs, arguments: Vec<OsString>) -> Result<Parsed, Error> {
    let mut line = Line::new(arguments);
    let globals = line.globals()?;
    let mut help = line.switch(["-h", "--help"]);
    if line.switch(["-V", "--version"]) {
        return Ok(Parsed::Version);
    }
    let mut words = line.words()?;
    if words.first().is_some_and(|word| word == "help") {
        words.remove(0);
        help = true;
        if words == ["all"] {
            return Ok(Parsed::Help(help::all(verbs)));
        }
    }
    let is_off = words.first().is_some_and(|word| word == OFF);
    if is_off {
        "stop".clone_into(&mut words[0]);
    }
    // Help on a resource is help on all of its commands.
    if verbs.spell(&mut words) && help {
        words.pop();
    }
    let verb = match verbs.find(&words) {
        VerbMatch::Verb(verb, used) => {
            line.free = words[used..].iter().map(OsString::from).collect();
            verb
        }
        VerbMatch::Prefix(prefix) if help => return Ok(Parsed::Help(help::group(verbs, &prefix))),
        VerbMatch::Prefix(prefix) => return Err(suggest::incomplete(verbs, &prefix, words.get(1))),
        // `murald` alone is `murald start`; with `--help` it is the whole command's.
        VerbMatch::Nothing if words.is_empty() && help => {
            return Ok(Parsed::Help(help::SHORT.to_owned()));
        }
        VerbMatch::Nothing if words.is_empty() => verbs.start(),
        VerbMatch::Nothing => return Err(suggest::unknown_verb(verbs, &words[0])),
    };
    if help {
        return Ok(Parsed::Help(help::verb(verbs, verb)));
    }
    let mut values = line.flags(verb)?;
    if is_off && values.is_empty() {
        values.push(("--clear", true.into()));
    }
    line.positionals(verb, &mut values)?;
    Ok(Parsed::Call(verb, Box::new(Call { globals, values, ..Call::default() })))
}

/// The words of the command line that are not read yet.
struct Line {
    rest: Arguments,
    /// `--flag=value`, which pico-args reads only as UTF-8 and with quotes of its own.
    joined: Vec<(String, OsString)>,
    /// Words that turned out to be no verb's.
    free: Vec<OsString>,
    /// The words after `--`, which are never flags.
    literal: Vec<OsString>,
}

impl Line {
    fn new(mut arguments: Vec<OsString>) -> Self {
        let mut literal = Vec::new();
        if let Some(at) = arguments.iter().position(|argument| argument == "--") {
            literal = arguments.split_off(at + 1);
            arguments.pop();
        }
        let mut joined = Vec::new();
        arguments.retain(|argument| match split(argument) {
            Some(pair) => {
                joined.push(pair);
                false
            }
            None => true,
        });
        Self { rest: Arguments::from_vec(arguments), joined, free: Vec::new(), literal }
    }

    fn globals(&mut self) -> Result<Globals, Error> {
        let path = |line: &mut Self, name: &'static str| {
            let flag = GLOBAL.iter().find(|flag| flag.name == name).expect("in the table");
            let path = line.values(flag)?.pop();
            match path {
                Some(path) if path.is_empty() => {
                    Err(Error::usage(format!("{name} needs a path, not an empty word")))
                }
                path => Ok(path.map(PathBuf::from)),
            }
        };
        let config = path(self, "--config")?;
        let socket = path(self, "--socket")?;
        let level = GLOBAL.iter().find(|flag| flag.name == "--log-level").expect("in the table");
        let log_level = match self.values(level)?.pop() {
            None => None,
            Some(word) => {
                let word = utf8("--log-level", &word)?;
                one_of("--log-level", &word, LOG_LEVELS)?;
                Some(word)
            }
        };
        Ok(Globals { config, log_level, socket, output: self.output()? })
    }

    fn output(&mut self) -> Result<OutputOptions, Error> {
        let flag = GLOBAL.iter().find(|flag| flag.name == "--format").expect("in the table");
        let format = self.values(flag)?.pop();
        let format = format.map(|word| Template::parse(&utf8("--format", &word)?));
        let (json, format) = (self.switch("--json"), format.transpose()?);
        if json && format.is_some() {
            return Err(Error::usage("--json cannot be combined with --format"));
        }
        Ok(OutputOptions { json, format, quiet: self.switch(["-q", "--quiet"]) })
    }

    fn switch(&mut self, keys: impl Into<Keys> + Copy) -> bool {
        let mut found = false;
        while self.rest.contains(keys) {
            found = true;
        }
        found
    }

    /// Everything that stands before the first flag: the verb, then arguments.
    fn words(&mut self) -> Result<Vec<String>, Error> {
        let mut words = Vec::new();
        loop {
            match self.rest.subcommand() {
                Ok(Some(word)) => words.push(word),
                Ok(None) => return Ok(words),
                Err(_) => return Err(Error::usage("an argument is not UTF-8")),
            }
        }
    }

    /// The values given for one flag.
    fn values(&mut self, flag: &Flag) -> Result<Vec<OsString>, Error> {
        let needs = || Error::usage(format!("{} needs a value", flag.name));
        let mut values = self
            .rest
            .values_from_os_str(flag.name, |value| Ok::<_, std::convert::Infallible>(value.into()))
            .map_err(|_| needs())?;
        if values.iter().any(|value: &OsString| value.as_encoded_bytes().starts_with(b"--")) {
            return Err(needs());
        }
        let mut index = 0;
        while index < self.joined.len() {
            if self.joined[index].0 == flag.name {
                values.push(self.joined.remove(index).1);
            } else {
                index += 1;
            }
        }
        if values.len() > 1 && !flag.many {
            return Err(Error::usage(format!("{} can be given once only", flag.name)));
        }
        Ok(values)
    }

    fn flags(&mut self, verb: &'static Verb) -> Result<Vec<(&'static str, Value)>, Error> {
        let mut found = Vec::new();
        for flag in verb.flags {
            let Some((_, kind)) = flag.value else { continue };
            for given in self.values(flag)? {
                match read_value(flag.name, kind, &given)? {
                    // A list with commas is the flag several times.
                    Value::String(names) if flag.many => {
                        let before = found.len();
                        let each = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                        found.extend(each.map(|name| (flag.name, name.into())));
                        if found.len() == before {
                            let wrong = format!("{} must be a name, not {names:?}", flag.name);
                            return Err(Error::usage(wrong));
                        }
                    }
                    value => found.push((flag.name, value)),
                }
            }
        }
        // After the values, so that a value is never taken for a switch.
        for flag in verb.flags.iter().filter(|flag| flag.value.is_none()) {
            if self.switch(flag.name) {
                found.push((flag.name, Value::Bool(true)));
            }
        }
        Ok(found)
    }

    fn positionals(
        self,
        verb: &'static Verb,
        values: &mut Vec<(&'static str, Value)>,
    ) -> Result<(), Error> {
        if let Some((name, _)) = self.joined.first() {
            return Err(suggest::unknown_flag(verb, name));
        }
        let mut given = self.free;
        for word in self.rest.finish() {
            if is_flag(&word) {
                return Err(suggest::unknown_flag(verb, &word.to_string_lossy()));
            }
            given.push(word);
        }
        given.extend(self.literal);
        let mut given = given.into_iter().peekable();
        for (at, argument) in verb.arguments.iter().enumerate() {
            // The arguments after this one need a word each.
            let behind = verb.arguments.len() - at - 1;
            let most = match argument.arity {
                Arity::One | Arity::Optional => 1,
                Arity::Some | Arity::Any => given.len().saturating_sub(behind),
            };
            if given.peek().is_none() && matches!(argument.arity, Arity::One | Arity::Some) {
                return Err(Error::usage(format!("missing argument {}", argument.name))
                    .hint(format!("usage: {}", help::usage(verb))));
            }
            for word in given.by_ref().take(most) {
                values.push((argument.name, read_value(argument.name, argument.kind, &word)?));
            }
        }
        match given.next() {
            None => Ok(()),
            Some(word) => {
                let word = word.to_string_lossy().into_owned();
                let others = given.map(|word| word.to_string_lossy().into_owned());
                let last = values.last().map(|(_, value)| written(value));
                let whole = last.into_iter().chain([word.clone()]).chain(others);
                Err(suggest::too_many(verb, &word, &whole.collect::<Vec<_>>().join(" ")))
            }
        }
    }
}

/// `--flag=value`
fn split(argument: &OsString) -> Option<(String, OsString)> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = argument.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    let name = std::str::from_utf8(&bytes[..at]).ok().filter(|name| name.starts_with("--"))?;
    Some((name.to_owned(), OsString::from_vec(bytes[at + 1..].to_vec())))
}

/// Negative numbers and a lone dash are words.
fn is_flag(word: &OsString) -> bool {
    let text = word.to_string_lossy();
    text == "-0" || text.len() > 1 && text.starts_with('-') && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests;
