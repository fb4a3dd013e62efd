//! Processes as the kernel tells of them, their records, and what they say: a record is the same when
//! it is written anew.

use crate::input::text;
use murald::internals::parsers::process::{plain, record, stat};

pub(crate) fn run(data: &[u8]) {
    stat(data);
    if let Some(written) = record(data) {
        assert_eq!(record(&written), Some(written));
    }
    assert!(!plain(text(data)).contains('\x1b'));
}
