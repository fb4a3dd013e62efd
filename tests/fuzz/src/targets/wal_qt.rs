//! Answers of the wal-qt host.

use crate::input::start;
use murald::internals::parsers::backends::wal_qt;

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    wal_qt(text);
}
