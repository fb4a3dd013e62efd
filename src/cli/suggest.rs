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
    let whole = format!("{first} {given}");
    let meant = sense(&whole).map(str::to_owned).or_else(|| {
        let meant = nearest(given, known.iter().copied())?;
        Some(format!("{first} {meant}"))
    });
    Error::usage(format!("unknown command {whole:?}")).hint(guess(meant.as_deref(), &see))
}

fn guess(meant: Option<&str>, see: &str) -> String {
    meant.map_or_else(
        || see.to_owned(),
        |meant| format!("did you mean {meant}? {see}"),
    )
}

pub(super) fn unknown_verb(verbs: Verbs, word: &str) -> Error {
    let known = verbs.all().map(|verb| verb.words[0]);
    let meant = sense(word).or_else(|| nearest(word, known));
    Error::usage(format!("unknown command {word:?}"))
        .hint(guess(meant, "`murald help all` lists all commands"))
}

fn sense(words: &str) -> Option<&'static str> {
    let sense = SENSE.iter().find(|(other, _)| *other == words);
    sense.map(|&(_, meant)| meant)
}

/// Words that are no command, and the commands that they may mean.
#[rustfmt::skip]
const SENSE: &[(&str, &str)] = &[
    ("add", "import, playlist add or watch add"), ("mv", "images move or folders move"),
    ("rename", "images rename or folders rename"),
    ("rm", "images delete, playlist delete or folders delete"),
    ("search", "images search"), ("find", "images search"),
    ("tag", "images tag"), ("untag", "images tag --remove"), ("tags", "images tags"),
    ("quit", "stop"), ("kill", "stop"), ("version", "--version"), ("show", "current or images show"),
    ("playlist rename", "playlist edit --name"), ("playlist update", "playlist edit"),
    ("images find", "images search"), ("config edit", "config set"),
];

/// Flags of other programs, and ours with the same meaning.
const OTHER_FLAGS: &[(&str, &str)] = &[
    ("-v", "--version"),
    ("-m", "--monitor"),
    ("-o", "--monitor"),
    ("--output", "--monitor"),
    ("--order", "--shuffle"),
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
    let other = OTHER_FLAGS.iter().filter(|(other, _)| *other == name);
    let other = other.flat_map(|&(_, ours)| known().find(|flag| flag.name == ours));
    let names: Vec<&str> = known().map(|flag| flag.name).collect();
    let meant = nearest(name, names.into_iter()).or(other.map(|flag| flag.name).next());
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
        check("strat", "playlist", "did you mean playlist start?");
        check("rename", "playlist", "did you mean playlist edit --name?");
        let create = ALL
            .all()
            .find(|verb| verb.words == ["playlist", "create"])
            .unwrap();
        let told = unknown_flag(create, "--folders", false).to_string();
        assert!(told.contains("did you mean --folder?"), "{told}");
        let told = |verb: &str, flag: &str| {
            let verb = ALL.all().find(|one| one.name() == verb).unwrap();
            unknown_flag(verb, flag, false).to_string()
        };
        for flag in ["-m", "-o", "--output"] {
            let told = told("set", flag);
            assert!(told.contains("did you mean --monitor?"), "{told}");
        }
        assert!(!told("current", "-m").contains("did you mean"));
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
