//! Makes a colour scheme with readable text from an image's palette. Pure.

use crate::color::{self, Lab, Rgb, hex, lab};
use crate::wire::Tone;

/// The contrast that text needs (WCAG 2, 1.4.3), and that signs need (1.4.11).
const TEXT: f32 = 4.5;
const SIGN: f32 = 3.0;
/// Half way between black and white in L*.
const MIDDLE: f32 = 50.0;
/// The lightest dark background and the darkest light one: text of any hue is readable on them.
const DARKEST_LIGHT: f32 = 75.0;
const LIGHTEST_DARK: f32 = 30.0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    /// The appearance of desktop that the image suits.
    pub(super) appearance: Tone,
    pub(super) background: String,
    pub(super) foreground: String,
    pub(super) accent: String,
}

impl Scheme {
    /// The scheme of an image's colours, most dominant first.
    pub(super) fn from_colors(colors: &[String]) -> Self {
        let colors: Vec<Rgb> = colors
            .iter()
            .filter_map(|color| color::parse_hex(color))
            .collect();
        let labs: Vec<Lab> = colors.into_iter().map(lab).collect();
        let by_lightness = |one: &&Lab, other: &&Lab| one.l.total_cmp(&other.l);
        let (Some(darkest), Some(lightest)) = (
            labs.iter().min_by(by_lightness),
            labs.iter().max_by(by_lightness),
        ) else {
            return Self::without_colors();
        };
        // The first of the most colourful ones covers the largest area.
        let accent = labs
            .iter()
            .rev()
            .max_by(|one, other| one.chroma().total_cmp(&other.chroma()));
        // The first colour covers the largest area, such as the ground of a logo, and counts twice.
        let counted = labs.first().into_iter().chain(&labs);
        let mean = counted.map(|lab| lab.l).sum::<f32>() / (labs.len() + 1) as f32;
        let (appearance, background, foreground) = if mean < MIDDLE {
            (
                Tone::Dark,
                at(*darkest, darkest.l.min(LIGHTEST_DARK)),
                *lightest,
            )
        } else {
            (
                Tone::Light,
                at(*lightest, lightest.l.max(DARKEST_LIGHT)),
                *darkest,
            )
        };
        let readable = |lab, ratio| hex(readable(lab, background, ratio, appearance));
        Self {
            appearance,
            background: hex(background),
            foreground: readable(foreground, TEXT),
            accent: readable(*accent.unwrap_or(lightest), SIGN),
        }
    }

    fn without_colors() -> Self {
        let [background, foreground, accent] = ["#000000", "#ffffff", "#808080"].map(str::to_owned);
        Self {
            appearance: Tone::Dark,
            background,
            foreground,
            accent,
        }
    }
}

/// A colour that can be distinguished from `other`: `color` itself, or a lighter or darker one.
pub(super) fn distinct_from(other: &str, color: &str) -> String {
    let (Some(other), Some(rgb)) = (color::parse_hex(other), color::parse_hex(color)) else {
        return color.to_owned();
    };
    let appearance = if lab(other).l < MIDDLE {
        Tone::Dark
    } else {
        Tone::Light
    };
    hex(readable(lab(rgb), other, SIGN, appearance))
}

/// The colour itself if its contrast suffices, else the nearest one that does, towards white on dark
/// and towards black on light.
fn readable(color: Lab, background: Rgb, ratio: f32, appearance: Tone) -> Rgb {
    let (step, end) = match appearance {
        Tone::Dark => (1.0, [255; 3]),
        Tone::Light => (-1.0, [0; 3]),
    };
    let mut l = color.l;
    while (0.0..=100.0).contains(&l) {
        let tried = at(color, l);
        if contrast(tried, background) >= ratio {
            return tried;
        }
        l += step;
    }
    end
}

fn at(color: Lab, l: f32) -> Rgb {
    color::rgb(Lab { l, ..color })
}

/// From 1 to 21 (WCAG 2).
fn contrast(one: Rgb, other: Rgb) -> f32 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Relative luminance: CIE's Y.
fn luminance(rgb: Rgb) -> f32 {
    let [r, g, b] = rgb.map(|value| color::linear(value.into()));
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(colors: &[&str]) -> Scheme {
        Scheme::from_colors(
            &colors
                .iter()
                .map(|&color| color.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 0.001);
        assert!((contrast([119; 3], [255; 3]) - 4.478).abs() < 0.001);
        assert!((contrast([255, 0, 0], [255; 3]) - 3.998).abs() < 0.001);
    }

    #[test]
    fn scheme_uses_the_palette_if_it_is_readable() {
        let made = scheme(&["#101018", "#e0d0c0", "#c04020"]);
        let expected = Scheme {
            appearance: Tone::Dark,
            background: "#101018".to_owned(),
            foreground: "#e0d0c0".to_owned(),
            accent: "#c04020".to_owned(),
        };
        assert_eq!(made, expected);
        let made = scheme(&["#f4f0e8", "#203040", "#b0c8e0"]);
        assert_eq!(made.appearance, Tone::Light);
        assert_eq!(
            (&*made.background, &*made.foreground),
            ("#f4f0e8", "#203040")
        );
    }

    #[test]
    fn scheme_without_a_palette_is_white_on_black() {
        for none in [scheme(&[]), scheme(&["no colour"])] {
            let texts = (&*none.background, &*none.foreground, &*none.accent);
            assert_eq!(texts, ("#000000", "#ffffff", "#808080"));
            assert_eq!(none.appearance, Tone::Dark);
        }
    }

    #[test]
    fn scheme_of_any_palette_is_readable() {
        let parts = [0u8, 40, 90, 119, 128, 160, 200, 255];
        let colors: Vec<String> = parts
            .iter()
            .flat_map(|&r| parts.iter().map(move |&g| (r, g)))
            .flat_map(|(r, g)| parts.iter().map(move |&b| hex([r, g, b])))
            .collect();
        let check = |palette: &[String]| {
            let made = Scheme::from_colors(palette);
            let [background, foreground, accent] =
                [&made.background, &made.foreground, &made.accent]
                    .map(|color| color::parse_hex(color).unwrap());
            assert!(
                contrast(foreground, background) >= TEXT,
                "{palette:?}: {made:?}"
            );
            assert!(
                contrast(accent, background) >= SIGN,
                "{palette:?}: {made:?}"
            );
            for color in palette {
                let distinct = color::parse_hex(&distinct_from(&palette[0], color)).unwrap();
                let first = color::parse_hex(&palette[0]).unwrap();
                assert!(contrast(distinct, first) >= SIGN, "{palette:?}: {color}");
            }
            let dark = lab(background).l < MIDDLE;
            assert_eq!(dark, made.appearance == Tone::Dark, "{palette:?}: {made:?}");
        };
        colors
            .iter()
            .for_each(|color| check(std::slice::from_ref(color)));
        colors.windows(2).for_each(check);
        colors.chunks(8).for_each(check);
    }

    #[test]
    fn mean_lightness_decides_between_dark_and_light() {
        let check = |colors: &[&str], expected| assert_eq!(scheme(colors).appearance, expected);
        check(&["#ffffff", "#000000"], Tone::Light);
        check(&["#000000", "#ffffff"], Tone::Dark);
        check(&["#777777"], Tone::Light);
        check(&["#757575"], Tone::Dark);
    }
}
