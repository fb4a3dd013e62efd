//! Checks the values that a user sets for the declared properties of a web package. Pure.
//!
//! A property is an object with `type`, `default` (or `value`), `min`, `max` and `options`, or just its
//! default value. The default is always allowed; if the type is unknown, a value must be of the
//! default's type.

use serde_json::{Map, Value};

/// The maximum size of a package's declarations, and of its overrides, in bytes of JSON. A page of
/// the gallery may carry two hundred of each.
pub(super) const SIZE_MAX: usize = 64 << 10;

/// An override that the package does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadOverride {
    pub(crate) key: String,
    /// A clause without a full stop, such as "must be a number, not []".
    pub(crate) why: String,
}

/// Fails with the first override that is not allowed.
pub(crate) fn check(
    declared: &Map<String, Value>,
    overrides: &Map<String, Value>,
) -> Result<(), BadOverride> {
    overrides.iter().try_for_each(|(key, value)| {
        let checked = match declared.get(key) {
            Some(property) => fits(property, value),
            None => Err("the package does not declare it".to_owned()),
        };
        checked.map_err(|why| BadOverride {
            key: key.clone(),
            why,
        })
    })
}

/// The overrides of a manifest that are allowed, and why the others are not.
pub(super) fn allowed(
    declared: &Map<String, Value>,
    overrides: &Value,
) -> (Map<String, Value>, Vec<BadOverride>) {
    let bad = |key: &str, why: &str| BadOverride {
        key: key.to_owned(),
        why: why.to_owned(),
    };
    let (mut kept, mut refused, mut size) = (Map::new(), Vec::new(), 0);
    let Some(overrides) = overrides.as_object() else {
        return (
            kept,
            vec![bad("wallpaper_config_overrides", "must be an object")],
        );
    };
    for (key, value) in overrides {
        let one = Map::from_iter([(key.clone(), value.clone())]);
        size += key.len() + value.to_string().len();
        match check(declared, &one) {
            Ok(()) if size <= SIZE_MAX => kept.extend(one),
            Ok(()) => refused.push(bad(key, "the overrides exceed 64 KiB in all")),
            Err(bad) => refused.push(bad),
        }
    }
    (kept, refused)
}

/// The default of a property.
fn default(property: &Value) -> Option<&Value> {
    let declares = |key: &&str| property.get(*key).is_some();
    if !["type", "default", "value"].iter().any(declares) {
        return Some(property);
    }
    property.get("default").or_else(|| property.get("value"))
}

fn fits(property: &Value, value: &Value) -> Result<(), String> {
    let default = default(property);
    if default == Some(value) {
        return Ok(());
    }
    let kind = property
        .get("type")
        .and_then(Value::as_str)
        .map(str::to_lowercase);
    let expected = match kind.as_deref() {
        Some("bool" | "boolean") => (value.is_boolean(), "true or false"),
        Some("int" | "integer") => (is_whole(value), "an integer"),
        Some("number" | "float" | "slider" | "range") => (value.is_number(), "a number"),
        Some("string" | "text" | "textinput" | "color" | "colour" | "file" | "directory") => {
            (value.is_string(), "a string")
        }
        Some("combo" | "select" | "enum" | "choice") => return choice(property, value),
        _ => like(default, value),
    };
    match expected {
        (true, _) => within(property, value),
        (false, expected) => Err(format!("must be {expected}, not {value}")),
    }
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Whether a value is of the default's type, and the name of that type. A default of null allows any.
fn like(default: Option<&Value>, value: &Value) -> (bool, &'static str) {
    match default {
        None | Some(Value::Null) => (true, ""),
        Some(Value::Bool(_)) => (value.is_boolean(), "true or false"),
        Some(Value::Number(_)) => (value.is_number(), "a number"),
        Some(Value::String(_)) => (value.is_string(), "a string"),
        Some(Value::Array(_)) => (value.is_array(), "a list"),
        Some(Value::Object(_)) => (value.is_object(), "an object"),
    }
}

/// Checks that a value is one of `options`, which are values or objects with a `value`. Without
/// `options`, any string or number is allowed.
fn choice(property: &Value, value: &Value) -> Result<(), String> {
    let Some(options) = property.get("options").and_then(Value::as_array) else {
        let plain = value.is_string() || value.is_number();
        return if plain {
            Ok(())
        } else {
            Err(format!("must be a string or a number, not {value}"))
        };
    };
    let options = options
        .iter()
        .map(|option| option.get("value").unwrap_or(option));
    if options.clone().any(|option| option == value) {
        return Ok(());
    }
    let allowed: Vec<String> = options.map(Value::to_string).collect();
    Err(format!(
        "must be one of {}, not {value}",
        allowed.join(", ")
    ))
}

fn within(property: &Value, value: &Value) -> Result<(), String> {
    let bound = |key| property.get(key).and_then(Value::as_f64);
    let Some(number) = value.as_f64() else {
        return Ok(());
    };
    match (bound("min"), bound("max")) {
        (Some(min), _) if number < min => Err(format!("must be {min} or more, not {value}")),
        (_, Some(max)) if number > max => Err(format!("must be {max} or less, not {value}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn overrides_are_checked_against_their_declarations() {
        let declared = map(json!({
            "speed": { "type": "number", "default": 1, "min": 0.5, "max": 4 },
            "count": { "type": "Integer", "default": null },
            "rain": { "type": "bool", "default": true },
            "sky": { "type": "color", "default": "#000000" },
            "size": { "type": "combo", "value": "s", "options": [{ "value": "s" }, { "value": "l" }] },
            "mood": { "type": "enum", "options": ["calm", 2] },
            "plain": 7,
            "list": { "type": "points", "default": [1] },
            "free": { "type": "points" },
            "nested": { "x": 1 },
        }));
        let good = |key: &str, value: Value| {
            let overrides = Map::from_iter([(key.to_owned(), value)]);
            assert_eq!(check(&declared, &overrides), Ok(()), "{key}");
        };
        let bad = |key: &str, value: Value, why: &str| {
            let overrides = Map::from_iter([(key.to_owned(), value)]);
            let found = check(&declared, &overrides).unwrap_err();
            assert_eq!((found.key.as_str(), found.why.as_str()), (key, why));
        };
        good("speed", json!(0.5));
        good("speed", json!(4));
        bad("speed", json!(4.5), "must be 4 or less, not 4.5");
        bad("speed", json!(0), "must be 0.5 or more, not 0");
        bad("speed", json!("2"), "must be a number, not \"2\"");
        good("count", json!(3.0));
        good("count", json!(null));
        bad("count", json!(3.5), "must be an integer, not 3.5");
        good("rain", json!(false));
        bad("rain", json!(1), "must be true or false, not 1");
        good("sky", json!("#ffffff"));
        bad("sky", json!(null), "must be a string, not null");
        good("size", json!("l"));
        bad(
            "size",
            json!("xl"),
            "must be one of \"s\", \"l\", not \"xl\"",
        );
        good("mood", json!(2));
        bad("mood", json!("2"), "must be one of \"calm\", 2, not \"2\"");
        good("plain", json!(9));
        bad("plain", json!([]), "must be a number, not []");
        good("list", json!([]));
        bad("list", json!({}), "must be a list, not {}");
        good("free", json!({}));
        good("nested", json!({ "x": 2 }));
        bad("nested", json!(2), "must be an object, not 2");
        bad("Speed", json!(1), "the package does not declare it");
    }

    #[test]
    fn forbidden_overrides_of_a_manifest_are_ignored() {
        let declared = map(json!({ "a": 1, "b": true, "text": "" }));
        let (kept, refused) = allowed(&declared, &json!({ "a": 2, "b": 3, "c": 4 }));
        assert_eq!(Value::Object(kept), json!({ "a": 2 }));
        let keys: Vec<&str> = refused.iter().map(|bad| bad.key.as_str()).collect();
        assert_eq!(keys, ["b", "c"]);
        let (kept, refused) = allowed(&declared, &json!({ "text": "x".repeat(SIZE_MAX) }));
        assert_eq!((kept.len(), refused.len()), (0, 1));
        let (kept, refused) = allowed(&declared, &json!(["a"]));
        assert_eq!(
            (kept.len(), refused[0].key.as_str()),
            (0, "wallpaper_config_overrides")
        );
    }
}
