//! Waypaper Engine: `config.toml`, and what its daemon has in its database.
//!
//! Sections, keys and records are as its documentation has them
//! (<https://github.com/0bCdian/Waypaper-Engine>, `docs/guide/config.md`): nearly ours. The database is
//! a format of its own, which nothing but its daemon reads; that is asked for the records.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml_edit::{Item as TomlItem, TableLike};

use super::broken::Broken;
use super::disk::{Disk, Kind};
use super::known::{Known, Library};
use super::step::{Item, NewPlaylist, Pictures, Source, Step, quoted};
use super::toml;
use crate::paths::Dirs;

/// Where a path of ours stands for one of theirs, or where there is no such thing.
const NOT: &[(&str, &str)] = &[
    ("daemon.thumbnails_dir", "murald makes thumbnails of its own"),
    ("daemon.database_dir", "murald has a database of its own"),
    ("daemon.socket_path", "murald has a socket of its own"),
    ("daemon.log_file", "murald has a log of its own"),
    ("daemon.compositor", "murald finds out"),
    // Or ours would be written over theirs.
    ("backend.hyprpaper.config_path", "murald writes a file of its own for it"),
    ("backend.wal-qt.socket_path", "murald starts wal-qt on a socket of its own"),
];

/// Where its daemon listens.
pub(super) fn socket(text: &str, disk: &Disk, dirs: &Dirs) -> Option<PathBuf> {
    let document = toml::read(text).ok()?;
    let written = document.get("daemon").and_then(|daemon| daemon.get("socket_path"));
    match written.and_then(TomlItem::as_str).filter(|path| !path.is_empty()) {
        Some(path) => Some(dirs.expand(path).unwrap_or_else(|_| disk.path(path))),
        None => usual_socket(dirs),
    }
}

/// Beside ours.
fn usual_socket(dirs: &Dirs) -> Option<PathBuf> {
    Some(dirs.sockets().first()?.with_file_name("waypaper-engine.sock"))
}

pub(super) fn steps(text: &str, known: &Known<'_>) -> Result<Vec<Step>, Broken> {
    let document = toml::read(text)?;
    let mut steps = Vec::new();
    table("", document.as_table(), known, &mut steps);
    let named = document.get("daemon").and_then(|daemon| daemon.get("images_dir"));
    if named.is_none() && known.disk.kind(&known.usual_images) == Some(Kind::Directory) {
        steps.push(Step::Watch(known.usual_images.clone()));
    }
    match known.library {
        Some(library) => records(library, known.disk, &mut steps),
        None => steps.push(Step::not_taken(
            "playlists and tags",
            "they are in a database that only its daemon reads, and it does not run: start it, and \
             say this again",
        )),
    }
    Ok(steps)
}

/// A section, and those inside it.
fn table(section: &str, entries: &dyn TableLike, known: &Known<'_>, steps: &mut Vec<Step>) {
    for (key, item) in entries.iter() {
        if let Some(inner) = item.as_table_like() {
            let name = match section {
                "" => ours(key).to_owned(),
                section => format!("{section}.{}", ours(key)),
            };
            table(&name, inner, known, steps);
        } else {
            steps.push(one(section, key, item, known));
        }
    }
}

/// Sections that were called otherwise.
fn ours(name: &str) -> &str {
    match name {
        "wallhaven" => "remote_gallery",
        "wayland-utauri" | "waylandutauri" => "wal-qt",
        "swww" => "awww",
        name => name,
    }
}

fn one(section: &str, key: &str, item: &TomlItem, known: &Known<'_>) -> Step {
    let name = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
    if name == "daemon.images_dir" {
        let path = known.disk.path(item.as_str().unwrap_or_default());
        return match known.disk.kind(&path) {
            Some(Kind::Directory) => Step::Watch(path),
            _ => Step::not_taken(name, format!("there is no directory {}", path.display())),
        };
    }
    if let Some((_, why)) = NOT.iter().find(|(not, _)| *not == name) {
        return Step::not_taken(name, *why);
    }
    let ours_is = known.settings.iter().find(|one| one.section == section && one.key == key);
    let value = toml::value(item).map(|value| match value {
        Value::String(kind) if name == "backend.type" => ours(&kind).into(),
        value => value,
    });
    match (ours_is, value) {
        (Some(setting), Some(Value::String(word)))
            if !setting.words.is_empty() && !setting.words.contains(&&*word) =>
        {
            let words = setting.words.join(", ");
            Step::not_taken(name, format!("murald knows only {words}, not {word}"))
        }
        (Some(_), Some(value)) => Step::setting(section, key, value),
        _ => Step::not_taken(name, "murald has no such setting"),
    }
}

/// What of an image is of interest.
struct Image<'a> {
    file: PathBuf,
    name: &'a str,
    is_page: bool,
}

fn records(library: &Library, disk: &Disk, steps: &mut Vec<Step>) {
    let image = |id: &Value| -> Option<Image<'_>> {
        let record = library.images.iter().find(|image| &image["id"] == id)?;
        Some(Image {
            file: PathBuf::from(record["path"].as_str()?),
            name: record["name"].as_str().unwrap_or_default(),
            is_page: record["media_type"] == "web",
        })
    };
    for (tag, files) in tags(library) {
        let (there, gone): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| disk.kind(file) == Some(Kind::File));
        steps.extend(gone.iter().map(|file| missing(&format!("tag {tag}"), file)));
        if !there.is_empty() {
            steps.push(Step::Tag(tag, Pictures::Files(there)));
        }
    }
    for record in library.images.iter().filter(|image| image["media_type"] == "web") {
        let root = record["web_meta"]["package_root"].as_str().unwrap_or_default();
        let line = format!("murald import-web {}", quoted(Path::new(root)));
        let key = format!("image {}", record["name"].as_str().unwrap_or_default());
        steps.push(Step::not_taken(key, format!("it is a page: `{line}` takes it in")));
    }
    for record in &library.playlists {
        playlist(record, &image, disk, steps);
    }
}

fn missing(what: &str, file: &Path) -> Step {
    Step::not_taken(what, format!("nothing is at {}", file.display()))
}

/// In the order in which they are first met; of pages nothing, as they are not taken.
fn tags(library: &Library) -> Vec<(String, Vec<PathBuf>)> {
    let mut tags: Vec<(String, Vec<PathBuf>)> = Vec::new();
    for image in library.images.iter().filter(|image| image["media_type"] != "web") {
        let Some(file) = image["path"].as_str().map(PathBuf::from) else { continue };
        for tag in image["tags"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            match tags.iter_mut().find(|(known, _)| known == tag) {
                Some((_, files)) => files.push(file.clone()),
                None => tags.push((tag.to_owned(), vec![file.clone()])),
            }
        }
    }
    tags
}

fn playlist<'a>(
    record: &Value,
    image: &impl Fn(&Value) -> Option<Image<'a>>,
    disk: &Disk,
    steps: &mut Vec<Step>,
) {
    let name = record["name"].as_str().unwrap_or_default().to_owned();
    let key = format!("playlist {name}");
    let mut items = Vec::new();
    for item in record["images"].as_array().into_iter().flatten() {
        match image(&item["image_id"]) {
            None => steps.push(Step::not_taken(&*key, "one of its images is not in its gallery")),
            Some(page) if page.is_page => {
                steps.push(Step::not_taken(&*key, format!("{} is a page", page.name)));
            }
            Some(Image { file, .. }) if disk.kind(&file) != Some(Kind::File) => {
                steps.push(missing(&key, &file));
            }
            Some(Image { file, .. }) => items.push(Item { file, time: item["time"].as_i64() }),
        }
    }
    if items.is_empty() {
        return steps.push(Step::not_taken(key, "it has no pictures"));
    }
    let configuration = match &record["configuration"] {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    let monitors = record["playback"]["monitors"].as_array().into_iter().flatten();
    let monitors = monitors.filter_map(|name| Some(name.as_str()?.to_owned())).collect();
    steps.push(Step::Playlist(NewPlaylist {
        name,
        source: Source::Items(items),
        configuration: kept(configuration),
        monitors,
    }));
}

/// An interval is only for those that have one: their daemon keeps 0 with the others.
fn kept(mut configuration: Map<String, Value>) -> Map<String, Value> {
    const FIELDS: [&str; 4] = ["type", "interval", "order", "always_start_on_first_image"];
    configuration.retain(|field, value| FIELDS.contains(&field.as_str()) && !value.is_null());
    if configuration.get("type").is_some_and(|kind| kind != "timer") {
        configuration.shift_remove("interval");
    }
    if configuration.get("order").is_some_and(|order| order == "") {
        configuration.shift_remove("order");
    }
    configuration
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::call::Setting;
    use super::*;

    #[track_caller]
    fn check(text: &str, library: Option<&Library>, expected: &[&str]) {
        let disk = Disk::pretended("/home/mia", |path| match path.extension() {
            Some(_) => Some(Kind::File),
            None if path.ends_with("none") => None,
            None => Some(Kind::Directory),
        });
        let ours = [
            ("app", "theme"),
            ("backend", "type"),
            ("backend.awww", "transition_type"),
            ("backend.auto_priorities", "image"),
            ("remote_gallery", "enabled"),
        ];
        let setting = |(section, key): (&str, &'static str)| Setting {
            section: section.to_owned(),
            key,
            words: if key == "transition_type" { vec!["fade", "wipe"] } else { Vec::new() },
        };
        let settings = ours.map(setting);
        let usual_images = PathBuf::from("/home/mia/none");
        let known = Known { disk: &disk, settings: &settings, library, usual_images, state: None };
        let told: Vec<String> = match steps(text, &known) {
            Ok(steps) => steps.iter().map(Step::to_string).collect(),
            Err(broken) => vec![broken.to_string()],
        };
        assert_eq!(told, expected);
    }

    const CONFIG: &str = "[app]\ntheme = \"dracula\"\nnew = 1\n[daemon]\n\
         images_dir = \"~/.local/share/waypaper-engine/images\"\n\
         database_dir = \"~/.local/share/waypaper-engine/db\"\n\
         [backend]\ntype = \"wayland-utauri\"\n[backend.auto_priorities]\nimage = [\"awww\", \"feh\"]\n\
         [backend.awww]\ntransition_type = \"wipe\"\n[wallhaven]\nenabled = false\n";

    const TOLD: [&str; 8] = [
        "setting app.theme dracula",
        "not taken: app.new (murald has no such setting)",
        "watch /home/mia/.local/share/waypaper-engine/images",
        "not taken: daemon.database_dir (murald has a database of its own)",
        "setting backend.type wal-qt",
        "setting backend.auto_priorities.image [\"awww\",\"feh\"]",
        "setting backend.awww.transition_type wipe",
        "setting remote_gallery.enabled false",
    ];

    #[test]
    fn settings_are_nearly_ours() {
        let last = "not taken: playlists and tags (they are in a database that only its daemon reads, \
                    and it does not run: start it, and say this again)";
        check(CONFIG, None, &[&TOLD[..], &[last]].concat());
        check(
            "[backend.swww]\ntransition_type = 'melt'\n[backend.hyprpaper]\nconfig_path = '~/x'\n",
            Some(&Library::default()),
            &[
                "not taken: backend.awww.transition_type (murald knows only fade, wipe, not melt)",
                "not taken: backend.hyprpaper.config_path (murald writes a file of its own for it)",
            ],
        );
        check("[app\n", None, &["line 1, column 5: unclosed table, expected `]`"]);
    }

    #[test]
    fn playlists_and_tags_come_from_its_daemon() {
        let image = |id: i64, name: &str, tags: &[&str]| {
            json!({"id": id, "name": name, "path": format!("/i/{name}.png"), "media_type": "image",
                   "tags": tags})
        };
        let page = json!({"id": 4, "name": "rain", "path": "/p/index.html", "media_type": "web",
            "tags": ["wet"], "web_meta": {"package_root": "/p"}});
        let gone = json!({"id": 5, "name": "gone", "path": "/i/none", "media_type": "image",
            "tags": ["sea"]});
        let library = Library {
            images: vec![
                image(1, "lake", &["sea", "blue"]),
                image(2, "hill", &["sea"]),
                json!({"id": 3}),
                page,
                gone,
            ],
            playlists: vec![
                json!({"id": 1, "name": "evening", "images": [{"image_id": 2, "time": null},
                    {"image_id": 1}, {"image_id": 4}, {"image_id": 5}, {"image_id": 9}],
                    "configuration": {"type": "timer", "interval": 600, "order": "random",
                    "always_start_on_first_image": false},
                    "playback": {"monitors": ["DP-1"], "was_running": true}}),
                json!({"id": 2, "name": "day", "images": [{"image_id": 1, "time": 420}],
                    "configuration": {"type": "time_of_day", "interval": 0, "order": ""}}),
                json!({"id": 3, "name": "empty", "images": []}),
            ],
        };
        check(
            "",
            Some(&library),
            &[
                "not taken: tag sea (nothing is at /i/none)",
                "tag sea (2 pictures)",
                "tag blue (1 picture)",
                "not taken: image rain (it is a page: `murald import-web '/p'` takes it in)",
                "not taken: playlist evening (rain is a page)",
                "not taken: playlist evening (nothing is at /i/none)",
                "not taken: playlist evening (one of its images is not in its gallery)",
                "playlist evening (2 pictures, every 10 min, at random, for DP-1)",
                "playlist day (1 picture, time_of_day)",
                "not taken: playlist empty (it has no pictures)",
            ],
        );
        check(
            "",
            Some(&Library { images: vec![Value::Null], playlists: vec![json!(7)] }),
            &["not taken: playlist  (it has no pictures)"],
        );
    }
}
