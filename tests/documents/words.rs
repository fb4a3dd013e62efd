//! Finds what readers stumble over in the documents: README, manual, OpenAPI description, help and
//! settings.

use std::fs;
use std::path::Path;

use murald::internals::cli::{GLOBAL, GROUPS};
use murald::internals::config::Section;

/// Values glued behind a sentence, a system's error number, and advice without a cause.
const PHRASES: [&str; 3] = [") (", "(os error", "see the daemon's log"];
/// A value's name is a noun, such as MODE, FIELD or NAME.
const PLACEHOLDERS: [&str; 4] = ["WHICH", "WHAT", "HOW", "WORD"];

const DOCUMENTS: [&str; 7] = [
    "README.md",
    "contrib/openapi.yaml",
    "man/murald.1",
    "man/murald.toml.5",
    "man/murald-api.7",
    "man/murald-migrate.7",
    "man/murald-tutorial.7",
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Every text of the help, a line each.
fn help() -> String {
    let verbs = GROUPS.iter().flat_map(|group| group.verbs);
    let of_flag = |flag: &murald::internals::cli::Flag| {
        [flag.meaning, flag.value.map_or("", |(name, _)| name)]
    };
    let mut texts: Vec<&str> = GLOBAL.iter().flat_map(of_flag).collect();
    for verb in verbs {
        texts.extend([verb.summary, verb.help]);
        texts.extend(verb.flags.iter().flat_map(of_flag));
        texts.extend(
            verb.arguments
                .iter()
                .flat_map(|one| [one.name, one.meaning]),
        );
    }
    texts.join("\n")
}

fn settings() -> String {
    let keys = Section::ALL.into_iter().flat_map(Section::keys);
    keys.map(|key| key.meaning).collect::<Vec<_>>().join("\n")
}

#[test]
fn plain_words_are_used() {
    let mut texts: Vec<_> = DOCUMENTS.map(|path| (path, read(path))).into();
    texts.extend([("help", help()), ("settings", settings())]);
    for (name, text) in texts {
        let stumbles = |line: &&str| {
            let mut words = line.split(|letter: char| !letter.is_alphanumeric());
            PHRASES.iter().any(|phrase| line.contains(phrase))
                || words.any(|word| PLACEHOLDERS.contains(&word))
        };
        let found: Vec<&str> = text.lines().filter(stumbles).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}
