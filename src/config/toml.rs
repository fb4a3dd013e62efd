//! Between TOML and JSON: values as the file and as the API hold them.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, InlineTable, Item, TableLike, Value};

use super::schema::is_alike;

/// What a value of the file is in the API. Dates become strings; numbers that are not finite
/// become null, which TOML has no other use for.
pub(super) fn to_json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => table_to_json(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| table_to_json(table)).collect(),
    }
}

fn value_to_json(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Datetime(time) => time.value().to_string().into(),
        Value::Array(items) => items.iter().map(value_to_json).collect(),
        Value::InlineTable(table) => table_to_json(table),
    }
}

fn table_to_json(table: &dyn TableLike) -> Json {
    let entries = table.iter().map(|(name, item)| (name.to_owned(), to_json(item)));
    Json::Object(entries.collect::<Map<_, _>>())
}

/// `None` for what TOML cannot hold: null, and whole numbers beyond 64 bits.
pub(super) fn from_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) if number.is_u64() => number.as_i64()?.into(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(from_json).collect::<Option<Array>>()?.into(),
        Json::Object(entries) => {
            let entry = |(name, value)| Some((name, from_json(value)?));
            entries.iter().map(entry).collect::<Option<InlineTable>>()?.into()
        }
    })
}

/// What a value of the file is, for messages.
pub(super) fn type_name(item: &Item) -> &'static str {
    match item {
        Item::None => "nothing",
        Item::Table(_) => "a table",
        Item::ArrayOfTables(_) => "a list of tables",
        Item::Value(value) => match value {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number with a fraction",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list of something else",
            Value::InlineTable(_) => "a table",
        },
    }
}

/// The name under which a table holds a key; `-` and `_` are the same where `alike`.
pub(super) fn find<'a>(table: &'a dyn TableLike, name: &str, alike: bool) -> Option<&'a str> {
    let exact = table.get_key_value(name).map(|(key, _)| key.get());
    if exact.is_some() || !alike {
        // Tables of the client may be long, and are asked for each of their keys.
        return exact;
    }
    table.iter().map(|(key, _)| key).find(|key| is_alike(key, name))
}
