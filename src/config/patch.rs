//! Checks a request's changes against the schema before anything is written.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::document::unknown_setting;
use super::overlay::Edit;
use super::schema::{BackendName, Daemon, Key, OnInvalid, Section, Value, beginning};
use super::{Config, Error, toml};
use crate::paths::Dirs;
use crate::wire::{Difference, ListChange};

/// The most keys that a request may change in a section.
const KEYS_MAX: usize = 1000;

/// Fields of our answers that are not settings: a client may send an answer back.
const OF_ANSWERS: [&str; 3] = ["warnings", "restart_required", "backup"];

/// `PATCH /config`: an object of sections.
pub(super) fn whole(body: &Map<String, Json>) -> Result<Vec<Edit>, Error> {
    let mut edits = Vec::new();
    for (name, value) in settings(body) {
        let unknown = || Error::UnknownSection {
            section: name.clone(),
        };
        let section = Section::requested(name).ok_or_else(unknown)?;
        edits.extend(table(section, value)?);
    }
    Ok(edits)
}

/// One section's object of keys; in `backend` also those of its tables.
pub(super) fn section(section: Section, body: &Map<String, Json>) -> Result<Vec<Edit>, Error> {
    if body.len() > KEYS_MAX {
        let problem = format!("must have at most {KEYS_MAX} keys");
        return Err(Error::Refused {
            key: section.heading(),
            problem,
        });
    }
    let mut edits = Vec::new();
    for (name, value) in settings(body) {
        if let Some((_, child)) = section.children().find(|(child, _)| child == name) {
            edits.extend(table(child, value)?);
            continue;
        }
        let key = section.key(name);
        let value = match key {
            Some(key) => known(section, key, value)?,
            None => unknown(section, name, value)?,
        };
        let key = key.map_or(name.as_str(), |key| key.name).to_owned();
        edits.push(Edit {
            section,
            key,
            value,
        });
    }
    Ok(edits)
}

fn settings(body: &Map<String, Json>) -> impl Iterator<Item = (&String, &Json)> {
    body.iter()
        .filter(|(name, _)| !OF_ANSWERS.contains(&name.as_str()))
}

/// Refuses a request that adds unusable paths. Unusable paths that are in the file already are allowed,
/// because a client may send them back.
pub(super) fn check_new_paths(edits: &[Edit], config: &Config) -> Result<(), Error> {
    let is_new = |edit: &&Edit| {
        let now = config
            .entries(edit.section)
            .find(|(key, _)| **key == edit.key);
        now.map(|(_, value)| value) != edit.value.as_ref()
    };
    let errors = |edit: &Edit| {
        let value = edit.value.as_ref().unwrap_or(&Json::Null);
        path_errors(edit.section, &edit.key, value, &config.daemon)
    };
    let mut errors = edits.iter().filter(is_new).flat_map(errors);
    errors.next().map_or(Ok(()), Err)
}

/// The unusable paths in a value: directories that cannot be watched, and paths of `[daemon]` whose form
/// would make the next start fail.
fn path_errors(section: Section, key: &str, value: &Json, daemon: &Daemon) -> Vec<Error> {
    let dirs = || Dirs::from_process().map_err(|error| error.to_string());
    let error = |written: &str| match section {
        Section::Library if key == "watch" => {
            let watched = dirs().and_then(|dirs| watched_directory(written, &dirs, daemon));
            let problem = watched.err()?;
            Some(Error::Unwatchable { problem })
        }
        Section::Daemon if section.key(key).is_some_and(Key::is_path) => {
            let expanded = dirs().and_then(|dirs| {
                let expanded = match key {
                    "socket_path" => dirs.expand_socket(written),
                    _ => dirs.expand(written),
                };
                expanded.map_err(|error| error.to_string())
            });
            let problem = expanded.err()?;
            Some(Error::Refused {
                key: format!("{}.{key}", section.heading()),
                problem: format!("cannot be used: {problem}"),
            })
        }
        _ => None,
    };
    let written = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    written
        .iter()
        .filter_map(Json::as_str)
        .filter_map(error)
        .collect()
}

/// The paths of `library.watch` after a change. A path that leads to the same directory as another
/// is not added, and is enough to remove it.
pub(super) fn watched(config: &Config, change: &ListChange<String>) -> Vec<String> {
    let Difference { add, remove } = match change {
        ListChange::All(paths) => return paths.clone(),
        ListChange::Some(difference) => difference,
    };
    let directory = |written: &str| {
        let dirs = Dirs::from_process().ok()?;
        watched_directory(written, &dirs, &config.daemon).ok()
    };
    let is_same = |one: &String, other: &String| {
        one == other || directory(one).is_some_and(|one| Some(one) == directory(other))
    };
    let mut paths = config.library.watch.clone();
    paths.retain(|path| !remove.iter().any(|gone| is_same(path, gone)));
    for path in add {
        if !paths.iter().any(|known| is_same(known, path)) {
            paths.push(path.clone());
        }
    }
    paths
}

/// The unusable paths in the file: a request with them would be refused.
pub(super) fn unusable_paths(config: &Config, section: Section) -> Vec<String> {
    let then = match section {
        Section::Daemon => "murald cannot start again with this value",
        _ => "skipped",
    };
    let wrong = config
        .entries(section)
        .flat_map(|(key, value)| path_errors(section, key, value, &config.daemon));
    wrong.map(|error| format!("{error}; {then}")).collect()
}

/// Edits that set every key to its default.
pub(super) fn reset_all(config: &Config) -> Vec<Edit> {
    let reset = |section: Section| {
        let mut edits = defaults(section);
        let is_extra = |key: &&String| section.is_open() && section.key(key).is_none();
        let stored = config.entries(section).map(|(key, _)| key);
        edits.extend(stored.filter(is_extra).map(|key| Edit {
            section,
            key: key.clone(),
            value: None,
        }));
        edits
    };
    Section::ALL.into_iter().flat_map(reset).collect()
}

/// Edits that set one backend's keys to their defaults.
pub(super) fn reset_backend(name: BackendName) -> Vec<Edit> {
    defaults(Section::BackendOptions(name))
}

fn defaults(section: Section) -> Vec<Edit> {
    let reset = |key: &Key| Edit {
        section,
        key: key.name.to_owned(),
        value: key.default.to_json(),
    };
    section.keys().iter().map(reset).collect()
}

fn table(of: Section, value: &Json) -> Result<Vec<Edit>, Error> {
    let wrong = || Error::Type {
        key: of.heading(),
        value: shown(value),
        expected: "an object of settings",
    };
    section(of, value.as_object().ok_or_else(wrong)?)
}

fn known(section: Section, key: &Key, value: &Json) -> Result<Option<Json>, Error> {
    if value.is_null() && key.default == Value::Unset {
        return Ok(None);
    }
    let name = || format!("{}.{}", section.heading(), key.name);
    if !key.has_type_of(value) {
        let value = if key.secret {
            "something else".to_owned()
        } else {
            shown(value)
        };
        return Err(Error::Type {
            key: name(),
            value,
            expected: key.type_name(),
        });
    }
    // The client's values are never refused, and those of `daemon` have no effect before a restart.
    let ranged = !section.is_client_s() && section != Section::Daemon;
    match (ranged, key.on_invalid, key.validate(value)) {
        (true, OnInvalid::Reject, Err(problem)) => Err(Error::Refused {
            key: name(),
            problem,
        }),
        _ => Ok(Some(key.normal(value.clone()))),
    }
}

fn unknown(section: Section, name: &str, value: &Json) -> Result<Option<Json>, Error> {
    let key = || format!("{}.{name}", section.heading());
    if !section.is_open() {
        let problem = unknown_setting(section, name);
        return Err(Error::UnknownKey { problem });
    }
    if value.is_null() {
        return Ok(None);
    }
    if section == Section::Workspaces && !value.is_string() {
        return Err(Error::Type {
            key: key(),
            value: shown(value),
            expected: "a string",
        });
    }
    match toml::from_json(value) {
        Some(_) => Ok(Some(value.clone())),
        None => Err(Error::Type {
            key: key(),
            value: shown(value),
            expected: "a value without null and without numbers of more than 64 bits",
        }),
    }
}

/// A value for a message.
fn shown(value: &Json) -> String {
    beginning(&value.to_string())
}

/// The directory that a path of `library.watch` names, or why it cannot be watched.
pub(crate) fn watched_directory(
    written: &str,
    dirs: &Dirs,
    daemon: &Daemon,
) -> Result<PathBuf, String> {
    if written.trim().is_empty() {
        return Err("cannot watch \"\": the path is empty".to_owned());
    }
    let expanded = dirs.expand(written);
    let path = plain(&expanded.map_err(|error| format!("cannot watch {written}: {error}"))?);
    for own in own_directories(dirs, daemon) {
        if path.starts_with(&own) || own.starts_with(&path) {
            let (path, own) = (path.display(), own.display());
            return Err(format!(
                "cannot watch {path}: murald stores its files in {own}"
            ));
        }
    }
    Ok(path)
}

/// The directories that murald writes to.
pub(crate) fn own_directories(dirs: &Dirs, daemon: &Daemon) -> Vec<PathBuf> {
    let written = [
        &daemon.images_dir,
        &daemon.thumbnails_dir,
        &daemon.database_dir,
    ];
    let mut own: Vec<PathBuf> = written
        .iter()
        .filter_map(|path| dirs.expand(path).ok())
        .collect();
    own.extend([dirs.data(), dirs.cache(), dirs.config_home().join("murald")]);
    own.iter().map(|path| plain(path)).collect()
}

/// The path without `.`, `..` and trailing slashes. Looks at names only, because a disk may not answer.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::paths::Env;

    #[track_caller]
    fn check(body: Json, expected: Result<usize, &str>) {
        let found = whole(body.as_object().unwrap());
        let found = found
            .map(|edits| edits.len())
            .map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn patch_checks_types_everywhere() {
        let banana = "app.images_per_page must be an integer, not \"banana\"";
        check(json!({"app": {"images_per_page": "banana"}}), Err(banana));
        check(
            json!({"app": {"images_per_page": 1e30}}),
            Err("app.images_per_page must be an integer, not 1e+30"),
        );
        check(
            json!({"daemon": {"log_level": null}}),
            Err("daemon.log_level must be a string, not null"),
        );
        check(
            json!({"app": 3}),
            Err("app must be an object of settings, not 3"),
        );
        check(
            json!({"backend": {"awww": []}}),
            Err("backend.awww must be an object of settings, not []"),
        );
        let secret = "remote_gallery.api_key must be a string, not something else";
        check(json!({"remote_gallery": {"api_key": 1234}}), Err(secret));
        check(json!({"nope": {}}), Err("unknown section \"nope\""));
        check(
            json!({"backend.awww": {}}),
            Err("unknown section \"backend.awww\""),
        );
    }

    #[test]
    fn patch_of_a_section_has_a_thousand_keys_at_most() {
        let found = |number: usize| {
            let body = (0..number)
                .map(|key| (format!("key{key}"), json!(1)))
                .collect();
            section(Section::App, &body).map(|edits| edits.len()).ok()
        };
        assert_eq!(found(KEYS_MAX), Some(KEYS_MAX));
        assert_eq!((found(KEYS_MAX + 1), found(KEYS_MAX + 2)), (None, None));
    }

    #[test]
    fn patch_checks_ranges_in_backends_only() {
        check(
            json!({"app": {"images_per_page": -7, "sort_by": "x"}}),
            Ok(2),
        );
        check(
            json!({"daemon": {"log_max_size_mb": 0}, "monitors": {"image_set_type": "x"}}),
            Ok(2),
        );
        check(
            json!({"backend": {"transition_duration_seconds": 121}}),
            Err("backend.transition_duration_seconds must be between 0 and 120, not 121"),
        );
        check(
            json!({"backend": {"transition_duration_seconds": null}}),
            Ok(1),
        );
        check(
            json!({"backend": {"type": "bk1"}}),
            Err(
                "backend.type must be one of awww, feh, hyprpaper, mpvpaper, swaybg, wal-qt, \
                 builtin, not \"bk1\"",
            ),
        );
        check(
            json!({"backend": {"auto_priorities": {"web": ["x"]}}}),
            Err(
                "backend.auto_priorities.web must be one of awww, feh, hyprpaper, mpvpaper, \
                 swaybg, wal-qt, builtin, not \"x\"",
            ),
        );
        check(
            json!({"app": {"theme": "x"}, "backend": {"mpvpaper": {"verbose": 3}}}),
            Err("backend.mpvpaper.verbose must be between 0 and 2, not 3"),
        );
        // These act as something else instead of being refused.
        check(
            json!({"backend": {"feh": {"mode": "x"}, "wal-qt": {"transition": "x"}}}),
            Ok(2),
        );
        check(
            json!({"backend": {"wal-qt": {"parallax-easing": "", "parallax_zoom": 3}}}),
            Ok(2),
        );
    }

    #[test]
    fn daemon_paths_are_judged_by_form() {
        #[track_caller]
        fn judge(key: &str, written: &str, said: Option<&str>) {
            let body = json!({"daemon": {key: written}});
            let edits = whole(body.as_object().unwrap()).unwrap();
            let found =
                check_new_paths(&edits, &Config::default()).map_err(|error| error.to_string());
            assert_eq!(found.is_err(), said.is_some(), "{written}: {found:?}");
            let found = found.err().unwrap_or_default();
            assert!(found.starts_with(
                &said.map_or(String::new(), |_| format!("daemon.{key} cannot be used: "))
            ));
            assert!(found.contains(said.unwrap_or_default()), "{found}");
        }
        judge("images_dir", "~/pictures", None);
        judge("images_dir", "$XDG_DATA_HOME/x", None);
        judge("images_dir", "pictures", Some("not absolute"));
        judge("log_file", "", Some("not absolute"));
        judge(
            "database_dir",
            "$MURALD_NO_SUCH_VARIABLE/x",
            Some("is not set"),
        );
        judge(
            "thumbnails_dir",
            &format!("/{}", "x".repeat(300)),
            Some("255 bytes"),
        );
        judge(
            "socket_path",
            &format!("/tmp/{}", "x".repeat(103)),
            Some("107 bytes"),
        );
        judge("images_dir", &format!("/tmp/{}", "x".repeat(103)), None);
        judge("log_level", "debug", None);
    }

    #[test]
    fn unknown_keys_are_accepted_only_in_sections_of_clients() {
        check(json!({"app": {"new": {"a": [1]}, "old": null}}), Ok(2));
        check(
            json!({"daemon": {"new": 1}}),
            Err("unknown setting daemon.new"),
        );
        check(
            json!({"backend": {"new": 1}}),
            Err("unknown setting backend.new"),
        );
        check(
            json!({"backend": {"feh": {"new": 1}}}),
            Err("unknown setting backend.feh.new"),
        );
        let near = "unknown setting daemon.log_levl; did you mean daemon.log_level?";
        check(json!({"daemon": {"log_levl": "info"}}), Err(near));
        let null = "app.new must be a value without null and without numbers of more than 64 bits, \
                    not [null]";
        check(json!({"app": {"new": [null]}}), Err(null));
    }

    #[test]
    fn watched_directories_are_absolute_and_not_our_own() {
        let dirs = Dirs::new(Env::from([("HOME", "/home/u"), ("WALLS", "/walls")])).unwrap();
        let check = |written: &str, expected: Result<&str, &str>| {
            let found = watched_directory(written, &dirs, &Daemon::default());
            match (&found, expected) {
                (Ok(path), Ok(expected)) => assert_eq!(path, Path::new(expected)),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why} lacks {part}"),
                _ => panic!("{written}: {found:?}"),
            }
        };
        check("~/Pictures/", Ok("/home/u/Pictures"));
        check("$WALLS/../walls/./sea", Ok("/walls/sea"));
        check("Pictures", Err("is not absolute"));
        check("", Err("empty"));
        check("$NO_SUCH/x", Err("NO_SUCH"));
        check(
            "~",
            Err("murald stores its files in /home/u/.local/share/murald/images"),
        );
        check("/", Err("cannot watch /: murald stores"));
        check(
            "~/.local/share/murald/images",
            Err("murald stores its files in /home/u/.local/share/murald/images"),
        );
        check(
            "~/.cache/murald/x",
            Err("stores its files in /home/u/.cache/murald"),
        );
        check(
            "~/.config/murald",
            Err("stores its files in /home/u/.config/murald"),
        );
    }
}
