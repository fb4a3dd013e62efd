//! Parses the values of a command line into the JSON that a request carries.
//!
//! In a list of images or files, `-` stands for those on standard input, one a line, or separated by
//! NUL with `-0`.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use super::call::Call;
use super::error::Exit;
use super::verb::{Kind, NULL, Verb};
use super::{Error, table};
use crate::color;
use crate::paths::from_uri;
use crate::wire::{DayTime, INTERVALS, Position, Tone};

/// Parses the word that was given for `name`.
pub(super) fn read_value(name: &str, kind: Kind, word: &OsStr) -> Result<Value, Error> {
    let text = utf8(name, word)?;
    let wrong = |wanted: &str| Error::usage(format!("{name} must be {wanted}, not {text:?}"));
    let is_file = matches!(kind, Kind::File | Kind::Directory | Kind::Item);
    if (is_file || kind.is_reference())
        && ["http://", "https://"]
            .iter()
            .any(|start| text.starts_with(start))
    {
        return Err(Error::usage(format!(
            "cannot load {text}: murald does not use the network"
        ))
        .hint("download the picture, then name its file"));
    }
    match kind {
        Kind::Text | Kind::Section | Kind::Setting | Kind::SettingValue | Kind::Template => {
            Ok(text.into())
        }
        Kind::Name | Kind::Monitor | Kind::Workspace | Kind::Backend | Kind::Theme
            if text.is_empty() =>
        {
            Err(wrong("a name"))
        }
        Kind::Name | Kind::Monitor | Kind::Workspace | Kind::Theme => Ok(text.into()),
        // Accepts the name of the backend's section, too.
        Kind::Backend => Ok(backend(text.strip_prefix("backend.").unwrap_or(&text)).into()),
        Kind::File | Kind::Directory if text.is_empty() => Err(wrong("a path")),
        Kind::File | Kind::Directory => path(name, text),
        Kind::Json => serde_json::from_str(&text)
            .map_err(|error| Error::usage(format!("{name} is not JSON: {error}"))),
        Kind::Count(least, most) => {
            let number = text.parse().ok();
            let fitting = number.filter(|number| (least..=most).contains(number));
            fitting.map(Value::from).ok_or_else(|| match most {
                u64::MAX => wrong(&format!("an integer of at least {least}")),
                _ => wrong(&format!("an integer from {least} to {most}")),
            })
        }
        Kind::Number => number(&text)
            .map(Value::from)
            .ok_or_else(|| wrong("a number of at least 0")),
        Kind::Span => span(&text)
            .map(Value::from)
            .ok_or_else(|| wrong("1 second to 365 days, such as 90, 10m, 2h, 1d")),
        Kind::Item => item(&text).ok_or_else(|| wrong("an image, or IMAGE@HH:MM")),
        Kind::Image
        | Kind::Picture
        | Kind::PictureOrPlaylist
        | Kind::Folder
        | Kind::FolderOrRoot
        | Kind::Playlist => reference(&text).ok_or_else(|| wrong("a name or an ID (1 or more)")),
        Kind::Position if text == "default" => Ok(Value::Null),
        Kind::Position => text
            .parse::<Position>()
            .map(|one| one.to_string().into())
            .map_err(wrong),
        Kind::Hues => hues(&text).ok_or_else(|| wrong(HUES)),
        Kind::Words(words) => one_of(name, &text, words).map(|()| text.into()),
        Kind::List(words) => list(name, &text, words),
        Kind::Tags => match list(name, &text, &[])? {
            Value::Array(tags) if tags.is_empty() => Err(wrong("one or more tags")),
            tags => Ok(tags),
        },
        Kind::Colors => {
            let is_color = |item: &str| color::parse(item).is_some();
            all_fit(&text, is_color).ok_or_else(|| wrong("#rrggbb, #rgb or a CSS colour name"))
        }
        Kind::ColorsNear => all_fit(&text, is_near).ok_or_else(|| wrong(NEAR)),
    }
}

/// The name of a backend. awww was called swww before.
pub(super) fn backend(name: &str) -> &str {
    if name == "swww" { "awww" } else { name }
}

/// Parses a path or a `file://` URI.
fn path(name: &str, word: String) -> Result<Value, Error> {
    match from_uri(&word) {
        Some(path) => utf8(name, path.as_os_str()).map(Value::from),
        None => Ok(word.into()),
    }
}

/// The word as UTF-8, which JSON requires.
pub(super) fn utf8(name: &str, word: &OsStr) -> Result<String, Error> {
    word.to_str().map(str::to_owned).ok_or_else(|| {
        Error::usage(format!("{name} is not UTF-8: {}", word.to_string_lossy()))
            .hint("murald supports only UTF-8: rename the file")
    })
}

pub(super) fn one_of(name: &str, word: &str, words: &[&str]) -> Result<(), Error> {
    if words.contains(&word) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{name} must be one of {}, not {word:?}",
        words.join(", ")
    )))
}

fn list(name: &str, text: &str, words: &[&str]) -> Result<Value, Error> {
    let mut items = Vec::new();
    for item in text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        if !words.is_empty() {
            one_of(name, item, words)?;
        }
        items.push(Value::from(item));
    }
    Ok(Value::Array(items))
}

/// The items of a list with commas, if all of them fit.
fn all_fit(text: &str, fits: impl Fn(&str) -> bool) -> Option<Value> {
    let items = text.split(',').map(str::trim);
    let given = items.filter(|item| !item.is_empty());
    given
        .map(|item| fits(item).then(|| Value::from(item)))
        .collect()
}

const NEAR: &str = "colours with a distance, such as red~20 or #ff0000~12.5";

fn is_near(item: &str) -> bool {
    let parts = item.split_once('~');
    parts.is_some_and(|(hex, within)| color::parse(hex).is_some() && number(within).is_some())
}

const HUES: &str = "some of red, orange, yellow, green, cyan, blue, purple, pink, grey";

/// The numbers of the groups of hues, given by name.
fn hues(text: &str) -> Option<Value> {
    let mut groups: Vec<u8> = Vec::new();
    for item in text.split(',').map(str::trim) {
        let name = item.to_lowercase().replace("gray", "grey");
        let (_, named) = table::HUES.iter().find(|(known, _)| *known == name)?;
        groups.extend(*named);
    }
    Some(groups.into())
}

/// Digits alone are an id, unless they begin with a zero; other words are looked up as names.
fn reference(text: &str) -> Option<Value> {
    let is_id = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>() {
        Ok(id) if is_id => Some(id.into()),
        _ => (!matches!(text, "" | "0")).then(|| text.into()),
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite() && *value >= 0.0)
}

/// Parses a time such as `90` (seconds), `10m`, `2h` or `1d`.
fn span(text: &str) -> Option<i64> {
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit = match unit {
        "" | "s" | "sec" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits
        .parse::<i64>()
        .ok()?
        .checked_mul(unit)
        .filter(|seconds| INTERVALS.contains(seconds))
}

/// Parses an image of a playlist: `7`, `7@21:30`, `7@sunset-30m` or `7@dark`. A name may contain `@`,
/// too.
fn item(text: &str) -> Option<Value> {
    // 7:30 is 07:30.
    let time = |at: &str| at.parse().or_else(|()| format!("0{at}").parse()).ok();
    let when = |at: &str| match time(at) {
        _ if Tone::WORDS.contains(&at) => Some(("when", at.into())),
        Some(DayTime::Clock(minutes)) => Some(("time", minutes.into())),
        Some(DayTime::Sun(..)) => Some(("at", Value::from(at))),
        None => None,
    };
    let dated = text
        .rsplit_once('@')
        .and_then(|(image, at)| Some((image, when(at)?)));
    let image = dated.as_ref().map_or(text, |(image, _)| image);
    let mut item = json!({ "image_id": reference(image)? });
    if let Some((_, (field, value))) = dated {
        item[field] = value;
    }
    Some(item)
}

/// Replaces `-` in the list of a command by the references on standard input.
pub(super) fn expand_stdin(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    let takes = verb.flags.iter().any(|flag| flag.name == NULL.name);
    let Some(list) = verb.list().filter(|_| takes) else {
        return Ok(());
    };
    let is_dash = |name: &str, value: &Value| {
        name == list.name && value.get("image_id").unwrap_or(value) == "-"
    };
    if !call.values.iter().any(|(name, value)| is_dash(name, value)) {
        return Ok(());
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Error::refused("cannot read standard input").because(error))?;
    let end = if call.has(NULL.name) { b'\0' } else { b'\n' };
    let given = words(&bytes, end).map(|word| {
        Ok((
            list.name,
            read_value(list.name, list.kind, OsStr::from_bytes(word))?,
        ))
    });
    let mut given = given.collect::<Result<Vec<_>, Error>>()?;
    let values = std::mem::take(&mut call.values).into_iter();
    call.values = values
        .flat_map(|(name, value)| {
            if is_dash(name, &value) {
                std::mem::take(&mut given)
            } else {
                vec![(name, value)]
            }
        })
        .collect();
    // `find | murald ... -` found nothing, so there is nothing to do.
    if call.has(list.name) {
        Ok(())
    } else {
        Err(Error::new(Exit::Done, String::new()))
    }
}

fn words(bytes: &[u8], end: u8) -> impl Iterator<Item = &[u8]> {
    // Editors on Windows begin a file with a byte order mark.
    bytes
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(bytes)
        .split(move |&byte| byte == end)
        .map(|word| word.strip_suffix(b"\r").unwrap_or(word))
        .filter(|word| !word.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed_by_their_kinds() {
        #[track_caller]
        fn check(kind: Kind, word: &str, expected: Result<Value, &str>) {
            let found = read_value("X", kind, OsStr::new(word)).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(|text| format!("murald: {text}")));
        }
        check(Kind::Text, "", Ok(json!("")));
        check(Kind::Image, "7", Ok(json!(7)));
        check(Kind::Image, "007", Ok(json!("007")));
        check(
            Kind::Image,
            "99999999999999999999",
            Ok(json!("99999999999999999999")),
        );
        check(
            Kind::Image,
            "0",
            Err("X must be a name or an ID (1 or more), not \"0\""),
        );
        check(
            Kind::Image,
            "",
            Err("X must be a name or an ID (1 or more), not \"\""),
        );
        check(Kind::Image, "7 seas", Ok(json!("7 seas")));
        check(
            Kind::Count(0, u64::MAX),
            "-1",
            Err("X must be an integer of at least 0, not \"-1\""),
        );
        check(Kind::Number, "1.5", Ok(json!(1.5)));
        check(
            Kind::Number,
            "inf",
            Err("X must be a number of at least 0, not \"inf\""),
        );
        check(Kind::Span, "90", Ok(json!(90)));
        check(Kind::Span, "10m", Ok(json!(600)));
        check(Kind::Span, "10min", Ok(json!(600)));
        check(Kind::Span, "1d", Ok(json!(86_400)));
        for bad in ["h", "0", "0m", "366d"] {
            let wanted = "1 second to 365 days, such as 90, 10m, 2h, 1d";
            check(
                Kind::Span,
                bad,
                Err(&format!("X must be {wanted}, not {bad:?}")),
            );
        }
        check(Kind::Workspace, "", Err("X must be a name, not \"\""));
        check(Kind::FolderOrRoot, "root", Ok(json!("root")));
        check(Kind::FolderOrRoot, "3", Ok(json!(3)));
        check(
            Kind::Item,
            "7@21:30",
            Ok(json!({"image_id": 7, "time": 1290})),
        );
        check(
            Kind::Item,
            "7@dawn+1h",
            Ok(json!({"image_id": 7, "at": "dawn+1h"})),
        );
        check(
            Kind::Item,
            "a@dark",
            Ok(json!({"image_id": "a", "when": "dark"})),
        );
        check(
            Kind::Item,
            "a@sundown",
            Ok(json!({"image_id": "a@sundown"})),
        );
        check(Kind::Item, "7", Ok(json!({"image_id": 7})));
        check(
            Kind::Item,
            "a@b@07:00",
            Ok(json!({"image_id": "a@b", "time": 420})),
        );
        check(
            Kind::Item,
            "a@7:05",
            Ok(json!({"image_id": "a", "time": 425})),
        );
        check(Kind::Item, "a@24:00", Ok(json!({"image_id": "a@24:00"})));
        for bad in ["@1:00", "0@1:00", ""] {
            check(
                Kind::Item,
                bad,
                Err(&format!("X must be an image, or IMAGE@HH:MM, not {bad:?}")),
            );
        }
        check(Kind::Position, "0%,50%", Ok(json!("left")));
        check(Kind::Position, "default", Ok(Value::Null));
        check(
            Kind::Position,
            "",
            Err(&format!("X must be {}, not \"\"", Position::FORM)),
        );
        check(Kind::Hues, "blue,grey,Red", Ok(json!([7, 8, 99, 0, 11])));
        check(
            Kind::Hues,
            "12",
            Err(&format!("X must be {HUES}, not \"12\"")),
        );
        check(Kind::Tags, "a, b,,c", Ok(json!(["a", "b", "c"])));
        check(
            Kind::Tags,
            ",",
            Err("X must be one or more tags, not \",\""),
        );
        check(Kind::Colors, "red,,#abc", Ok(json!(["red", "#abc"])));
        check(Kind::Colors, "", Ok(json!([])));
        check(Kind::ColorsNear, "red~0", Ok(json!(["red~0"])));
        check(
            Kind::List(&["a", "b"]),
            "a,c",
            Err("X must be one of a, b, not \"c\""),
        );
        check(Kind::Words(&["a", "b"]), "b", Ok(json!("b")));
        check(Kind::Json, "{\"a\": [1]}", Ok(json!({"a": [1]})));
        check(
            Kind::Json,
            "{a}",
            Err("X is not JSON: key must be a string at line 1 column 2"),
        );
        check(Kind::File, "", Err("X must be a path, not \"\""));
    }

    #[test]
    fn input_is_split_at_lines_or_nuls_without_blank_items() {
        let lines: Vec<_> = words(b"a b\r\n\n  \nc", b'\n').collect();
        assert_eq!(lines, [&b"a b"[..], b"c"]);
        let marked: Vec<_> = words("\u{feff}a\n\u{feff}".as_bytes(), b'\n').collect();
        assert_eq!(marked, [&b"a"[..], "\u{feff}".as_bytes()]);
        let names: Vec<_> = words(b"a\nb\0\0c\0", b'\0').collect();
        assert_eq!(names, [&b"a\nb"[..], b"c"]);
    }
}
