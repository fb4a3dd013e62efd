//! waypaper: `config.ini`, and where that says so `state.ini`.
//!
//! The keys are those of its documentation (<https://anufrievroman.gitbook.io/waypaper/configuration>).

use serde_json::Value;

use super::broken::Broken;
use super::disk::{Disk, Kind};
use super::fit;
use super::ini::{Dialect, Entry, Ini, is_true};
use super::step::{NewPlaylist, Step, quoted};
use crate::wire::Fit;

const SETTINGS: &str = "Settings";
const AWWW: &str = "backend.awww";

/// Beginnings of keys, and why they stay.
const NOT: &[(&str, &str)] = &[
    ("language", "murald speaks English"),
    ("sort", "playlists go by name or at random"),
    ("subfolders", "a directory is watched with those below it"),
    ("all_subfolders", "a directory is watched with those below it"),
    ("show_hidden", "hidden files are passed over"),
    ("use_xdg_state", "what murald knows is in its own database"),
    ("mpvpaper_sound", "`murald images update FILM --audio on` switches it on"),
    ("waypaperd_cycle_length", "`murald slideshow DIR --interval TIME` is as waypaperd"),
    ("linux_wallpaperengine", "murald does not drive linux-wallpaperengine"),
    ("wallpaperengine_folder", "murald does not drive linux-wallpaperengine"),
];

/// Whether folder and wallpapers are in its state file.
pub(super) fn keeps_state(text: &str) -> bool {
    Ini::read(text, Dialect::ConfigParser)
        .is_ok_and(|ini| ini.get(SETTINGS, "use_xdg_state").is_some_and(is_true))
}

pub(super) fn steps(text: &str, state: Option<&str>, disk: &Disk) -> Result<Vec<Step>, Broken> {
    let mut ini = Ini::read(text, Dialect::ConfigParser)?;
    // A state that cannot be read is as none: its file is no one's to mend.
    if let Some(state) = state.and_then(|text| Ini::read(text, Dialect::ConfigParser).ok()) {
        ini.cover(SETTINGS, &state, "State");
    }
    // A percent sign is written twice, but in what waypaper reads as it stands.
    let get = |key: &str| {
        let value = ini.get(SETTINGS, key)?;
        let is_raw = ["wallpaper", "monitors"].contains(&key);
        Some(if is_raw { value.to_owned() } else { value.replace("%%", "%") })
    };
    let mut steps = Vec::new();
    for entry in ini.entries() {
        if entry.section == SETTINGS {
            steps.extend(one(entry, &get, disk));
        } else {
            let key = format!("{}.{}", entry.section, entry.key);
            steps.push(Step::not_taken(key, "it is no section of waypaper's that is known here"));
        }
    }
    if get("slideshow_enabled").is_some_and(|value| is_true(&value)) {
        let minutes = get("slideshow_interval").and_then(|value| value.trim().parse().ok());
        let seconds = minutes.unwrap_or(60_u64).saturating_mul(60);
        let folders = folders(&get("folder").unwrap_or_default(), disk);
        let mut there = folders.iter().filter(|path| disk.kind(path) == Some(Kind::Directory));
        let playlist = match (there.next(), there.next()) {
            (Some(only), None) => {
                NewPlaylist::of_directory("waypaper".to_owned(), only, Some(seconds))
            }
            _ => NewPlaylist::of_library("waypaper".to_owned(), Some(seconds)),
        };
        steps.push(Step::Playlist(playlist));
    }
    Ok(steps)
}

fn folders(written: &str, disk: &Disk) -> Vec<std::path::PathBuf> {
    let lines = written.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| disk.path(line)).collect()
}

/// What one key asks for.
fn one(entry: &Entry, get: &dyn Fn(&str) -> Option<String>, disk: &Disk) -> Vec<Step> {
    let (key, value) = (entry.key.as_str(), get(&entry.key).unwrap_or_default());
    let value = value.trim();
    let not = |why: &str| vec![Step::not_taken(key, why)];
    match key {
        "folder" => watches(value, disk),
        "wallpaper" => pictures(value, &get("monitors").unwrap_or_default(), disk),
        // It is told of with the wallpapers and with the playlist.
        "monitors" | "slideshow_enabled" | "slideshow_interval" => Vec::new(),
        "backend" => match value {
            "swww" | "awww" => vec![Step::setting("backend", "type", "awww")],
            "swaybg" | "feh" | "hyprpaper" | "mpvpaper" => {
                vec![Step::setting("backend", "type", value)]
            }
            other => not(&format!("murald does not drive {other}; it draws by itself")),
        },
        "fill" => match value.to_lowercase().as_str() {
            "fill" => fit::steps(Fit::Cover).collect(),
            "fit" => fit::steps(Fit::Contain).collect(),
            "stretch" => fit::steps(Fit::Fill).collect(),
            "center" => fit::steps(Fit::Center).collect(),
            "tile" => fit::steps(Fit::Tile).collect(),
            other => not(&format!("murald has nothing like {other}")),
        },
        "color" => match value.strip_prefix('#') {
            Some(color) => [AWWW, "backend.builtin"]
                .map(|section| Step::setting(section, "fill_color", color))
                .into(),
            None => not("it is no colour as #ffffff is one"),
        },
        "post_command" if value.is_empty() => Vec::new(),
        "post_command" => vec![Step::setting("hooks", "wallpaper_changed", hook(value, get))],
        "mpvpaper_options" if value.is_empty() => Vec::new(),
        "mpvpaper_options" => {
            vec![Step::setting("backend.mpvpaper", "mpv_options", format!("loop {value}"))]
        }
        "swww_filter" => vec![Step::setting(AWWW, "filter_type", value)],
        key => match key.strip_prefix("swww_") {
            Some(
                own @ ("transition_type"
                | "transition_step"
                | "transition_angle"
                | "transition_duration"
                | "transition_fps"),
            ) => vec![Step::setting(AWWW, own, typed(own, value))],
            _ => not(reason(key)),
        },
    }
}

fn reason(key: &str) -> &'static str {
    let known = NOT.iter().find(|(name, _)| key.starts_with(name));
    known.map_or("it is about the window of waypaper", |(_, why)| why)
}

/// The type is a word, all others are numbers.
fn typed(key: &str, value: &str) -> Value {
    match value.parse::<i64>() {
        Ok(number) if key != "transition_type" => number.into(),
        _ => value.parse::<f64>().map_or_else(|_| value.into(), Value::from),
    }
}

fn watches(value: &str, disk: &Disk) -> Vec<Step> {
    let step = |path: std::path::PathBuf| match disk.kind(&path) {
        Some(Kind::Directory) => Step::Watch(path),
        _ => Step::not_taken("folder", format!("there is no directory {}", path.display())),
    };
    folders(value, disk).into_iter().map(step).collect()
}

/// The n-th picture is on the n-th monitor. Older versions write commas, newer ones a line for each.
fn pictures(value: &str, monitors: &str, disk: &Disk) -> Vec<Step> {
    let split = |text: &str| -> Vec<String> {
        let sign = if text.contains('\n') { '\n' } else { ',' };
        let parts = text.split(sign).map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    };
    let monitors = split(monitors);
    // A name may have a comma.
    let whole = disk.path(value);
    let paths = match disk.kind(&whole) {
        Some(Kind::File) if !value.contains('\n') => vec![whole],
        _ => split(value).iter().map(|path| disk.path(path)).collect(),
    };
    let step = |(at, path): (usize, std::path::PathBuf)| {
        let monitor = monitors.get(at).filter(|name| *name != "All");
        let to = monitor.map_or_else(String::new, |name| format!(" --monitor '{name}'"));
        let line = format!("murald set {}{to}", quoted(&path));
        let why = format!("no other picture comes up: `{line}` shows it");
        Step::not_taken("wallpaper", why)
    };
    paths.into_iter().enumerate().map(step).collect()
}

/// waypaper puts the values in place of these words, each as one word of the shell.
fn hook(command: &str, get: &dyn Fn(&str) -> Option<String>) -> String {
    let value = |key: &str| get(key).unwrap_or_default().replace(['"', '\\', '$', '`'], "");
    let words = [
        ("$wallpaper", "$MURALD_PATH".to_owned()),
        ("$monitor", "$MURALD_MONITOR".to_owned()),
        ("$fill", value("fill")),
        ("$color", value("color")),
    ];
    let (mut out, mut rest, mut quote) = (String::new(), command, None);
    while let Some(first) = rest.chars().next() {
        if let Some((word, value)) = words.iter().find(|(word, _)| rest.starts_with(word)) {
            out.push_str(&match quote {
                None => format!("\"{value}\""),
                Some('"') => value.clone(),
                Some(_) => format!("'\"{value}\"'"),
            });
            rest = &rest[word.len()..];
            continue;
        }
        match quote {
            None if matches!(first, '"' | '\'') => quote = Some(first),
            Some(open) if open == first => quote = None,
            _ => {}
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        Disk::pretended("/home/mia", |path| match path.extension() {
            Some(_) if path.to_string_lossy().contains(".jpg,") => None,
            Some(_) => Some(Kind::File),
            None => Some(Kind::Directory),
        })
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let told: Vec<String> = match steps(text, None, &disk()) {
            Ok(steps) => steps.iter().map(Step::to_string).collect(),
            Err(broken) => vec![broken.to_string()],
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn the_typical_one_of_its_documentation() {
        check(
            "[Settings]\nlanguage = en\nfolder = ~/Pictures\nwallpaper = ~/Pictures/wallpaper.jpg\n\
             backend = swaybg\nmonitors = All\nfill = Fill\nsort = name\ncolor = #ffffff\n\
             subfolders = False\nnumber_of_columns = 3\nuse_xdg_state = False\n\
             swww_transition_type = any\nswww_transition_step = 90\nswww_transition_duration = 2\n\
             mpvpaper_sound = False\nmpvpaper_options = \npost_command = \n",
            &[
                "not taken: language (murald speaks English)",
                "watch /home/mia/Pictures",
                "not taken: wallpaper (no other picture comes up: `murald set \
                 '/home/mia/Pictures/wallpaper.jpg'` shows it)",
                "setting backend.type swaybg",
                "setting backend.builtin.fit_mode cover",
                "setting backend.awww.resize crop",
                "setting backend.swaybg.fit_mode fill",
                "setting backend.feh.mode fill",
                "setting backend.hyprpaper.fit_mode cover",
                "not taken: sort (playlists go by name or at random)",
                "setting backend.awww.fill_color ffffff",
                "setting backend.builtin.fill_color ffffff",
                "not taken: subfolders (a directory is watched with those below it)",
                "not taken: number_of_columns (it is about the window of waypaper)",
                "not taken: use_xdg_state (what murald knows is in its own database)",
                "setting backend.awww.transition_type any",
                "setting backend.awww.transition_step 90",
                "setting backend.awww.transition_duration 2",
                "not taken: mpvpaper_sound (`murald images update FILM --audio on` switches it on)",
            ],
        );
    }

    #[test]
    fn several_folders_and_monitors_in_turns() {
        check(
            "[Settings]\nfolder = /path/folder_1\n         /path/folder_2\nslideshow_enabled = True\n\
             slideshow_interval = 30\nmonitors = DP-1\n\tDP-2\nwallpaper = ~/a b.jpg\n\t~/c.jpg\n\
             backend = wallutils\nfill = sideways\ncolor = white\n[Other]\nx = 1\n",
            &[
                "watch /path/folder_1",
                "watch /path/folder_2",
                "not taken: wallpaper (no other picture comes up: `murald set \
                 '/home/mia/a b.jpg' --monitor 'DP-1'` shows it)",
                "not taken: wallpaper (no other picture comes up: `murald set \
                 '/home/mia/c.jpg' --monitor 'DP-2'` shows it)",
                "not taken: backend (murald does not drive wallutils; it draws by itself)",
                "not taken: fill (murald has nothing like sideways)",
                "not taken: color (it is no colour as #ffffff is one)",
                "not taken: Other.x (it is no section of waypaper's that is known here)",
                "playlist waypaper (of all images, every 30 min, at random)",
            ],
        );
        check(
            "[Settings]\nfolder = ~/5%%\nwallpaper = ~/a%%.jpg,~/b.jpg\nmonitors = DP-1,DP-2\n",
            &[
                "watch /home/mia/5%",
                "not taken: wallpaper (no other picture comes up: `murald set \
                 '/home/mia/a%%.jpg' --monitor 'DP-1'` shows it)",
                "not taken: wallpaper (no other picture comes up: `murald set \
                 '/home/mia/b.jpg' --monitor 'DP-2'` shows it)",
            ],
        );
        check("folder = x", &["line 1, column 1: this key is under no heading"]);
    }

    #[test]
    fn its_command_is_a_hook() {
        let check = |command: &str, expected: &str| {
            let get = |key: &str| (key == "color").then(|| "#ffffff".to_owned());
            assert_eq!(hook(command, &get), expected);
        };
        check("my_script.sh $wallpaper", "my_script.sh \"$MURALD_PATH\"");
        check("echo \"My new: $wallpaper \"", "echo \"My new: $MURALD_PATH \"");
        check("sh -c 'x $monitor' $color", "sh -c 'x '\"$MURALD_MONITOR\"'' \"#ffffff\"");
        check("echo ä $other", "echo ä $other");
    }
}
