//! What the conductor needs of the room `wallpaper`: somewhere to hang pictures. Tests bring their
//! own.

use crate::backends::Setters;
use crate::config::SelectionMode;
use crate::wallpaper::{Applied, Reply, Request, Walls};

pub trait Wall: Send {
    /// Hangs a picture. Never blocks; `reply` is called when the picture is up or has failed.
    fn hang(&self, request: Request, reply: Reply<Applied>);

    /// The monitors that are connected.
    fn connected(&self) -> Vec<String>;

    /// The backend of the settings, where one shows everything; none where each kind of content
    /// has its own.
    fn fixed(&self) -> Option<String>;
}

/// The wall of the daemon.
#[derive(Clone)]
pub struct StageWall {
    pub walls: Walls,
    pub setters: Setters,
}

impl Wall for StageWall {
    fn hang(&self, request: Request, reply: Reply<Applied>) {
        self.walls.set(request, reply);
    }

    fn connected(&self) -> Vec<String> {
        self.setters.outputs.list().iter().map(|output| output.name.clone()).collect()
    }

    fn fixed(&self) -> Option<String> {
        let backend = &(self.setters.settings)().backend;
        (backend.selection_mode == SelectionMode::Fixed).then(|| backend.kind.to_string())
    }
}
