//! Parses the command line against the verbs table: the result is complete and of the right kinds.
//!
//! Reads no environment and prints nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;

use super::call::{Call, Globals};
use super::lookup::{OFF, VerbMatch, Verbs};
use super::template::{Template, written};
use super::value::{read_value, utf8};
use super::verb::{Arity, Flag, GLOBAL, Verb};
use super::{Error, help, suggest};

/// The request of a command line.
#[derive(Debug)]
pub(super) enum Parsed {
    Help(String),
    Version,
    Call(&'static Verb, Box<Call>),
}

/// The name of a verb's argument or flag, and its value.
type Named = (&'static str, Value);

/// Parses a command line without the program's own name.
pub(super) fn parse(verbs: Verbs, arguments: Vec<OsString>) -> Result<Parsed, Error> {
    let mut line = Line::new(arguments);
    let mut words = line.clone().leading()?;
    let leading = words.len();
    let asks_help = words.first().is_some_and(|word| word == "help");
    words.drain(..usize::from(asks_help));
    let is_off = words.first().is_some_and(|word| word == OFF);
    if is_off {
        "stop".clone_into(&mut words[0]);
    }
    let mut spelled = words.clone();
    verbs.spell(&mut spelled);
    let found = verbs.find(&spelled);
    let flags = if let VerbMatch::Verb(verb, _) = found {
        verb.flags
    } else {
        &[]
    };
    // The value of a verb's flag may look like a global flag, so both are read together.
    let (globals, given) = line.take(flags)?.into_iter().partition(is_global);
    let (globals, help, version) = read_globals(globals)?;
    if version {
        return Ok(Parsed::Version);
    }
    if help || asks_help {
        return help_on(verbs, words).map(Parsed::Help);
    }
    let (verb, used) = match found {
        VerbMatch::Verb(verb, used) => (verb, used),
        VerbMatch::Prefix(prefix) => {
            return Err(suggest::incomplete(verbs, prefix, spelled.get(1)));
        }
        // `murald` alone is `murald start`.
        VerbMatch::Nothing if spelled.is_empty() => {
            line.flags_come_first()?;
            (verbs.start(), 0)
        }
        VerbMatch::Nothing => return Err(suggest::unknown_verb(verbs, &spelled[0])),
    };
    let mut values = flag_values(given)?;
    if is_off && values.is_empty() {
        values.push(("--clear", true.into()));
    }
    let mut words: Vec<OsString> = spelled.into_iter().skip(used).map(OsString::from).collect();
    words.extend(line.positionals(verb, leading)?);
    values.extend(positionals(verb, words)?);
    Ok(Parsed::Call(
        verb,
        Box::new(Call {
            globals,
            values,
            ..Call::default()
        }),
    ))
}

fn help_on(verbs: Verbs, mut words: Vec<String>) -> Result<String, Error> {
    // Help on a resource lists all of its commands, not only `list`.
    if verbs.spell(&mut words) {
        words.pop();
    }
    match verbs.find(&words) {
        _ if words == ["all"] => Ok(help::all(verbs)),
        VerbMatch::Verb(verb, _) => Ok(help::verb(verbs, verb)),
        VerbMatch::Prefix(prefix) => Ok(help::group(verbs, prefix)),
        VerbMatch::Nothing if words.is_empty() => Ok(help::SHORT.to_owned()),
        VerbMatch::Nothing => Err(suggest::unknown_verb(verbs, &words[0])),
    }
}

/// A flag, and the word that is its value.
type Given = (&'static Flag, Option<OsString>);

/// The words of the command line that are not read yet.
#[derive(Clone)]
struct Line {
    words: Vec<OsString>,
    /// The words after `--`, which are never flags.
    literal: Vec<OsString>,
}

impl Line {
    fn new(mut words: Vec<OsString>) -> Self {
        let mut literal = Vec::new();
        if let Some(at) = words.iter().position(|word| word == "--") {
            literal = words.split_off(at + 1);
            words.pop();
        }
        Self { words, literal }
    }

    /// Removes the flags of a verb and those of every verb, each with its value: `--flag value` or
    /// `--flag=value`.
    fn take(&mut self, own: &'static [Flag]) -> Result<Vec<Given>, Error> {
        let mut found: Vec<Given> = Vec::new();
        let mut words = std::mem::take(&mut self.words).into_iter().peekable();
        while let Some(word) = words.next() {
            let (name, joined) = split(&word);
            let mut known = own.iter().chain(GLOBAL);
            let flag = known.find(|flag| name == flag.name || name == short(flag.name));
            // A switch with a value is reported as an unknown flag.
            let Some(flag) = flag.filter(|flag| flag.value.is_some() || joined.is_none()) else {
                self.words.push(word);
                continue;
            };
            let is_again = found.iter().any(|(other, _)| other.name == flag.name);
            if flag.value.is_none() {
                found.extend((!is_again).then_some((flag, None)));
                continue;
            }
            let next = || words.next_if(|word| !word.as_encoded_bytes().starts_with(b"--"));
            let value = joined.map(OsStr::to_owned).or_else(next);
            let needs = || Error::usage(format!("{} needs a value", flag.name));
            let value = value.ok_or_else(needs)?;
            if is_again && !flag.many {
                return Err(Error::usage(format!(
                    "{} can be given only once",
                    flag.name
                )));
            }
            found.push((flag, Some(value)));
        }
        Ok(found)
    }

    /// The words before the first flag of a verb: the verb, then arguments.
    fn leading(&mut self) -> Result<Vec<String>, Error> {
        self.take(&[])?;
        let words = self
            .words
            .drain(..)
            .take_while(|word| !word.as_bytes().starts_with(b"-"));
        let words = words.map(OsString::into_string).collect::<Result<_, _>>();
        words.map_err(|_| Error::usage("an argument is not UTF-8"))
    }

    /// The error for a flag of a command, or an unknown one, before the command.
    fn flags_come_first(&self) -> Result<(), Error> {
        let is_command = |word: &&OsString| !is_flag(word);
        match (self.words.first(), self.words.iter().find(is_command)) {
            (Some(flag), Some(_)) => {
                let (name, _) = split(flag);
                let error = format!("{} must follow the command", name.to_string_lossy());
                Err(Error::usage(error).hint("`murald help all` lists all commands and flags"))
            }
            _ => Ok(()),
        }
    }

    /// The words after the leading ones; an unknown flag among them is an error.
    fn positionals(self, verb: &Verb, leading: usize) -> Result<Vec<OsString>, Error> {
        if let Some(word) = self.words.iter().find(|word| is_flag(word)) {
            let (name, _) = split(word);
            let name = name.to_string_lossy();
            let is_alone = leading == 0;
            return Err(suggest::unknown_flag(verb, &name, is_alone));
        }
        Ok(self
            .words
            .into_iter()
            .skip(leading)
            .chain(self.literal)
            .collect())
    }
}

fn is_global((flag, _): &Given) -> bool {
    GLOBAL.iter().any(|global| global.name == flag.name)
}

/// The flags of every verb, and whether help or the version is asked for.
fn read_globals(given: Vec<Given>) -> Result<(Globals, bool, bool), Error> {
    let mut globals = Globals::default();
    let mut help = false;
    let mut version = false;
    for (flag, value) in given {
        let name = flag.name;
        let value = value.unwrap_or_default();
        let path = || {
            if value.is_empty() {
                Err(Error::usage(format!(
                    "{name} needs a path, not an empty word"
                )))
            } else {
                Ok(Some(PathBuf::from(&value)))
            }
        };
        match (name, flag.value) {
            ("--config", _) => globals.config = path()?,
            ("--socket", _) => globals.socket = path()?,
            ("--log-level", Some((_, kind))) => {
                globals.log_level = Some(written(&read_value(name, kind, &value)?));
            }
            ("--format", _) => {
                globals.output.format = Some(Template::parse(&utf8(name, &value)?)?);
            }
            ("--json", _) => globals.output.json = true,
            ("--quiet", _) => globals.output.quiet = true,
            ("--help", _) => help = true,
            _ => version = true,
        }
    }
    if globals.output.json && globals.output.format.is_some() {
        return Err(Error::usage("--json cannot be combined with --format"));
    }
    Ok((globals, help, version))
}

/// The values of a verb's flags.
fn flag_values(given: Vec<Given>) -> Result<Vec<Named>, Error> {
    let mut values = Vec::new();
    for (flag, word) in given {
        match (flag.value, word) {
            (Some((_, kind)), Some(word)) => {
                values.extend(listed_values(flag, read_value(flag.name, kind, &word)?)?);
            }
            _ => values.push((flag.name, true.into())),
        }
    }
    Ok(values)
}

/// The values of one flag. A list with commas counts as the flag given several times.
fn listed_values(flag: &'static Flag, value: Value) -> Result<Vec<Named>, Error> {
    let Some(names) = value.as_str().filter(|_| flag.many) else {
        return Ok(vec![(flag.name, value)]);
    };
    let each = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let values: Vec<Named> = each.map(|name| (flag.name, name.into())).collect();
    if values.is_empty() {
        return Err(Error::usage(format!(
            "{} must be a name, not {names:?}",
            flag.name
        )));
    }
    Ok(values)
}

/// The values of the verb's arguments.
fn positionals(verb: &'static Verb, words: Vec<OsString>) -> Result<Vec<Named>, Error> {
    let mut values: Vec<Named> = Vec::new();
    let mut words = words.into_iter();
    for (at, argument) in verb.arguments.iter().enumerate() {
        // The arguments after this one need a word each.
        let behind = verb.arguments.len() - at - 1;
        let most = match argument.arity {
            Arity::One | Arity::Optional => 1,
            Arity::Some | Arity::Any => words.len().saturating_sub(behind),
        };
        if words.len() == 0 && matches!(argument.arity, Arity::One | Arity::Some) {
            return Err(Error::usage(format!("missing argument {}", argument.name))
                .hint(format!("usage: {}", help::usage(verb))));
        }
        for word in words.by_ref().take(most) {
            values.push((
                argument.name,
                read_value(argument.name, argument.kind, &word)?,
            ));
        }
    }
    let Some(word) = words.next() else {
        return Ok(values);
    };
    let word = word.to_string_lossy().into_owned();
    let others = words.map(|word| word.to_string_lossy().into_owned());
    let last = values.last().map(|(_, value)| written(value));
    let whole: Vec<String> = last
        .into_iter()
        .chain([word.clone()])
        .chain(others)
        .collect();
    Err(suggest::too_many(verb, &word, &whole.join(" ")))
}

/// The short form of a flag, or its name if it has none.
fn short(name: &str) -> &str {
    match name {
        "--help" => "-h",
        "--version" => "-V",
        "--quiet" => "-q",
        name => name,
    }
}

/// Splits `--flag=value`; any other word stays whole.
fn split(word: &OsStr) -> (&OsStr, Option<&OsStr>) {
    let bytes = word.as_bytes();
    match bytes
        .iter()
        .position(|&byte| byte == b'=')
        .filter(|_| bytes.starts_with(b"--"))
    {
        Some(at) => (
            OsStr::from_bytes(&bytes[..at]),
            Some(OsStr::from_bytes(&bytes[at + 1..])),
        ),
        None => (word, None),
    }
}

/// Whether a word is a flag: negative numbers and a lone dash are not.
fn is_flag(word: &OsString) -> bool {
    let text = word.to_string_lossy();
    text == "-0" || text.len() > 1 && text.starts_with('-') && text.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests;
