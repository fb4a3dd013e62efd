//! Every verb of the command, one file per resource.

mod backends;
mod complete;
mod config;
mod daemon;
mod edit;
mod events;
mod files;
mod folders;
mod gallery;
mod history;
mod images;
mod import;
mod playlist;
mod playlists;
mod themes;
mod video;
mod wallpaper;

use super::verb::{Flag, Group, Kind, Verb};

pub(super) use config::file_to_check;

/// In the order that help shows them.
pub static GROUPS: &[Group] = &[
    daemon::GROUP,
    wallpaper::GROUP,
    import::GROUP,
    images::GROUP,
    folders::GROUP,
    video::GROUP,
    playlists::GROUP,
    backends::GROUP,
    config::GROUP,
    themes::GROUP,
];

/// What the first words of a command line are.
pub(super) enum Found {
    /// A verb, of so many words.
    Verb(&'static Verb, usize),
    /// The beginning of several.
    Prefix(Vec<String>),
    Nothing,
}

pub(super) fn all() -> impl Iterator<Item = &'static Verb> {
    GROUPS.iter().flat_map(|group| group.verbs)
}

/// The verb with the most words of those given.
pub(super) fn find(words: &[String]) -> Found {
    let fits = |verb: &&Verb| verb.words.len() <= words.len() && starts(words, verb.words);
    if let Some(verb) = all().filter(fits).max_by_key(|verb| verb.words.len()) {
        return Found::Verb(verb, verb.words.len());
    }
    match words.first() {
        Some(first) if all().any(|verb| verb.words[0] == first) => {
            Found::Prefix(vec![first.clone()])
        }
        _ => Found::Nothing,
    }
}

/// The verbs whose first words are these.
pub(super) fn with_prefix<S: AsRef<str>>(
    prefix: &[S],
) -> impl Iterator<Item = &'static Verb> + use<'_, S> {
    all().filter(move |verb| {
        verb.words.len() >= prefix.len()
            && prefix.iter().zip(verb.words).all(|(one, other)| one.as_ref() == *other)
    })
}

/// What `murald` alone is.
pub(super) fn start() -> &'static Verb {
    &daemon::GROUP.verbs[0]
}

fn starts(words: &[String], verb: &[&str]) -> bool {
    words.iter().zip(verb).all(|(one, other)| one == other)
}

/// A switch that can be told to be off.
const ON_OFF: Kind = Kind::Words(&["on", "off"]);
const MODES: &[&str] = crate::wire::Mode::WORDS;
const MEDIA_TYPES: &[&str] = crate::wire::MediaType::WORDS;

const MONITORS: Flag =
    Flag::value("--monitor", "NAME", Kind::Monitor, "Only this monitor; all without").many();
const MODE: Flag =
    Flag::value("--mode", "MODE", Kind::Words(MODES), "How the picture is laid over the monitors");
const FOLDER: Flag =
    Flag::value("--folder", "ID", Kind::Folder, "The folder that takes what comes in");

/// A time as people read it: local, to the minute.
fn moment(time: crate::wire::Timestamp) -> String {
    time.to_string().chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// The usual body of a call that needs none.
fn empty() -> serde_json::Value {
    serde_json::json!({})
}

#[cfg(test)]
mod tests {
    use super::super::verb::Arity;
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut names: Vec<String> = all().map(Verb::name).collect();
        names.sort();
        let verbs = names.len();
        names.dedup();
        assert_eq!(names.len(), verbs, "a verb is there twice");
        for verb in all() {
            for (at, argument) in verb.arguments.iter().enumerate() {
                let last = at + 1 == verb.arguments.len();
                assert!(
                    last || argument.arity != Arity::Some,
                    "{}: {}",
                    verb.name(),
                    argument.name
                );
            }
            for flag in verb.flags {
                assert!(flag.name.starts_with("--"), "{}: {}", verb.name(), flag.name);
            }
        }
        assert_eq!(start().words, ["start"]);
    }
}
