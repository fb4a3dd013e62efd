//! TOML text: values to and from JSON, comments, and the file that the first start writes. Pure.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, InlineTable, Item, RawString, TableLike, Value};

use super::schema::{Key, Rule, Section, ValueType, is_alike};

/// A value of the file as JSON. Dates become strings; numbers that are not finite become null.
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
    let entries = table
        .iter()
        .map(|(name, item)| (name.to_owned(), to_json(item)));
    Json::Object(entries.collect::<Map<_, _>>())
}

/// A JSON value as TOML. `None` for null and for integers beyond 64 bits, which TOML cannot hold.
pub(super) fn from_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) if number.is_u64() => number.as_i64()?.into(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        // On one line: in a multi-line string, the line ends of the file would become part of the
        // value.
        Json::String(text) if text.contains('\n') => {
            json.to_string().replace('\x7f', "\\u007f").parse().ok()?
        }
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items
            .iter()
            .map(from_json)
            .collect::<Option<Array>>()?
            .into(),
        Json::Object(entries) => {
            let entry = |(name, value)| Some((name, from_json(value)?));
            entries
                .iter()
                .map(entry)
                .collect::<Option<InlineTable>>()?
                .into()
        }
    })
}

/// The type of a value of the file, for messages.
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

/// The name under which a table holds a key; `-` and `_` are the same if `alike`.
pub(super) fn find<'a>(table: &'a dyn TableLike, name: &str, alike: bool) -> Option<&'a str> {
    let exact = table.get_key_value(name).map(|(key, _)| key.get());
    if exact.is_some() || !alike {
        // The client's tables may be long, and this is called for each of their keys.
        return exact;
    }
    table
        .iter()
        .map(|(key, _)| key)
        .find(|key| is_alike(key, name))
}

/// The comments between the items of a list.
pub(super) fn comments_in(value: &Value) -> Vec<String> {
    let Some(list) = value.as_array() else {
        return Vec::new();
    };
    let around = list
        .iter()
        .flat_map(|item| [item.decor().prefix(), item.decor().suffix()]);
    let all = around
        .flatten()
        .chain([list.trailing()])
        .filter_map(RawString::as_str);
    let lines = all.flat_map(str::lines).map(str::trim);
    lines
        .filter(|line| line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Puts comments above a key if its table allows comments.
pub(super) fn put_comments_above(section: &mut Item, name: &str, comments: &[String]) {
    let inline = section.is_inline_table();
    let Some(table) = section.as_table_like_mut() else {
        return;
    };
    if comments.is_empty() || inline || !table.get(name).is_some_and(Item::is_value) {
        return;
    }
    if let Some(mut key) = table.key_mut(name) {
        let decor = key.leaf_decor_mut();
        let prefix = decor
            .prefix()
            .and_then(|prefix| prefix.as_str())
            .unwrap_or_default();
        // Above the existing prefix, because its last line may be the key's indentation.
        decor.set_prefix(format!("{}\n{prefix}", comments.join("\n")));
    }
}

const HEADER: &str = "\
# murald configuration. Changes apply as soon as you save the file, except [daemon], which needs a
# restart. Check it with `murald config check`; see murald.toml(5). Paths may use ~, $VAR and ${VAR}.
";

const CLIENTS: &str = "\
# The sections below are for graphical clients; the daemon stores them but does not use them.
";

const WORKSPACES: &str = "\
# Wallpapers of workspaces in sway, i3 and Hyprland: an image, or \"playlist:NAME\"
# \"1:web\" = \"lake\"
";

pub(super) fn template() -> String {
    let mut text = HEADER.to_owned();
    let mut clients = false;
    for section in Section::ALL {
        text.push('\n');
        if section.is_client_s() && !clients {
            clients = true;
            text += CLIENTS;
        }
        text += &format!("[{}]\n", section.heading());
        if section == Section::Workspaces {
            text += WORKSPACES;
        }
        for key in section.keys() {
            text += &key_lines(key);
        }
    }
    text
}

fn key_lines(key: &Key) -> String {
    let about = describe_key(key);
    match key.default.to_json().as_ref().and_then(from_json) {
        Some(value) => format!("{about}\n{} = {value}\n", key.name),
        None => format!("{about}\n{}\n", placeholder(key)),
    }
}

/// The comment above a key.
pub(super) fn describe_key(key: &Key) -> String {
    let about = format!("# {}", key.meaning.trim());
    let label = match (key.rule, key.kind) {
        (Rule::Words(_), ValueType::List) => "Each is one of",
        (Rule::Words(_), _) => "One of",
        _ => return about,
    };
    format!("{about}\n# {label}: {}", key.allowed().unwrap_or_default())
}

/// The placeholder comment of a key without default.
pub(super) fn placeholder(key: &Key) -> String {
    format!("# {} =", key.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, document};

    #[test]
    fn template_says_the_defaults() {
        let parsed = document::read(&template(), Path::new("/c.toml")).unwrap();
        assert_eq!(parsed.missing, []);
        assert_eq!(parsed.config.to_json(), Config::default().to_json());
    }

    #[test]
    fn template_lists_allowed_words_on_a_line_of_their_own() {
        let text = template();
        let scaling =
            "\n# How to scale the image\n# One of: stretch, fit, fill, center, tile\nfit_mode =";
        assert!(text.contains(scaling));
        assert!(text.contains("\n# For videos\n# Each is one of: awww, feh, "));
        let long: Vec<&str> = text.lines().filter(|line| line.len() > 105).collect();
        assert!(long.len() <= 1, "{long:#?}");
    }

    #[test]
    fn template_says_once_where_the_clients_sections_begin() {
        let text = template();
        let (daemons, clients) = text.split_once(CLIENTS).unwrap();
        assert!(!clients.contains(CLIENTS));
        for section in Section::ALL {
            let heading = format!("\n[{}]\n", section.heading());
            let part = if section.is_client_s() {
                clients
            } else {
                daemons
            };
            assert!(
                part.contains(&heading) || part.starts_with(heading.trim_start()),
                "{heading}"
            );
        }
    }
}
