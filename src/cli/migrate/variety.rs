//! variety: `variety.conf`, whose `[sources]` are directories, single pictures and downloads.
//!
//! The keys are those of the commented file that it starts with
//! (<https://github.com/varietywalls/variety>, `variety/data/config/variety.conf`).

use std::path::PathBuf;

use super::broken::Broken;
use super::disk::{Disk, Kind};
use super::fit;
use super::ini::{Dialect, Entry, Ini, is_true};
use super::step::{NewPlaylist, Pictures, Step, quoted};
use crate::wire::Fit;

const NAME: &str = "variety";
const TAG: &str = "favourite";
/// Where it keeps things unless its file says otherwise.
const HOME: &str = "~/.config/variety";

/// Beginnings of keys, and why they stay. What is off or empty is not told of.
const NOT: &[(&str, &str)] = &[
    ("quotes_", "no texts are drawn over pictures"),
    ("clock_", "no clock is drawn over pictures"),
    ("slideshow_", "there is no window of pictures in turns"),
    ("clipboard_", "nothing is taken from the clipboard"),
    ("smart_", "nothing is told to anybody"),
    ("sync_", "nothing is told to anybody"),
    ("stats_", "nothing is told to anybody"),
    ("internet_", "murald loads nothing"),
    (
        "download_",
        "murald loads nothing; what puts pictures into a watched directory works as before",
    ),
    ("quota_", "murald loads nothing"),
    ("wallhaven_", "murald loads nothing"),
    ("copyto_", "the links are in ~/.local/state/murald/current"),
    ("set_wallpaper_script", "murald draws by a backend of its own"),
    ("get_wallpaper_script", "`murald current` tells"),
    (
        "set_lock_screen_script",
        "a hook gets the picture: `murald config set hooks.wallpaper_changed`",
    ),
    ("change_on_start", "the playlist goes on where it was"),
    ("favorites_operations", "a favourite is a tag here, and its file stays"),
    (
        "use_landscape_enabled",
        "`murald playlist create NAME --orientation landscape` has only those",
    ),
    ("min_size", "`murald playlist create NAME --min-width PIXELS` has only those"),
    ("desired_color", "`murald playlist create NAME --colors-near COLOR~D` has only those"),
    ("lightness_", "`murald playlist create NAME --hue-group HUE` is the nearest"),
    ("min_rating", "pictures have tags, and no ratings"),
    ("name_regex", "`murald playlist create NAME --search WORDS` has only those"),
    ("wallpaper_auto_rotate", "pictures are turned as their camera says"),
    ("icon", "there is no icon"),
    ("safe_mode", "murald loads nothing"),
];

pub(super) fn steps(text: &str, disk: &Disk) -> Result<Vec<Step>, Broken> {
    let ini = Ini::read(text, Dialect::ConfigObj)?;
    let folder = |key: &str, usual: &str| {
        let written = ini.get("", key).filter(|path| !path.is_empty());
        disk.path(written.map_or(format!("{HOME}/{usual}"), str::to_owned).as_str())
    };
    let own = Own {
        favourites: folder("favorites_folder", "Favorites"),
        fetched: folder("fetched_folder", "Fetched"),
        downloaded: folder("download_folder", "Downloaded"),
    };
    let (mut steps, mut watched) = (Vec::new(), Vec::new());
    for entry in ini.entries().filter(|entry| entry.section == "sources") {
        steps.extend(source(entry, &own, disk, &mut watched));
    }
    if let Some(playlist) = playlist(&ini, &watched) {
        steps.push(playlist);
    }
    if disk.kind(&own.favourites) == Some(Kind::Directory) {
        if !watched.contains(&own.favourites) {
            steps.push(Step::Watch(own.favourites.clone()));
        }
        steps.push(Step::Tag(TAG.to_owned(), Pictures::Below(own.favourites)));
    }
    if let Some(mode) = ini.get("", "wallpaper_display_mode") {
        steps.extend(display_mode(mode));
    }
    steps.extend(not_taken(&ini));
    Ok(steps)
}

/// The directories that it fills itself.
struct Own {
    favourites: PathBuf,
    fetched: PathBuf,
    downloaded: PathBuf,
}

/// One of `[sources]`: whether it is on, of which kind it is, and where.
fn source(entry: &Entry, own: &Own, disk: &Disk, watched: &mut Vec<PathBuf>) -> Vec<Step> {
    let key = format!("sources.{}", entry.key);
    let mut parts = entry.value.splitn(3, '|').map(str::trim);
    let (Some(on), Some(kind), Some(place)) = (parts.next(), parts.next(), parts.next()) else {
        return vec![Step::not_taken(key, "it is not as True|folder|PATH is")];
    };
    if !is_true(on) {
        return vec![Step::not_taken(key, "it is switched off")];
    }
    let mut watch = |path: PathBuf| match disk.kind(&path) {
        Some(Kind::Directory) if watched.contains(&path) => None,
        Some(Kind::Directory) => {
            watched.push(path.clone());
            Some(Step::Watch(path))
        }
        _ => None,
    };
    let folder = match kind {
        "folder" => Some(disk.path(place)),
        "favorites" => Some(own.favourites.clone()),
        "fetched" => Some(own.fetched.clone()),
        _ => None,
    };
    match (kind, folder) {
        (_, Some(path)) if disk.kind(&path) != Some(Kind::Directory) => {
            let why = format!("there is no directory {}", path.display());
            vec![Step::not_taken(key, why)]
        }
        (_, Some(path)) => watch(path).into_iter().collect(),
        ("image", None) => {
            let line = format!("murald import --in-place {}", quoted(&disk.path(place)));
            vec![Step::not_taken(key, format!("a single picture: `{line}` takes it in"))]
        }
        (other, None) => {
            let why = format!("murald loads nothing from {other}");
            let mut steps = vec![Step::not_taken(key, why)];
            // What it has loaded so far is among its pictures.
            steps.extend(watch(own.downloaded.clone()));
            steps
        }
    }
}

/// It changes pictures by itself unless that is switched off; then by hand.
fn playlist(ini: &Ini, watched: &[PathBuf]) -> Option<Step> {
    // It takes what is no number for its own default, and waits for 5 seconds at least.
    let written = ini.get("", "change_interval").and_then(|value| value.parse().ok());
    let seconds = written.unwrap_or(300_u64).max(5);
    let by_itself = ini.get("", "change_enabled").is_none_or(is_true);
    let seconds = by_itself.then_some(seconds);
    let name = NAME.to_owned();
    Some(Step::Playlist(match watched {
        [] => return None,
        [only] => NewPlaylist::of_directory(name, only, seconds),
        _ => NewPlaylist::of_library(name, seconds),
    }))
}

fn display_mode(mode: &str) -> Vec<Step> {
    let fit = match mode {
        "zoom" | "gnome-zoom" => Fit::Cover,
        "fill-with-black" | "gnome-scaled" => Fit::Contain,
        "gnome-centered" => Fit::Center,
        "gnome-stretched" => Fit::Fill,
        "gnome-wallpaper" => Fit::Tile,
        other => {
            let why = match other {
                "os" => "murald covers the monitor, and asks no desktop".to_owned(),
                "gnome-spanned" => {
                    format!("`murald playlist start {NAME} --extend` spreads each picture")
                }
                _ => format!("murald has nothing like {other}"),
            };
            return vec![Step::not_taken("wallpaper_display_mode", why)];
        }
    };
    fit::steps(fit).collect()
}

/// The rest, told of once for each beginning: half of the file is about texts over the picture.
fn not_taken(ini: &Ini) -> Vec<Step> {
    const TAKEN: [&str; 6] = [
        "change_enabled",
        "change_interval",
        "download_folder",
        "favorites_folder",
        "fetched_folder",
        "wallpaper_display_mode",
    ];
    let mut steps: Vec<Step> = Vec::new();
    for entry in ini.entries() {
        let (key, why) = match entry.section.as_str() {
            "" if TAKEN.contains(&&*entry.key) => continue,
            "" => match NOT.iter().find(|(name, _)| entry.key.starts_with(name)) {
                Some((name, why)) if name.ends_with('_') => (format!("{name}*"), *why),
                Some((_, why)) => (entry.key.clone(), *why),
                None => (entry.key.clone(), "it is no key of variety's that is known here"),
            },
            "sources" => continue,
            "filters" => ("filters".to_owned(), "pictures are shown as they are"),
            other => (
                format!("{other}.{}", entry.key),
                "it is no section of variety's that is known here",
            ),
        };
        let step = Step::not_taken(key, why);
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let disk = Disk::pretended("/home/mia", |path| match path.to_str()? {
            "/home/mia/.config/variety/Fetched" | "/none" => None,
            path if path.ends_with(".jpg") => Some(Kind::File),
            _ => Some(Kind::Directory),
        });
        let told: Vec<String> = match steps(text, &disk) {
            Ok(steps) => steps.iter().map(Step::to_string).collect(),
            Err(broken) => vec![broken.to_string()],
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn what_it_starts_with() {
        check(
            "# change_enabled = <True or False>\nchange_enabled = True\n\nchange_interval = 300\n\
             download_folder = ~/.config/variety/Downloaded\nquota_enabled = True\nquota_size = 1000\n\
             wallhaven_api_key = \"\"\nfavorites_folder = ~/.config/variety/Favorites\n\
             wallpaper_display_mode = \"os\"\nicon = Light\nclock_enabled = False\n\
             clock_font = \"Serif 70\"\n\
             [sources]\nsrc1 = True|favorites|The Favorites folder\n\
             src2 = True|fetched|The Fetched folder\nsrc5 = True|folder|/usr/share/backgrounds\n\
             src11 = False|flickr|user:www.flickr.com/photos/peter-levi/;user_id:93647178@N00;\n\
             [filters]\nfilter1 = False|Keep original|\nfilter2 = False|Grayscale|-type Grayscale\n",
            &[
                "watch /home/mia/.config/variety/Favorites",
                "not taken: sources.src2 (there is no directory /home/mia/.config/variety/Fetched)",
                "watch /usr/share/backgrounds",
                "not taken: sources.src11 (it is switched off)",
                "playlist variety (of all images, every 5 min, at random)",
                "tag favourite (what is in /home/mia/.config/variety/Favorites)",
                "not taken: wallpaper_display_mode (murald covers the monitor, and asks no desktop)",
                "not taken: quota_* (murald loads nothing)",
                "not taken: wallhaven_* (murald loads nothing)",
                "not taken: icon (there is no icon)",
                "not taken: clock_* (no clock is drawn over pictures)",
                "not taken: filters (pictures are shown as they are)",
            ],
        );
    }

    #[test]
    fn sources_of_all_kinds() {
        check(
            "change_enabled = no\nchange_interval = soon\nwallpaper_display_mode = fill-with-black\n\
             favorites_folder = /none\nfrob = 1\n[sources]\na = True|folder|~/p/\nb = True|folder|/none\n\
             c = on|image|/a 'b.jpg\nd = True|reddit|earthporn\ne = True\nf = True|folder|~/p\n[x]\ny = 1\n",
            &[
                "watch /home/mia/p",
                "not taken: sources.b (there is no directory /none)",
                "not taken: sources.c (a single picture: `murald import --in-place '/a '\\''b.jpg'` takes it in)",
                "not taken: sources.d (murald loads nothing from reddit)",
                "watch /home/mia/.config/variety/Downloaded",
                "not taken: sources.e (it is not as True|folder|PATH is)",
                "playlist variety (of all images, changed by hand, at random)",
                "setting backend.builtin.fit_mode contain",
                "setting backend.awww.resize fit",
                "setting backend.swaybg.fit_mode fit",
                "setting backend.feh.mode max",
                "setting backend.hyprpaper.fit_mode contain",
                "not taken: frob (it is no key of variety's that is known here)",
                "not taken: x.y (it is no section of variety's that is known here)",
            ],
        );
        check(
            "change_interval = 1\nfavorites_folder = /none\n[sources]\na = True|folder|/p\n",
            &["watch /p", "playlist variety (of /p, every 5 s, at random)"],
        );
        check("change_interval\n", &["line 1, column 1: there is no = in this line"]);
    }
}
