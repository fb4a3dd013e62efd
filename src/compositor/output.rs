//! An output as the compositor describes it.

use serde::{Deserialize, Serialize};

/// A connected output that shows something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    pub description: String,
    /// Who made it; these three are empty where they are not known.
    #[serde(default)]
    pub make: String,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub serial: String,
    /// Pixels of the mode, before the transform.
    pub width: u32,
    pub height: u32,
    /// Position and size in the layout, after scale and transform.
    pub x: i32,
    pub y: i32,
    pub logical_width: u32,
    pub logical_height: u32,
    pub scale: f64,
    /// Hz; 0 where the compositor does not say.
    pub refresh_rate: f64,
    /// 0 normal, 1 = 90°, 2 = 180°, 3 = 270°, 4 to 7 the flipped ones (`wl_output.transform`).
    pub transform: u8,
    /// X11 only.
    pub primary: bool,
    /// Which coming of the output this is: one that went and came back between two looks is another,
    /// and shows nothing of what its forerunner showed.
    #[serde(skip)]
    pub instance: u64,
    /// X11 only: which monitors of the server's list these pixels are on. Clones are one output.
    #[serde(default)]
    pub heads: Vec<usize>,
}

/// A size in pixels after a transform.
pub(super) fn turned((width, height): (u32, u32), transform: u8) -> (u32, u32) {
    if transform % 2 == 1 { (height, width) } else { (width, height) }
}

impl Output {
    /// The pixels of the mode after the transform: as they are seen.
    pub(crate) fn turned_size(&self) -> (u32, u32) {
        turned((self.width, self.height), self.transform)
    }
}

#[cfg(test)]
impl Output {
    /// One of 1920x1080 at the origin, of which nothing else is known.
    pub(crate) fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            width: 1920,
            height: 1080,
            x: 0,
            y: 0,
            logical_width: 1920,
            logical_height: 1080,
            scale: 1.0,
            refresh_rate: 60.0,
            transform: 0,
            primary: false,
            make: String::new(),
            model: String::new(),
            serial: String::new(),
            instance: 0,
            heads: Vec::new(),
        }
    }
}
