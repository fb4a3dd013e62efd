//! Provides other programs with links to still images and files with colours, and runs the user's hook.
//!
//! The thread `desktop` owns `$XDG_STATE_HOME/murald`: after each change it updates the files there,
//! and then reports the change to clients. It never waits for ffmpeg, whose stills are made on the
//! transcoder's threads. If it is overloaded, changes are reported without it. Then the thread `hook`
//! runs the user's command, and nothing waits for that.

mod directory;
mod handle;
mod hook;
mod palette;
mod publisher;
mod scheme;
mod stills;

use std::io;
use std::path::PathBuf;

use crossbeam_channel::bounded;

use crate::thread::Spawner;

pub(crate) use handle::DesktopOwner;
pub use handle::Handle;
pub(crate) use hook::{HookSources, WallpaperChange};
pub(crate) use publisher::Sources;
pub(crate) use stills::STILLS;

use directory::StateDirectory;
use hook::Hook;
use publisher::Publisher;

/// How many changes may wait for their files; more are reported without them.
const INBOX: usize = 64;

/// Removes the files, if no daemon runs that could do so.
pub(crate) fn remove_files(directory: PathBuf) {
    StateDirectory::new(directory).clear();
}

pub(crate) fn start(
    spawner: &Spawner,
    sources: Sources,
    hook: HookSources,
) -> io::Result<(Handle, DesktopOwner)> {
    let (inbox, messages) = bounded(INBOX);
    let (end, ended) = bounded(0);
    let hook = Hook::new(spawner.clone(), hook);
    let publisher = Publisher::new(sources, hook.clone());
    let thread = spawner.spawn("desktop", move || publisher.run(&messages, &ended))?;
    Ok((
        Handle::new(inbox, hook.clone()),
        DesktopOwner { end, thread, hook },
    ))
}
