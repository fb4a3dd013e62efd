//! Counts words that readers stumble over in all text that users read: README, manual, OpenAPI
//! description, help, settings and messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use murald::internals::cli::{GLOBAL, GROUPS};
use murald::internals::config::Section;

const WORDS: &str = "anew, meanwhile, mend, mends, mended, film, films, passed over, left out, left behind, \
     told of, tell of, tells of, take up, takes up, taken up, take in, takes in, taken in, take over, \
     takes over, is taken, are taken, not taken, come up, comes up, is up, hang, hangs, rest, rests, resting, \
     stand still, stands still, stand so, stands so, sound, cut off, begun, no more, said again, in turns, \
     whoever, lives";

/// No sentence may begin with one of these.
const OPENINGS: [&str; 5] = ["Where", "Whoever", "What", "Who", "Of"];
/// No sentence may begin with one of these, except before a flag, a field or "default".
const OPENINGS_OF_FLAGS: [&str; 2] = ["By", "With"];

/// Contexts in which a listed word is the right one.
const EXCEPTIONS: [&str; 6] = [
    // A process may hang.
    "one that hangs does",
    "has hung",
    // Here, sound is audio.
    "sound of videos",
    "has sound that",
    "on sound that",
    // A name in the API.
    "`resting`",
];

/// The most that each document may have.
const MOST: [(&str, usize); 6] = [
    ("README.md", 0),
    ("contrib/openapi.yaml", 0),
    ("help", 8),
    ("man", 2),
    ("messages", 16),
    ("settings", 1),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Splits a text into words.
fn tokens(text: &str) -> Vec<&str> {
    let is_inside = |letter: char| letter.is_alphanumeric() || "-_'`".contains(letter);
    text.split(|letter: char| !is_inside(letter))
        .filter(|word| !word.is_empty())
        .collect()
}

fn found(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let around = |at: usize| tokens[at.saturating_sub(3)..tokens.len().min(at + 5)].join(" ");
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_listed = |phrase: &str| {
            let mut here = tokens[at..].iter();
            phrase
                .split(' ')
                .all(|word| here.next().is_some_and(|it| it.eq_ignore_ascii_case(word)))
        };
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        let names_a_flag = next.starts_with(['-', '`']) || next.contains('_') || next == "default";
        let is_inverted =
            OPENINGS.contains(token) || (OPENINGS_OF_FLAGS.contains(token) && !names_a_flag);
        let allowed = EXCEPTIONS
            .iter()
            .any(|exception| around(at).contains(exception));
        if (is_inverted || WORDS.split(", ").any(is_listed)) && !allowed {
            found.push(around(at));
        }
    }
    found
}

/// The prose of a page: a macro counts as one word of code, and literal blocks are skipped.
fn prose_of_roff(text: &str) -> String {
    let mut prose = String::new();
    let mut literal = false;
    for line in text.lines() {
        let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            ".Bd" => literal = true,
            ".Ed" => literal = false,
            _ if literal => {}
            ".It" if arguments.starts_with(['C', 'F', 'E', 'P']) => prose += "`code`",
            ".It" | ".Nd" => prose += arguments,
            name if name.starts_with('.') => prose += "`code`",
            _ => {
                prose += &line
                    .replace("\\-", "-")
                    .replace("\\fB", "`")
                    .replace("\\fP", "`")
            }
        }
        prose.push('\n');
    }
    prose
}

fn prose_of_markdown(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

fn prose_of_openapi(text: &str) -> String {
    let prose = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches("- "));
    let prose =
        prose.filter(|line| line.starts_with("description: ") || line.starts_with("summary: "));
    prose
        .map(|line| line.split_once(' ').unwrap().1)
        .collect::<Vec<_>>()
        .join("\n")
}

fn help() -> String {
    let verbs = GROUPS.iter().flat_map(|group| group.verbs);
    let of_verb = |verb: &murald::internals::cli::Verb| {
        let flags = verb.flags.iter().map(|flag| flag.meaning);
        let arguments = verb.arguments.iter().map(|argument| argument.meaning);
        let texts: Vec<&str> = [verb.summary, verb.help]
            .into_iter()
            .chain(flags)
            .chain(arguments)
            .collect();
        texts.join("\n")
    };
    let mut texts: Vec<String> = verbs.map(of_verb).collect();
    texts.extend(GLOBAL.iter().map(|flag| flag.meaning.to_owned()));
    texts.join("\n")
}

fn settings() -> String {
    let keys = Section::ALL.into_iter().flat_map(Section::keys);
    keys.map(|key| key.meaning).collect::<Vec<_>>().join("\n")
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.file_name().unwrap().to_str().unwrap() {
            "tests" | "tests.rs" | "verbs" => {}
            _ if path.is_dir() => sources(&path, found),
            name if name.ends_with(".rs") => found.push(path),
            _ => {}
        }
    }
}

/// The string literals of a source file that are sentences, without its tests.
fn literals(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("\\\"", "'")
        .replace("'\"'", "");
    let literals = code
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|literal| literal.contains(' '));
    literals.collect::<Vec<_>>().join("\n")
}

fn messages() -> String {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let texts = files
        .iter()
        .map(|file| literals(&fs::read_to_string(file).unwrap()));
    texts.collect::<Vec<_>>().join("\n")
}

fn pages() -> String {
    let pages = [
        "murald.1",
        "murald.toml.5",
        "murald-api.7",
        "murald-migrate.7",
        "murald-tutorial.7",
    ];
    pages
        .map(|page| prose_of_roff(&read(&format!("man/{page}"))))
        .join("\n")
}

#[test]
fn plain_words_are_used() {
    let texts = BTreeMap::from([
        ("README.md", prose_of_markdown(&read("README.md"))),
        (
            "contrib/openapi.yaml",
            prose_of_openapi(&read("contrib/openapi.yaml")),
        ),
        ("help", help()),
        ("man", pages()),
        ("messages", messages()),
        ("settings", settings()),
    ]);
    for (name, most) in MOST {
        let found = found(&texts[name]);
        println!("{name}: {} of at most {most}", found.len());
        assert!(found.len() <= most, "{name}: {found:#?}");
    }
}
