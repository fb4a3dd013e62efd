//! Suggests a verb or a flag for an unknown word.

use super::Error;
use super::help::usage;
use super::lookup::Verbs;
use super::verb::{GLOBAL, Kind, Verb};
use crate::wire::collate::nearest;

/// The first word begins several commands, and `given` is the second word of none of them.
pub(super) fn incomplete(verbs: Verbs, first: &str, given: Option<&String>) -> Error {
    let known = verbs.all().filter(|verb| verb.words[0] == first);
    let mut known: Vec<&str> = known
        .filter_map(|verb| verb.words.get(1).copied())
        .collect();
    known.dedup();
    let see = format!("see `murald {first} --help`");
    let Some(given) = given else {
        return Error::usage(format!(
            "murald {first} needs a command: {}",
            known.join(", ")
        ))
        .hint(see);
    };
    let meant = nearest(given, known.iter().copied());
    let meant = meant.map(|meant| format!("{first} {meant}"));
    Error::usage(format!("unknown command \"{first} {given}\"")).hint(guess(meant.as_deref(), &see))
}

fn guess(meant: Option<&str>, see: &str) -> String {
    meant.map_or_else(
        || see.to_owned(),
        |meant| format!("did you mean {meant}? {see}"),
    )
}

pub(super) fn unknown_verb(verbs: Verbs, word: &str) -> Error {
    let known = verbs.all().map(|verb| verb.words[0]);
    let sense = SENSE.iter().find(|(other, _)| *other == word);
    let meant = sense
        .map(|(_, meant)| *meant)
        .or_else(|| nearest(word, known));
    Error::usage(format!("unknown command {word:?}"))
        .hint(guess(meant, "`murald help all` lists all commands"))
}

/// Words that stand behind a resource here, and what they may mean alone.
#[rustfmt::skip]
const SENSE: &[(&str, &str)] = &[
    ("add", "import, playlist add or watch add"), ("mv", "images move or folders move"),
    ("rename", "images rename or folders rename"),
    ("rm", "images delete, playlist delete or folders delete"),
    ("search", "images search"), ("find", "images search"),
    ("tag", "images tag"), ("untag", "images tag --remove"), ("tags", "images tags"),
    ("quit", "stop"), ("kill", "stop"), ("version", "--version"), ("show", "current or images show"),
];

/// The error for an unknown flag of a verb, or of `murald` alone.
pub(super) fn unknown_flag(verb: &Verb, name: &str, is_alone: bool) -> Error {
    let known = || verb.flags.iter().chain(GLOBAL);
    if known().any(|flag| flag.name == name) {
        return Error::usage(format!("{name} takes no value"));
    }
    let see = if is_alone {
        "see `murald --help`".to_owned()
    } else {
        format!("see `murald {} --help`", verb.name())
    };
    let names: Vec<&str> = known().map(|flag| flag.name).collect();
    let meant = nearest(name, names.into_iter()).or((name == "-v").then_some("--version"));
    Error::usage(format!("unknown flag {name}")).hint(guess(meant, &see))
}

/// The error for a word too many. `whole` is the last argument with all words after it, which may be
/// one name.
pub(super) fn too_many(verb: &Verb, word: &str, whole: &str) -> Error {
    let hint = match verb.arguments.last() {
        Some(last) if matches!(last.kind, Kind::Text | Kind::File) || last.kind.is_reference() => {
            quotes(whole)
        }
        _ => format!("usage: {}", usage(verb)),
    };
    Error::usage(format!("unexpected argument {word:?}")).hint(hint)
}

/// The hint for a name with spaces that was typed without quotes.
pub(super) fn quotes(name: &str) -> String {
    format!("quote a name with spaces: '{name}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Verbs = Verbs(crate::cli::GROUPS);

    #[test]
    fn words_of_a_resource_are_understood_alone() {
        let check = |word: &str, first: &str, expected: &str| {
            let error = if first.is_empty() {
                unknown_verb(ALL, word)
            } else {
                incomplete(ALL, first, Some(&word.to_owned()))
            };
            let told = error.to_string();
            assert!(told.contains(expected), "{told}");
        };
        check(
            "rm",
            "",
            "did you mean images delete, playlist delete or folders delete?",
        );
        check("frobnicate", "playlist", "see `murald playlist --help`");
        check("make", "playlist", "see `murald playlist --help`");
        check("strat", "playlist", "did you mean playlist start?");
        let create = ALL
            .all()
            .find(|verb| verb.words == ["playlist", "create"])
            .unwrap();
        let told = unknown_flag(create, "--folders", false).to_string();
        assert!(told.contains("did you mean --folder?"), "{told}");
    }

    #[test]
    fn typing_errors_are_corrected() {
        #[track_caller]
        fn check(word: &str, expected: Option<&str>) {
            assert_eq!(nearest(word, ALL.all().map(|verb| verb.words[0])), expected);
        }
        check("improt", Some("import"));
        check("image", Some("images"));
        check("sett", Some("set"));
        check("frobnicate", None);
        check("rm", None);
        check("ste", Some("set"));
        check("unset", None);
        check("lock", None);
    }
}
