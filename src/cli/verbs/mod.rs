//! All verbs of the command, in one file for each resource.

/// Joins the flags of a verb and those that it shares with others: `joined!(FILTERS; ONE, OTHER)`.
macro_rules! joined {
    ($more:expr; $($own:expr),* $(,)?) => {{
        const OWN: &[Flag] = &[$($own),*];
        const ALL: [Flag; OWN.len() + $more.len()] = $crate::cli::verbs::filters::join(OWN, $more);
        &ALL
    }};
}

mod complete;
mod config;
mod config_change;
mod contact_sheet;
mod daemon;
mod delete;
mod doctor;
mod events;
mod filters;
mod folders;
mod gallery;
mod image_sheet;
mod images;
mod import;
mod library;
mod playlist_sheet;
mod playlists;
mod scripts;
mod session;
mod wallpaper;

// Names that the files of the verbs import with `use super::`.
pub(super) use super::call::{Call, Setting, Start};
pub(super) use super::columns::{
    Column, View, at, column, computed, each, in_bytes, items, label, listed, minute, moment,
    moment_of, more, number, palette, seconds, text,
};
pub(super) use super::connection::{Connection, RequestPath, travelling};
pub(super) use super::error::Exit;
pub(super) use super::lookup::{VerbMatch, Verbs};
pub(super) use super::picture::{
    Raster, Wish, cell, chafa_file, decoded, draw_with_chafa, half_blocks,
};
pub(super) use super::reference::path;
pub(super) use super::request::{Body, BodyFields, From, Request, paths, place};
pub(super) use super::sse::{Events, Item, listen};
pub(super) use super::stdout::{Progress, Stdout};
pub(super) use super::table::{Cell, CellStyle, HUES, Table};
pub(super) use super::template::{Template, written};
pub(super) use super::terminal::{Terminal, count, cut, harmless, span, warn, width};
pub(super) use super::value::backend;
pub(super) use super::verb::{Argument, Arity, Flag, GLOBAL, Group, Kind, NULL, Run, Verb};
pub(super) use super::{Error, columns, picture, start};

pub(super) use complete::complete;
pub(super) use config::fields;
pub(super) use delete::confirm;
pub(super) use filters::{advice, are_named, choose, in_api};

/// All verbs, in the order in which help shows them.
pub static GROUPS: &[Group] = &[
    daemon::GROUP,
    wallpaper::GROUP,
    import::GROUP,
    images::GROUP,
    folders::GROUP,
    library::GROUP,
    library::WATCHING,
    images::VIDEOS,
    playlists::GROUP,
    session::GROUP,
    config::GROUP,
    session::THEMES,
];

/// The values of a flag that turns something on or off.
const ON_OFF: Kind = Kind::Words(&["on", "off"]);
const MONITORS: Flag = Flag::value(
    "--monitor",
    "NAME",
    Kind::Monitor,
    "Apply to this monitor only",
)
.many();
const MODE: Flag = Flag::value(
    "--mode",
    "MODE",
    Kind::Words(&["individual", "clone", "extend"]),
    "How to use several monitors",
);
const EACH: Flag = Flag::switch("--each", "A different image on each monitor");
const FOLDER: Flag = Flag::value(
    "--folder",
    "FOLDER",
    Kind::Folder,
    "Import into this folder",
);
#[rustfmt::skip]
const INTERVAL: Flag = Flag::value("--interval", "TIME", Kind::Span,
    "Time between changes: 90 (seconds), 10m, 2h, 1d");
const OUTPUT: Flag = Flag::value(
    "--output",
    "FILE",
    Kind::File,
    "Write to this file instead of standard output",
);

#[cfg(test)]
mod tests {
    use super::super::lookup::Verbs;
    use super::super::verb::{Arity, Verb};
    use super::*;

    const ALL: Verbs = Verbs(GROUPS);

    #[test]
    fn synonyms_are_replaced_by_the_words_of_the_table() {
        #[track_caller]
        fn check(line: &str, expected: &str) {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            ALL.spell(&mut words);
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
        check("ls", "images list");
        check("list", "images list");
        check("prev", "previous");
        check("trash 7", "trash 7");
        check("undo", "back");
        check("images rm 7", "images delete 7");
        check("image mv 7 sea", "images move 7 sea");
        check("playlist rm x", "playlist delete x");
        check("set 7", "set 7");
        check("status", "status");
        check("show", "show");
    }

    #[test]
    fn verbs_are_unique_and_their_arguments_unambiguous() {
        let mut names: Vec<String> = ALL.all().map(Verb::name).collect();
        names.sort();
        let verbs = names.len();
        names.dedup();
        assert_eq!(names.len(), verbs, "a verb is there twice");
        for verb in ALL.all() {
            for (at, argument) in verb.arguments.iter().enumerate() {
                let is_list = matches!(argument.arity, Arity::Some | Arity::Any);
                let behind = &verb.arguments[at + 1..];
                let behind_are_one = behind.iter().all(|one| one.arity == Arity::One);
                assert!(
                    !is_list || behind_are_one,
                    "{}: {}",
                    verb.name(),
                    argument.name
                );
            }
            for flag in verb.flags {
                assert!(flag.name.starts_with('-'), "{}: {}", verb.name(), flag.name);
            }
        }
        assert_eq!(ALL.start().words, ["start"]);
    }
}
