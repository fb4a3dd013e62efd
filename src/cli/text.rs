//! Text on a terminal: how wide it is, how it is cut, and how it is kept from doing harm.

/// Columns that a text takes. The wide ranges are those of Unicode's East Asian Width that names of
/// files have.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        // Combining marks, joiners, variation selectors.
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// A text of at most `most` columns, with `…` where something was cut off.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > most {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Names of files may hold anything: control characters are shown, not obeyed.
pub(super) fn harmless(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

/// A cell of a line with tabs: control characters as escapes, of which a terminal obeys none.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// The same JSON with the control characters as escapes that JSON may have as they are.
pub(super) fn harmless_json(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        let (control, length) = match (byte, after.first()) {
            (0x7f, _) => (byte, 1),
            // U+0080 to U+009F in UTF-8.
            (0xc2, Some(&low @ 0x80..=0x9f)) => (low, 2),
            _ => {
                out.push(byte);
                rest = after;
                continue;
            }
        };
        out.extend_from_slice(format!("\\u{control:04x}").as_bytes());
        rest = &rest[length..];
    }
    out
}

/// Bytes as people say them.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Seconds as people say them, in the two largest units, or in one where that is all.
pub(super) fn span(seconds: u64) -> String {
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    let (count, unit) = parts[first];
    match parts.get(first + 1) {
        Some((more, smaller)) if *more > 0 => format!("{count} {unit} {more} {smaller}"),
        _ => format!("{count} {unit}"),
    }
}

/// A number with its noun: `1 image`, `2 images`.
pub(super) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_by_columns() {
        #[track_caller]
        fn check(text: &str, most: usize, expected: &str) {
            assert_eq!(cut(text, most), expected);
            assert!(width(expected) <= most.max(1));
        }
        check("sunset", 6, "sunset");
        check("sunset", 5, "suns…");
        check("夕焼け", 6, "夕焼け");
        check("夕焼け", 5, "夕焼…");
        check("夕焼け", 4, "夕…");
        check("e\u{301}te\u{301}", 3, "e\u{301}te\u{301}");
        check("long", 1, "…");
    }

    #[test]
    fn controls_are_escaped_for_programs() {
        let name = "a\x1b]0;b\x07\u{9b}2J\tä\u{7f}\n";
        assert_eq!(escaped(name), "a\\x1b]0;b\\x07\\x9b2J\\tä\\x7f\\n");
        let json = serde_json::to_vec(name).unwrap();
        let shown = String::from_utf8(harmless_json(&json)).unwrap();
        assert!(!shown.contains(char::is_control) && shown.contains('ä'), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), name);
    }

    #[test]
    fn amounts() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(1024 * 1024 - 1), "1.0 MiB");
        assert_eq!(bytes(3_500_000_000), "3.3 GiB");
        assert_eq!(span(0), "0 s");
        assert_eq!(span(59), "59 s");
        assert_eq!(span(300), "5 min");
        assert_eq!(span(86_401), "1 d");
        assert_eq!(span(61), "1 min 1 s");
        assert_eq!(span(7_260), "2 h 1 min");
        assert_eq!(span(90_000), "1 d 1 h");
        assert_eq!(count(1, "image"), "1 image");
        assert_eq!(count(0, "image"), "0 images");
    }
}
