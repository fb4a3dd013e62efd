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
}
