//! Suggests a verb or a flag for an unknown word: by meaning first, then by spelling.

use super::Error;
use super::help::usage;
use super::lookup::Verbs;
use super::verb::{GLOBAL, Kind, Verb};

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
    let meant = sense(SENSE, given, &known).or_else(|| nearest(given, known.iter().copied()));
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
    let sense = SENSE_ALONE
        .iter()
        .find(|(other, _)| *other == word)
        .map(|(_, meant)| *meant);
    let meant = sense.or_else(|| nearest(word, known));
    Error::usage(format!("unknown command {word:?}"))
        .hint(guess(meant, "`murald help all` lists all commands"))
}

/// Words of other programs, and their meaning here.
#[rustfmt::skip]
const SENSE_ALONE: &[(&str, &str)] = &[
    ("add", "import PATH"), ("clear", "stop --clear"), ("del", "images delete"),
    ("delete", "images delete, playlist delete or folders delete"), ("img", "set PICTURE"),
    ("init", "start"), ("kill", "stop"), ("mv", "images move or folders move"),
    ("outputs", "monitors"), ("play", "playlist start"), ("quit", "stop"), ("query", "current"),
    ("remove", "images delete, playlist remove or folders delete"),
    ("rename", "images rename, playlist rename or folders rename"), ("restart", "stop, then start"),
    ("rm", "images delete, playlist delete or folders delete"), ("search", "images search"),
    ("show", "images show, or set"), ("shuffle", "random"),
    ("tag", "images tag"), ("tags", "images tags"), ("view", "images show"),
    ("wall", "set PICTURE"),
];
/// Words of other programs after a resource: the first of the words that the resource has is meant.
#[rustfmt::skip]
const SENSE: &[(&str, &[&str])] = &[
    ("activate", &["start"]), ("change", &["update", "edit", "set"]),
    ("edit", &["update", "edit", "set"]), ("del", &["delete"]), ("find", &["search"]),
    ("get", &["show", "get"]), ("info", &["show", "status"]), ("mkdir", &["create"]),
    ("name", &["rename"]), ("make", &["create"]), ("new", &["create"]), ("play", &["start"]),
    ("remove", &["delete", "remove"]), ("run", &["start"]), ("unset", &["reset"]),
    ("use", &["activate"]), ("view", &["show"]),
];
/// Flags of other programs, and of other verbs.
#[rustfmt::skip]
const SENSE_FLAGS: &[(&str, &[&str])] = &[
    ("--folder", &["--parent"]), ("--limit", &["--per-page"]), ("--output", &["--monitor"]),
    ("--outputs", &["--monitor"]), ("--random", &["--order"]), ("--shuffle", &["--order"]),
    ("--size", &["--per-page"]), ("--sort", &["--sort-by"]), ("--tag", &["--tags", "--add"]),
    ("--type", &["--media-type", "--types"]),
];

fn sense<'a>(table: &[(&str, &[&str])], word: &str, known: &[&'a str]) -> Option<&'a str> {
    let (_, meant) = table.iter().find(|(other, _)| *other == word)?;
    meant
        .iter()
        .find_map(|meant| known.iter().copied().find(|one| one == meant))
}

pub(super) fn unknown_flag(verb: &Verb, name: &str) -> Error {
    let known = || verb.flags.iter().chain(GLOBAL);
    if known().any(|flag| flag.name == name) {
        return Error::usage(format!("{name} takes no value"));
    }
    let see = format!("see `murald {} --help`", verb.name());
    let names: Vec<&str> = known().map(|flag| flag.name).collect();
    let meant = sense(SENSE_FLAGS, name, &names);
    // A flag of another program is not a typing error.
    let has_sense = SENSE_FLAGS.iter().any(|(other, _)| *other == name);
    let meant = meant.or_else(|| nearest(name, names.into_iter()).filter(|_| !has_sense));
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
    if verb.arguments.is_empty() {
        return Error::usage(format!("murald {} does not take {word:?}", verb.name())).hint(hint);
    }
    Error::usage(format!("unexpected argument {word:?}")).hint(hint)
}

/// The hint for a name with spaces that was typed without quotes.
pub(super) fn quotes(name: &str) -> String {
    format!("quote a name with spaces: '{name}'")
}

/// The known word that differs in at most two letters, or in fewer if `word` is short.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.trim_start_matches('-').chars().count() / 2).min(2);
    known
        .map(|one| (distance(word, one), one))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}

/// The number of letters to insert, remove or replace (Levenshtein distance).
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = corner + usize::from(letter != *other);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Verbs = Verbs(crate::cli::GROUPS);

    #[test]
    fn words_of_other_programs_are_understood() {
        let check = |word: &str, first: &str, expected: &str| {
            let error = match first.is_empty() {
                true => unknown_verb(ALL, word),
                false => incomplete(ALL, first, Some(&word.to_owned())),
            };
            let told = error.to_string();
            assert!(told.contains(expected), "{told}");
        };
        check(
            "rm",
            "",
            "did you mean images delete, playlist delete or folders delete?",
        );
        check("add", "", "did you mean import PATH?");
        check(
            "rename",
            "",
            "did you mean images rename, playlist rename or folders rename?",
        );
        check("query", "", "did you mean current?");
        check("remove", "images", "did you mean images delete?");
        check("make", "playlist", "did you mean playlist create?");
        check("frobnicate", "playlist", "see `murald playlist --help`");
        let create = ALL
            .all()
            .find(|verb| verb.words == ["folders", "create"])
            .unwrap();
        let told = unknown_flag(create, "--folder").to_string();
        assert!(told.contains("did you mean --parent?"), "{told}");
        let create = ALL
            .all()
            .find(|verb| verb.words == ["playlist", "create"])
            .unwrap();
        let told = unknown_flag(create, "--folders").to_string();
        assert!(!told.contains("--order"), "{told}");
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
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
