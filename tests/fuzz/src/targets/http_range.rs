//! Parts of files: what is sent lies in the file. Its length is the first eight bytes.

use crate::input::start;
use murald::internals::parsers::http::range;

pub(crate) fn run(data: &[u8]) {
    let Some((length, text)) = data.split_first_chunk() else { return };
    let (length, text) = (u64::from_le_bytes(*length), start(text));
    if let Some((first, last)) = range(text, length) {
        assert!(first <= last && last < length);
    }
}
