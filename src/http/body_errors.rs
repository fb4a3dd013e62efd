//! Errors of a body, in words of JSON instead of serde's and Rust's. Pure.

use std::borrow::Cow;

use super::error::Error;

/// The error (400) for a body that serde cannot read; `path` leads to the field.
pub(super) fn malformed(path: &str, error: &serde_json::Error) -> Error {
    let text = error.to_string();
    // serde_json ends its messages with the position, which the details state already.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    let message = match error.is_data() {
        true => wrong_value(path, what),
        false => format!("the body is not valid JSON: {what}"),
    };
    let details = format!("line {}, column {}", error.line(), error.column());
    Error::bad_request(message).details(details)
}

/// `monitors[0] must be a string, not 5`: serde's message in words of JSON instead of Rust's.
fn wrong_value(path: &str, what: &str) -> String {
    let field = Some(path).filter(|path| !matches!(*path, "." | "?"));
    if let Some((unknown, known)) = unknown_field(what) {
        let name = field.unwrap_or(unknown);
        return match nearest(unknown, known.split('`').skip(1).step_by(2)) {
            Some(nearest) => format!("unknown field `{name}`; did you mean `{nearest}`?"),
            None => format!("unknown field `{name}`: this request has no fields"),
        };
    }
    let found = ["invalid type: ", "invalid value: ", "unknown variant "]
        .iter()
        .find_map(|kind| what.strip_prefix(kind)?.rsplit_once(", expected "));
    let subject = field.unwrap_or("the body");
    match found {
        Some((found, expected)) => {
            let expected = match expected {
                "i64" => "an integer".to_owned(),
                "f64" => "a number".to_owned(),
                "path string" => "a string".to_owned(),
                "a sequence" => "a list".to_owned(),
                "a map" => "an object".to_owned(),
                other => other.replace('`', ""),
            };
            format!("{subject} must be {expected}, not {}", in_json(found))
        }
        None => field.map_or_else(|| what.to_owned(), |field| format!("{field}: {what}")),
    }
}

/// JSON's words for what serde calls `string "x"`, integer `5` or map.
fn in_json(found: &str) -> Cow<'_, str> {
    let value = found
        .split_once('`')
        .map(|(_, value)| value.trim_end_matches('`'));
    match (found, value) {
        ("map", _) => "an object".into(),
        ("sequence", _) => "a list".into(),
        ("unit value", _) => "null".into(),
        // The variant of an enumeration.
        (_, Some(value)) if found.starts_with('`') => format!("{value:?}").into(),
        (_, Some(value)) => value.into(),
        _ => found.strip_prefix("string ").unwrap_or(found).into(),
    }
}

/// The field that serde does not know, and its text about the known ones: that there are none, or
/// each in backticks.
fn unknown_field(what: &str) -> Option<(&str, &str)> {
    let rest = what.strip_prefix("unknown field `")?;
    ["`, expected ", "`, there are no "]
        .iter()
        .find_map(|middle| rest.rsplit_once(middle))
}

/// The known word with the smallest edit distance, without regard to case.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(LETTERS).collect();
    known.min_by_key(|one| distance(&word, &one.to_lowercase().chars().collect::<Vec<_>>()))
}

/// Letters of a word that are compared; no field has more.
const LETTERS: usize = 64;

/// The Levenshtein distance, computed row by row.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (place, known) in other.iter().enumerate() {
            let changed = before + usize::from(letter != known);
            before = row[place + 1];
            row[place + 1] = changed.min(before + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_finds_typing_mistakes() {
        let known = ["image_id", "monitor", "monitors", "mode"];
        let check = |word: &str, meant: &str| {
            assert_eq!(nearest(word, known.into_iter()), Some(meant), "{word}");
        };
        check("monitr", "monitor");
        check("monitorss", "monitors");
        check("imageId", "image_id");
        check("MODE", "mode");
        check("id", "mode");
        check("", "mode");
        check(&"x".repeat(1 << 20), "image_id");
        assert_eq!(nearest("x", [].into_iter()), None);
    }

    #[test]
    fn distances_are_levenshteins() {
        let check = |one: &str, other: &str, expected: usize| {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(
                distance(&letters(one), &letters(other)),
                expected,
                "{one} {other}"
            );
            assert_eq!(
                distance(&letters(other), &letters(one)),
                expected,
                "{other} {one}"
            );
        };
        check("kitten", "sitting", 3);
        check("", "abc", 3);
        check("abc", "abc", 0);
        check("flaw", "lawn", 2);
    }
}
