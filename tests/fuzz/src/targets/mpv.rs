//! What mpv says over its socket.

use murald::internals::backends::fuzz::mpv;

pub(crate) fn run(data: &[u8]) {
    mpv(&data[..data.len().min(32 << 10)]);
}
