//! The text of `--help`, made from the verbs table.

use std::fmt::Write as _;

use super::lookup::Verbs;
use super::terminal::wrapped;
use super::verb::{Argument, Arity, Flag, GLOBAL, Kind, Verb};

/// The width at which help is wrapped.
const COLUMNS: usize = 80;

/// The commands that most people need.
pub(super) const SHORT: &str = "\
murald - wallpaper daemon and client for Wayland and X11

Usage: murald COMMAND [ARGUMENTS] [FLAGS]

  set IMAGE             Set the wallpaper
  random, back          Set a random image; go back to the previous wallpaper
  slideshow DIR         Cycle through the images in a directory
  next, prev, pause     Control the running playlists and slideshows
  current, why          Show what each monitor displays, and why
  pick                  Choose an image in a menu (rofi, fzf and others)
  import PATH...        Copy files or directories into the library
  images ...            List, search, show, tag, rename or delete images
  playlist ...          Create, edit, start or stop playlists
  config ...            Show or change settings
  start, stop, status   Run the daemon in the foreground, stop it, check it
  doctor                Find out why no wallpaper appears

IMAGE is an ID, a name or unique prefix, a file path, or `current`.
  --monitor NAME        Apply set or random to this monitor only
  --json, --format FMT  Print JSON, or one line per record such as '{id} {name}'

`murald help all` lists all commands, `murald COMMAND --help` describes one.
";

/// The help on the whole command.
pub(super) fn all(verbs: Verbs) -> String {
    let mut out = String::from(
        "murald - wallpaper daemon and client for Wayland and X11\n\n\
         Usage: murald [COMMAND] [ARGUMENTS] [FLAGS]\n\n\
         Without a command, or with `start`, murald runs the daemon in the foreground.\n\
         `murald COMMAND --help` describes a command.\n\
         Images, playlists and folders are given as an ID, a name or a unique prefix of\n\
         the name; images also as a file path, or as `current` or `current:MONITOR`.\n",
    );
    for group in verbs.0 {
        let lines = group.verbs.iter().filter(is_shown).map(verb_line);
        section(&mut out, group.title, lines.collect());
    }
    section(
        &mut out,
        "Flags of every command",
        GLOBAL.iter().map(flag_line).collect(),
    );
    section(
        &mut out,
        "Environment",
        vec![
            (
                "MURALD_SOCKET".into(),
                "Socket of the daemon, unless --socket is given".into(),
            ),
            (
                "MURALD_LOG".into(),
                "Log level, unless --log-level is given".into(),
            ),
            (
                "MURALD_AUTOSTART".into(),
                "0: commands do not start the daemon".into(),
            ),
            (
                "NO_COLOR".into(),
                "Print no colours and no pictures, if set".into(),
            ),
        ],
    );
    out.push_str(
        "\nExit status: 0 success, 1 failure, 2 usage error, 69 the daemon does not answer,\n\
         70 internal error, 75 already running, 78 configuration error, 130 interrupted.\n\n\
         Manual: murald-tutorial(7) to get started and to start murald at login,\n\
         murald(1) for files, colours and scripts, murald.toml(5) for the settings.\n",
    );
    out
}

/// Whether people type the verb; `complete` is for shells.
fn is_shown(verb: &&Verb) -> bool {
    verb.words != ["complete"]
}

/// Help for the verbs that begin with the same word.
pub(super) fn group(verbs: Verbs, first: &str) -> String {
    let mut out = format!("Usage: murald {first} COMMAND\n");
    let lines = verbs.all().filter(|verb| verb.words[0] == first);
    section(&mut out, "Commands", lines.map(verb_line).collect());
    out
}

/// Help for one verb.
pub(super) fn verb(verbs: Verbs, verb: &Verb) -> String {
    let mut out = format!("{}\n\nUsage: {}\n", verb.summary, usage(verb));
    if !verb.help.is_empty() {
        write!(out, "\n{}\n", wrapped(verb.help, COLUMNS).join("\n")).expect("a String takes all");
    }
    let arguments = verb.arguments.iter().map(argument_line);
    section(&mut out, "Arguments", arguments.collect());
    section(
        &mut out,
        "Flags",
        verb.flags.iter().map(flag_line).collect(),
    );
    out.push_str(
        "\n`murald help all` lists flags for all commands, such as --json and --format.\n",
    );
    let more = verbs
        .with_prefix(verb.words)
        .filter(|other| other.words != verb.words);
    section(&mut out, "More", more.map(verb_line).collect());
    out
}

/// The usage line, such as `murald images get ID`.
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

fn verb_line(verb: &Verb) -> (String, String) {
    (synopsis(verb), verb.summary.to_owned())
}

fn argument_line(argument: &Argument) -> (String, String) {
    (
        argument.name.to_owned(),
        meaning(argument.meaning, Some(argument.kind), false),
    )
}

fn flag_line(flag: &Flag) -> (String, String) {
    let name = match flag.value {
        Some((value, _)) => format!("{} {value}", flag.name),
        None => flag.name.to_owned(),
    };
    (
        name,
        meaning(flag.meaning, flag.value.map(|(_, kind)| kind), flag.many),
    )
}

fn meaning(text: &str, kind: Option<Kind>, many: bool) -> String {
    let mut out = text.to_owned();
    match kind {
        Some(Kind::Words(words)) => out = format!("{out}. One of: {}", words.join(", ")),
        Some(Kind::List(words)) if !words.is_empty() => {
            out = format!("{out}. Any of: {}", words.join(", "));
        }
        _ => {}
    }
    if many {
        out.push_str(". May be given several times, or with commas");
    }
    out
}

/// A heading with two columns; nothing if there are no lines.
fn section(out: &mut String, title: &str, lines: Vec<(String, String)>) {
    /// If the left side is longer, its meaning begins on the next line.
    const WIDEST: usize = 30;
    if lines.is_empty() {
        return;
    }
    let widest = lines
        .iter()
        .map(|(name, _)| name.len())
        .filter(|&len| len <= WIDEST)
        .max();
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

#[cfg(test)]
mod tests {
    use super::super::terminal::width;
    use super::*;

    const ALL: Verbs = Verbs(crate::cli::GROUPS);

    #[test]
    fn every_verb_has_help_that_fits_a_terminal() {
        for one in ALL.all() {
            let text = verb(ALL, one);
            assert!(
                text.starts_with(one.summary) && !one.summary.ends_with('.'),
                "{text}"
            );
            for flag in one.flags {
                assert!(text.contains(flag.name), "{text}");
            }
            let examples = |line: &&str| !line.starts_with("    murald");
            for line in text.lines().filter(examples) {
                assert!(width(line) <= COLUMNS, "{line:?} of {}", one.name());
            }
            assert_eq!(all(ALL).contains(&one.name()), is_shown(&one));
        }
        assert!(
            all(ALL).lines().all(|line| width(line) <= COLUMNS),
            "{}",
            all(ALL)
        );
    }

    #[test]
    fn the_short_help_fits_a_small_terminal() {
        assert!(SHORT.lines().count() <= 24, "{}", SHORT.lines().count());
        assert!(SHORT.lines().all(|line| width(line) <= COLUMNS));
    }
}
