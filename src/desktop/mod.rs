//! What other programs read of the wallpapers and hear of them: links to still pictures, colours in
//! their formats, and the hook.
//!
//! The thread `desktop` owns `$XDG_STATE_HOME/murald`: after each change it brings the files there in
//! line with what the monitors show, and only then has the change told to clients. It waits for no
//! still: ffmpeg's are made on the transcoder's threads. Nobody waits for it but who made the change,
//! and where it has too much to do the change goes on without it. Then the thread `hook` runs the user's
//! command, for which nobody waits at all.

mod change;
mod directory;
mod formats;
mod handle;
mod hook;
mod links;
mod palette;
mod publisher;
mod scheme;
mod shown;
mod stills;

use std::io;
use std::path::PathBuf;

use crossbeam_channel::bounded;

use crate::thread::Spawner;

pub(crate) use change::Change;
pub(crate) use handle::DesktopOwner;
pub use handle::Handle;
pub(crate) use hook::HookSources;
pub(crate) use publisher::Sources;

use directory::Directory;
use hook::Hook;
use publisher::Publisher;

/// Changes whose files are still to be written; one more is told without them.
const INBOX: usize = 64;

/// Removes the files, if no daemon is there to do so.
pub(crate) fn remove_files(directory: PathBuf) {
    Directory::new(directory).clear();
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
    Ok((Handle::new(inbox, hook.clone()), DesktopOwner::new(end, thread, hook)))
}
