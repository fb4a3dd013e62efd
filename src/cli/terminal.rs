//! The terminal: its width and colours, and text that is measured, cut and made harmless for it.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write as _};
use std::os::fd::AsFd;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text is not folded into fewer columns than this.
const LEAST_FOLDED: usize = 20;

/// The properties of a terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) columns: usize,
    pub(super) color: bool,
    /// Whether it has 24-bit colours, not only 256.
    pub(super) true_color: bool,
}

impl Terminal {
    /// The assumed properties of a terminal that is not the output, but behind it.
    pub(super) fn assumed() -> Self {
        Self {
            columns: 80,
            color: true,
            true_color: has_true_color(),
        }
    }

    pub(super) fn new(stdout: &io::Stdout) -> Self {
        let told = || variable("COLUMNS")?.to_str()?.parse().ok();
        let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
        let color = variable("NO_COLOR").is_none() && variable("TERM").is_some() && !is_dumb;
        // Nothing is cut on a dumb terminal, such as an editor's window.
        let columns = if is_dumb {
            Some(usize::MAX)
        } else {
            columns(stdout)
        };
        Self {
            columns: columns.or_else(told).unwrap_or(80),
            color,
            true_color: color && has_true_color(),
        }
    }
}

/// The width of a terminal; none if it does not say.
pub(super) fn columns(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(size.ws_col.into()).filter(|&columns| columns > 0)
}

fn has_true_color() -> bool {
    variable("COLORTERM").is_some_and(|depth| depth == "truecolor" || depth == "24bit")
}

/// An environment variable that is set and not empty.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// A text of at most `most` columns, with `…` where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(1);
        if used > most {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Folds a text into lines of at most `columns`. Indented lines are not changed.
pub(super) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.is_empty() || line.starts_with(' ') {
            lines.push(line.to_owned());
            open = false;
            continue;
        }
        for word in line.split(' ') {
            match lines.last_mut().filter(|_| open) {
                Some(last) if width(last) + 1 + width(word) <= columns => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
            open = true;
        }
    }
    lines
}

/// Folds the lines of a sentence at spaces, and indents each folded line like its first part.
pub(super) fn folded(text: &str, columns: usize) -> String {
    let lines = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let rows = wrapped(
            line.trim_start(),
            columns.saturating_sub(indent).max(LEAST_FOLDED),
        );
        rows.iter()
            .map(|row| format!("{}{row}", &line[..indent]))
            .collect::<Vec<_>>()
            .join("\n")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A sentence for standard error: control characters are replaced, and lines are folded on a terminal.
pub(super) fn for_stderr(text: &str) -> String {
    let text = harmless(text);
    let stderr = io::stderr();
    match columns(&stderr) {
        Some(columns) if stderr.is_terminal() => folded(&text, columns),
        _ => text,
    }
}

/// Prints a warning or a note to stderr, which may be closed.
pub(super) fn warn(text: impl Display) {
    writeln!(io::stderr(), "{}", for_stderr(&format!("murald: {text}"))).ok();
}

/// Replaces control characters: names of files may contain any.
pub(super) fn harmless(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

/// A cell of a line with tabs: control characters become escapes.
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

/// Escapes the control characters that JSON allows unescaped.
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

/// A number of bytes with a unit.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Seconds in the two largest units, or in one if the second is zero.
pub(super) fn span(seconds: u64) -> String {
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let first = parts
        .iter()
        .position(|(count, _)| *count > 0)
        .unwrap_or(parts.len() - 1);
    let (count, unit) = parts[first];
    match parts.get(first + 1) {
        Some((more, smaller)) if *more > 0 => format!("{count} {unit} {more} {smaller}"),
        _ => format!("{count} {unit}"),
    }
}

/// A number with its noun: `1 image`, `2 images`.
pub(super) fn count(number: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// The part of an escape sequence after `38;` or `48;`.
pub(super) fn color_code(color: [u8; 3], terminal: Terminal) -> String {
    if terminal.true_color {
        let [red, green, blue] = color;
        return format!("2;{red};{green};{blue}");
    }
    format!("5;{}", xterm(color))
}

/// The nearest colour of the cube of six levels a channel, or of the greys after it.
fn xterm(color: [u8; 3]) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| {
        let level = (0u8..6).min_by_key(|&level| LEVELS[usize::from(level)].abs_diff(value));
        level.unwrap_or_default()
    };
    let levels = color.map(nearest);
    let cube = levels.map(|level| LEVELS[usize::from(level)]);
    let mean = color.iter().map(|&value| u16::from(value)).sum::<u16>() / 3;
    // From 8 to 238 in steps of ten.
    let step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let grey = [8 + 10 * step; 3];
    if distance(grey, color) < distance(cube, color) {
        return 232 + step;
    }
    16 + 36 * levels[0] + 6 * levels[1] + levels[2]
}

fn distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.iter()
        .zip(other)
        .map(|(&one, other)| u32::from(one.abs_diff(other)).pow(2))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_columns() {
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
    fn long_lines_fold_at_spaces() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(folded(text, 24), expected);
        }
        check("murald: short", "murald: short");
        check(
            "murald: no image is named lake\n  `murald images list` lists all",
            "murald: no image is\nnamed lake\n  `murald images list`\n  lists all",
        );
        check(
            "/a/path/that/is/wider/than/that is",
            "/a/path/that/is/wider/than/that\nis",
        );
        check("", "");
    }

    #[test]
    fn controls_are_escaped_for_programs() {
        let name = "a\x1b]0;b\x07\u{9b}2J\tä\u{7f}\n";
        assert_eq!(escaped(name), "a\\x1b]0;b\\x07\\x9b2J\\tä\\x7f\\n");
        let json = serde_json::to_vec(name).unwrap();
        let shown = String::from_utf8(harmless_json(&json)).unwrap();
        assert!(
            !shown.contains(char::is_control) && shown.contains('ä'),
            "{shown}"
        );
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), name);
    }

    #[test]
    fn bytes_spans_and_counts_have_their_units() {
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

    #[test]
    fn color_is_mapped_to_the_nearest_of_256() {
        #[track_caller]
        fn check(color: [u8; 3], expected: u8) {
            assert_eq!(xterm(color), expected);
        }
        check([0, 0, 0], 16);
        check([255, 255, 255], 231);
        check([255, 0, 0], 196);
        check([95, 135, 175], 67);
        check([50, 100, 140], 60);
        check([128, 128, 128], 244);
        check([12, 12, 12], 232);
        check([244, 244, 244], 255);
    }
}
