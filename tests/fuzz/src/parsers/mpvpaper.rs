//! Parsers of mpv's messages with plain types, for the targets of `tests/fuzz`. Part of its module with
//! `cfg(parsers)`.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::ipc::Ipc;
use crate::process::{Child, Identity};
use crate::sys::Cancel;

/// Whether mpv plays a file, if it sends these lines and hangs up; never blocks.
pub fn said(lines: &[u8]) -> bool {
    /// This process stands for mpv, as it is running.
    static THIS: LazyLock<(Child, Cancel)> = LazyLock::new(|| {
        let this = i32::try_from(std::process::id())
            .ok()
            .and_then(Identity::from_pid);
        let child = this.and_then(Child::hold).expect("it runs");
        (child, Cancel::new().expect("a descriptor"))
    });
    let (child, cancel) = &*THIS;
    let (near, mut far) = UnixStream::pair().expect("two descriptors");
    near.set_nonblocking(true).expect("a socket");
    far.write_all(lines).expect("it fits into the socket");
    far.shutdown(Shutdown::Write).expect("it is open");
    let mut ipc = Ipc::new(near, child, Instant::now() + Duration::from_secs(60));
    match ipc.load(Path::new("/new.mp4"), Some(Path::new("/old.mp4")), cancel) {
        Ok(Ok(seen)) => seen,
        Ok(Err(_)) | Err(_) => ipc.playing(cancel).is_ok(),
    }
}
