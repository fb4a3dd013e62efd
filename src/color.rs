//! Converts colours between sRGB, CIELAB (D65) and HSL, and computes distances and hue groups.
//!
//! Pure arithmetic: the same input gives the same output on every machine.

use std::fmt::Write;
use std::sync::LazyLock;

/// A colour in sRGB: red, green and blue.
pub type Rgb = [u8; 3];

/// Maximum number of colours of an image; the user may set more than the eight that murald finds.
pub(crate) const PALETTE_MAX: usize = 12;
/// The hue group of images without a colour that is not grey.
pub(crate) const NEUTRAL: u8 = 99;
/// Lab chroma below which a colour counts as grey.
const GREY: f32 = 10.0;
/// The white point D65.
const WHITE: [f32; 3] = [0.950_47, 1.0, 1.088_83];
/// CIE's ε and κ: the limit of the cube root, and the slope below it.
const EPSILON: f32 = 216.0 / 24389.0;
const KAPPA: f32 = 24389.0 / 27.0;

static LINEAR: LazyLock<[f32; 256]> = LazyLock::new(|| std::array::from_fn(|v| linear(v as f32)));

/// A colour in CIELAB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lab {
    pub l: f32,
    pub a: f32,
    pub b: f32,
}

impl Lab {
    /// The ΔE76: the Euclidean distance.
    pub fn distance(self, other: Self) -> f32 {
        self.distance_squared(other).sqrt()
    }

    pub fn distance_squared(self, other: Self) -> f32 {
        let (l, a, b) = (self.l - other.l, self.a - other.a, self.b - other.b);
        l * l + a * a + b * b
    }

    pub fn chroma(self) -> f32 {
        self.a.hypot(self.b)
    }
}

/// Hue from 0 up to 360 degrees; saturation and lightness from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hsl {
    pub hue: f32,
    pub saturation: f32,
    pub lightness: f32,
}

pub fn lab(rgb: Rgb) -> Lab {
    let [r, g, b] = rgb.map(|value| LINEAR[usize::from(value)]);
    let x = 0.412_456_4 * r + 0.357_576_1 * g + 0.180_437_5 * b;
    let y = 0.212_672_9 * r + 0.715_152_2 * g + 0.072_175 * b;
    let z = 0.019_333_9 * r + 0.119_192 * g + 0.950_304_1 * b;
    let root = |t: f32| {
        if t > EPSILON {
            t.cbrt()
        } else {
            (KAPPA * t + 16.0) / 116.0
        }
    };
    let (x, y, z) = (root(x / WHITE[0]), root(y / WHITE[1]), root(z / WHITE[2]));
    Lab {
        l: 116.0 * y - 16.0,
        a: 500.0 * (x - y),
        b: 200.0 * (y - z),
    }
}

/// Returns the nearest sRGB colour; colours outside sRGB are clipped.
pub(crate) fn rgb(lab: Lab) -> Rgb {
    let fy = (lab.l + 16.0) / 116.0;
    let cube = |f: f32| {
        if f * f * f > EPSILON {
            f * f * f
        } else {
            (116.0 * f - 16.0) / KAPPA
        }
    };
    let x = WHITE[0] * cube(fy + lab.a / 500.0);
    let y = WHITE[1] * cube(fy);
    let z = WHITE[2] * cube(fy - lab.b / 200.0);
    [
        3.240_454_2 * x - 1.537_138_5 * y - 0.498_531_4 * z,
        -0.969_266 * x + 1.876_010_8 * y + 0.041_556 * z,
        0.055_643_4 * x - 0.204_025_9 * y + 1.057_225_2 * z,
    ]
    .map(gamma)
}

pub(crate) fn hsl(rgb: Rgb) -> Hsl {
    let [r, g, b] = rgb.map(|value| f32::from(value) / 255.0);
    let (max, min) = (r.max(g).max(b), r.min(g).min(b));
    let (lightness, spread) = ((max + min) / 2.0, max - min);
    if spread == 0.0 {
        return Hsl {
            hue: 0.0,
            saturation: 0.0,
            lightness,
        };
    }
    let sector = if max == r {
        ((g - b) / spread).rem_euclid(6.0)
    } else if max == g {
        (b - r) / spread + 2.0
    } else {
        (r - g) / spread + 4.0
    };
    let saturation = spread / (1.0 - (2.0 * lightness - 1.0).abs());
    Hsl {
        hue: sector * 60.0,
        saturation,
        lightness,
    }
}

/// Returns the hue group of the first colour that is not grey, or [`NEUTRAL`]. `colors` has the
/// most dominant first. The twelve groups are 30° wide; group 0 is centred on red.
pub fn hue_group(colors: &[Rgb]) -> u8 {
    match colors.iter().find(|&&color| !is_grey(lab(color))) {
        Some(&color) => (((hsl(color).hue + 15.0) % 360.0) / 30.0) as u8,
        None => NEUTRAL,
    }
}

/// Whether a colour has too little chroma to decide a hue group.
pub(crate) fn is_grey(lab: Lab) -> bool {
    lab.chroma() < GREY
}

/// Formats a colour as `#rrggbb`.
pub fn hex(rgb: Rgb) -> String {
    let mut text = String::with_capacity(7);
    let [r, g, b] = rgb;
    write!(text, "#{r:02x}{g:02x}{b:02x}").expect("a String takes everything");
    text
}

/// Parses `#rrggbb`, `rrggbb`, `#rgb` or the name of a CSS colour.
pub fn parse(text: &str) -> Option<Rgb> {
    parse_hex(text).or_else(|| named(text))
}

/// Parses `#rrggbb`, `rrggbb` or `#rgb`, in upper or lower case.
pub(crate) fn parse_hex(text: &str) -> Option<Rgb> {
    let (digits, is_marked) = text
        .strip_prefix('#')
        .map_or((text, false), |digits| (digits, true));
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    match digits.len() {
        6 => Some([(value >> 16) as u8, (value >> 8) as u8, value as u8]),
        // Each digit is doubled.
        3 if is_marked => {
            Some([value >> 8, value >> 4 & 15, value & 15].map(|digit| digit as u8 * 17))
        }
        _ => None,
    }
}

/// Parses `#rrggbb` or `#rgb`.
pub(crate) fn marked(text: &str) -> Option<Rgb> {
    parse_hex(text).filter(|_| text.starts_with('#'))
}

/// Returns the image id that stands for a plain colour; it is negative, unlike those of images.
pub(crate) fn image_id([r, g, b]: Rgb) -> i64 {
    !i64::from(u32::from_be_bytes([0, r, g, b]))
}

/// Returns the plain colour that an id stands for; `None` if it is an image's id.
pub(crate) fn from_image_id(id: i64) -> Option<Rgb> {
    let value = u32::try_from(!id).ok().filter(|value| *value < 1 << 24)?;
    let [_, r, g, b] = value.to_be_bytes();
    Some([r, g, b])
}

fn named(name: &str) -> Option<Rgb> {
    let mut named = NAMES.split(' ').filter_map(|word| word.split_once('='));
    named
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .and_then(|(_, hex)| parse_hex(hex))
}

/// Converts an sRGB value from 0 to 255 to linear light.
pub(crate) fn linear(value: f32) -> f32 {
    let value = value / 255.0;
    if value <= 0.040_45 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

fn gamma(light: f32) -> u8 {
    let value = if light <= 0.003_130_8 {
        light * 12.92
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    };
    (value * 255.0).round().clamp(0.0, 255.0) as u8
}

/// The named colours of CSS (CSS Color Module Level 4).
const NAMES: &str = "\
    aliceblue=f0f8ff antiquewhite=faebd7 aqua=00ffff aquamarine=7fffd4 azure=f0ffff beige=f5f5dc \
    bisque=ffe4c4 black=000000 blanchedalmond=ffebcd blue=0000ff blueviolet=8a2be2 brown=a52a2a \
    burlywood=deb887 cadetblue=5f9ea0 chartreuse=7fff00 chocolate=d2691e coral=ff7f50 \
    cornflowerblue=6495ed cornsilk=fff8dc crimson=dc143c cyan=00ffff darkblue=00008b \
    darkcyan=008b8b darkgoldenrod=b8860b darkgray=a9a9a9 darkgreen=006400 darkgrey=a9a9a9 \
    darkkhaki=bdb76b darkmagenta=8b008b darkolivegreen=556b2f darkorange=ff8c00 \
    darkorchid=9932cc darkred=8b0000 darksalmon=e9967a darkseagreen=8fbc8f darkslateblue=483d8b \
    darkslategray=2f4f4f darkslategrey=2f4f4f darkturquoise=00ced1 darkviolet=9400d3 \
    deeppink=ff1493 deepskyblue=00bfff dimgray=696969 dimgrey=696969 dodgerblue=1e90ff \
    firebrick=b22222 floralwhite=fffaf0 forestgreen=228b22 fuchsia=ff00ff gainsboro=dcdcdc \
    ghostwhite=f8f8ff gold=ffd700 goldenrod=daa520 gray=808080 green=008000 greenyellow=adff2f \
    grey=808080 honeydew=f0fff0 hotpink=ff69b4 indianred=cd5c5c indigo=4b0082 ivory=fffff0 \
    khaki=f0e68c lavender=e6e6fa lavenderblush=fff0f5 lawngreen=7cfc00 lemonchiffon=fffacd \
    lightblue=add8e6 lightcoral=f08080 lightcyan=e0ffff lightgoldenrodyellow=fafad2 \
    lightgray=d3d3d3 lightgreen=90ee90 lightgrey=d3d3d3 lightpink=ffb6c1 lightsalmon=ffa07a \
    lightseagreen=20b2aa lightskyblue=87cefa lightslategray=778899 lightslategrey=778899 \
    lightsteelblue=b0c4de lightyellow=ffffe0 lime=00ff00 limegreen=32cd32 linen=faf0e6 \
    magenta=ff00ff maroon=800000 mediumaquamarine=66cdaa mediumblue=0000cd mediumorchid=ba55d3 \
    mediumpurple=9370db mediumseagreen=3cb371 mediumslateblue=7b68ee mediumspringgreen=00fa9a \
    mediumturquoise=48d1cc mediumvioletred=c71585 midnightblue=191970 mintcream=f5fffa \
    mistyrose=ffe4e1 moccasin=ffe4b5 navajowhite=ffdead navy=000080 oldlace=fdf5e6 olive=808000 \
    olivedrab=6b8e23 orange=ffa500 orangered=ff4500 orchid=da70d6 palegoldenrod=eee8aa \
    palegreen=98fb98 paleturquoise=afeeee palevioletred=db7093 papayawhip=ffefd5 \
    peachpuff=ffdab9 peru=cd853f pink=ffc0cb plum=dda0dd powderblue=b0e0e6 purple=800080 \
    rebeccapurple=663399 red=ff0000 rosybrown=bc8f8f royalblue=4169e1 saddlebrown=8b4513 \
    salmon=fa8072 sandybrown=f4a460 seagreen=2e8b57 seashell=fff5ee sienna=a0522d silver=c0c0c0 \
    skyblue=87ceeb slateblue=6a5acd slategray=708090 slategrey=708090 snow=fffafa \
    springgreen=00ff7f steelblue=4682b4 tan=d2b48c teal=008080 thistle=d8bfd8 tomato=ff6347 \
    turquoise=40e0d0 violet=ee82ee wheat=f5deb3 white=ffffff whitesmoke=f5f5f5 yellow=ffff00 \
    yellowgreen=9acd32";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lab_of_known_colors() {
        let check = |rgb, l: f32, a: f32, b: f32| {
            let distance = lab(rgb).distance(Lab { l, a, b });
            assert!(distance < 0.05, "{rgb:?} is {:?}", lab(rgb));
        };
        check([255, 255, 255], 100.0, 0.0, 0.0);
        check([0, 0, 0], 0.0, 0.0, 0.0);
        check([255, 0, 0], 53.24, 80.09, 67.20);
        check([0, 255, 0], 87.73, -86.18, 83.18);
        check([0, 0, 255], 32.30, 79.19, -107.86);
        check([128, 128, 128], 53.59, 0.0, 0.0);
    }

    #[test]
    fn colors_survive_conversion_to_lab_and_back() {
        for value in (0..1 << 24).step_by(977) {
            let color = [(value >> 16) as u8, (value >> 8) as u8, value as u8];
            assert_eq!(rgb(lab(color)), color);
        }
    }

    #[test]
    fn hue_groups_are_centered_on_red() {
        let check = |hex, group| {
            assert_eq!(hue_group(&[parse_hex(hex).unwrap()]), group, "{hex}");
        };
        check("#ff0000", 0);
        check("#ff003f", 0);
        check("#ff0040", 11);
        check("#ff3f00", 0);
        check("#ff4000", 1);
        check("#ffff00", 2);
        check("#00ff00", 4);
        check("#00ffff", 6);
        check("#0000ff", 8);
        check("#ff00ff", 10);
        check("#808080", NEUTRAL);
        assert_eq!(hue_group(&[]), NEUTRAL);
        assert_eq!(
            hue_group(&[[9, 9, 9], [250, 250, 250], [0, 0, 255], [255, 0, 0]]),
            8
        );
    }

    #[test]
    fn hex_colors_are_formatted_and_parsed() {
        assert_eq!(hex([0, 171, 255]), "#00abff");
        assert_eq!(parse_hex("#00ABff"), Some([0, 171, 255]));
        assert_eq!(parse_hex("00abff"), Some([0, 171, 255]));
        for bad in [
            "", "#", "#00abf", "#00abfff", "#00abfg", "+0abff", "#+0abf", "##00abf", "é0abf",
        ] {
            assert_eq!(parse_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn color_ids_are_distinct_from_image_ids() {
        for color in [[0, 0, 0], [1, 2, 3], [255; 3]] {
            let id = image_id(color);
            assert_eq!((id < 0, from_image_id(id)), (true, Some(color)));
        }
        for id in [i64::MIN, image_id([255; 3]) - 1, 0, 1, i64::MAX] {
            assert_eq!(from_image_id(id), None, "{id}");
        }
    }

    #[test]
    fn css_color_names_are_parsed() {
        assert_eq!(NAMES.split(' ').count(), 148);
        for word in NAMES.split(' ') {
            let (name, hex) = word.split_once('=').unwrap();
            assert!(
                named(name).is_some_and(|rgb| super::hex(rgb)[1..] == *hex),
                "{word}"
            );
        }
        assert_eq!(parse("RebeccaPurple"), Some([0x66, 0x33, 0x99]));
        assert_eq!((parse("bluish"), parse("")), (None, None));
    }
}
