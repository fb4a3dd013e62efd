//! The settings, through the daemon.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::arguments::Call;
use super::super::connection::{Connection, Place};
use super::super::failure::Exit;
use super::super::screen::Screen;
use super::super::table::Table;
use super::super::verb::{Argument, Group, Kind, Verb};
use crate::paths::Dirs;

const SECTION: &str = "app, daemon, monitors, remote_gallery or backend.NAME";

pub(super) const GROUP: Group = Group {
    title: "Configuration",
    verbs: &[
        Verb::new(&["config", "get"], "Settings: all, a section, or one of them", get).arguments(
            &[
                Argument::optional("SECTION", Kind::Section, SECTION),
                Argument::optional("KEY", Kind::Setting, "One setting of it"),
            ],
        ),
        Verb::new(&["config", "set"], "Change a section, or one setting of it", set)
            .arguments(&[
                Argument::one("SECTION", Kind::Section, SECTION),
                Argument::one("KEY", Kind::Setting, "A setting; or the changes, as a JSON object"),
                Argument::optional("VALUE", Kind::Text, "Its new value; null unsets it"),
            ])
            .help(
                "    murald config set app '{\"images_per_page\": 80, \"theme\": \"system\"}'\n    \
                 murald config set backend.awww transition_type fade\n\n\
                 Settings of [daemon] count after its restart.",
            ),
        Verb::new(&["config", "patch"], "Change several sections at once", patch)
            .arguments(&[Argument::one("JSON", Kind::Json, "Sections, each with its changes")])
            .help("    murald config patch '{\"backend\": {\"selection_mode\": \"auto\"}}'"),
        Verb::new(
            &["config", "reset"],
            "All settings, or a backend's, as they were at first",
            reset,
        )
        .arguments(&[Argument::optional("BACKEND", Kind::Backend, "Only this backend's")]),
        Verb::new(&["config", "path"], "Where the file is (no daemon needed)", path),
        Verb::check(&["config", "check"], "Whether a file is in order (no daemon needed)")
            .arguments(&[Argument::optional("FILE", Kind::File, "Instead of the daemon's own")])
            .help(
                "    murald config check ./new.toml && cp ./new.toml \"$(murald config path)\"\n\n\
                 Prints warnings, one a line. Exits with 78 where the daemon would not start with it.",
            ),
    ],
};

/// Where a section is in the API. `backend` itself is no section there: the daemon says so.
pub(super) fn place(section: &str) -> Place {
    match section.strip_prefix("backend.") {
        Some(backend) => Place::new(&[&"config", &"backends", &backend]),
        None => Place::new(&[&"config", &section]),
    }
}

fn get(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let connection = call.connect()?;
    let Some(section) = call.text("SECTION") else {
        let answer = connection.get(&Place::new(&[&"config"]))?;
        return screen.show(&answer, |screen, all: Map<String, Value>| {
            let mut sheet = Table::sheet();
            flatten(&mut sheet, "", &all);
            screen.table(&sheet)
        });
    };
    let answer = connection.get(&place(section))?;
    let Some(key) = call.text("KEY") else {
        return screen.show(&answer, |screen, settings| sheet(screen, &settings));
    };
    let settings: Map<String, Value> = answer.read()?;
    let value = settings
        .get(key)
        .ok_or_else(|| Failure::refused(format!("{section} has no setting {key:?}")))?;
    if screen.is_json() {
        return screen.body(value.to_string().as_bytes());
    }
    screen.line(plain(value))
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
    let section = call.word("SECTION");
    let changes = match call.text("VALUE") {
        Some(value) => one_setting(&call.connect()?, &section, &call.word("KEY"), value)?,
        None => changes(&call.word("KEY"))?,
    };
    let answer = call.connect()?.patch(&place(&section), &changes)?;
    screen.show(&answer, |screen, settings: Map<String, Value>| {
        sheet(screen, &settings)?;
        match settings.get("restart_required") {
            Some(Value::Bool(true)) => screen.line("\nthis counts after a restart of the daemon"),
            _ => Ok(()),
        }
    })
}

fn changes(text: &str) -> Result<Value, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(changes)) => Ok(Value::Object(changes)),
        _ => Err(Failure::usage(format!("{text:?} is no JSON object, and no value follows it"))
            .hint("usage: murald config set SECTION KEY VALUE, or SECTION '{\"KEY\": VALUE}'")),
    }
}

/// The word as the type that the setting has: `80` is a number for one and a text for another.
fn one_setting(
    connection: &Connection,
    section: &str,
    key: &str,
    word: &str,
) -> Result<Value, Failure> {
    // A section that cannot be read is told of when it is written.
    let settings = match connection.get(&place(section)) {
        Err(failure) if failure.exit == Exit::Refused => Map::new(),
        answer => answer?.read()?,
    };
    Ok(json!({ key: typed(settings.get(key), word) }))
}

fn typed(present: Option<&Value>, word: &str) -> Value {
    match present {
        Some(Value::String(_)) => word.into(),
        _ => serde_json::from_str(word).unwrap_or_else(|_| word.into()),
    }
}

fn patch(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let changes = call.value("JSON").expect("the table requires it");
    let answer = call.connect()?.patch(&Place::new(&[&"config"]), changes)?;
    screen.show(&answer, |screen, _: Value| screen.line("changed"))
}

fn reset(call: &Call, screen: &mut Screen) -> Result<(), Failure> {
    let place = match call.text("BACKEND") {
        Some(backend) => Place::new(&[&"config", &"backends", &backend, &"reset"]),
        None => Place::new(&[&"config", &"reset"]),
    };
    let answer = call.connect()?.post(&place, &json!({}))?;
    screen.show(&answer, |screen, _: Value| screen.line("the settings are as they were at first"))
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
fn file(call: &Call) -> Result<PathBuf, Failure> {
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
    fn backends_are_sections_with_a_place_of_their_own() {
        assert_eq!(place("backend.awww"), Place::new(&[&"config", &"backends", &"awww"]));
        assert_eq!(place("backend"), Place::new(&[&"config", &"backend"]));
    }
}
