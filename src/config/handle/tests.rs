//! Tests changes, edits and failures of one file, without the watch.

mod concurrent;

use super::super::schema::BackendName;
use super::super::snapshot::Changed;
use super::request::TEXT_MAX;
use super::*;
use crate::events::{EventFilter, Subscription};
use serde_json::{Map, Value as Json, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

struct Room {
    dir: tempfile::TempDir,
    handle: ConfigHandle,
    events: Subscription,
}

impl Room {
    #[track_caller]
    fn with(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("c.toml"), text).unwrap();
        let bus = EventBus::new();
        let events = bus.subscribe(EventFilter::ALL, || ());
        let handle = ConfigHandle::open(dir.path().join("c.toml"), bus).unwrap();
        Self {
            dir,
            handle,
            events,
        }
    }

    fn text(&self) -> String {
        fs::read_to_string(self.dir.path().join("c.toml")).unwrap()
    }

    fn write(&self, text: &str) {
        fs::write(self.dir.path().join("c.toml"), text).unwrap();
    }

    fn patch(&self, body: Json) -> Result<Changed, String> {
        self.handle
            .patch(body.as_object().unwrap())
            .map_err(|error| error.to_string())
    }

    /// The events since the last call, without their time.
    fn heard(&self) -> Vec<String> {
        let event = |json: &str| json[..json.rfind(",\"timestamp\"").unwrap()].to_owned();
        self.events
            .receiver()
            .try_iter()
            .map(|message| event(&message.json))
            .collect()
    }

    fn shown(&self) -> Map<String, Json> {
        self.handle.current().to_json()
    }
}

#[test]
fn entries_that_others_have_changed_are_not_rewritten() {
    let room = Room::with("[workspaces]\n1 = 'lake'\n2 = 'lake'\n3 = 'sea'\n");
    room.patch(json!({ "workspaces": { "2": "hill" } }))
        .unwrap();
    let other = |_: &str, written: &str| (written == "lake").then(|| "id:7".to_owned());
    room.handle.rewrite_workspaces(other).unwrap();
    let expected = json!({ "1": "id:7", "2": "hill", "3": "sea" });
    assert_eq!(room.shown()["workspaces"], expected);
}

#[test]
fn missing_config_file_is_made_with_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/c.toml");
    let handle = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), toml::template());
    assert_eq!(handle.current().to_json(), Config::default().to_json());

    let room = Room::with("# mine\n[app]\ntheme = 'x' # y\n");
    let about = Section::App
        .key("kill_daemon_on_exit")
        .unwrap()
        .meaning
        .trim();
    let begins = format!("# mine\n[app]\ntheme = 'x' # y\n# {about}\nkill_daemon_on_exit = false");
    assert!(room.text().starts_with(&begins), "{}", room.text());
    let again = ConfigHandle::open(room.handle.path().to_owned(), EventBus::new()).unwrap();
    assert_eq!(again.current().to_json(), room.shown());
    assert_eq!(room.heard(), Vec::<String>::new());
}

#[test]
fn complete_config_file_is_left_alone() {
    let text = toml::template().replace(" = ", "   =  ");
    let room = Room::with(&text);
    let before = fs::metadata(room.handle.path())
        .unwrap()
        .modified()
        .unwrap();
    ConfigHandle::open(room.handle.path().to_owned(), EventBus::new()).unwrap();
    assert_eq!(room.text(), text);
    assert_eq!(
        fs::metadata(room.handle.path())
            .unwrap()
            .modified()
            .unwrap(),
        before
    );
}

#[test]
fn unwritable_config_file_does_not_prevent_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    fs::write(&path, "app.theme = 'x'\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let handle = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
    assert_eq!(handle.current().app.theme, "x");
    let warned = || {
        handle
            .current()
            .warnings
            .iter()
            .all(|text| text.starts_with("cannot write "))
    };
    let is_warned = || handle.current().warnings.len() == 1 && warned();
    assert!(is_warned());
    handle.reload();
    assert!(is_warned(), "the file is the same");
    let body = json!({"app": {"theme": "y"}});
    let refused = handle.patch(body.as_object().unwrap()).unwrap_err();
    assert!(matches!(refused, Error::Write { .. }), "{refused:?}");
    assert!(is_warned(), "it is the same still");
    assert_eq!(handle.current().app.theme, "x");
    assert_eq!(fs::read_to_string(&path).unwrap(), "app.theme = 'x'\n");
}

#[test]
fn bad_config_file_prevents_a_start_and_is_left_alone() {
    for bad in ["[app\n", "app.images_per_page = 'x'"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, bad).unwrap();
        let error = ConfigHandle::open(path.clone(), EventBus::new())
            .err()
            .unwrap();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
    // A directory cannot be read as a file.
    let dir = tempfile::tempdir().unwrap();
    let error = ConfigHandle::open(dir.path().to_owned(), EventBus::new())
        .err()
        .unwrap();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

#[test]
fn config_change_publishes_one_event() {
    let room = Room::with("# mine\n");
    let changed = room.patch(json!({
        "daemon": {"log_level": "debug"},
        "backend": {"type": "feh", "feh": {"mode": "max"}, "auto_priorities": {"web": []}},
    }));
    let changed = changed.unwrap();
    assert!(changed.restart_required);
    assert_eq!(
        room.heard(),
        [r#"{"sections":["backend","backend.feh","daemon"]"#]
    );
    assert!(
        !room
            .patch(json!({"backend": {"feh": {"mode": "max"}}}))
            .unwrap()
            .restart_required
    );
    assert_eq!(room.heard(), Vec::<String>::new());
    room.handle.reset_backend(BackendName::Feh).unwrap();
    let reset = r#"{"sections":["backend.feh"],"source":"api_reset_backend""#;
    assert_eq!(room.heard(), [reset]);
    room.handle.reset_all().unwrap();
    let reset = r#"{"sections":["backend","daemon"],"source":"api_reset_all""#;
    assert_eq!(room.heard(), [reset]);
    room.handle.reset_all().unwrap();
    room.handle.reload();
    assert_eq!(room.heard(), Vec::<String>::new());
    assert_eq!(room.shown(), Config::default().to_json());
    assert!(room.text().starts_with("# mine\n"));
}

#[test]
fn directories_that_cannot_be_watched_are_refused() {
    let room = Room::with("");
    let refused = room
        .patch(json!({ "library": { "watch": ["/a", "relative"] } }))
        .unwrap_err();
    assert!(refused.starts_with("cannot watch relative"), "{refused}");
    room.patch(json!({ "library": { "watch": ["/a"] } }))
        .unwrap();
}

#[test]
fn unusable_paths_in_the_file_are_warned_about() {
    #[track_caller]
    fn check(default: &str, edit: &str, told: &[&str]) {
        let room = Room::with("");
        let text = room.text();
        assert!(text.contains(default), "{text}");
        room.write(&text.replace(default, edit));
        room.handle.reload();
        assert_eq!(room.handle.current().warnings, told);
        // Another change keeps the warnings, and fixing the paths removes them.
        room.patch(json!({"app": {"theme": "x"}})).unwrap();
        assert_eq!(room.handle.current().warnings, told);
        room.write(&text);
        room.handle.reload();
        assert_eq!(room.handle.current().warnings, [""; 0]);
    }
    let images = format!(
        "\nimages_dir = \"{}\"\n",
        Config::default().daemon.images_dir
    );
    let relative = "daemon.images_dir cannot be used: the path \"pix\" is not absolute; \
                    murald cannot start again with this value";
    check(&images, "\nimages_dir = \"pix\"\n", &[relative]);
    let [relative, unset] = [
        "cannot watch pix: the path \"pix\" is not absolute; skipped",
        "cannot watch $MURALD_NONE/y: the variable MURALD_NONE in the path \"$MURALD_NONE/y\" is not \
         set; skipped",
    ];
    let several = "\nwatch = [\"pix\", \"/a\", \"$MURALD_NONE/y\"]\n";
    check("\nwatch = []\n", several, &[relative, unset]);
}

#[test]
fn config_file_has_a_mebibyte_at_most() {
    let room = Room::with("");
    let put = |length: usize| room.patch(json!({ "app": { "long": "x".repeat(length) } }));
    put(1).unwrap();
    let free = TEXT_MAX - room.text().len();
    put(free + 1).unwrap();
    assert_eq!(room.text().len(), TEXT_MAX);
    for more in [2, 3] {
        let refused = put(free + more).unwrap_err();
        assert!(refused.contains("more than 1048576 bytes"), "{refused}");
    }
}

#[test]
fn patch_changes_all_sections_or_none() {
    let room = Room::with("");
    let (before, text) = (room.shown(), room.text());
    let body = json!({"app": {"theme": "x"}, "backend": {"mpvpaper": {"verbose": 9}}});
    assert!(
        room.patch(body)
            .unwrap_err()
            .contains("backend.mpvpaper.verbose")
    );
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    let body = json!({"app": {"theme": "x", "deep": deep}});
    assert!(
        room.patch(body)
            .unwrap_err()
            .starts_with("app cannot be stored")
    );
    assert_eq!((room.shown(), room.text()), (before, text));
    assert_eq!(room.heard(), Vec::<String>::new());
}

#[test]
fn bad_edit_keeps_last_good_config() {
    for (bad, why) in [("[app\n", "line 1"), (" \n", "is empty")] {
        let room = Room::with("app.theme = 'x'\n");
        let good = room.text();
        room.write(bad);
        assert_eq!(room.handle.refresh(true), Settled::Perhaps);
        assert!(room.handle.current().warnings.is_empty());
        room.handle.reload();
        assert_eq!(room.handle.current().app.theme, "x");
        let warnings = room.shown()["warnings"].to_string();
        assert!(
            warnings.contains(why) && warnings.contains("keeping the previous settings"),
            "{warnings}"
        );
        assert!(
            room.patch(json!({"app": {"theme": "y"}}))
                .unwrap_err()
                .contains("fix the file")
        );
        assert_eq!(room.text(), bad);
        room.write(&good);
        room.handle.reload();
        assert!(!room.shown().contains_key("warnings"));
        assert_eq!(room.heard(), Vec::<String>::new());
    }
}

#[test]
fn only_a_reset_makes_a_backup() {
    let room = Room::with("app.theme = 'x'\nbackend.feh.mode = 'max'\n");
    assert_eq!(
        room.patch(json!({"app": {"theme": "y"}})).unwrap().backup,
        None
    );
    let before = room.text();
    let backup = room
        .handle
        .reset_backend(BackendName::Feh)
        .unwrap()
        .backup
        .unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
    // A reset loses nothing if there is no file.
    fs::remove_file(room.handle.path()).unwrap();
    room.handle.reload();
    assert_eq!(room.handle.reset_all().unwrap().backup, None);
    assert_eq!(room.handle.current().app.theme, "dark");
    assert_eq!(fs::read_dir(room.dir.path()).unwrap().count(), 2);
}

#[test]
fn a_reset_works_on_a_broken_file_and_keeps_it() {
    for (bad, is_noticed) in [
        ("[app\n", true),
        ("app.theme = 1\n", false),
        ("", true),
        ("\n", false),
    ] {
        let room = Room::with("# mine\napp.theme = 'x'\n");
        room.write(bad);
        if is_noticed {
            room.handle.reload();
        }
        let backup = room.handle.reset_all().unwrap().backup.unwrap();
        assert_eq!(fs::read_to_string(backup).unwrap(), bad);
        assert_eq!(room.shown(), Config::default().to_json());
        assert!(room.text().starts_with("# mine\n"), "{}", room.text());
        room.write(bad);
        room.handle.reset_backend(BackendName::Feh).unwrap();
        assert_eq!(room.shown(), Config::default().to_json());
        assert_eq!(fs::read_dir(room.dir.path()).unwrap().count(), 2);
    }
}

#[test]
fn shown_settings_can_be_sent_back() {
    let room =
        Room::with("backend.awww.resize = 'zoom'\n[app]\nmine = 1\n[library]\nwatch = ['pix']\n");
    room.handle.reload();
    let mut shown = room.shown();
    assert_eq!(shown["warnings"].as_array().unwrap().len(), 2, "{shown:?}");
    let text = room.text();
    let beside = json!({ "warnings": ["x"], "restart_required": true, "backup": "/x" });
    shown.extend(beside.as_object().unwrap().clone());
    for section in ["app", "daemon", "library"] {
        shown[section]
            .as_object_mut()
            .unwrap()
            .extend(beside.as_object().unwrap().clone());
    }
    room.patch(Json::Object(shown)).unwrap();
    assert_eq!(room.heard(), Vec::<String>::new());
    // The value that is shown replaced the unusable one.
    assert_eq!(room.text(), text.replace("'zoom'", "\"crop\""));
    let awww = Section::BackendOptions(BackendName::Awww);
    let mut awww_shown = room.handle.current().section(awww);
    awww_shown.extend(beside.as_object().unwrap().clone());
    room.handle.patch_section(awww, &awww_shown).unwrap();
    assert!(
        room.patch(json!({ "library": { "watch": ["pix", "/a"] } }))
            .is_err(),
        "a new list"
    );
}

#[test]
fn removed_config_file_is_written_again_by_next_change() {
    let room = Room::with("# mine\n");
    fs::remove_file(room.handle.path()).unwrap();
    assert_eq!(room.handle.refresh(true), Settled::Perhaps);
    room.handle.reload();
    assert!(room.shown()["warnings"].to_string().contains("was deleted"));
    room.patch(json!({"app": {"theme": "y"}})).unwrap();
    assert!(room.text().starts_with("# mine\n"));
    assert!(!room.shown().contains_key("warnings"));
    assert_eq!(room.heard(), [r#"{"sections":["app"]"#]);
}

#[test]
fn reset_removes_client_keys_and_fixes_invalid_values() {
    let room = Room::with("[app]\n# note\nmine = 1\n[backend.awww]\nresize = 'zoom'\n");
    assert_eq!(room.shown()["app"]["mine"], 1);
    room.handle.reset_all().unwrap();
    assert_eq!(room.shown(), Config::default().to_json());
    let text = room.text();
    assert!(
        text.contains("# note\n") && !text.contains("'zoom'"),
        "{text}"
    );
    assert!(
        text.contains("\ntheme = \"dark\"\n") && !text.contains("mine"),
        "{text}"
    );
}

#[test]
fn unusable_value_is_warned_about_in_the_answer() {
    let room = Room::with("[app]\nfont_preset = 'x'\n");
    let patch = |section, body: Json| {
        room.handle
            .patch_section(section, body.as_object().unwrap())
            .unwrap()
    };
    let changed = patch(
        Section::Daemon,
        json!({"log_max_size_mb": 0, "log_level": "loud"}),
    );
    assert!(changed.restart_required, "the file is another");
    let [size, level] = changed.warnings.as_slice() else {
        panic!("{:?}", changed.warnings)
    };
    assert!(size.ends_with("; using 10") || level.ends_with("; using 10"));
    // The same request again: nothing is written, and the value is still unusable.
    let again = patch(Section::Daemon, json!({"log_level": "loud"}));
    assert_eq!((again.restart_required, again.warnings.len()), (false, 2));
    let app = patch(Section::App, json!({"sort_by": "size"}));
    assert!(!app.restart_required);
    assert_eq!(
        app.warnings.len(),
        2,
        "those of the section alone: {:?}",
        app.warnings
    );
    assert!(
        app.warnings
            .iter()
            .all(|warning| warning.ends_with("; kept as it is"))
    );
    assert_eq!(
        patch(Section::Power, json!({"pause_when_idle": true})).warnings,
        [""; 0]
    );
}

#[test]
fn location_outside_the_globe_counts_as_missing() {
    let room = Room::with("[location]\n");
    room.write(
        &room
            .text()
            .replace("[location]\n", "[location]\nlatitude = 95\n"),
    );
    room.handle.reload();
    assert_eq!(room.handle.current().section(Section::Location), Map::new());
    assert_eq!(room.handle.current().warnings.len(), 1);
    assert_eq!(room.heard(), Vec::<String>::new());
}
