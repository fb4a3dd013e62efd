//! The candidates that shells complete a command line with (`contrib/completions`).
//!
//! The answer is a line for each candidate, with a tab and its meaning after it, or `:files` or
//! `:directories`, which a shell completes better. A shell waits for the answer, so candidates from a
//! daemon that does not answer at once are omitted.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{TimerfdClockId, TimerfdTimerFlags};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::config::fields;
use super::config_change::settings;
use super::{
    Argument, Arity, Call, Connection, Error, Flag, GLOBAL, HUES, Kind, RequestPath, Run, Setting,
    Stdout, Verb, VerbMatch, Verbs, items, path, written,
};
use crate::sys::Timer;
use crate::wire::Position;

#[rustfmt::skip]
pub(super) const COMPLETE: Verb =
    Verb::new(&["complete"], "Print completions for a partial command line", Run::Complete)
        .takes(&[Argument::any("TEXT", Kind::Text, "The words so far, without `murald`; the last may \
               be empty")])
        .help("    murald complete -- images ''");

const PATIENCE: Duration = Duration::from_millis(500);
/// The maximum number of images that are offered.
const IMAGES: u32 = 50;

/// A word, and what it means.
type Candidate = (String, String);

pub(crate) fn complete(verbs: Verbs, call: &Call, stdout: &mut Stdout) -> Result<(), Error> {
    let words: Vec<String> = call
        .all("TEXT")
        .into_iter()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    let Some((last, before)) = words.split_last() else {
        return Ok(());
    };
    let mut before = before.to_vec();
    // A flag and its value in one word.
    let (joined, partial) = match last.split_once('=').filter(|_| last.starts_with("--")) {
        Some((flag, value)) => {
            before.push(flag.to_owned());
            (format!("{flag}="), value)
        }
        None => (String::new(), last.as_str()),
    };
    let line = Line::read(verbs, &before);
    let mut call = call.clone();
    call.globals.socket = line.socket.clone().or(call.globals.socket);
    let source = Source { call };
    for (word, meaning) in line.candidates(partial, &source) {
        let word = if word.starts_with(':') {
            word
        } else if word.starts_with(partial) {
            format!("{joined}{word}")
        } else {
            continue;
        };
        let clean = |text: String| text.replace(|c: char| c.is_control(), " ");
        stdout.raw(format!("{}\t{}\n", clean(word), clean(meaning)).as_bytes())?;
    }
    Ok(())
}

/// The words before the word that is completed.
#[derive(Debug)]
struct Line {
    verbs: Verbs,
    /// The words that are no flags.
    plain: Vec<String>,
    /// A flag that waits for its value.
    open: Option<Kind>,
    socket: Option<PathBuf>,
}

impl Line {
    fn read(verbs: Verbs, words: &[String]) -> Self {
        let mut line = Self {
            verbs,
            plain: Vec::new(),
            open: None,
            socket: None,
        };
        let mut flag: Option<&Flag> = None;
        for word in words {
            if let Some(flag) = flag.take() {
                if flag.name == "--socket" {
                    line.socket = Some(word.into());
                }
            } else if let Some(path) = word.strip_prefix("--socket=") {
                line.socket = Some(path.into());
            } else if word.starts_with('-') {
                let known = line.verb().map_or(&[][..], |verb| verb.flags);
                let named = |flag: &&Flag| flag.name == word && flag.value.is_some();
                flag = known.iter().chain(GLOBAL).find(named);
            } else {
                line.plain.push(word.clone());
                if verbs.spell(&mut line.plain) {
                    // Other words may follow the resource.
                    line.plain.pop();
                }
            }
        }
        line.open = flag.and_then(|flag| flag.value).map(|(_, kind)| kind);
        line
    }

    /// The verb of the words so far, if they are one.
    fn verb(&self) -> Option<&'static Verb> {
        match self.verbs.find(&self.plain) {
            VerbMatch::Verb(verb, _) => Some(verb),
            VerbMatch::Prefix(_) | VerbMatch::Nothing => None,
        }
    }

    fn candidates(&self, partial: &str, source: &Source) -> Vec<Candidate> {
        if let (Some(Kind::Template), Some(verb)) = (self.open, self.verb()) {
            return template(verb, partial, &source.call);
        }
        if let Some(kind) = self.open {
            return source.values(kind, partial, &self.plain);
        }
        let verb = self.verb();
        if partial.starts_with('-') {
            let flags = verb.map_or(&[][..], |verb| verb.flags).iter().chain(GLOBAL);
            return flags
                .map(|flag| (flag.name.to_owned(), flag.meaning.to_owned()))
                .collect();
        }
        let mut found = self.next_words();
        if self.plain.is_empty() && !partial.is_empty() {
            let aliases = Verbs::aliases();
            found.extend(
                aliases.map(|(word, ours)| (word.to_owned(), format!("The same as {ours}"))),
            );
        }
        if let Some(verb) = verb
            && let Some(kind) = argument(verb, self.plain.len() - verb.words.len())
        {
            found.extend(source.values(kind, partial, &self.plain));
        }
        found
    }

    /// Words of verbs that begin with the words so far.
    fn next_words(&self) -> Vec<Candidate> {
        let at = self.plain.len();
        let mut found: Vec<Candidate> = Vec::new();
        for verb in self.verbs.with_prefix(&self.plain) {
            let Some(&word) = verb.words.get(at) else {
                continue;
            };
            let meaning = if verb.words.len() == at + 1 {
                verb.summary
            } else {
                ""
            };
            match found.iter_mut().find(|(known, _)| known == word) {
                Some((_, known)) if known.is_empty() => *known = meaning.to_owned(),
                Some(_) => {}
                None => found.push((word.to_owned(), meaning.to_owned())),
            }
        }
        found
    }
}

/// The kind of a verb's argument at this place.
fn argument(verb: &Verb, place: usize) -> Option<Kind> {
    let repeats = |argument: &&Argument| matches!(argument.arity, Arity::Some | Arity::Any);
    let argument = verb
        .arguments
        .get(place)
        .or_else(|| verb.arguments.last().filter(repeats));
    argument.map(|argument| argument.kind)
}

/// The source of candidates that the table does not have.
struct Source {
    call: Call,
}

impl Source {
    fn values(&self, kind: Kind, partial: &str, plain: &[String]) -> Vec<Candidate> {
        // Files are found better by a shell.
        let files = || bare([":files"]);
        match kind {
            Kind::File => files(),
            Kind::Directory => bare([":directories"]),
            Kind::Words(list) => bare(list.iter().copied()),
            Kind::Position => bare(Position::WORDS.iter().copied()),
            Kind::Hues => behind_the_comma(partial, HUES.iter().map(|(name, _)| *name)),
            Kind::List(list) if !list.is_empty() => behind_the_comma(partial, list.iter().copied()),
            Kind::List(_) | Kind::Tags => {
                behind_the_comma(partial, self.tags().iter().map(String::as_str))
            }
            Kind::Image | Kind::Item => self.images(partial),
            Kind::Picture | Kind::PictureOrPlaylist => [self.images(partial), files()].concat(),
            Kind::Folder => self.folders(),
            Kind::FolderOrRoot => [self.folders(), bare(["root"])].concat(),
            Kind::Playlist => self.named(&RequestPath::new(&[&"playlists"])),
            Kind::Monitor => self.listed(&RequestPath::new(&[&"monitors"]), "name", "description"),
            Kind::Workspace => self.listed(&RequestPath::new(&[&"workspaces"]), "name", "monitor"),
            // Not from the daemon, which would first ask each program for its version.
            Kind::Backend => self.setting_values(&["backend.type".to_owned()]),
            Kind::Theme => self.listed(
                &RequestPath::new(&[&"api", &"themes"]),
                "name",
                "display_name",
            ),
            Kind::Section => self.sections(partial),
            Kind::Setting => self.keys(plain),
            Kind::SettingValue => self.setting_values(plain),
            Kind::Text | Kind::Name | Kind::Template | Kind::Json => Vec::new(),
            Kind::Count(..) | Kind::Number | Kind::Span => Vec::new(),
            Kind::Colors | Kind::ColorsNear => Vec::new(),
        }
    }

    /// Images whose names begin with `partial`; the newest if that is empty or a number.
    fn images(&self, partial: &str) -> Vec<Candidate> {
        let beginning = partial
            .contains(|c: char| !c.is_ascii_digit())
            .then_some(partial);
        let place = RequestPath::new(&[&"images"])
            .query("name_prefix", beginning)
            .query("per_page", Some(IMAGES));
        self.named(&place)
    }

    fn tags(&self) -> Vec<String> {
        let told: Value = self
            .ask(&RequestPath::new(&[&"images", &"tags"]))
            .unwrap_or_default();
        items(&told, "tags").iter().map(written).collect()
    }

    /// Folders by their paths from the root down, and by their ids.
    fn folders(&self) -> Vec<Candidate> {
        let place = RequestPath::new(&[&"folders"]).query("parent_id", Some("all"));
        let all = self.records(&place);
        let paths: Vec<Candidate> = all
            .iter()
            .map(|folder| (path(folder, &all), written(&folder["id"])))
            .collect();
        both_ways(paths)
    }

    /// The records of a list: the field `word`, and the field `meaning` that explains it.
    fn listed(&self, place: &RequestPath, word: &str, meaning: &str) -> Vec<Candidate> {
        let records = self.records(place).into_iter();
        records
            .map(|record| (written(&record[word]), written(&record[meaning])))
            .collect()
    }

    /// Records by their names, and by their ids.
    fn named(&self, place: &RequestPath) -> Vec<Candidate> {
        both_ways(self.listed(place, "name", "id"))
    }

    fn records(&self, place: &RequestPath) -> Vec<Value> {
        match self.ask(place) {
            Some(Value::Array(list)) => list,
            Some(mut page) => page["data"].take().as_array().cloned().unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// All sections, and the keys of a section that is already typed with its dot.
    fn sections(&self, partial: &str) -> Vec<Candidate> {
        let mut found: Vec<String> = Vec::new();
        for Setting { section, key, .. } in self.call.settings() {
            let with_key = format!("{section}.{key}");
            let has_keys = section == "backend" || partial.starts_with(&format!("{section}."));
            // `backend` cannot be named without a key.
            if section != "backend" && !found.contains(&section) {
                found.push(section);
            }
            found.extend(has_keys.then_some(with_key));
        }
        bare(found)
    }

    /// The keys of the section that was named, with their values now; or the values of a setting.
    fn keys(&self, plain: &[String]) -> Vec<Candidate> {
        let section = plain.last().map_or("", String::as_str);
        let values = self.setting_values(plain);
        if !values.is_empty() {
            return values;
        }
        let settings = self
            .connection()
            .and_then(|it| settings(&it, section, false).ok());
        let settings = settings
            .as_ref()
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        settings
            .map(|(key, value)| (key.clone(), value.to_string()))
            .collect()
    }

    /// The values of the setting that a line names in one word or in two.
    fn setting_values(&self, plain: &[String]) -> Vec<Candidate> {
        let named = |setting: &Setting| {
            let whole = format!("{}.{}", setting.section, setting.key);
            let last = plain.last().is_some_and(|word| *word == whole);
            last || plain.ends_with(&[setting.section.clone(), setting.key.to_owned()])
        };
        let setting = self.call.settings().into_iter().find(named);
        bare(setting.map(|setting| setting.words).unwrap_or_default())
    }

    /// The daemon's answer; none if there is no answer in time.
    fn ask<T: DeserializeOwned>(&self, place: &RequestPath) -> Option<T> {
        self.connection()?.get(place).ok()?.read().ok()
    }

    /// A connection that waits no longer than `PATIENCE`.
    fn connection(&self) -> Option<Connection> {
        Some(self.call.connect().ok()?.interruptible(timer().ok()?))
    }
}

/// Records by their names, then by their ids.
fn both_ways(named: Vec<Candidate>) -> Vec<Candidate> {
    let ids: Vec<Candidate> = named
        .iter()
        .map(|(name, id)| (id.clone(), name.clone()))
        .collect();
    named.into_iter().chain(ids).collect()
}

/// Words without a meaning.
fn bare(words: impl IntoIterator<Item = impl Into<String>>) -> Vec<Candidate> {
    words
        .into_iter()
        .map(|word| (word.into(), String::new()))
        .collect()
}

/// The fields of a verb's answer, after the part of the template that is already typed.
fn template(verb: &Verb, partial: &str, call: &Call) -> Vec<Candidate> {
    let done = partial.rsplit_once('{').map_or(partial, |(done, _)| done);
    bare(
        fields(verb, call)
            .into_iter()
            .map(|name| format!("{done}{{{name}}}")),
    )
}

/// Words that continue a list with commas; words that it has already are omitted.
fn behind_the_comma<'a>(partial: &str, words: impl Iterator<Item = &'a str>) -> Vec<Candidate> {
    let done = partial.rfind(',').map_or("", |at| &partial[..=at]);
    let given: Vec<&str> = done.split(',').collect();
    bare(
        words
            .filter(|word| !given.contains(word))
            .map(|word| format!("{done}{word}")),
    )
}

/// Becomes readable after `PATIENCE`.
fn timer() -> std::io::Result<OwnedFd> {
    let timer = Timer::new(TimerfdClockId::Monotonic)?;
    timer.set(TimerfdTimerFlags::empty(), PATIENCE.subsec_nanos().into())?;
    Ok(timer.into())
}
