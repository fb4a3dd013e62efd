//! Comments of a TOML text: found, moved, and never lost.

use toml_edit::{DocumentMut, Item, TableLike};

/// The comments of a text in order, each from its `#` to the end of its line.
pub(super) fn scan(text: &str) -> Vec<&str> {
    tokens(text).filter(|token| token.starts_with('#')).map(str::trim_end).collect()
}

/// A text in pieces, none empty: comments up to the end of their line, strings, and what is between
/// them.
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

/// Of the string that a text begins with, its quotes included.
fn string_length(token: &str) -> usize {
    let quote = &token[..1];
    let multiline = token.starts_with(&quote.repeat(3));
    let quotes = if multiline { quote.repeat(3) } else { quote.to_owned() };
    let mut at = quotes.len();
    while at < token.len() {
        let rest = &token[at..];
        if rest.starts_with(&quotes) {
            // Up to two quotes more belong to the text of a multi-line string.
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
pub(super) fn of(item: &Item) -> Vec<String> {
    let mut document = DocumentMut::new();
    document.insert("x", item.clone());
    owned(scan(&document.to_string()))
}

/// The comments above a key.
pub(super) fn above(table: &dyn TableLike, name: &str) -> Vec<String> {
    let prefix = table.key(name).and_then(|key| key.leaf_decor().prefix()?.as_str());
    owned(scan(prefix.unwrap_or_default()))
}

/// Puts comments above a key where they can stand there: [`keep`] finds a place for the others.
pub(super) fn put_above(section: &mut Item, name: &str, comments: &[String]) {
    let inline = section.is_inline_table();
    let Some(table) = section.as_table_like_mut() else { return };
    if comments.is_empty() || inline || !table.get(name).is_some_and(Item::is_value) {
        return;
    }
    if let Some(mut key) = table.key_mut(name) {
        let decor = key.leaf_decor_mut();
        let prefix = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        // Above what was above it already, whose last line may be the key's indentation.
        decor.set_prefix(format!("{}\n{prefix}", comments.join("\n")));
    }
}

/// The new text, with the comments that only the old one has put at its end.
pub(super) fn keep(old: &str, mut new: String) -> String {
    let before = scan(old);
    if before == scan(&new) {
        return new;
    }
    let mut there = owned(scan(&new));
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

fn owned(comments: Vec<&str>) -> Vec<String> {
    comments.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_outside_strings() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(scan(text), expected);
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
        assert_eq!(keep("#a\n#a\n#b", "#a\nx=1".to_owned()), "#a\nx=1\n#a\n#b\n");
    }
}
