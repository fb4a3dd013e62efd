//! Help, all of it from the verbs table.

use std::fmt::Write as _;

use super::Error;
use super::lookup::Verbs;
use super::text::width;
use super::verb::{Argument, Arity, Flag, GLOBAL, Kind, Verb};

/// The narrowest terminal that help is for.
const COLUMNS: usize = 80;

/// What most people ever type, in 24 lines.
pub(super) const SHORT: &str = "\
murald - wallpapers for Wayland and X11: a daemon and its command

usage: murald [COMMAND] [ARGUMENT...] [FLAG...]

  set PICTURE           Show a picture: a file, or an image of the library
  random                Show an image at random
  current               List what each monitor shows
  next, prev            Step each running playlist
  import PATH...        Import files and directories into the library
  images ...            List, search, view, tag, rename, delete images
  playlist ...          Create, change, start, stop playlists
  status                Show whether the daemon runs, and what it does
  config ...            Show and change settings
  start, stop           Run the daemon in the foreground; stop it

An IMAGE is an id, a name or its beginning, a file, or current.
Output is text, with tabs where it is no terminal.
  --json                Print JSON
  --format TEMPLATE     Print a line like '{id} {name}' for each record
  --monitor NAME        With set, random: only there

murald help all         All commands     murald COMMAND --help   One of them
";

/// The whole command's.
pub(super) fn all(verbs: Verbs) -> String {
    let mut out = String::from(
        "murald - wallpapers for Wayland and X11: a daemon and its command\n\n\
         usage: murald [COMMAND] [ARGUMENT...] [FLAG...]\n\n\
         Without a command, or with `start`, the daemon runs in the foreground.\n\
         `murald COMMAND --help` says more about each.\n\
         Images, playlists and folders go by id, by name, or by the beginning of a name\n\
         that no other has; images also by path, and as current or current:MONITOR.\n",
    );
    for group in verbs.0 {
        let lines = group.verbs.iter().map(|verb| (synopsis(verb), verb.summary.to_owned()));
        section(&mut out, group.title, lines.collect());
    }
    section(&mut out, "Flags of every command", GLOBAL.iter().map(flag_line).collect());
    section(
        &mut out,
        "Environment",
        vec![
            ("MURALD_SOCKET".into(), "The socket, where --socket does not name it".into()),
            ("MURALD_LOG".into(), "How much is logged, where --log-level does not say it".into()),
            ("MURALD_AUTOSTART".into(), "0: no command starts a daemon by itself".into()),
            ("NO_COLOR".into(), "No colours and no pictures, if it is set".into()),
        ],
    );
    out.push_str(
        "\nExit codes: 0 done, 1 it could not be done, 2 wrong command line, 69 no daemon\n\
         answers, 70 an error inside murald, 75 a daemon runs already, 78 wrong\n\
         configuration, 130 interrupted.\n",
    );
    out
}

/// Of the verbs that begin with the same words.
pub(super) fn group(verbs: Verbs, prefix: &[String]) -> String {
    let mut out = format!("usage: murald {} COMMAND\n", prefix.join(" "));
    let lines = verbs.with_prefix(prefix).map(|verb| (synopsis(verb), verb.summary.to_owned()));
    section(&mut out, "Commands", lines.collect());
    out
}

/// Of one verb.
pub(super) fn verb(verbs: Verbs, verb: &Verb) -> String {
    let mut out = format!("{}\n\nusage: {}\n", verb.summary, usage(verb));
    if !verb.help.is_empty() {
        write!(out, "\n{}\n", wrapped(verb.help, COLUMNS).join("\n")).expect("a String takes all");
    }
    let arguments = verb.arguments.iter().map(argument_line);
    section(&mut out, "Arguments", arguments.collect());
    section(&mut out, "Flags", verb.flags.iter().map(flag_line).collect());
    out.push_str(
        "\n`murald help all` has the flags of every command, such as --json and --format.\n",
    );
    let more: Vec<_> = verbs
        .with_prefix(verb.words)
        .filter(|other| other.words != verb.words)
        .map(|verb| (synopsis(verb), verb.summary.to_owned()))
        .collect();
    section(&mut out, "More", more);
    out
}

/// `murald images get ID`
pub(super) fn usage(verb: &Verb) -> String {
    let mut out = format!("murald {}", synopsis(verb));
    if !verb.flags.is_empty() {
        out.push_str(" [FLAGS]");
    }
    out
}

fn synopsis(verb: &Verb) -> String {
    let mut out = verb.name();
    for argument in verb.arguments {
        let name = argument.name;
        match argument.arity {
            Arity::One => write!(out, " {name}"),
            Arity::Optional => write!(out, " [{name}]"),
            Arity::Some => write!(out, " {name}..."),
            Arity::Any => write!(out, " [{name}...]"),
        }
        .expect("a String takes all");
    }
    out
}

fn argument_line(argument: &Argument) -> (String, String) {
    (argument.name.to_owned(), meaning(argument.meaning, Some(argument.kind), false))
}

fn flag_line(flag: &Flag) -> (String, String) {
    let name = match flag.value {
        Some((value, _)) => format!("{} {value}", flag.name),
        None => flag.name.to_owned(),
    };
    (name, meaning(flag.meaning, flag.value.map(|(_, kind)| kind), flag.many))
}

fn meaning(text: &str, kind: Option<Kind>, many: bool) -> String {
    let mut out = text.to_owned();
    match kind {
        Some(Kind::Words(words)) => out = format!("{out} ({})", words.join(", ")),
        // The event types are too many for a line; they have their place in the long help.
        Some(Kind::List(words)) if (1..9).contains(&words.len()) => {
            out = format!("{out} ({})", words.join(", "));
        }
        _ => {}
    }
    if many {
        out.push_str(" (may be given several times)");
    }
    out
}

/// A heading with two columns; nothing where there are no lines.
fn section(out: &mut String, title: &str, lines: Vec<(String, String)>) {
    /// A longer left side has its meaning on the next line.
    const WIDEST: usize = 30;
    if lines.is_empty() {
        return;
    }
    let widest = lines.iter().map(|(name, _)| name.len()).filter(|&len| len <= WIDEST).max();
    let widest = widest.unwrap_or(WIDEST);
    write!(out, "\n{title}:\n").expect("a String takes all");
    for (name, meaning) in lines {
        let mut name = name.as_str();
        if name.len() > widest {
            writeln!(out, "  {name}").expect("a String takes all");
            name = "";
        }
        for line in wrapped(&meaning, COLUMNS - widest - 4) {
            writeln!(out, "  {name:widest$}  {line}").expect("a String takes all");
            name = "";
        }
    }
}

/// A text in lines of at most so many columns; what is indented stays as it is.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.is_empty() || line.starts_with(' ') {
            lines.push(line.to_owned());
            open = false;
            continue;
        }
        for word in line.split(' ') {
            match lines.last_mut().filter(|_| open) {
                Some(last) if width(last) + 1 + width(word) <= columns => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
            open = true;
        }
    }
    lines
}

/// The words begin a command that is none, or none yet.
pub(super) fn incomplete(verbs: Verbs, prefix: &[String], given: Option<&String>) -> Error {
    let at = prefix.len();
    let mut next: Vec<&str> =
        verbs.with_prefix(prefix).filter_map(|verb| verb.words.get(at).copied()).collect();
    next.dedup();
    let prefix = prefix.join(" ");
    let Some(given) = given else {
        return Error::usage(format!("murald {prefix} needs one of {}", next.join(", ")))
            .hint(format!("see `murald {prefix} --help`"));
    };
    let meant = by_sense(given, &next).or_else(|| nearest(given, next.iter().copied()));
    Error::usage(format!("there is no command \"{prefix} {given}\"")).hint(match meant {
        Some(meant) => format!("do you mean {prefix} {meant}? see `murald {prefix} --help`"),
        None => format!("see `murald {prefix} --help`"),
    })
}

pub(super) fn unknown_verb(verbs: Verbs, word: &str) -> Error {
    let known = verbs.all().map(|verb| verb.words[0]);
    let sense = SENSE_ALONE.iter().find(|(other, _)| *other == word).map(|(_, meant)| *meant);
    Error::usage(format!("there is no command {word:?}")).hint(
        match sense.or_else(|| nearest(word, known)) {
            Some(meant) => format!("do you mean {meant}? `murald help all` lists all"),
            None => "`murald help all` lists all".to_owned(),
        },
    )
}

/// Words that people bring along, and what they mean by them here.
const SENSE_ALONE: &[(&str, &str)] = &[
    ("add", "import PATH"),
    ("back", "previous"),
    ("clear", "stop --clear"),
    ("del", "images delete"),
    ("delete", "images delete, playlist delete or folders delete"),
    ("img", "set PICTURE"),
    ("init", "start"),
    ("kill", "stop"),
    ("mv", "images move or folders move"),
    ("outputs", "monitors"),
    ("play", "playlist start"),
    ("quit", "stop"),
    ("query", "current"),
    ("remove", "images delete, playlist remove or folders delete"),
    ("rename", "images rename, playlist rename or folders rename"),
    ("restart", "stop, then start"),
    ("rm", "images delete, playlist delete or folders delete"),
    ("search", "images search"),
    ("show", "images show, or set to put one on the screen"),
    ("shuffle", "random"),
    ("tag", "images tag"),
    ("tags", "images tags"),
    ("view", "images show"),
    ("wall", "set PICTURE"),
];
/// The same behind a resource: each with words of which the first that is there is meant.
const SENSE: &[(&str, &[&str])] = &[
    ("activate", &["start"]),
    ("change", &["update", "edit", "set"]),
    ("edit", &["update", "edit", "set"]),
    ("del", &["delete"]),
    ("find", &["search"]),
    ("get", &["show", "get"]),
    ("info", &["show", "status"]),
    ("mkdir", &["create"]),
    ("name", &["rename"]),
    ("make", &["create"]),
    ("new", &["create"]),
    ("play", &["start"]),
    ("remove", &["delete", "remove"]),
    ("run", &["start"]),
    ("unset", &["reset"]),
    ("use", &["activate"]),
    ("view", &["show"]),
];
/// Flags of other programs, and of other verbs.
const SENSE_FLAGS: &[(&str, &[&str])] = &[
    ("--folder", &["--parent"]),
    ("--limit", &["--per-page"]),
    ("--output", &["--monitor"]),
    ("--outputs", &["--monitor"]),
    ("--random", &["--order"]),
    ("--shuffle", &["--order"]),
    ("--size", &["--per-page"]),
    ("--sort", &["--sort-by"]),
    ("--tag", &["--tags", "--add"]),
    ("--type", &["--media-type", "--types"]),
];

fn by_sense<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    sense(SENSE, word, known)
}

fn sense<'a>(table: &[(&str, &[&str])], word: &str, known: &[&'a str]) -> Option<&'a str> {
    let (_, meant) = table.iter().find(|(other, _)| *other == word)?;
    meant.iter().find_map(|meant| known.iter().copied().find(|one| one == meant))
}

pub(super) fn unknown_flag(verb: &Verb, name: &str) -> Error {
    let known = || verb.flags.iter().chain(GLOBAL);
    if let Some(flag) = known().find(|flag| flag.name == name) {
        let problem = if flag.value.is_some() { "needs a value" } else { "takes no value" };
        return Error::usage(format!("{name} {problem}"));
    }
    let see = format!("see `murald {} --help`", verb.name());
    let names: Vec<&str> = known().map(|flag| flag.name).collect();
    let meant = sense(SENSE_FLAGS, name, &names);
    // A flag that has a sense of its own is no slip of the pen.
    let has_sense = SENSE_FLAGS.iter().any(|(other, _)| *other == name);
    let meant = meant.or_else(|| nearest(name, names.into_iter()).filter(|_| !has_sense));
    Error::usage(format!("murald {} has no flag {name}", verb.name())).hint(match meant {
        Some(meant) => format!("do you mean {meant}? {see}"),
        None => see,
    })
}

pub(super) fn too_many(verb: &Verb, word: &str) -> Error {
    let hint = format!("usage: {}", usage(verb));
    if verb.arguments.is_empty() {
        return Error::usage(format!("murald {} does not take {word:?}", verb.name())).hint(hint);
    }
    Error::usage(format!("{word:?} is one argument too many")).hint(hint)
}

/// The known word that is at most two letters away; of a short word one letter, or it would be
/// another word.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.trim_start_matches('-').chars().count() / 2).min(2);
    known
        .map(|one| (distance(word, one), one))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}

/// Letters to insert, remove or replace (Levenshtein).
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
    fn every_verb_has_help_that_fits_a_terminal() {
        for one in ALL.all() {
            let text = verb(ALL, one);
            assert!(text.starts_with(one.summary) && !one.summary.ends_with('.'), "{text}");
            for flag in one.flags {
                assert!(text.contains(flag.name), "{text}");
            }
            let examples = |line: &&str| !line.starts_with("    murald");
            for line in text.lines().filter(examples) {
                assert!(width(line) <= COLUMNS, "{line:?} of {}", one.name());
            }
            assert!(all(ALL).contains(&one.name()));
        }
        assert!(all(ALL).lines().all(|line| width(line) <= COLUMNS), "{}", all(ALL));
    }

    #[test]
    fn the_short_help_fits_a_small_terminal() {
        assert!(SHORT.lines().count() <= 24, "{}", SHORT.lines().count());
        assert!(SHORT.lines().all(|line| width(line) <= COLUMNS));
    }

    #[test]
    fn other_words_are_guessed_by_their_sense() {
        let check = |word: &str, prefix: &[&str], expected: &str| {
            let prefix: Vec<String> = prefix.iter().map(|&word| word.to_owned()).collect();
            let error = match prefix.is_empty() {
                true => unknown_verb(ALL, word),
                false => incomplete(ALL, &prefix, Some(&word.to_owned())),
            };
            let told = error.to_string();
            assert!(told.contains(expected), "{told}");
        };
        check("rm", &[], "do you mean images delete, playlist delete or folders delete?");
        check("add", &[], "do you mean import PATH?");
        check("rename", &[], "do you mean images rename, playlist rename or folders rename?");
        check("query", &[], "do you mean current?");
        check("remove", &["images"], "do you mean images delete?");
        check("make", &["playlist"], "do you mean playlist create?");
        check("frobnicate", &["playlist"], "see `murald playlist --help`");
        let create = ALL.all().find(|verb| verb.words == ["folders", "create"]).unwrap();
        let told = unknown_flag(create, "--folder").to_string();
        assert!(told.contains("do you mean --parent?"), "{told}");
        let create = ALL.all().find(|verb| verb.words == ["playlist", "create"]).unwrap();
        let told = unknown_flag(create, "--folders").to_string();
        assert!(!told.contains("--order"), "{told}");
    }

    #[test]
    fn slips_are_guessed() {
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
