//! Edits the file's text and keeps its comments and order. Pure.

use serde_json::Value as Json;
use toml_edit::{Document, DocumentMut, InlineTable, Item, Table, TableLike};

use super::schema::{Section, Value};
use super::toml;

/// One key to set, or to remove.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edit {
    pub(super) section: Section,
    pub(super) key: String,
    /// A value that TOML can hold; `None` removes the key.
    pub(super) value: Option<Json>,
}

/// The text with the edits made. Lines with the same value already stay as they are. The text must be a
/// configuration that could be read.
pub(super) fn apply(text: &str, edits: &[Edit]) -> Result<String, toml_edit::TomlError> {
    lay(text, edits, |_| Vec::new())
}

/// The text with missing keys added, each below its comment from the generated file.
pub(super) fn complete(text: &str, missing: &[Edit]) -> Result<String, toml_edit::TomlError> {
    lay(text, missing, |edit| {
        edit.section
            .key(&edit.key)
            .map(toml::describe_key)
            .into_iter()
            .collect()
    })
}

/// `about` gives the comments of a new key.
fn lay(
    text: &str,
    edits: &[Edit],
    about: impl Fn(&Edit) -> Vec<String>,
) -> Result<String, toml_edit::TomlError> {
    let in_place = |text: String, edit: &Edit| {
        let edited = match edit.value {
            Some(_) => uncommented(&text, edit),
            None => without(&text, edit),
        };
        edited.unwrap_or(text)
    };
    let text = &edits.iter().fold(text.to_owned(), in_place);
    let mut document: DocumentMut = text.parse()?;
    // `toml_edit` puts the comments of a document without keys at its end: here they are its head.
    let head = if document.is_empty() { text } else { "" };
    if !head.is_empty() {
        document = DocumentMut::new();
    }
    let mut changed = false;
    for edit @ Edit {
        section,
        key,
        value,
    } in edits
    {
        let item = section_mut(document.as_item_mut(), *section);
        let table = item.as_table_like().expect("a section is a table");
        let name = toml::find(table, key, section.is_backend_options())
            .unwrap_or(key)
            .to_owned();
        changed |= match value {
            None => item
                .as_table_like_mut()
                .is_some_and(|table| table.remove(&name).is_some()),
            Some(value) => set(item, &name, value, || about(edit)),
        };
    }
    // Return the old text if nothing changed, because `toml_edit` may have normalised it.
    if !changed {
        return Ok(text.to_owned());
    }
    let gap = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Ok(like(text, format!("{head}{gap}{document}")))
}

/// Replaces the placeholder comment of a key without default, or a user who fills in the comment later
/// would have the key twice.
fn uncommented(text: &str, edit: &Edit) -> Option<String> {
    let key = edit
        .section
        .key(&edit.key)
        .filter(|key| key.default == Value::Unset)?;
    let value = edit.value.as_ref()?;
    let placeholder = toml::placeholder(key);
    let line = format!("{} = {}", key.name, toml::from_json(value)?);
    let mut start = 0;
    let with_line = |found: &str| {
        let end = start + found.trim_end().len();
        let replaced = || format!("{}{line}{}", &text[..start], &text[end..]);
        let replaced = (found.trim_end() == placeholder).then(replaced);
        start += found.len();
        replaced
    };
    // Another section may have a key of this name, and so a comment like this.
    let says_so = |text: &String| {
        let Ok(mut document) = text.parse::<DocumentMut>() else {
            return false;
        };
        let section = section_mut(document.as_item_mut(), edit.section);
        section
            .get(key.name)
            .is_some_and(|item| toml::to_json(item) == *value)
    };
    text.split_inclusive('\n')
        .filter_map(with_line)
        .find(says_so)
}

/// The text without the line of a key, whose comments stay. `None` if the value is a table, or if
/// the key is in an inline table.
fn without(text: &str, edit: &Edit) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let mut table: &dyn TableLike = document.as_table();
    for (depth, name) in edit.section.path().enumerate() {
        let item = table.get(toml::find(table, name, depth > 0)?)?;
        table = item.as_table()?;
    }
    let name = toml::find(table, &edit.key, edit.section.is_backend_options())?;
    let (key, item) = table.get_key_value(name)?;
    let (key, value) = (key.span()?, item.as_value()?.span()?);
    // The key may follow the dotted names of its tables.
    let before = text[..key.start]
        .rfind('\n')
        .map_or("", |end| &text[..=end]);
    let line = &text[value.end..];
    let after = line.find('\n').map_or(line.len(), |end| end + 1);
    let comment = line[..after].trim_start_matches([' ', '\t', '\r', '\n']);
    Some(format!("{before}{comment}{}", &line[after..]))
}

/// The new text, with the line ends of the old one: `toml_edit` knows only `\n`.
fn like(old: &str, new: String) -> String {
    let is_dos = old.contains('\n') && old.matches('\n').count() == old.matches("\r\n").count();
    if is_dos {
        new.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        new
    }
}

/// A section's table; creates it and its parents if missing.
fn section_mut(root: &mut Item, section: Section) -> &mut Item {
    section
        .path()
        .enumerate()
        .fold(root, |item, (depth, name)| {
            // An inline table cannot hold a table with a heading.
            let inline = item.is_inline_table();
            let table = item.as_table_like_mut().expect("a section is a table");
            let name = toml::find(table, name, depth > 0)
                .unwrap_or(name)
                .to_owned();
            if !table.contains_key(&name) {
                let new = if inline {
                    toml_edit::value(InlineTable::new())
                } else {
                    Item::Table(Table::new())
                };
                table.insert(&name, new);
            }
            table.get_mut(&name).expect("it was made if it was missing")
        })
}

/// Sets a key; returns whether that changed anything.
fn set(section: &mut Item, name: &str, json: &Json, about: impl Fn() -> Vec<String>) -> bool {
    let Some(mut value) = toml::from_json(json) else {
        return false;
    };
    let table = section.as_table_like_mut().expect("a section is a table");
    let inner = match table.get_mut(name) {
        Some(old) if toml::to_json(old) == *json => return false,
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            let old = std::mem::replace(old, value);
            toml::comments_in(&old)
        }
        other => {
            // A client may replace its own table with a value.
            let inner = if other.is_none() { about() } else { Vec::new() };
            table.remove(name);
            table.insert(name, Item::Value(value));
            inner
        }
    };
    toml::put_comments_above(section, name, &inner);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName;
    use serde_json::json;

    const AWWW: Section = Section::BackendOptions(BackendName::Awww);

    #[track_caller]
    fn check(text: &str, section: Section, key: &str, value: Json, expected: &str) {
        let value = (!value.is_null()).then_some(value);
        let edit = Edit {
            section,
            key: key.to_owned(),
            value,
        };
        assert_eq!(apply(text, &[edit]).unwrap(), expected);
    }

    #[test]
    fn overlay_changes_values_in_place() {
        check(
            "# top\n[app] # mine\n  theme = 'dark' # why\nsort_by=\"name\"\n# end\n",
            Section::App,
            "theme",
            json!("light"),
            "# top\n[app] # mine\n  theme = \"light\" # why\nsort_by=\"name\"\n# end\n",
        );
        let same = "app.images_per_page = 0x32";
        check(same, Section::App, "images_per_page", json!(50), same);
        check(
            "[backend.awww]\nfill-color = '000000'\n",
            AWWW,
            "fill_color",
            json!("ffffff"),
            "[backend.awww]\nfill-color = \"ffffff\"\n",
        );
        check(
            "[backend.wal_qt]\nx = 1\n",
            Section::BackendOptions(BackendName::WalQt),
            "x",
            json!(2),
            "[backend.wal_qt]\nx = 2\n",
        );
    }

    #[test]
    fn integers_too_large_for_toml_are_refused() {
        assert!(toml::from_json(&json!(u64::MAX)).is_none());
        let greatest = toml::from_json(&json!(i64::MAX)).unwrap();
        assert_eq!(greatest.as_integer(), Some(i64::MAX));
    }

    #[test]
    fn dos_line_ends_are_kept() {
        check(
            "# a\r\n[app] # b\r\ntheme = 'dark' # c\r\nlines = '''x\r\ny'''\r\n",
            Section::App,
            "theme",
            json!("light"),
            "# a\r\n[app] # b\r\ntheme = \"light\" # c\r\nlines = '''x\r\ny'''\r\n",
        );
        // One different line end, and the file does not count as a DOS file.
        check(
            "[app]\r\n# a\nx = 1\r\n",
            Section::App,
            "x",
            json!(2),
            "[app]\n# a\nx = 2\n",
        );
    }

    #[test]
    fn value_with_several_lines_survives_being_written() {
        let value = json!("one\ntwo\r\nthree");
        let edit = Edit {
            section: Section::App,
            key: "x".into(),
            value: Some(value.clone()),
        };
        let text = apply("[app]\r\n", &[edit]).unwrap();
        let document: DocumentMut = text.parse().unwrap();
        assert_eq!(toml::to_json(&document["app"]["x"]), value, "{text:?}");
    }

    #[test]
    fn overlay_adds_missing_keys() {
        check(
            "",
            Section::App,
            "theme",
            json!("x"),
            "[app]\ntheme = \"x\"\n",
        );
        check(
            "# a",
            Section::App,
            "theme",
            json!("x"),
            "# a\n[app]\ntheme = \"x\"\n",
        );
        check(
            "[backend.feh]\nmode = 'max'\n",
            Section::Backend,
            "type",
            json!("feh"),
            "[backend]\ntype = \"feh\"\n[backend.feh]\nmode = 'max'\n",
        );
        check(
            "backend = { type = 'feh' }\n",
            Section::BackendOptions(BackendName::Feh),
            "mode",
            json!("max"),
            "backend = { type = 'feh' , feh = { mode = \"max\" } }\n",
        );
        check(
            "backend.type = 'feh'\n",
            AWWW,
            "resize",
            json!("fit"),
            "backend.type = 'feh'\n\n[backend.awww]\nresize = \"fit\"\n",
        );
        // Only names of backends may be spelled with a hyphen.
        check(
            "[remote-gallery]\nx = 1\n",
            Section::RemoteGallery,
            "api_key",
            json!("k"),
            "[remote-gallery]\nx = 1\n\n[remote_gallery]\napi_key = \"k\"\n",
        );
    }

    #[test]
    fn missing_keys_are_added_with_their_comments() {
        #[track_caller]
        fn check(text: &str, section: Section, key: &str, value: Json, expected: &str) {
            let edit = Edit {
                section,
                key: key.to_owned(),
                value: Some(value),
            };
            let about = toml::describe_key(section.key(key).unwrap());
            let found = complete(text, &[edit]).unwrap();
            assert_eq!(found, expected.replace("ABOUT", &about));
        }
        let theme = |text, expected| check(text, Section::App, "theme", json!("x"), expected);
        theme(
            "[app]\nmine = 1\n",
            "[app]\nmine = 1\nABOUT\ntheme = \"x\"\n",
        );
        theme("", "[app]\nABOUT\ntheme = \"x\"\n");
        // An inline table cannot hold the comment.
        let kind = |text, expected| check(text, Section::Backend, "type", json!("feh"), expected);
        kind(
            "backend = { x = 1 }\n",
            "backend = { x = 1 , type = \"feh\" }\n",
        );
        kind(
            "backend.x = 1\n",
            "backend.x = 1\nABOUT\nbackend.type = \"feh\"\n",
        );
    }

    #[test]
    fn key_without_default_replaces_its_placeholder_comment() {
        #[track_caller]
        fn set(text: &str, section: Section, key: &str) {
            let placeholder = format!("\n# {key} =\n");
            assert_eq!(text.matches(&placeholder).count(), 1, "{text}");
            let expected = text.replace(&placeholder, &format!("\n{key} = 10.5\n"));
            check(text, section, key, json!(10.5), &expected);
        }
        let text = toml::template();
        set(&text, Section::Location, "latitude");
        set(&text, Section::Location, "longitude");
        set(&text, Section::Backend, "transition_duration_seconds");
        // Only the placeholder of the section itself is replaced, and only if it is unchanged.
        check(
            "[app]\n# latitude =\n[location]\nx = \"\"\"\n# latitude =\"\"\"\n# latitude = 9\n",
            Section::Location,
            "latitude",
            json!(1),
            "[app]\n# latitude =\n[location]\nx = \"\"\"\n# latitude =\"\"\"\nlatitude = 1\n# latitude = 9\n",
        );
        let twice = "[location]\nlatitude = 2\n# latitude =\n";
        check(twice, Section::Location, "latitude", json!(2), twice);
    }

    #[test]
    fn comments_inside_a_list_move_above_it() {
        check(
            "[backend.auto_priorities]\nweb = [ # one\n  'wal-qt', # '#' two\n] # three\n",
            Section::AutoPriorities,
            "web",
            json!([]),
            "[backend.auto_priorities]\n# one\n# '#' two\nweb = [] # three\n",
        );
    }

    #[test]
    fn comments_of_a_removed_key_stay() {
        #[track_caller]
        fn removed(text: &str, expected: &str) {
            check(text, Section::App, "x", json!(null), expected);
        }
        removed("[app]\n# a\nx = 1 # b\ny = 2\n", "[app]\n# a\n# b\ny = 2\n");
        removed("[app]\n# a\nx = 1 # b\n", "[app]\n# a\n# b\n");
        removed("[app]\nx = [\n1 ]\r\n[app.mine]\n", "[app]\n[app.mine]\n");
        removed("app.y = 1\napp.x = 1", "app.y = 1\n");
        removed("app = { x = 1, y = 2 }\n", "app = { y = 2 }\n");
        removed("[app]\n[app.x]\ny = 1\n", "[app]\n");
        removed("[app]\n", "[app]\n");
    }
}
