//! Variables in paths, as people write them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::Error;

/// `$VAR` and `${VAR}` replaced by their values.
pub(super) fn replaced(
    written: &str,
    value: impl Fn(&str) -> Result<Option<OsString>, Error>,
) -> Result<OsString, Error> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find('$') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let (name, after) = match variable_name(&rest[at + 1..]) {
            Ok(Some(found)) => found,
            // A `$` that begins no name stands for itself.
            Ok(None) => {
                out.push(b'$');
                rest = &rest[at + 1..];
                continue;
            }
            Err(()) => return Err(Error::Brace { written: written.to_owned() }),
        };
        let value = value(name)?.ok_or_else(|| Error::Unset {
            variable: name.to_owned(),
            written: written.to_owned(),
        })?;
        out.extend_from_slice(value.as_bytes());
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(OsString::from_vec(out))
}

/// The name after a `$` and what follows it; `None` where no name begins.
fn variable_name(after: &str) -> Result<Option<(&str, &str)>, ()> {
    let (text, braced) = after.strip_prefix('{').map_or((after, false), |inner| (inner, true));
    let end = match text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => 0,
        end => end.unwrap_or(text.len()),
    };
    let (name, rest) = text.split_at(end);
    match (braced, name.is_empty()) {
        (true, false) => rest.strip_prefix('}').map(|rest| Some((name, rest))).ok_or(()),
        (true, true) => Err(()),
        (false, false) => Ok(Some((name, rest))),
        (false, true) => Ok(None),
    }
}
