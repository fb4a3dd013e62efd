//! `/proc/PID/stat`, records of processes, and output of programs: writing and reading a record again
//! does not change it.

use crate::input::text;
use murald::internals::parsers::process::{plain, record, stat};

pub(crate) fn run(data: &[u8]) {
    stat(data);
    if let Some(written) = record(data) {
        assert_eq!(record(&written), Some(written));
    }
    assert!(!plain(text(data)).contains('\x1b'));
}
