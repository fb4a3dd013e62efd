//! wpaperd: a TOML file with a section for each display.
//!
//! The keys and the section names `default`, `any` and `re:...` are as its README and wpaperd-output(5)
//! have them (<https://github.com/danyspin97/wpaperd>).

use std::path::Path;

use serde_json::Value;
use toml_edit::{Item, TableLike};

use super::broken::Broken;
use super::disk::{Disk, Kind};
use super::step::{NewPlaylist, Source, Step, quoted};
use super::{fit, span, toml};
use crate::wire::Fit;

/// What is one setting for all monitors here.
const FOR_ALL: [&str; 4] = ["mode", "transition-time", "transition", "exec"];
/// Those that make a playlist of a section.
const OWN: [&str; 4] = ["path", "duration", "sorting", "recursive"];

const NOT: &[(&str, &str)] = &[
    ("queue-size", "all pictures of a directory are shown before one comes again"),
    ("initial-transition", "the first picture comes up at once"),
    (
        "group",
        "a playlist shows the same picture on all of its monitors, unless it is started with --mode each",
    ),
    ("offset", "`murald config set backend.builtin.position top` moves pictures"),
    ("symlink", "the links are in ~/.local/state/murald/current"),
    ("apply-shadow", "nothing is drawn over pictures"),
];

/// A section, with `default` beneath it.
struct Section<'a> {
    name: &'a str,
    own: &'a dyn TableLike,
    base: Option<&'a dyn TableLike>,
}

pub(super) fn steps(text: &str, disk: &Disk) -> Result<Vec<Step>, Broken> {
    let document = toml::read(text)?;
    let base = document.get("default").and_then(Item::as_table_like);
    let mut steps = Vec::new();
    let mut sections = Vec::new();
    for (name, item) in document.iter() {
        match item.as_table_like() {
            Some(_) if name == "default" => {}
            Some(own) => sections.push(Section { name, own, base }),
            None => steps.push(Step::not_taken(name, "it is in no section")),
        }
    }
    // Displays that no section names are as `default` says.
    if let Some(own) = base.filter(|base| find(*base, "path").is_some())
        && !sections.iter().any(|section| section.name == "any")
    {
        sections.push(Section { name: "default", own, base: None });
    }
    for key in FOR_ALL {
        steps.extend(for_all(key, base, &sections, disk));
    }
    for section in &sections {
        section.picture(disk, &mut steps);
    }
    for section in sections.iter().filter(|section| section.name != "default") {
        steps.extend(not_taken(section.name, section.own));
    }
    steps.extend(base.into_iter().flat_map(|base| not_taken("default", base)));
    Ok(once(steps))
}

/// Two sections may have the same directory.
fn once(steps: Vec<Step>) -> Vec<Step> {
    let mut kept: Vec<Step> = Vec::new();
    for step in steps {
        if !kept.contains(&step) {
            kept.push(step);
        }
    }
    kept
}

/// Its manual writes some keys with `_`, which older versions had.
fn find<'a>(table: &'a dyn TableLike, key: &str) -> Option<&'a Item> {
    table.get(key).or_else(|| table.get(&key.replace('-', "_")))
}

impl<'a> Section<'a> {
    fn get(&self, key: &str) -> Option<&'a Item> {
        find(self.own, key).or_else(|| find(self.base?, key))
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    /// The picture or the directory that it names.
    fn picture(&self, disk: &Disk, steps: &mut Vec<Step>) {
        let name = self.name;
        let Some(written) = self.text("path") else {
            return steps.push(Step::not_taken(name, "it has no path"));
        };
        let path = disk.path(written);
        match disk.kind(&path) {
            None => {
                let why = format!("nothing is at {}", path.display());
                steps.push(Step::not_taken(format!("{name}.path"), why));
            }
            Some(Kind::File) => {
                let line = format!("murald set {}{}", quoted(&path), self.where_to());
                let why = format!("no other picture comes up: `{line}` shows it");
                steps.push(Step::not_taken(format!("{name}.path"), why));
            }
            Some(Kind::Directory) => {
                let playlist = self.playlist(&path, steps);
                steps.push(Step::Watch(path));
                steps.push(Step::Playlist(playlist));
            }
        }
    }

    fn playlist(&self, path: &Path, steps: &mut Vec<Step>) -> NewPlaylist {
        let named = |key: &str| format!("{}.{key}", self.name);
        let written = self.get("duration");
        let seconds = self.text("duration").and_then(span::seconds);
        if let (Some(written), None) = (written, seconds) {
            let why = format!("{} is no span of time", written.to_string().trim());
            steps.push(Step::not_taken(named("duration"), why));
        }
        let mut playlist =
            NewPlaylist::of_directory(format!("wpaperd {}", self.name), path, seconds);
        match self.text("sorting") {
            None | Some("random") => {}
            Some(order @ ("ascending" | "descending")) => playlist.ordered(order == "descending"),
            Some(other) => {
                steps.push(Step::not_taken(named("sorting"), format!("{other} is no order of it")));
            }
        }
        if let Source::Directory { recursive, .. } = &mut playlist.source {
            *recursive = self.get("recursive").and_then(Item::as_bool).unwrap_or(true);
        }
        playlist.monitors.extend(self.monitor().map(str::to_owned));
        playlist
    }

    /// Where it names one: by its connector, or by its description.
    fn monitor(&self) -> Option<&str> {
        let many = ["any", "default"].contains(&self.name) || self.name.starts_with("re:");
        (!many).then_some(self.name)
    }

    fn where_to(&self) -> String {
        match self.monitor() {
            Some(name) => format!(" --monitor '{name}'"),
            None if self.name.starts_with("re:") => " --monitor NAME".to_owned(),
            None => " --default".to_owned(),
        }
    }
}

/// A setting that is the same for all monitors here: as all sections have it, else as `default` has.
fn for_all(
    key: &str,
    base: Option<&dyn TableLike>,
    sections: &[Section<'_>],
    disk: &Disk,
) -> Vec<Step> {
    let shown = |item: &Item| item.to_string().trim().to_owned();
    let values: Vec<Option<String>> =
        sections.iter().map(|section| section.get(key).map(shown)).collect();
    let same = values.windows(2).all(|pair| pair[0] == pair[1]);
    let common = match sections.first() {
        Some(first) if same => first.get(key),
        _ => base.and_then(|base| find(base, key)),
    };
    let mut steps = match common {
        Some(item) => setting(key, item, disk),
        None => Vec::new(),
    };
    for (section, value) in sections.iter().zip(values) {
        if value.is_some() && value != common.map(shown) {
            let why = "it is one setting for all monitors here";
            steps.push(Step::not_taken(format!("{}.{key}", section.name), why));
        }
    }
    steps
}

fn setting(key: &str, item: &Item, disk: &Disk) -> Vec<Step> {
    let taken = match key {
        "mode" => item.as_str().and_then(mode).map(|fit| fit::steps(fit).collect()),
        "transition-time" => toml::number(item).map(|milliseconds| {
            let seconds = Value::from(milliseconds / 1000.0);
            vec![Step::setting("backend.builtin", "transition_duration", seconds)]
        }),
        "transition" => transition(item)
            .map(|word| vec![Step::setting("backend.builtin", "transition_type", word)]),
        _ => item.as_str().map(|path| vec![hook(&disk.path(path))]),
    };
    taken.unwrap_or_else(|| {
        let why = match (key, item.as_table_like().and_then(|table| table.iter().next())) {
            ("transition", Some((name, _))) => format!("murald has no transition {name}"),
            _ => format!("murald has nothing like {}", item.to_string().trim()),
        };
        vec![Step::not_taken(key, why)]
    })
}

fn mode(word: &str) -> Option<Fit> {
    Some(match word {
        "fit" => Fit::Contain,
        "cover" => Fit::Cover,
        "center" => Fit::Center,
        "stretch" => Fit::Fill,
        "tile" => Fit::Tile,
        _ => return None,
    })
}

/// Those that murald has, too: a table with the name of one.
fn transition(item: &Item) -> Option<&'static str> {
    let (name, _) = item.as_table_like()?.iter().next()?;
    match name {
        "fade" => Some("fade"),
        "directional-wipe" => Some("wipe"),
        "circle-open" => Some("grow"),
        _ => None,
    }
}

/// The script is called with the display and the picture.
fn hook(script: &Path) -> Step {
    let command = format!("{} \"$MURALD_MONITOR\" \"$MURALD_PATH\"", quoted(script));
    Step::setting("hooks", "wallpaper_changed", command)
}

fn not_taken(section: &str, table: &dyn TableLike) -> Vec<Step> {
    let mut steps = Vec::new();
    for (key, _) in table.iter() {
        let plain = key.replace('_', "-");
        if FOR_ALL.contains(&&*plain) || OWN.contains(&&*plain) {
            continue;
        }
        let known = NOT.iter().find(|(name, _)| *name == plain);
        let why = known.map_or("it is no key of wpaperd's that is known here", |(_, why)| why);
        steps.push(Step::not_taken(format!("{section}.{key}"), why));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let disk = Disk::pretended("/home/mia", |path| match path.extension() {
            Some(_) => Some(Kind::File),
            None if path.ends_with("none") => None,
            None => Some(Kind::Directory),
        });
        match steps(text, &disk) {
            Ok(steps) => steps.iter().map(Step::to_string).collect(),
            Err(broken) => vec![broken.to_string()],
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(told(text), expected);
    }

    #[test]
    fn the_simplest_one_of_its_readme() {
        check(
            "[DP-3]\npath = \"/home/mia/lake.png\"\n[DP-4]\npath = \"~/Wallpapers/\"\nduration = \"30m\"\n",
            &[
                "not taken: DP-3.path (no other picture comes up: `murald set \
                 '/home/mia/lake.png' --monitor 'DP-3'` shows it)",
                "watch /home/mia/Wallpapers",
                "playlist wpaperd DP-4 (of /home/mia/Wallpapers, every 30 min, at random, for DP-4)",
            ],
        );
    }

    #[test]
    fn the_larger_one_of_its_readme() {
        check(
            "[default]\nduration = \"30m\"\nmode = \"center\"\nsorting = \"ascending\"\n\
             [any]\npath = \"~/lake.png\"\n[DP-3]\npath = \"~/Wallpapers\"\n\
             [\"Dell Inc. DELL U2419H GY1VSS2\"]\npath = \"~/Wallpapers/1080p\"\n",
            &[
                "setting backend.builtin.fit_mode center",
                "setting backend.awww.resize no",
                "setting backend.swaybg.fit_mode center",
                "setting backend.feh.mode center",
                "not taken: any.path (no other picture comes up: `murald set \
                 '/home/mia/lake.png' --default` shows it)",
                "watch /home/mia/Wallpapers",
                "playlist wpaperd DP-3 (of /home/mia/Wallpapers, every 30 min, by name, for DP-3)",
                "watch /home/mia/Wallpapers/1080p",
                "playlist wpaperd Dell Inc. DELL U2419H GY1VSS2 (of /home/mia/Wallpapers/1080p, \
                 every 30 min, by name, for Dell Inc. DELL U2419H GY1VSS2)",
            ],
        );
    }

    #[test]
    fn every_key_is_told_of() {
        check(
            "[default]\npath = '~/w'\ntransition_time = 600\nqueue-size = 20\nexec = '~/it''s.sh'\n",
            &["line 5, column 14: unexpected key or value, expected newline, `#`"],
        );
        check(
            "loose = 1\n[default]\npath = '~/w'\ntransition-time = 600\nqueue-size = 20\n\
             exec = \"~/it's.sh\"\n[default.transition.circle-open]\nsmoothness = 0.1\n\
             [\"re:DP-\\\\d\"]\nsorting = 'descending'\nrecursive = false\nmode = 'tile'\nfrob = 1\n",
            &[
                "not taken: loose (it is in no section)",
                "not taken: re:DP-\\d.mode (it is one setting for all monitors here)",
                "setting backend.builtin.transition_duration 0.6",
                "setting backend.builtin.transition_type grow",
                "setting hooks.wallpaper_changed '/home/mia/it'\\''s.sh' \"$MURALD_MONITOR\" \"$MURALD_PATH\"",
                "watch /home/mia/w",
                "playlist wpaperd re:DP-\\d (of /home/mia/w, changed by hand, by name backwards)",
                "playlist wpaperd default (of /home/mia/w, changed by hand, at random)",
                "not taken: re:DP-\\d.frob (it is no key of wpaperd's that is known here)",
                "not taken: default.queue-size (all pictures of a directory are shown before one \
                 comes again)",
            ],
        );
        check(
            "[default.transition.hexagonalize]\n[DP-1]\npath = '~/none'\nduration = '5'\n",
            &[
                "not taken: transition (murald has no transition hexagonalize)",
                "not taken: DP-1.path (nothing is at /home/mia/none)",
            ],
        );
        check(
            "[DP-1]\nmode = 'fit'\n[DP-2]\npath = '~/w'\nmode = 'stretch'\nduration = 5\n",
            &[
                "not taken: DP-1.mode (it is one setting for all monitors here)",
                "not taken: DP-2.mode (it is one setting for all monitors here)",
                "not taken: DP-1 (it has no path)",
                "not taken: DP-2.duration (5 is no span of time)",
                "watch /home/mia/w",
                "playlist wpaperd DP-2 (of /home/mia/w, changed by hand, at random, for DP-2)",
            ],
        );
        check("", &[]);
        check("[a\n", &["line 1, column 3: unclosed table, expected `]`"]);
    }

    #[test]
    fn what_is_of_the_wrong_type_is_not_taken() {
        let told = told("[any]\npath = 5\nmode = 7\ntransition = 'x'\nexec = []\n");
        assert!(told.iter().all(|line| line.starts_with("not taken: ")), "{told:#?}");
        assert_eq!(told.len(), 4, "{told:#?}");
    }
}
