//! A change of the configuration that a command line asks for, and whether the daemon uses it.

use serde_json::{Map, Value};

use super::super::Error;
use super::super::call::Call;
use super::super::connection::Connection;
use super::super::error::Exit;
use super::config_section::{settings, split};

/// What a line says: a section, and what is to be changed in it.
pub(super) fn wish(
    call: &Call,
    connection: &Connection,
) -> Result<(String, Map<String, Value>), Error> {
    let word = call.word("SECTION[.KEY]");
    let (section, key) = split(call, &word);
    match (key, call.text("KEY"), call.text("VALUE")) {
        (None, Some(key), Some(value)) | (Some(_), Some(key), Some(value)) if section == word => {
            Ok((section.clone(), one_setting(connection, &section, key, value)?))
        }
        (Some(key), Some(value), None) => {
            Ok((section.clone(), one_setting(connection, &section, &key, value)?))
        }
        (None, Some(several), None) => {
            let changes = changes(several);
            // Of what is no section of the API, the daemon says so.
            if (section == "backend" || changes.is_err())
                && let Err(error) = settings(connection, &section, false)
                && error.status() == Some(404)
            {
                return Err(error);
            }
            Ok((section, changes?))
        }
        _ => Err(Error::usage("what is to be set?")
            .hint("usage: murald config set SECTION.KEY VALUE, or SECTION '{\"KEY\": VALUE}'")),
    }
}

/// The daemon keeps some values that it cannot use, and goes on with the default.
pub(super) fn in_effect(
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

/// The word as the type that the setting has: `80` is a number for one and a text for another. `null` is
/// none for all.
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
        Some(Value::String(_)) if word != "null" => word.into(),
        _ => serde_json::from_str(word).unwrap_or_else(|_| word.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        check(Some(json!("wal -i x")), "null", Value::Null);
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
