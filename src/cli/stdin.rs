//! References from standard input, where a command is given `-` for them: one a line, or with `-0`
//! each up to a NUL, as `find -print0` writes them.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use super::call::Call;
use super::error::Exit;
use super::verb::{NULL, Verb};
use super::{Error, value};

/// Puts what standard input says in the place of `-`.
pub(super) fn expand(verb: &Verb, call: &mut Call) -> Result<(), Error> {
    let takes = verb.flags.iter().any(|flag| flag.name == NULL.name);
    if !takes || !call.values.iter().any(|(_, value)| is_dash(value)) {
        return Ok(());
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Error::refused("standard input cannot be read").because(error))?;
    // `find | murald ... -` with nothing found: there is nothing to do.
    if bytes.trim_ascii().is_empty() {
        return Err(Error::new(Exit::Done, String::new()));
    }
    let end = if call.has(NULL.name) { b'\0' } else { b'\n' };
    let mut expanded = Vec::new();
    for (name, value) in std::mem::take(&mut call.values) {
        let Some(kind) = verb.kind(name).filter(|_| is_dash(&value)) else {
            expanded.push((name, value));
            continue;
        };
        for word in words(&bytes, end) {
            expanded.push((name, value::read(name, kind, OsStr::from_bytes(word))?));
        }
        bytes.clear();
    }
    call.values = expanded;
    Ok(())
}

fn is_dash(value: &Value) -> bool {
    value.get("image_id").unwrap_or(value) == "-"
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
    fn lines_and_nuls_separate_blank_ones_do_not_count() {
        let lines: Vec<_> = words(b"a b\r\n\n  \nc", b'\n').collect();
        assert_eq!(lines, [&b"a b"[..], b"c"]);
        let marked: Vec<_> = words("\u{feff}a\n\u{feff}".as_bytes(), b'\n').collect();
        assert_eq!(marked, [&b"a"[..], "\u{feff}".as_bytes()]);
        let names: Vec<_> = words(b"a\nb\0\0c\0", b'\0').collect();
        assert_eq!(names, [&b"a\nb"[..], b"c"]);
    }
}
