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
mod library;
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
    library::GROUP,
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

/// Puts the table's words in place of others that mean the same: `get` and `show` are one word, a
/// resource may be in the singular or the plural, and `list` may be said or left out. Returns whether
/// it was left out.
pub(super) fn spell(words: &mut Vec<String>) -> bool {
    let is_first = |word: &str| all().any(|verb| verb.words[0] == word);
    let is_verb = |first: &str, second: &str| all().any(|verb| verb.words == [first, second]);
    let Some(first) = words.first_mut() else { return false };
    if !is_first(first) {
        let other = first.strip_suffix('s').map_or(format!("{first}s"), str::to_owned);
        if !is_first(&other) {
            return false;
        }
        *first = other;
    }
    let first = first.clone();
    let stands_alone = || all().any(|verb| verb.words == [&first]);
    let Some(second) = words.get_mut(1) else {
        let left_out = !stands_alone() && is_verb(&first, "list");
        words.extend(left_out.then(|| "list".to_owned()));
        return left_out;
    };
    let is_other = matches!(second.as_str(), "list" | "get" | "show") && !is_verb(&first, second);
    let others = ["show", "get", "current"];
    match others.into_iter().find(|other| second != "list" && is_verb(&first, other)) {
        Some(other) if is_other => other.clone_into(second),
        None if is_other && stands_alone() => drop(words.remove(1)),
        _ => {}
    }
    false
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
const MEDIA_FILTERS: &[&str] = crate::wire::MediaFilter::WORDS;

const MONITORS: Flag =
    Flag::value("--monitor", "NAME", Kind::Monitor, "Only this monitor, instead of all").many();
const MODE: Flag =
    Flag::value("--mode", "MODE", Kind::Words(MODES), "How several monitors show it");
const FOLDER: Flag =
    Flag::value("--folder", "ID", Kind::Folder, "Put what is imported into this folder");

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
    fn one_thing_may_be_said_in_several_ways() {
        #[track_caller]
        fn check(line: &str, expected: &str) {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            spell(&mut words);
            assert_eq!(words.join(" "), expected);
        }
        check("images get 7", "images show 7");
        check("image show 7", "images show 7");
        check("config show app", "config get app");
        check("playlists", "playlist list");
        check("playlists show 1", "playlist show 1");
        check("themes get nord", "themes show nord");
        check("themes list", "themes");
        check("monitor show DP-1", "monitors DP-1");
        check("wallpaper get", "wallpaper current");
        check("wallpapers", "wallpaper");
        check("set 7", "set 7");
        check("status", "status");
        check("show", "show");
    }

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
