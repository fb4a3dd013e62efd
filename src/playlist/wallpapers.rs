//! The player's view of the module `wallpaper`. Tests bring their own [`Wallpapers`].

use std::collections::BTreeMap;

use crate::backends::Backends;
use crate::compositor::identities;
use crate::config::SelectionMode;
use crate::wallpaper::{self, Applied, Reply, Request};

pub trait Wallpapers: Send {
    /// Shows a picture. Never blocks; `reply` is called when the picture is up or has failed.
    fn apply(&self, request: Request, reply: Reply<Applied>);

    /// The monitors that are connected; after the start, waits for the first look at them.
    fn connected(&self) -> Vec<String>;

    /// The identity of each connected monitor, if it is known.
    fn identities(&self) -> BTreeMap<String, String>;

    /// Pauses videos and HTML wallpapers, or lets them play. Never blocks.
    fn pause(&self, paused: bool);

    /// The backend of the settings, where one shows everything; none where each kind of content
    /// has its own.
    fn fixed_backend(&self) -> Option<String>;
}

/// The wallpapers of the daemon.
#[derive(Clone)]
pub struct DaemonWallpapers {
    pub wallpaper: wallpaper::Handle,
    pub backends: Backends,
}

impl Wallpapers for DaemonWallpapers {
    fn apply(&self, request: Request, reply: Reply<Applied>) {
        self.wallpaper.set(request, reply);
    }

    fn connected(&self) -> Vec<String> {
        self.wallpaper.wait_for_look();
        self.backends.outputs.list().iter().map(|output| output.name.clone()).collect()
    }

    fn identities(&self) -> BTreeMap<String, String> {
        identities(&self.backends.outputs.list())
    }

    fn pause(&self, paused: bool) {
        self.wallpaper.pause(paused);
    }

    fn fixed_backend(&self) -> Option<String> {
        let backend = &(self.backends.settings)().backend;
        (backend.selection_mode == SelectionMode::Fixed).then(|| backend.kind.to_string())
    }
}
