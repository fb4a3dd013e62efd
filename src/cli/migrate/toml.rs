//! Reads TOML files of other programs.

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use super::broken::Broken;

pub(super) fn read(text: &str) -> Result<DocumentMut, Broken> {
    text.parse::<DocumentMut>().map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        Broken::at(text, offset, error.message())
    })
}

/// A value that a setting of ours can have: none for tables and dates.
pub(super) fn value(item: &Item) -> Option<Value> {
    let of = |value: &toml_edit::Value| match value {
        toml_edit::Value::String(text) => Some(Value::from(text.value().as_str())),
        toml_edit::Value::Integer(number) => Some((*number.value()).into()),
        toml_edit::Value::Float(number) => Some((*number.value()).into()),
        toml_edit::Value::Boolean(flag) => Some((*flag.value()).into()),
        _ => None,
    };
    match item.as_value()? {
        toml_edit::Value::Array(items) => items.iter().map(of).collect(),
        value => of(value),
    }
}

/// A whole or broken number.
pub(super) fn number(item: &Item) -> Option<f64> {
    value(item)?.as_f64()
}
