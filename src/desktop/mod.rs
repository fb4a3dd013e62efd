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
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::bounded;

use crate::compositor::Outputs;
use crate::events::EventBus;
use crate::store::Store;
use crate::thread::Spawner;
use crate::transcode::{Ffmpeg, Transcoder};
use crate::wire::Image;

pub(crate) use change::Change;
pub(crate) use handle::DesktopOwner;
pub use handle::Handle;
pub(crate) use hook::HookSources;

use directory::Directory;
use hook::Hook;
use publisher::Publisher;
use stills::WantsPng;

/// Changes whose files are still to be written; one more is told without them.
const INBOX: usize = 64;

/// Writes a still of an image to a new PNG file, on a thread that may wait; the error is for people.
pub(crate) type MakeStill = Arc<dyn Fn(&Ffmpeg, &Image, &Path) -> Result<(), String> + Send + Sync>;

/// What the thread needs of others.
pub(crate) struct Sources {
    pub store: Store,
    pub bus: EventBus,
    pub outputs: Outputs,
    pub transcoder: Transcoder,
    pub make_still: MakeStill,
    pub wants_png: WantsPng,
    /// `$XDG_STATE_HOME/murald`
    pub directory: PathBuf,
}

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
