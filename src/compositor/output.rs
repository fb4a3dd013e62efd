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

/// The scale that makes `logical` of `pixels`. `wl_output.scale` is rounded up to a whole number,
/// and the logical size down to whole pixels: of the scales that fit, the roundest is meant.
pub(super) fn scale(pixels: (u32, u32), logical: (u32, u32)) -> f64 {
    let fits = |scale: f64| {
        let close = |pixels: u32, logical: u32| {
            (f64::from(pixels) / scale - f64::from(logical)).abs() < 1.0
        };
        close(pixels.0, logical.0) && close(pixels.1, logical.1)
    };
    let estimate = f64::from(pixels.0) / f64::from(logical.0);
    // Compositors take quarters, tenths, and (fractional-scale-v1) hundred-and-twentieths.
    let steps = [1.0, 2.0, 4.0, 10.0, 20.0, 120.0];
    let rounded = steps.map(|step| (estimate * step).round() / step);
    rounded.into_iter().find(|&scale| scale > 0.0 && fits(scale)).unwrap_or(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_what_was_set() {
        let check = |pixels: (u32, u32), set: f64| {
            let divided = |pixels: u32| f64::from(pixels) / set;
            let down = (divided(pixels.0) as u32, divided(pixels.1) as u32);
            assert_eq!(scale(pixels, down), set, "{pixels:?} rounded down");
            let near = (divided(pixels.0).round() as u32, divided(pixels.1).round() as u32);
            assert_eq!(scale(pixels, near), set, "{pixels:?} rounded");
        };
        for pixels in [(1920, 1080), (3840, 2160), (1366, 768), (2256, 1504), (2880, 1800)] {
            for set in [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0] {
                check(pixels, set);
            }
        }
    }
}
