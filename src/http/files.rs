//! Files as answers: sent from the disk, with validators for caches, and with ranges.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tiny_http::Method;

use super::error::Error;
use super::request::Request;
use super::response::{Body, Response};
use crate::paths::open_regular;

/// Answers with a file: 200, 206 for a single range, 304 if the client has it already, 416 for a
/// range that the file does not have. A missing file is a 404.
pub fn file(
    request: &Request<'_>,
    path: &Path,
    content_type: &'static str,
) -> Result<Response, Error> {
    let fields = &request.fields;
    let range = fields.range.filter(|_| *request.method() == Method::Get);
    let (file, metadata) = open(path)?;
    let tag = tag(&metadata);
    let size = metadata.len();
    let full = |status, offset, length| {
        let body = Body::File {
            file,
            offset,
            length,
        };
        Response::new(status, content_type, body)
            .header("ETag", tag.as_str())
            .header("Accept-Ranges", "bytes")
    };
    if fields.if_none_match.is_some_and(|tags| has_tag(tags, &tag)) {
        return Ok(full(304, 0, 0));
    }
    Ok(match range.map_or(Range::Whole, |text| part(text, size)) {
        Range::Whole => full(200, 0, size),
        Range::Part { first, last } => full(206, first, last - first + 1)
            .header("Content-Range", format!("bytes {first}-{last}/{size}")),
        Range::Beyond => {
            return Err(Error::new(416, "the file does not have this range")
                .details(format!("it has {size} bytes"))
                .header("Content-Range", format!("bytes */{size}")));
        }
    })
}

/// Whether the client has this very file. The header demands a weak comparison.
fn has_tag(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn open(path: &Path) -> Result<(File, Metadata), Error> {
    let gone = || Error::not_found("the file is missing");
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        // Something else has the name now.
        | io::ErrorKind::InvalidInput => gone(),
        _ => Error::new(500, "the file cannot be read").cause(error),
    };
    let file = open_regular(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    Ok((file, metadata))
}

/// A strong tag: a replaced file has another inode, and a rewritten one another time.
fn tag(metadata: &Metadata) -> String {
    let (inode, size) = (metadata.ino(), metadata.size());
    format!(
        "\"{inode:x}-{size:x}-{:x}{:08x}\"",
        metadata.mtime(),
        metadata.mtime_nsec()
    )
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Range {
    Whole,
    /// Both included.
    Part {
        first: u64,
        last: u64,
    },
    Beyond,
}

/// A malformed range counts as none, and so does a list of ranges.
pub(super) fn part(text: &str, length: u64) -> Range {
    let Some((first, last)) = text
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
    else {
        return Range::Whole;
    };
    match (number(first), number(last)) {
        (Some(None), Some(Some(0))) => Range::Beyond,
        (Some(None), Some(Some(_))) if length == 0 => Range::Beyond,
        (Some(None), Some(Some(suffix))) => Range::Part {
            first: length.saturating_sub(suffix),
            last: length - 1,
        },
        (Some(Some(first)), Some(Some(last))) if first > last => Range::Whole,
        (Some(Some(first)), Some(_)) if first >= length => Range::Beyond,
        (Some(Some(first)), Some(last)) => Range::Part {
            first,
            last: last.unwrap_or(u64::MAX).min(length - 1),
        },
        _ => Range::Whole,
    }
}

/// `Some(None)` for an empty text, `None` for one that is not a number. A number that is too large
/// becomes the largest.
fn number(text: &str) -> Option<Option<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_ranges_are_served_and_others_ignored() {
        let check = |text: &str, length: u64, expected: Range| {
            assert_eq!(part(text, length), expected, "{text} of {length}");
        };
        let bytes = |first, last| Range::Part { first, last };
        check("bytes=0-0", 10, bytes(0, 0));
        check("bytes=2-5", 10, bytes(2, 5));
        check("bytes=2-", 10, bytes(2, 9));
        check("bytes=2-500", 10, bytes(2, 9));
        check("bytes=2-99999999999999999999999", 10, bytes(2, 9));
        check("bytes=-3", 10, bytes(7, 9));
        check("bytes=-30", 10, bytes(0, 9));
        check("bytes=10-", 10, Range::Beyond);
        check("bytes=99999999999999999999999-", 10, Range::Beyond);
        check("bytes=-0", 10, Range::Beyond);
        check("bytes=0-", 0, Range::Beyond);
        check("bytes=-1", 0, Range::Beyond);
        for ignored in [
            "bytes=5-2",
            "bytes=0-1,3-4",
            "bytes=-",
            "bytes=a-b",
            "lines=1-2",
            "",
            "-",
        ] {
            check(ignored, 10, Range::Whole);
        }
    }
}
