//! The fields of each command's answer, which `--format` may name.
//!
//! They are checked before any request, so that a typing error is not found after the change is made. A
//! test compares the API's fields with `contrib/openapi.yaml`.

use super::Error;
use super::call::Call;
use super::verb::Verb;

/// A record, or the answer of an action.
#[derive(Debug)]
pub struct Fields {
    /// A schema or an operation of the API's description; none: the command makes it.
    pub described: Option<&'static str>,
    pub names: &'static [&'static str],
    /// The commands that answer with it; some answer with one or another.
    pub verbs: &'static [&'static str],
}

const fn of(
    described: &'static str,
    names: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Fields {
    Fields { described: Some(described), names, verbs }
}

const fn own(names: &'static [&'static str], verbs: &'static [&'static str]) -> Fields {
    Fields { described: None, names, verbs }
}

/// Commands that change settings. Their answers have whatever keys the file has; of these only the known
/// ones are taken.
const SETTINGS: [&str; 3] = ["config set", "config patch", "config reset"];
/// Fields that such an answer has in addition.
const BESIDE_SETTINGS: [&str; 3] = ["backup", "restart_required", "warnings"];

/// The fields of every command's answer, except settings.
#[rustfmt::skip]
pub const FIELDS: &[Fields] = &[
    of("Image", &[
        "id", "name", "path", "media_type", "format", "width", "height", "duration", "animated",
        "audio_enabled", "file_size", "checksum", "tags", "colors", "hue_group", "folder_id",
        "is_selected", "imported_at", "source_path", "in_place", "thumbnails", "preview_path",
        "web_meta", "wallpaper_config_overrides",
    ], &[
        "images list", "images search", "images sheet", "images show", "images update",
        "images rename", "images tag", "images select", "favourite", "import-web", "video preview",
    ]),
    of("POST /images/select-all", &["updated", "selected"], &["images select"]),
    of("GET /images/tags", &["tags"], &["images tags"]),
    of("DELETE /images", &["deleted", "files_kept", "files_removed"], &["images delete"]),
    of("POST /images", &["status", "total", "batch_id"], &["import"]),
    own(&["event", "data"], &["events", "import"]),
    of("POST /images/cancel-import", &["status", "batch_id"], &["import-cancel"]),
    of("POST /images/{id}/video-loop-export", &["action", "image_id", "path"], &["video export"]),
    of("POST /images/{id}/extract-video-palette", &["image_id", "colors", "image"], &["video palette"]),
    of("Folder", &[
        "id", "name", "parent_id", "created_at", "updated_at", "image_count", "folder_count",
    ], &[
        "folders list", "folders show", "folders path", "folders create", "folders rename",
        "folders move",
    ]),
    of("POST /folders/move-images", &["moved"], &["folders add", "images move"]),
    of("DELETE /folders/{id}", &[
        "deleted", "mode", "images_deleted", "folders_deleted",
    ], &["folders delete"]),
    of("LibraryWatch", &["watch", "in_place", "watch_folders"], &[
        "watch add", "watch list", "watch remove",
    ]),
    of("POST /library/scan", &["status", "directories"], &["library scan"]),
    of("POST /library/purge-missing", &["purged"], &["library purge-missing"]),
    own(&["database", "images", "missing", "problems", "backups"], &["library check"]),
    own(&["from", "aside"], &["library restore"]),
    of("Shown", &[
        "status", "image_id", "image_name", "image_path", "monitor", "monitors", "skipped", "mode",
        "backend", "images", "warnings", "note",
    ], &["set", "random", "back", "wallpaper set", "wallpaper random", "wallpaper back"]),
    of("CurrentWallpaper", &[
        "backend", "image_id", "image_name", "image_path", "mode", "set_at", "deleted",
        "default_image_id", "monitors",
    ], &["current", "wallpaper current"]),
    of("Why", &[
        "monitor", "image_id", "image_name", "image_path", "backend", "source", "set_at", "next",
        "last_failure", "hook_failure", "text",
    ], &["why"]),
    of("HistoryEntry", &[
        "id", "image_id", "image_name", "monitors", "mode", "set_at", "source", "backend", "fit",
        "images",
    ], &["history"]),
    of("DELETE /images/history", &["status", "deleted"], &["history clear"]),
    of("Playlist", &[
        "id", "name", "configuration", "images", "source", "created_at", "updated_at", "playback",
    ], &[
        "playlist list", "playlist show", "playlist create", "playlist edit", "playlist add",
        "playlist remove", "playlist rename",
    ]),
    of("DELETE /playlists/{id}", &["status"], &["playlist delete"]),
    of("POST /playlists/{id}/start", &["status"], &[
        "playlist start", "slideshow", "playlist stop", "playlist pause", "playlist resume",
    ]),
    of("POST /playlists/{id}/next", &["status", "image_id", "image_name", "image_path", "images"], &[
        "playlist next", "playlist previous",
    ]),
    of("POST /playlists/active/stop", &["message", "stopped"], &["playlist stop"]),
    of("POST /playlists/active/pause", &["message", "paused"], &[
        "pause", "toggle", "playlist pause",
    ]),
    of("POST /playlists/active/resume", &["message", "resumed"], &[
        "resume", "toggle", "playlist resume",
    ]),
    of("POST /playlists/active/next", &[
        "message", "advanced", "image_id", "image_name", "image_path", "images",
    ], &["next", "playlist next"]),
    of("POST /playlists/active/previous", &[
        "message", "reversed", "image_id", "image_name", "image_path", "images",
    ], &["previous", "playlist previous"]),
    of("ActivePlaylist", &[
        "playlist_id", "playlist_name", "playlist_type", "current_index", "current_image_id",
        "previous_image_id", "next_image_id", "total_images", "paused", "resting", "started_at",
        "slot_started_at", "next_change_at", "monitors", "applied_to", "extend", "mode",
    ], &["playlist active"]),
    of("Appearance", &["mode", "now"], &["appearance"]),
    of("Power", &["battery", "locked", "idle", "resting"], &["power"]),
    of("Monitor", &[
        "name", "width", "height", "x", "y", "scale", "refresh_rate", "transform", "description",
        "make", "model", "serial", "primary",
    ], &["monitors"]),
    of("Backend", &[
        "name", "installed", "available", "active", "version", "capabilities", "settings",
        "missing", "conflicts",
    ], &["backends"]),
    of("POST /backends/{name}/activate", &["status", "backend"], &["backends activate"]),
    of("Theme", &["name", "display_name", "displayName", "source", "url"], &["themes"]),
    own(&["name", "css"], &["themes show"]),
    of("POST /shutdown", &["status"], &["stop"]),
    own(&["info", "capabilities", "backends", "monitors", "wallpaper", "playlists"], &["status"]),
    own(&["version", "daemon"], &["version"]),
    own(&["subject", "state", "text", "step"], &["doctor"]),
    own(&["kind", "subject", "text", "state"], &["migrate"]),
    of("Debug", &[
        "version", "uptime", "threads", "queues", "assignments", "playlists", "children",
        "failures", "hook_failure", "power", "clients",
    ], &["debug"]),
];

/// Refuses a `--format` that names what the command's answer never has.
pub(super) fn check(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    let names = names(&verb.name(), call);
    match &mut call.globals.output.format {
        Some(template) if !names.is_empty() => template.check(&names),
        _ => Ok(()),
    }
}

/// The fields of a verb's answer; none if only the answer can tell: settings, and verbs without
/// records.
fn names(verb: &str, call: &Call) -> Vec<String> {
    let answers = FIELDS.iter().filter(|fields| fields.verbs.contains(&verb));
    let mut names: Vec<String> =
        answers.flat_map(|fields| fields.names).map(|name| (*name).to_owned()).collect();
    if SETTINGS.contains(&verb) {
        for setting in (call.settings)() {
            names.extend(setting.section.split('.').map(str::to_owned));
            names.push(setting.key.to_owned());
        }
        names.extend(BESIDE_SETTINGS.map(str::to_owned));
        names.sort();
        names.dedup();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::verbs::GROUPS;
    use super::*;

    /// They print no records, or settings.
    const APART: [&str; 8] = [
        "start",
        "complete",
        "pick",
        "images thumbnail",
        "images raw",
        "config get",
        "config path",
        "config check",
    ];

    #[test]
    fn every_verb_has_its_fields() {
        let verbs = || GROUPS.iter().flat_map(|group| group.verbs).map(Verb::name);
        for verb in verbs() {
            let has = FIELDS.iter().any(|fields| fields.verbs.contains(&verb.as_str()));
            let is_apart = APART.contains(&verb.as_str()) || SETTINGS.contains(&verb.as_str());
            assert_ne!(has, is_apart, "{verb}");
        }
        for verb in FIELDS.iter().flat_map(|fields| fields.verbs) {
            assert!(verbs().any(|other| other == *verb), "there is no {verb}");
        }
    }
}
