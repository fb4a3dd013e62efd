//! The settings, through the daemon.

use std::fmt::Display;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::call::Call;
use super::super::connection::{Connection, Place};
use super::super::failure::Exit;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::paths::Dirs;

const SECTION: &str = "app, daemon, backend.NAME, backend.auto_priorities, monitors or \
                       remote_gallery";

pub(super) const GROUP: Group = Group {
    title: "Configuration",
    verbs: &[
        Verb::new(&["config", "get"], "Show all settings, those of a section, or one", get).arguments(
            &[
                Argument::optional("SECTION", Kind::Section, SECTION),
                Argument::optional("KEY", Kind::Setting, "One setting of the section"),
            ],
        ),
        Verb::new(&["config", "set"], "Change a setting, or several of a section", set)
            .arguments(&[
                Argument::one("SECTION", Kind::Section, SECTION),
                Argument::one("KEY", Kind::Setting, "The setting; or several with their values, as a JSON object"),
                Argument::optional("VALUE", Kind::Text, "Its new value; null for none, where that is allowed"),
            ])
            .help(
                "    murald config set backend.awww transition_type fade\n    \
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
    fn of(name: &str) -> Self {
        let at = |place: &[&dyn Display]| Self { place: Place::new(place), inside: &[] };
        match name.strip_prefix("backend.") {
            // They have no place of their own.
            Some("auto_priorities") => {
                Self { inside: &["backend", "auto_priorities"], ..at(&[&"config"]) }
            }
            Some(backend) => at(&[&"config", &"backends", &backend]),
            // `backend` itself is no section of the API either: the daemon says so.
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

/// The settings of a section as they are now.
pub(super) fn settings(
    connection: &Connection,
    section: &str,
) -> Result<Map<String, Value>, Failure> {
    let at = Section::of(section);
    let answer = connection.get(&at.place).map_err(|failure| elsewhere(section, failure))?;
    Ok(at.unwrap(answer.read()?))
}

/// Where the settings of `[backend]` itself are.
fn elsewhere(section: &str, failure: Failure) -> Failure {
    match section {
        "backend" => failure.hint(
            "`murald config get` shows it, `murald backends activate NAME` and `murald config patch \
             '{\"backend\": ...}'` change it",
        ),
        _ => failure,
    }
}

fn get(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let connection = call.connect()?;
    let Some(section) = call.text("SECTION") else {
        let answer = connection.get(&Place::new(&[&"config"]))?;
        return screen.show(&answer, |screen, all: Map<String, Value>| sheet(screen, &all));
    };
    let settings = settings(&connection, section)?;
    let Some(key) = call.text("KEY") else {
        return show(screen, &settings);
    };
    let value = settings.get(&key.replace('-', "_")).or_else(|| settings.get(key));
    let value = value.ok_or_else(|| {
        Failure::refused(format!("{section} has no setting {key:?}"))
            .hint(format!("`murald config get {section}` lists them"))
    })?;
    if screen.is_json() {
        return screen.body(value.to_string().as_bytes());
    }
    screen.line(plain(value))
}

fn show(screen: &mut Screen, settings: &Map<String, Value>) -> Result<(), Failure> {
    if screen.is_json() {
        return screen.body(json!(settings).to_string().as_bytes());
    }
    sheet(screen, settings)
}

fn sheet(screen: &mut Screen, settings: &Map<String, Value>) -> Result<(), Failure> {
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

fn set(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let (name, key) = (call.word("SECTION"), call.word("KEY"));
    let connection = call.connect()?;
    let changes = match call.text("VALUE") {
        Some(value) => one_setting(&connection, &name, &key, value)?,
        None => changes(&key)?,
    };
    let section = Section::of(&name);
    let answer = connection.patch(&section.place, &section.wrap(changes.clone().into()));
    let answer = answer.map_err(|failure| elsewhere(&name, failure))?;
    let settings = section.unwrap(answer.read()?);
    let used = in_effect(&name, &changes, &settings);
    if screen.is_json() {
        show(screen, &settings)?;
    } else if used.is_ok() {
        let now = |key: &String| settings.get(key).map_or_else(|| "unset".to_owned(), plain);
        let mut lines = changes.keys().map(|key| format!("{name}.{key} is {} now", now(key)));
        lines.try_for_each(|line| screen.line(line))?;
        if settings.get("restart_required") == Some(&Value::Bool(true)) {
            screen.line("it takes effect when the daemon is started the next time")?;
        }
    }
    used
}

/// The daemon keeps some values that it cannot use, and goes on with the default.
fn in_effect(
    section: &str,
    changes: &Map<String, Value>,
    settings: &Map<String, Value>,
) -> Result<(), Failure> {
    let not = |(key, wanted): (&String, &Value)| {
        let used = settings.get(key).filter(|used| !wanted.is_null() && !same(used, wanted))?;
        Some(format!("{section}.{key} cannot be {wanted}; {used} is used instead"))
    };
    match changes.iter().find_map(not) {
        None => Ok(()),
        Some(problem) => {
            Err(Failure::refused(problem).hint("`murald config check` tells what it can be"))
        }
    }
}

/// Equal, whole numbers and others alike.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| other.as_f64() == Some(number))
}

fn changes(text: &str) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(changes)) => Ok(changes),
        _ => Err(Failure::usage(format!("{text:?} is not a JSON object, and no value follows it"))
            .hint("usage: murald config set SECTION KEY VALUE, or SECTION '{\"KEY\": VALUE}'")),
    }
}

/// The word as the type that the setting has: `80` is a number for one and a text for another.
fn one_setting(
    connection: &Connection,
    section: &str,
    key: &str,
    word: &str,
) -> Result<Map<String, Value>, Failure> {
    // A section that cannot be read is told of when it is written.
    let settings = match settings(connection, section) {
        Err(failure) if failure.exit == Exit::Refused => Map::new(),
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

fn patch(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let changes = call.value("CHANGES").expect("the table requires it");
    let answer = call.connect()?.patch(&Place::new(&[&"config"]), changes)?;
    screen.show(&answer, |screen, _: Value| screen.line("changed"))
}

fn reset(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let place = match call.text("BACKEND") {
        Some(backend) => {
            // As its section is named elsewhere.
            let backend = backend.strip_prefix("backend.").unwrap_or(backend);
            Place::new(&[&"config", &"backends", &backend, &"reset"])
        }
        None => Place::new(&[&"config", &"reset"]),
    };
    let answer = call.connect()?.post(&place, &json!({}))?;
    screen.show(&answer, |screen, _: Value| screen.line("the settings are reset to their defaults"))
}

fn path(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let path = file(call)?;
    if screen.is_json() && call.globals.json {
        return screen.body(json!(path.to_string_lossy()).to_string().as_bytes());
    }
    screen.line(path.display())
}

/// The file that `config check` is about.
pub(crate) fn file_to_check(call: &Call) -> Result<PathBuf, Failure> {
    call.text("FILE").map_or_else(|| file(call), |path| Ok(PathBuf::from(path)))
}

/// The daemon's own.
pub(crate) fn file(call: &Call) -> Result<PathBuf, Failure> {
    if let Some(path) = &call.globals.config {
        return Ok(path.clone());
    }
    let dirs = Dirs::of_process();
    let failed = |error| Failure::new(Exit::Config, "no configuration file").because(error);
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
            let section = Section::of(section);
            assert_eq!(section.place, Place::new(place));
            assert_eq!(section.wrap(json!({"k": 1})), body);
            let Value::Object(body) = body else { panic!("an object") };
            assert_eq!(Value::from(section.unwrap(body)), json!({"k": 1}));
        }
        check("app", &[&"config", &"app"], json!({"k": 1}));
        check("backend.awww", &[&"config", &"backends", &"awww"], json!({"k": 1}));
        check("backend", &[&"config", &"backend"], json!({"k": 1}));
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
