//! Help, all of it from the verbs table.

use std::fmt::Write as _;

use super::Failure;
use super::lookup::Verbs;
use super::text::width;
use super::verb::{Argument, Arity, Flag, GLOBAL, Kind, Verb};

/// The narrowest terminal that help is for.
const COLUMNS: usize = 80;

/// The whole command's.
pub(super) fn all(verbs: Verbs) -> String {
    let mut out = String::from(
        "murald - wallpapers for Wayland and X11: a daemon and its command\n\n\
         usage: murald [COMMAND] [ARGUMENT...] [FLAG...]\n\n\
         Without a command, or with `start`, the daemon runs in the foreground.\n\
         `murald COMMAND --help` says more about each.\n",
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
            ("NO_COLOR".into(), "No colours and no pictures, if it is set".into()),
        ],
    );
    out.push_str(
        "\nExit codes: 0 done, 1 it could not be done, 2 wrong command line, 69 no daemon\n\
         answers, 70 an error inside murald, 75 a daemon runs already, 78 wrong\n\
         configuration.\n",
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
    section(&mut out, "Flags of every command", GLOBAL.iter().map(flag_line).collect());
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
pub(super) fn incomplete(verbs: Verbs, prefix: &[String], given: Option<&String>) -> Failure {
    let at = prefix.len();
    let mut next: Vec<&str> =
        verbs.with_prefix(prefix).filter_map(|verb| verb.words.get(at).copied()).collect();
    next.dedup();
    let prefix = prefix.join(" ");
    let Some(given) = given else {
        return Failure::usage(format!("murald {prefix} needs one of {}", next.join(", ")))
            .hint(format!("see `murald {prefix} --help`"));
    };
    Failure::usage(format!("there is no command \"{prefix} {given}\"")).hint(
        match nearest(given, next.into_iter()) {
            Some(meant) => format!("do you mean {prefix} {meant}? see `murald {prefix} --help`"),
            None => format!("see `murald {prefix} --help`"),
        },
    )
}

pub(super) fn unknown_verb(verbs: Verbs, word: &str) -> Failure {
    let known = verbs.all().map(|verb| verb.words[0]);
    Failure::usage(format!("there is no command {word:?}")).hint(match nearest(word, known) {
        Some(meant) => format!("do you mean {meant}? `murald --help` lists all"),
        None => "`murald --help` lists all".to_owned(),
    })
}

pub(super) fn unknown_flag(verb: &Verb, name: &str) -> Failure {
    let known = || verb.flags.iter().chain(GLOBAL);
    if let Some(flag) = known().find(|flag| flag.name == name) {
        let problem = if flag.value.is_some() { "needs a value" } else { "takes no value" };
        return Failure::usage(format!("{name} {problem}"));
    }
    let see = format!("see `murald {} --help`", verb.name());
    Failure::usage(format!("murald {} has no flag {name}", verb.name())).hint(
        match nearest(name, known().map(|flag| flag.name)) {
            Some(meant) => format!("do you mean {meant}? {see}"),
            None => see,
        },
    )
}

pub(super) fn too_many(verb: &Verb, word: &str) -> Failure {
    let hint = format!("usage: {}", usage(verb));
    if verb.arguments.is_empty() {
        return Failure::usage(format!("murald {} does not take {word:?}", verb.name())).hint(hint);
    }
    Failure::usage(format!("{word:?} is one argument too many")).hint(hint)
}

/// The known word that is at most two letters away.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|one| (distance(word, one), one))
        .filter(|(distance, one)| *distance <= 2 && *distance < one.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
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
    fn slips_are_guessed() {
        #[track_caller]
        fn check(word: &str, expected: Option<&str>) {
            assert_eq!(nearest(word, ALL.all().map(|verb| verb.words[0])), expected);
        }
        check("improt", Some("import"));
        check("image", Some("images"));
        check("sett", Some("set"));
        check("frobnicate", None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
