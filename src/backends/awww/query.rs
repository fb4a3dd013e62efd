//! What awww's client prints of its server's outputs: pure.

use std::path::Path;

use crate::compositor::Output;

/// What a picture is made for: the size of an output in the layout, after a quarter turn with its
/// sides swapped, and its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::backends) struct Geometry {
    size: (u32, u32),
    scale: f64,
}

impl Geometry {
    pub(super) fn of(output: &Output) -> Self {
        let size = (output.logical_width, output.logical_height);
        Self { size, scale: output.scale }
    }

    /// Whether both are words for the same: each rounds in its own way.
    fn is_about(self, other: Self) -> bool {
        let near = |one: u32, other: u32| one.abs_diff(other) <= 1;
        near(self.size.0, other.size.0)
            && near(self.size.1, other.size.1)
            && (self.scale - other.scale).abs() < 0.02
    }

    /// `1920x1080, scale` and `1,`.
    fn parse(size: &str, scale: &str) -> Option<Self> {
        let (width, height) = size.strip_suffix(", scale")?.split_once('x')?;
        let scale = scale.trim_end_matches(',').parse().ok()?;
        Some(Self { size: (width.parse().ok()?, height.parse().ok()?), scale })
    }
}

/// What the server says of an output.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::backends) struct Queried {
    pub(super) name: String,
    pub(super) geometry: Option<Geometry>,
    /// A path, as far as a line of text can hold it; none for a colour.
    pub(super) image: Option<String>,
}

impl Queried {
    /// Whether it has heard of the size that the output has by now; so where it tells of none.
    pub(super) fn is_as_large(&self, geometry: Geometry) -> bool {
        self.geometry.is_none_or(|own| own.is_about(geometry))
    }

    /// It follows the links of a path that it is given, and a name may have several lines.
    pub(super) fn shows(&self, path: &Path) -> bool {
        let is = |path: &Path| {
            let text = path.to_string_lossy();
            self.image.as_deref().is_some_and(|image| text.lines().next() == Some(image))
        };
        is(path) || path.canonicalize().is_ok_and(|file| is(&file))
    }
}

/// Lines like `NS: DP-1: 1920x1080, scale: 1, currently displaying: image: /a.png`; the namespace is
/// empty by default, and was not there before 0.11.
pub(in crate::backends) fn queried(text: &str) -> Vec<Queried> {
    let line = |line: &str| {
        let (before, shows) = line.split_once("currently displaying: ")?;
        let mut fields = before.split(": ").map(str::trim).filter(|field| !field.is_empty());
        // The name stands before the first field that is a size.
        let mut name = fields.next()?.trim_start_matches(": ").to_owned();
        let mut geometry = None;
        while let Some(field) = fields.next() {
            if field.starts_with(|c: char| c.is_ascii_digit()) && field.contains('x') {
                geometry = fields.next().and_then(|scale| Geometry::parse(field, scale));
                break;
            }
            name = field.to_owned();
        }
        let image = shows.strip_prefix("image: ").map(str::to_owned);
        Some(Queried { name, geometry, image })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says() {
        let queried =
            |text| queried(text).into_iter().map(|q| (q.name, q.image)).collect::<Vec<_>>();
        let image = |path: &str| Some(path.to_owned());
        let now = ": DP-1: 1920x1080, scale: 1, currently displaying: image: /a: b.png\n\
                   other: eDP-1: 800x600, scale: 2, currently displaying: color: 000000\n";
        assert_eq!(queried(now), [("DP-1".into(), image("/a: b.png")), ("eDP-1".into(), None)]);
        let before = "HDMI-A-1: 1280x720, scale: 1, currently displaying: image: /x.png";
        assert_eq!(queried(before), [("HDMI-A-1".into(), image("/x.png"))]);
        assert!(queried("nonsense").is_empty());
    }

    #[test]
    fn the_server_says_how_large_it_is() {
        let geometry = |size, scale| Geometry { size, scale };
        let check = |said: &str, expected| {
            let text = format!(": DP-1: {said}, currently displaying: image: /a.png");
            assert_eq!(queried(&text)[0].geometry, expected, "{said}");
        };
        check("1920x1080, scale: 1", Some(geometry((1920, 1080), 1.0)));
        check("320x180, scale: 1.5", Some(geometry((320, 180), 1.5)));
        check("1920xhigh, scale: 1", None);
        let known = geometry((2194, 1234), 1.75);
        let said = geometry((2195, 1234), 1.7583333);
        assert!(said.is_about(known));
        for other in [geometry((1234, 2194), 1.75), geometry((2194, 1234), 2.0)] {
            assert!(!other.is_about(known), "{other:?}");
        }
    }
}
