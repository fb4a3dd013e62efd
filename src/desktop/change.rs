//! What the room is told of a change: for the hook and the stills. (The event is made beside it, in
//! `wallpaper`.)

use std::path::PathBuf;

use crate::wire::Source;

/// A picture that was brought up. Its rows are written.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub image_id: i64,
    pub image_name: String,
    pub path: PathBuf,
    pub monitors: Vec<String>,
    pub backend: String,
    pub source: Source,
    /// A hook has asked for it: it runs none.
    pub by_hook: bool,
}
