//! The text forms of settings that several backends share: curves, sizes and colours. Pure.

use serde::Deserialize;

/// A cubic Bézier curve as CSS writes it: `x1,y1,x2,y2`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bezier(pub [f64; 4]);

impl TryFrom<String> for Bezier {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let numbers = numbers(&text).ok_or("not numbers")?;
        numbers.try_into().map(Self).map_err(|_| "not four numbers")
    }
}

/// Comma-separated finite numbers.
pub(super) fn numbers(text: &str) -> Option<Vec<f64>> {
    let number = |part: &str| {
        part.trim()
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
    };
    text.split(',').map(number).collect()
}

pub(super) const BEZIER: &str = "four comma-separated numbers";
pub(super) const COLOR: &str = "RRGGBB or RRGGBBAA in hexadecimal digits, without #";

pub(super) fn is_bezier(text: &str) -> bool {
    numbers(text).is_some_and(|numbers| numbers.len() == 4)
}

/// A width and a height, neither below 0.
pub(super) fn is_size(text: &str) -> bool {
    numbers(text).is_some_and(|n| n.len() == 2 && n.iter().all(|&side| side >= 0.0))
}

pub(super) fn is_color(text: &str) -> bool {
    matches!(text.len(), 6 | 8) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
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
pub(super) const EASING: &str = "linear, ease, ease-in, ease-out, ease-in-out, or four comma-separated \
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
    let curve: [f64; 4] = numbers(text)?.try_into().ok()?;
    let forwards = [curve[0], curve[2]].iter().all(|x| (0.0..=1.0).contains(x));
    forwards.then_some(curve)
}

pub(super) fn is_easing(text: &str) -> bool {
    easing(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_sizes_and_colors_are_recognised() {
        for good in ["0.25,0.1,0.25,1.0", " 0, 1 ,2,-3"] {
            assert!(is_bezier(good), "{good}");
        }
        for bad in ["", "1,2,3", "1,2,3,4,5", "1,2,3,inf", "a,b,c,d", "1,2,3,"] {
            assert!(!is_bezier(bad), "{bad}");
        }
        assert!(is_size("20,20") && !is_size("20") && !is_size("-1,2"));
        assert!(
            is_color("00ffAA") && is_color("00ffAA80") && !is_color("#00ffAA") && !is_color("0é0é")
        );
    }

    #[test]
    fn easings_are_parsed() {
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
