//! `[backend.builtin]`: the options of murald's own renderer.

use serde::Deserialize;

use super::key::Key;
use super::key::{is_bezier, is_color, numbers};
use super::settings_macro::settings;
use crate::wire::{Position, words};

words! {
    BuiltinFit {
        Cover = "cover", Contain = "contain", Fill = "fill", Tile = "tile", Center = "center",
    }
}

words! {
    BuiltinTransition {
        None = "none", Fade = "fade", Wipe = "wipe", Grow = "grow", Random = "random",
    }
}

words! {
    BuiltinBackdrop { None = "none", Same = "same", Blur = "blur", Dim = "dim" }
}

settings! {
    /// `[backend.builtin]`
    #[derive(Debug)]
    Builtin {
        /// Draw images if no other backend can
        enabled: bool = Key::flag(true),
        /// How to scale the image
        fit_mode: BuiltinFit = Key::word("cover", BuiltinFit::WORDS),
        /// Part of the image that is visible, or its position: a name or X%,Y%
        position: Position = Key::text("center").form(Position::FORM, is_position),
        /// Colour around and behind images, RRGGBB without #
        fill_color: String = Key::text("000000").form(OPAQUE, is_opaque),
        /// Transition between images (Wayland only)
        transition_type: BuiltinTransition = Key::word("fade", BuiltinTransition::WORDS),
        /// Duration of transitions in seconds; 0 disables them
        transition_duration: f64 = Key::number(0.6).within(0, 120),
        /// Direction of wipe in degrees: 0 is right to left, 90 top to bottom
        transition_angle: f64 = Key::number(45.0),
        /// Origin of grow: a name or X%,Y%
        transition_pos: Position = Key::text("center").form(Position::FORM, is_position),
        /// Easing of transitions: a CSS keyword or the numbers of a CSS cubic-bezier
        transition_easing: Easing = Key::text("ease-out").form(EASING, is_easing),
        /// Maximum frame rate of transitions
        fps_max: u32 = Key::integer(60).within(1, 1000),
        /// Play animated images
        animate: bool = Key::flag(true),
        /// Second surface with the image, below the wallpaper, as for niri's overview (Wayland only)
        backdrop: BuiltinBackdrop = Key::word("none", BuiltinBackdrop::WORDS),
        /// Standard deviation of blur in pixels of the monitor
        backdrop_blur: f64 = Key::number(24.0).within(1, 200),
        /// Share of black over the backdrop; unset, it is 0.3 with dim, 0 with blur
        backdrop_dim: Option<f64> = Key::optional_number().within(0, 1),
    }
}

fn is_position(text: &str) -> bool {
    text.parse::<Position>().is_ok()
}

pub(super) const OPAQUE: &str = "RRGGBB in hexadecimal digits, without #";

pub(super) fn is_opaque(text: &str) -> bool {
    text.len() == 6 && is_color(text)
}

/// A cubic Bézier curve on which time never runs backwards, as CSS wants it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Easing(pub [f64; 4]);

const EASINGS: [(&str, [f64; 4]); 5] = [
    ("linear", [0.0, 0.0, 1.0, 1.0]),
    ("ease", [0.25, 0.1, 0.25, 1.0]),
    ("ease-in", [0.42, 0.0, 1.0, 1.0]),
    ("ease-out", [0.0, 0.0, 0.58, 1.0]),
    ("ease-in-out", [0.42, 0.0, 0.58, 1.0]),
];
const EASING: &str = "linear, ease, ease-in, ease-out, ease-in-out, or four comma-separated \
    numbers, the first and the third from 0 to 1";

impl TryFrom<String> for Easing {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        easing(&text).map(Self).ok_or("no curve")
    }
}

fn easing(text: &str) -> Option<[f64; 4]> {
    if let Some(&(_, curve)) = EASINGS.iter().find(|(name, _)| *name == text) {
        return Some(curve);
    }
    let curve: [f64; 4] = numbers(text).filter(|_| is_bezier(text))?.try_into().ok()?;
    let forwards = [curve[0], curve[2]].iter().all(|x| (0.0..=1.0).contains(x));
    forwards.then_some(curve)
}

fn is_easing(text: &str) -> bool {
    easing(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves() {
        assert_eq!(easing("ease-in-out"), Some([0.42, 0.0, 0.58, 1.0]));
        assert_eq!(easing("0,-1,1,2.5"), Some([0.0, -1.0, 1.0, 2.5]));
        for bad in ["", "Ease", "1,2,3", "-0.1,0,1,1", "0,0,1.1,1", "0,0,1,inf"] {
            assert_eq!(easing(bad), None, "{bad}");
            assert!(!is_easing(bad), "{bad}");
        }
    }

    #[test]
    fn colours_without_transparency() {
        assert!(is_opaque("00aaFF"));
        for bad in ["", "00aaFF80", "0aF", "00aaFG"] {
            assert!(!is_opaque(bad), "{bad}");
        }
    }
}
