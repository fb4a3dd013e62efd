//! TOML text: values to and from JSON, comments, and the file that the first start writes. Pure.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, Value};

use super::schema::{Key, Section, is_alike};

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
    let entries = table.iter().map(|(name, item)| (name.to_owned(), to_json(item)));
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
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(from_json).collect::<Option<Array>>()?.into(),
        Json::Object(entries) => {
            let entry = |(name, value)| Some((name, from_json(value)?));
            entries.iter().map(entry).collect::<Option<InlineTable>>()?.into()
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
    table.iter().map(|(key, _)| key).find(|key| is_alike(key, name))
}

/// The comments of a text in order, each from its `#` to the end of its line.
pub(super) fn scan_comments(text: &str) -> Vec<&str> {
    tokens(text).filter(|token| token.starts_with('#')).map(str::trim_end).collect()
}

/// A text in pieces, none empty: comments up to the end of their line, strings, and the text between.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = match rest.as_bytes().first()? {
            b'#' => rest.split('\n').next()?.trim_end_matches('\r').len(),
            b'"' | b'\'' => string_length(rest),
            _ => rest.find(['#', '"', '\'']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

pub(super) fn is_string(token: &str) -> bool {
    token.starts_with(['"', '\''])
}

/// The length of the string that a text begins with, quotes included.
fn string_length(token: &str) -> usize {
    let quote = &token[..1];
    let multiline = token.starts_with(&quote.repeat(3));
    let quotes = if multiline { quote.repeat(3) } else { quote.to_owned() };
    let mut at = quotes.len();
    while at < token.len() {
        let rest = &token[at..];
        if rest.starts_with(&quotes) {
            // Up to two more quotes belong to the text of a multi-line string.
            let more = rest[quotes.len()..].chars().take_while(|c| quote.starts_with(*c)).count();
            return at + quotes.len() + if multiline { more.min(2) } else { 0 };
        }
        let mut chars = rest.chars();
        let first = chars.next();
        at += first.map_or(0, char::len_utf8);
        if first == Some('\\') && quote == "\"" {
            at += chars.next().map_or(0, char::len_utf8);
        }
    }
    token.len()
}

/// The comments in and behind an item.
pub(super) fn comments_of(item: &Item) -> Vec<String> {
    let mut document = DocumentMut::new();
    document.insert("x", item.clone());
    to_strings(scan_comments(&document.to_string()))
}

/// The comments above a key.
pub(super) fn comments_above(table: &dyn TableLike, name: &str) -> Vec<String> {
    let prefix = table.key(name).and_then(|key| key.leaf_decor().prefix()?.as_str());
    to_strings(scan_comments(prefix.unwrap_or_default()))
}

/// Puts comments above a key if its table allows comments: [`keep_comments`] finds a place for the
/// others.
pub(super) fn put_comments_above(section: &mut Item, name: &str, comments: &[String]) {
    let inline = section.is_inline_table();
    let Some(table) = section.as_table_like_mut() else { return };
    if comments.is_empty() || inline || !table.get(name).is_some_and(Item::is_value) {
        return;
    }
    if let Some(mut key) = table.key_mut(name) {
        let decor = key.leaf_decor_mut();
        let prefix = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        // Above the existing prefix, because its last line may be the key's indentation.
        decor.set_prefix(format!("{}\n{prefix}", comments.join("\n")));
    }
}

/// The new text, with comments that only the old one has added at its end.
pub(super) fn keep_comments(old: &str, mut new: String) -> String {
    let before = scan_comments(old);
    if before == scan_comments(&new) {
        return new;
    }
    let mut there = to_strings(scan_comments(&new));
    for comment in before {
        match there.iter().position(|kept| kept == comment) {
            Some(at) => {
                there.swap_remove(at);
            }
            None => {
                if !new.is_empty() && !new.ends_with('\n') {
                    new.push('\n');
                }
                new.push_str(comment);
                new.push('\n');
            }
        }
    }
    new
}

fn to_strings(comments: Vec<&str>) -> Vec<String> {
    comments.into_iter().map(str::to_owned).collect()
}

const HEADER: &str = "\
# murald configuration. Changes apply as soon as you save the file, except [daemon], which needs a
# restart. Check it with `murald config check`; see murald.toml(5). Paths may use ~, $VAR and ${VAR}.
";

const CLIENTS: &str = "\
# The sections below are for graphical clients; the daemon stores them but does not use them.
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
    let words = matches!(key.rule, super::Rule::Words(_)).then(|| key.allowed()).flatten();
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    format!("# {}{words}", key.meaning.trim())
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
    fn comments_are_found_outside_strings() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(scan_comments(text), expected);
        }
        check("a = 1 # x \r\n#y", &["# x", "#y"]);
        check("a = \"#\\\"#\" # x", &["# x"]);
        check("a = '#\\' # x", &["# x"]);
        check("a = \"\"\"#\n\"#\" \\\"\"\"#\"\"\"\"\" # x", &["# x"]);
        check("a = '''#''''' # x", &["# x"]);
        check("a = \"\" # x", &["# x"]);
        check("'ä#' = \"ä\\ä#\" # ä", &["# ä"]);
        check("a = \"#", &[]);
    }

    #[test]
    fn lost_comments_are_kept_at_the_end() {
        assert_eq!(keep_comments("#a\n#a\n#b", "#a\nx=1".to_owned()), "#a\nx=1\n#a\n#b\n");
    }

    #[test]
    fn template_says_the_defaults() {
        let parsed = document::read(&template(), Path::new("/c.toml")).unwrap();
        assert_eq!(parsed.missing, []);
        assert_eq!(parsed.config.to_json(), Config::default().to_json());
    }

    #[test]
    fn template_says_once_where_the_clients_sections_begin() {
        let text = template();
        let (daemons, clients) = text.split_once(CLIENTS).unwrap();
        assert!(!clients.contains(CLIENTS));
        for section in Section::ALL {
            let heading = format!("\n[{}]\n", section.heading());
            let part = if section.is_client_s() { clients } else { daemons };
            assert!(part.contains(&heading) || part.starts_with(heading.trim_start()), "{heading}");
        }
    }
}
