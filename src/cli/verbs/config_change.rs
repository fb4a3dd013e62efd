//! Reads the change of a setting from a command line, and finds the route of the API for a section of
//! the configuration.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::{Call, Connection, Error, Exit, RequestPath, backend, columns};

/// A section in which each key is the name of a workspace, and each value a string.
const WORKSPACES: &str = "workspaces";

/// The section that a line names, and the changes to it.
pub(super) fn change(
    call: &Call,
    connection: &Connection,
) -> Result<(String, Map<String, Value>), Error> {
    let word = call.word("SECTION[.KEY]");
    let (section, key) = split(call, &word);
    let changes = match (key.as_deref(), call.text("KEY"), call.text("VALUE")) {
        (_, Some(key), Some(value)) if section == word => {
            one_setting(connection, &section, key, value)?
        }
        (Some(key), Some(value), None) => one_setting(connection, &section, key, value)?,
        (None, Some(several), None) => {
            let changes = changes(several);
            // For an unknown section, the daemon's error is the better one.
            if (section == "backend" || changes.is_err())
                && let Err(error) = settings(connection, &section, false)
                && error.status() == Some(404)
            {
                return Err(if section == "backend" && changes.is_err() {
                    error.hint(format!(
                        "did you mean `murald config set backend.type {several}`?"
                    ))
                } else {
                    error
                });
            }
            changes?
        }
        _ => return Err(Error::usage("no value given").hint(SET)),
    };
    Ok((section, changes))
}

const SET: &str = "usage: murald config set SECTION.KEY VALUE, or SECTION '{\"KEY\": VALUE}'";

/// Refuses values that the daemon stored but cannot use: it uses the default instead.
pub(super) fn in_effect(
    section: &str,
    changes: &Map<String, Value>,
    settings: &Value,
) -> Result<(), Error> {
    let not = |(key, wanted): (&String, &Value)| {
        let used = settings
            .get(key)
            .filter(|used| !wanted.is_null() && !same(used, wanted))?;
        Some(format!("{section}.{key} cannot be {wanted}; using {used}"))
    };
    match changes.iter().find_map(not) {
        None => Ok(()),
        Some(problem) => {
            Err(Error::refused(problem).hint("run `murald config check` for the allowed values"))
        }
    }
}

/// Whether values are equal; 1 and 1.0 are.
fn same(one: &Value, other: &Value) -> bool {
    one == other
        || one
            .as_f64()
            .is_some_and(|number| other.as_f64() == Some(number))
}

fn changes(text: &str) -> Result<Map<String, Value>, Error> {
    match serde_json::from_str(text) {
        Ok(Value::Object(changes)) => Ok(changes),
        _ => Err(Error::usage(format!(
            "{text:?} is not a JSON object, and no value follows it"
        ))
        .hint(SET)),
    }
}

/// A change of one setting. The word is read as the type that the setting has now: `80` is a number for
/// one setting and a string for another. `null` removes any setting.
fn one_setting(
    connection: &Connection,
    section: &str,
    key: &str,
    word: &str,
) -> Result<Map<String, Value>, Error> {
    // If a section cannot be read, writing it reports that.
    let settings = match settings(connection, section, true) {
        Err(error) if error.exit == Exit::Refused => Value::Null,
        settings => settings?,
    };
    // The daemon reads hyphens in keys as underscores.
    let known = key.replace('-', "_");
    let key = if settings.get(&known).is_some() {
        known
    } else {
        key.to_owned()
    };
    let text = (section == WORKSPACES).then(|| Value::from(""));
    let word = if key == "type" { backend(word) } else { word };
    let value = typed(settings.get(&key).or(text.as_ref()), word);
    Ok(Map::from_iter([(key, value)]))
}

fn typed(present: Option<&Value>, word: &str) -> Value {
    match present {
        Some(Value::String(_)) if word != "null" => word.into(),
        _ => serde_json::from_str(word).unwrap_or_else(|_| word.into()),
    }
}

/// A section of the file, as the API has it.
pub(super) struct Section {
    pub(super) place: RequestPath,
    /// The path of its settings in the bodies of that place.
    inside: &'static str,
}

impl Section {
    pub(super) fn from_name(name: &str, has_key: bool) -> Self {
        let at = |place: &[&dyn Display]| Self {
            place: RequestPath::new(place),
            inside: "",
        };
        match name.strip_prefix("backend.") {
            // The priorities have no route of their own.
            Some("auto_priorities") => Self {
                inside: "backend.auto_priorities",
                ..at(&[&"config"])
            },
            Some(backend) => at(&[&"config", &"backends", &backend]),
            None if name == "backend" && has_key => Self {
                inside: "backend",
                ..at(&[&"config"])
            },
            // The API has no section `backend`: the daemon reports that.
            None => at(&[&"config", &name]),
        }
    }

    /// The settings of the section in a body.
    pub(super) fn unwrap(&self, body: &Value) -> Value {
        if self.inside.is_empty() {
            return body.clone();
        }
        let mut settings = columns::at(body, self.inside).clone();
        if let Some(restart) = body.get("restart_required") {
            settings["restart_required"] = restart.clone();
        }
        settings
    }

    pub(super) fn wrap(&self, changes: Value) -> Value {
        let tables = self.inside.rsplit('.').filter(|table| !table.is_empty());
        tables.fold(changes, |inner, table| json!({ table: inner }))
    }
}

/// The settings of a section as they are now; with a key also those of `[backend]` itself.
pub(super) fn settings(
    connection: &Connection,
    section: &str,
    has_key: bool,
) -> Result<Value, Error> {
    let at = Section::from_name(section, has_key);
    let answer = connection
        .get(&at.place)
        .map_err(|error| elsewhere(section, error))?;
    Ok(at.unwrap(&answer.read()?))
}

/// Hints at the settings' names if no section has this name.
fn elsewhere(section: &str, error: Error) -> Error {
    match section {
        "backend" if error.status() == Some(404) => {
            Error::not_found("the settings of backend are named one by one, such as backend.type")
                .hint("`murald config get` shows all settings")
        }
        _ if error.status() == Some(404) => error.hint(
            "the settings of a backend are named backend.NAME; `murald config get` shows all",
        ),
        _ => error,
    }
}

/// Splits a word into a section and, if it names one, a key. The longest section wins.
pub(super) fn split(call: &Call, word: &str) -> (String, Option<String>) {
    let settings = call.settings();
    let sections = settings.iter().map(|setting| setting.section.as_str());
    // In the headings of backends hyphens and underscores are the same, as in the file.
    let spelled = |text: &str, section: &str| {
        if section.starts_with("backend.") {
            text.replace('_', "-") == section.replace('_', "-")
        } else {
            text == section
        }
    };
    let inside = |section: &&str| {
        word.split_at_checked(section.len())
            .is_some_and(|(start, rest)| {
                spelled(start, section) && (rest.is_empty() || rest.starts_with('.'))
            })
    };
    // `[workspaces]` has no fixed keys, so it is not among the settings.
    let sections = sections.chain([WORKSPACES]);
    match sections.filter(inside).max_by_key(|section| section.len()) {
        Some(section) => {
            let key = word[section.len()..].strip_prefix('.').map(str::to_owned);
            (section.to_owned(), key)
        }
        None => (word.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_gets_the_type_of_the_setting() {
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
        check(Some(json!("wal -i x")), "null", Value::Null);
    }

    #[test]
    fn values_that_the_daemon_does_not_use_are_reported() {
        let map = |value: Value| match value {
            Value::Object(map) => map,
            _ => panic!("an object"),
        };
        let check = |changes: Value, settings: Value| {
            in_effect("s", &map(changes), &settings).map_err(|error| error.to_string())
        };
        assert_eq!(
            check(json!({"a": 1.0, "b": null}), json!({"a": 1, "b": "x"})),
            Ok(())
        );
        let told = check(json!({"a": "loud"}), json!({"a": "info"})).unwrap_err();
        assert!(
            told.starts_with("murald: s.a cannot be \"loud\"; using \"info\""),
            "{told}"
        );
    }

    #[test]
    fn each_section_has_its_route_and_body() {
        #[track_caller]
        fn check(section: &str, place: &[&dyn std::fmt::Display], body: Value) {
            let section = Section::from_name(section, false);
            assert_eq!(section.place, RequestPath::new(place));
            assert_eq!(section.wrap(json!({"k": 1})), body);
            assert_eq!(section.unwrap(&body), json!({"k": 1}));
        }
        check("app", &[&"config", &"app"], json!({"k": 1}));
        check(
            "backend.awww",
            &[&"config", &"backends", &"awww"],
            json!({"k": 1}),
        );
        check("backend", &[&"config", &"backend"], json!({"k": 1}));
        assert_eq!(
            Section::from_name("backend", true).wrap(json!(1)),
            json!({"backend": 1})
        );
        let priorities = json!({"backend": {"auto_priorities": {"k": 1}}});
        check("backend.auto_priorities", &[&"config"], priorities);
    }
}
