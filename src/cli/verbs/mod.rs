//! Every verb of the command, one file for each resource.

mod backends;
mod complete;
mod config;
mod config_change;
mod config_section;
mod contact_sheet;
mod daemon;
mod delete;
mod edit;
mod events;
mod files;
mod folders;
mod gallery;
mod history;
mod image_list;
mod image_sheet;
mod images;
mod import;
mod inspect;
mod library;
mod migrate;
mod pick;
mod playlist;
mod playlist_sheet;
mod playlists;
mod session;
mod slideshow;
mod themes;
mod video;
mod wallpaper;
mod watch;

use super::verb::{Flag, Group, Kind};

pub(super) use complete::complete;
pub(super) use config::{file as config_file, file_to_check};
pub(super) use daemon::{Stopped, stop};

/// In the order that help shows them.
pub static GROUPS: &[Group] = &[
    daemon::GROUP,
    wallpaper::GROUP,
    import::GROUP,
    images::GROUP,
    folders::GROUP,
    library::GROUP,
    watch::GROUP,
    video::GROUP,
    playlists::GROUP,
    backends::GROUP,
    config::GROUP,
    themes::GROUP,
];

/// A switch that can be told to be off.
const ON_OFF: Kind = Kind::Words(&["on", "off"]);
const MODES: &[&str] = crate::wire::Mode::WORDS;
/// Of one picture.
const MODES_OF_ONE: &[&str] = &["individual", "clone", "extend"];
const MEDIA_FILTERS: &[&str] = crate::wire::MediaFilter::WORDS;

const MONITORS: Flag =
    Flag::value("--monitor", "NAME", Kind::Monitor, "Only this monitor, instead of all").many();
const MODE: Flag =
    Flag::value("--mode", "MODE", Kind::Words(MODES), "How several monitors show it");
const MODE_OF_ONE: Flag =
    Flag::value("--mode", "MODE", Kind::Words(MODES_OF_ONE), "How several monitors show it");
const FIT: Flag = Flag::value(
    "--fit",
    "FIT",
    Kind::Words(crate::wire::Fit::WORDS),
    "How it fills a monitor of another shape, instead of as the backend's settings say",
);
const TRANSITION: Flag = Flag::value(
    "--transition",
    "WORD",
    Kind::Text,
    "The transition to it, by the backend's own word; this time only",
);
const FOLDER: Flag =
    Flag::value("--folder", "FOLDER", Kind::Folder, "Put what is imported into this folder");

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
    use super::super::lookup::Verbs;
    use super::super::verb::{Arity, Verb};
    use super::*;

    const ALL: Verbs = Verbs(GROUPS);

    #[test]
    fn one_thing_may_be_said_in_several_ways() {
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
        check("wallpaper get", "wallpaper current");
        check("ls", "images list");
        check("list", "images list");
        check("prev", "previous");
        check("images rm 7", "images delete 7");
        check("image mv 7 sea", "images move 7 sea");
        check("playlist rm x", "playlist delete x");
        check("wallpapers", "wallpaper");
        check("set 7", "set 7");
        check("status", "status");
        check("show", "show");
    }

    #[test]
    fn the_table_is_sound() {
        let mut names: Vec<String> = ALL.all().map(Verb::name).collect();
        names.sort();
        let verbs = names.len();
        names.dedup();
        assert_eq!(names.len(), verbs, "a verb is there twice");
        for verb in ALL.all() {
            for (at, argument) in verb.arguments.iter().enumerate() {
                let last = at + 1 == verb.arguments.len();
                let behind = &verb.arguments[at + 1..];
                let behind_are_one = behind.iter().all(|one| one.arity == Arity::One);
                assert!(
                    last || argument.arity != Arity::Some || behind_are_one,
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
