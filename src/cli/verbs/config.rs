//! The settings, through the daemon.

use std::fmt::Display;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::super::Error;
use super::super::call::{Call, Setting};
use super::super::connection::{Connection, Place};
use super::super::error::Exit;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::paths::Dirs;

const SECTION: &str = "A section: app, daemon, backend.NAME, backend.auto_priorities, library, \
                       monitors, remote_gallery; or a setting, as backend.type or app.theme";

pub(super) const GROUP: Group = Group {
    title: "Configuration",
    verbs: &[
        Verb::new(&["config", "get"], "Show all settings, those of a section, or one", get)
            .arguments(&[
                Argument::optional("SECTION[.KEY]", Kind::Section, SECTION),
                Argument::optional("KEY", Kind::Setting, "One setting of the section"),
            ])
            .help("    murald config get backend.type"),
        Verb::new(&["config", "set"], "Change a setting, or several of a section", set)
            .arguments(&[
                Argument::one("SECTION[.KEY]", Kind::Section, SECTION),
                Argument::optional("KEY", Kind::Setting, "The setting, where it is not named yet"),
                Argument::optional(
                    "VALUE",
                    Kind::SettingValue,
                    "Its new value, null for none; or several settings of the section as a JSON object",
                ),
            ])
            .help(
                "    murald config set backend.type swaybg\n    \
                 murald config set backend.swaybg fit_mode fit\n    \
                 murald config set app '{\"images_per_page\": 80, \"theme\": \"system\"}'\n\n\
                 Settings of the section daemon take effect when the daemon is started again, the\n\
                 others at once.",
            ),
        Verb::new(&["config", "patch"], "Change settings of several sections at once", patch)
            .arguments(&[Argument::one("CHANGES", Kind::Json, "A JSON object of sections with their changes")])
            .help("    murald config patch '{\"backend\": {\"type\": \"feh\"}, \"app\": {\"theme\": \"light\"}}'"),
        Verb::new(
            &["config", "reset"],
            "Reset all settings to their defaults, or a backend's",
            reset,
        )
        .arguments(&[Argument::optional("BACKEND", Kind::Backend, "Only the settings of this backend")]),
        Verb::new(&["config", "path"], "Print where the configuration file is (no daemon needed)", path),
        Verb::check(&["config", "check"], "Check a configuration file (no daemon needed)")
            .arguments(&[Argument::optional("FILE", Kind::File, "The file, if not the daemon's own")])
            .help(
                "    murald config check ./new.toml && cp ./new.toml \"$(murald config path)\"\n\n\
                 Prints warnings, one a line. Exits with 78 if the daemon would not start with it.",
            ),
    ],
};

/// A section of the file, as the API has it.
struct Section {
    place: Place,
    /// What is around its settings in the bodies of that place.
    inside: &'static [&'static str],
}

impl Section {
    fn of(name: &str, has_key: bool) -> Self {
        let at = |place: &[&dyn Display]| Self { place: Place::new(place), inside: &[] };
        match name.strip_prefix("backend.") {
            // They have no place of their own.
            Some("auto_priorities") => {
                Self { inside: &["backend", "auto_priorities"], ..at(&[&"config"]) }
            }
            Some(backend) => at(&[&"config", &"backends", &backend]),
            None if name == "backend" && has_key => {
                Self { inside: &["backend"], ..at(&[&"config"]) }
            }
            // `backend` itself is no section of the API: the daemon says so.
            None => at(&[&"config", &name]),
        }
    }

    /// Its settings out of a body.
    fn unwrap(&self, body: Map<String, Value>) -> Map<String, Value> {
        let restart = body.get("restart_required").cloned();
        let mut settings = self.inside.iter().fold(body, |mut body, table| {
            match body.get_mut(*table).map(Value::take) {
                Some(Value::Object(inner)) => inner,
                _ => Map::new(),
            }
        });
        if !self.inside.is_empty() {
            settings.extend(restart.map(|restart| ("restart_required".to_owned(), restart)));
        }
        settings
    }

    fn wrap(&self, changes: Value) -> Value {
        self.inside.iter().rev().fold(changes, |inner, table| json!({ *table: inner }))
    }
}

/// The settings of a section as they are now; with a key also those of `[backend]` itself.
pub(super) fn settings(
    connection: &Connection,
    section: &str,
    has_key: bool,
) -> Result<Map<String, Value>, Error> {
    let at = Section::of(section, has_key);
    let answer = connection.get(&at.place).map_err(|error| elsewhere(section, error))?;
    Ok(at.unwrap(answer.read()?))
}

/// Where the settings of `[backend]` itself are.
fn elsewhere(section: &str, error: Error) -> Error {
    match section {
        "backend" => error.hint(
            "its settings are named backend.type, backend.selection_mode, \
             backend.transition_duration_seconds; `murald config get` shows all",
        ),
        _ => error,
    }
}

/// What a word names: a section, or a section and a key of it. The longest section wins.
fn split(call: &Call, word: &str) -> (String, Option<String>) {
    let settings = (call.settings)();
    let sections = settings.iter().map(|setting| setting.section.as_str());
    let inside = |section: &&str| {
        word.strip_prefix(*section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    match sections.filter(inside).max_by_key(|section| section.len()) {
        Some(section) => {
            let key = word[section.len()..].strip_prefix('.').map(str::to_owned);
            (section.to_owned(), key)
        }
        None => (word.to_owned(), None),
    }
}

fn get(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let connection = call.connect()?;
    let Some(word) = call.text("SECTION[.KEY]") else {
        let answer = connection.get(&Place::new(&[&"config"]))?;
        return screen.show(&answer, |screen, all: Map<String, Value>| sheet(screen, &all));
    };
    let (section, key) = split(call, word);
    let key = key.or_else(|| call.text("KEY").map(str::to_owned));
    let settings = settings(&connection, &section, key.is_some())?;
    let Some(key) = key else {
        return show(screen, &settings);
    };
    let value = settings.get(&key.replace('-', "_")).or_else(|| settings.get(&key));
    let known = |one: &Setting| one.section == section && one.key == key.replace('-', "_");
    let value = match value {
        Some(value) => value,
        // One that has no default and is not set.
        None if (call.settings)().iter().any(known) => &Value::Null,
        None => {
            return Err(Error::refused(format!("{section} has no setting {key:?}")).hint(
                match section.as_str() {
                    "backend" => "`murald config get` lists all".to_owned(),
                    section => format!("`murald config get {section}` lists them"),
                },
            ));
        }
    };
    if screen.wants_data() {
        return screen.data(value);
    }
    screen.line(plain(value))
}

fn show(screen: &mut Screen, settings: &Map<String, Value>) -> Result<(), Error> {
    if screen.wants_data() {
        return screen.data(&json!(settings));
    }
    sheet(screen, settings)
}

fn sheet(screen: &mut Screen, settings: &Map<String, Value>) -> Result<(), Error> {
    let mut sheet = Table::sheet();
    flatten(&mut sheet, "", settings);
    screen.table(&sheet)
}

/// Tables inside tables by their dotted names.
fn flatten(sheet: &mut Table, prefix: &str, settings: &Map<String, Value>) {
    for (key, value) in settings {
        match value {
            Value::Object(inner) => flatten(sheet, &format!("{prefix}{key}."), inner),
            value => sheet.field(&format!("{prefix}{key}"), plain(value)),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// What a line says: a section, and what is to be changed in it.
fn wish(call: &Call, connection: &Connection) -> Result<(String, Map<String, Value>), Error> {
    let word = call.word("SECTION[.KEY]");
    let (section, key) = split(call, &word);
    match (key, call.text("KEY"), call.text("VALUE")) {
        (None, Some(key), Some(value)) | (Some(_), Some(key), Some(value)) if section == word => {
            Ok((section.clone(), one_setting(connection, &section, key, value)?))
        }
        (Some(key), Some(value), None) => {
            Ok((section.clone(), one_setting(connection, &section, &key, value)?))
        }
        (None, Some(several), None) => Ok((section, changes(several)?)),
        _ => Err(Error::usage("what is to be set?")
            .hint("usage: murald config set SECTION.KEY VALUE, or SECTION '{\"KEY\": VALUE}'")),
    }
}

fn set(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let connection = call.connect()?;
    let (name, changes) = wish(call, &connection)?;
    let section = Section::of(&name, true);
    let answer = connection.patch(&section.place, &section.wrap(changes.clone().into()))?;
    let settings = section.unwrap(answer.read()?);
    let used = in_effect(&name, &changes, &settings);
    if screen.wants_data() {
        show(screen, &settings)?;
    } else if used.is_ok() {
        let now = |key: &String| settings.get(key).map_or_else(|| "unset".to_owned(), plain);
        let mut lines = changes.keys().map(|key| format!("{name}.{key} is {} now", now(key)));
        lines.try_for_each(|line| screen.say(line))?;
        if settings.get("restart_required") == Some(&Value::Bool(true)) {
            screen.say("it takes effect when the daemon is started the next time")?;
        }
    }
    used
}

/// The daemon keeps some values that it cannot use, and goes on with the default.
fn in_effect(
    section: &str,
    changes: &Map<String, Value>,
    settings: &Map<String, Value>,
) -> Result<(), Error> {
    let not = |(key, wanted): (&String, &Value)| {
        let used = settings.get(key).filter(|used| !wanted.is_null() && !same(used, wanted))?;
        Some(format!("{section}.{key} cannot be {wanted}; {used} is used instead"))
    };
    match changes.iter().find_map(not) {
        None => Ok(()),
        Some(problem) => {
            Err(Error::refused(problem).hint("`murald config check` tells what it can be"))
        }
    }
}

/// Equal, whole numbers and others alike.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| other.as_f64() == Some(number))
}

fn changes(text: &str) -> Result<Map<String, Value>, Error> {
    match serde_json::from_str(text) {
        Ok(Value::Object(changes)) => Ok(changes),
        _ => Err(Error::usage(format!("{text:?} is not a JSON object, and no value follows it"))
            .hint("usage: murald config set SECTION.KEY VALUE, or SECTION '{\"KEY\": VALUE}'")),
    }
}

/// The word as the type that the setting has: `80` is a number for one and a text for another.
fn one_setting(
    connection: &Connection,
    section: &str,
    key: &str,
    word: &str,
) -> Result<Map<String, Value>, Error> {
    // A section that cannot be read is told of when it is written.
    let settings = match settings(connection, section, true) {
        Err(error) if error.exit == Exit::Refused => Map::new(),
        settings => settings?,
    };
    // Both ways of writing it are the same key to the daemon.
    let known = key.replace('-', "_");
    let key = if settings.contains_key(&known) { known } else { key.to_owned() };
    let value = typed(settings.get(&key), word);
    Ok(Map::from_iter([(key, value)]))
}

fn typed(present: Option<&Value>, word: &str) -> Value {
    match present {
        Some(Value::String(_)) => word.into(),
        _ => serde_json::from_str(word).unwrap_or_else(|_| word.into()),
    }
}

fn patch(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let changes = call.value("CHANGES").expect("the table requires it");
    let answer = call.connect()?.patch(&Place::new(&[&"config"]), changes)?;
    screen.show(&answer, |screen, _: Value| screen.say("changed"))
}

fn reset(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let place = match call.text("BACKEND") {
        Some(backend) => {
            // As its section is named elsewhere.
            let backend = backend.strip_prefix("backend.").unwrap_or(backend);
            Place::new(&[&"config", &"backends", &backend, &"reset"])
        }
        None => Place::new(&[&"config", &"reset"]),
    };
    let answer = call.connect()?.post(&place, &json!({}))?;
    screen.show(&answer, |screen, settings: Value| {
        screen.say("the settings are reset to their defaults")?;
        match settings["backup"].as_str() {
            Some(backup) => screen.say(format!("the file as it was is kept as {backup}")),
            None => Ok(()),
        }
    })
}

fn path(call: &Call, screen: &mut Screen) -> Result<(), Error> {
    let path = file(call)?;
    if screen.is_json() {
        return screen.data(&json!(path.to_string_lossy()));
    }
    screen.line(path.display())
}

/// The file that `config check` is about.
pub(crate) fn file_to_check(call: &Call) -> Result<PathBuf, Error> {
    call.text("FILE").map_or_else(|| file(call), |path| Ok(PathBuf::from(path)))
}

/// The daemon's own.
pub(crate) fn file(call: &Call) -> Result<PathBuf, Error> {
    if let Some(path) = &call.globals.config {
        return Ok(path.clone());
    }
    let dirs = Dirs::of_process();
    let failed = |error| Error::new(Exit::Config, "no configuration file").because(error);
    Ok(dirs.map_err(failed)?.config_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_take_the_type_that_the_setting_has() {
        #[track_caller]
        fn check(present: Option<Value>, word: &str, expected: Value) {
            assert_eq!(typed(present.as_ref(), word), expected);
        }
        check(Some(json!("dark")), "10", json!("10"));
        check(Some(json!(50)), "10", json!(10));
        check(Some(json!(50)), "ten", json!("ten"));
        check(Some(json!([])), "[\"A=b\"]", json!(["A=b"]));
        check(None, "1.5", json!(1.5));
        check(None, "null", Value::Null);
    }

    #[test]
    fn every_section_has_its_way_through_the_api() {
        #[track_caller]
        fn check(section: &str, place: &[&dyn std::fmt::Display], body: Value) {
            let section = Section::of(section, false);
            assert_eq!(section.place, Place::new(place));
            assert_eq!(section.wrap(json!({"k": 1})), body);
            let Value::Object(body) = body else { panic!("an object") };
            assert_eq!(Value::from(section.unwrap(body)), json!({"k": 1}));
        }
        check("app", &[&"config", &"app"], json!({"k": 1}));
        check("backend.awww", &[&"config", &"backends", &"awww"], json!({"k": 1}));
        check("backend", &[&"config", &"backend"], json!({"k": 1}));
        assert_eq!(Section::of("backend", true).wrap(json!(1)), json!({"backend": 1}));
        let priorities = json!({"backend": {"auto_priorities": {"k": 1}}});
        check("backend.auto_priorities", &[&"config"], priorities);
    }

    #[test]
    fn what_the_daemon_does_not_use_is_told() {
        let map = |value: Value| match value {
            Value::Object(map) => map,
            _ => panic!("an object"),
        };
        let check = |changes: Value, settings: Value| {
            in_effect("s", &map(changes), &map(settings)).map_err(|error| error.to_string())
        };
        assert_eq!(check(json!({"a": 1.0, "b": null}), json!({"a": 1, "b": "x"})), Ok(()));
        let told = check(json!({"a": "loud"}), json!({"a": "info"})).unwrap_err();
        assert!(told.starts_with("murald: s.a cannot be \"loud\"; \"info\" is used"), "{told}");
    }
}
