//! Messages of mpv's socket.

use murald::internals::parsers::backends::mpv;

pub(crate) fn run(data: &[u8]) {
    mpv(&data[..data.len().min(32 << 10)]);
}
