//! What tells of the first frames of a film, also of one that has stopped itself meanwhile.
//!
//! With `auto_stop`, or for a program of its `stoplist`, mpvpaper becomes `mpvpaper-holder` while nobody
//! sees it: another program under the same number, without mpv and its socket. Once it would be seen it
//! becomes mpvpaper again, with the film that it was started with.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::ipc::{FOR_GOOD, Ipc};
use crate::backends::socket::{NotUp, connect_when_up, made};
use crate::process::Child;
use crate::sys::Cancel;

const HOLDER: &str = "mpvpaper-holder";
/// From the end of mpv's socket to the other program, or to the end.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Watch {
    pub(super) socket: PathBuf,
    pub(super) child: Child,
    /// None while it has stopped itself.
    pub(super) ipc: Option<Ipc>,
}

impl Watch {
    /// Waits for good until frames are seen; `false` when it ends before, or this is cancelled. Each
    /// time that it has stopped itself, `stopped` is called.
    pub(super) fn wait(&mut self, cancel: &Cancel, mut stopped: impl FnMut()) -> bool {
        loop {
            match self.ipc.as_mut().map(|ipc| ipc.wait_until_seen(cancel)) {
                Some(Ok(())) => return true,
                Some(Err(NotUp::Ended | NotUp::Io(_))) if has_stopped(&self.child, cancel) => {}
                Some(Err(_)) => return false,
                None => {}
            }
            stopped();
            self.ipc = self.come_back(cancel).ok();
            if self.ipc.is_none() {
                return false;
            }
        }
    }

    fn come_back(&self, cancel: &Cancel) -> Result<Ipc, NotUp> {
        let before = made(&self.socket);
        // The holder makes none: what was there before it is of no use any more.
        let before = before.filter(|_| is_stopped(&self.child));
        let until = Instant::now() + FOR_GOOD;
        let stream = connect_when_up(&self.socket, before, &self.child, until, cancel)?;
        let mut ipc = Ipc::new(stream, &self.child, until);
        ipc.observe()?;
        Ok(ipc)
    }
}

/// Whether one that does not answer has stopped itself; it may be about to.
pub(super) fn has_stopped(child: &Child, cancel: &Cancel) -> bool {
    let until = Some(Instant::now() + STOPS_WITHIN);
    is_stopped(child) || (!child.wait(until, Some(cancel)) && is_stopped(child))
}

pub(super) fn is_stopped(child: &Child) -> bool {
    let program = fs::read_link(format!("/proc/{}/exe", child.identity().pid)).ok();
    let name = program.as_deref().and_then(|program| program.file_name());
    // Wrapped, or replaced by a newer one, it is called a little more than that.
    name.is_some_and(|name| name.to_string_lossy().contains(HOLDER))
}
