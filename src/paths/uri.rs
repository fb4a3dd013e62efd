//! Paths as file managers and browsers hand them over: `file://` URIs. Pure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// The path of a `file://` URI of this machine, percent-decoded; none for everything else.
pub(crate) fn from_uri(text: &str) -> Option<PathBuf> {
    let (scheme, rest) = text.split_at_checked("file:".len())?;
    let path = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
    if !scheme.eq_ignore_ascii_case("file:") || !path.starts_with('/') {
        return None;
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    (!bytes.contains(&0)).then(|| OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn uris_of_files_are_paths() {
        let check = |text: &str, expected: Option<&[u8]>| {
            let path = from_uri(text);
            assert_eq!(path.as_deref().map(|path| path.as_os_str().as_bytes()), expected, "{text}");
        };
        check("file:///a%20b/%C3%B6%25.png", Some("/a b/ö%.png".as_bytes()));
        check("FILE://localhost/a#b?c", Some(b"/a#b?c"));
        check("file:/a/%ff%zz", Some(b"/a/\xff%zz"));
        for other in ["file://host/a", "file:a", "file://", "file:///a%00b", "/a", "http:///a", ""]
        {
            check(other, None);
        }
    }
}
