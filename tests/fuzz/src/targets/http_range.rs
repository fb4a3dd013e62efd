//! Ranges of files: a range is within the file, whose length is in the first eight bytes.

use crate::input::start;
use murald::internals::parsers::http::range;

pub(crate) fn run(data: &[u8]) {
    let Some((length, text)) = data.split_first_chunk() else {
        return;
    };
    let (length, text) = (u64::from_le_bytes(*length), start(text));
    if let Some((first, last)) = range(text, length) {
        assert!(first <= last && last < length);
    }
}
