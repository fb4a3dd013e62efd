//! Texts with a form of their own: curves, sizes, colours.

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
    let number = |part: &str| part.trim().parse().ok().filter(|value: &f64| value.is_finite());
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
}
