//! What awww's client prints of its server's outputs: pure.

use std::path::Path;

/// What the server says of an output.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::backends) struct Queried {
    pub(super) name: String,
    /// A path, as far as a line of text can hold it; none for a colour.
    pub(super) image: Option<String>,
}

impl Queried {
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
        for field in fields {
            if field.starts_with(|c: char| c.is_ascii_digit()) && field.contains('x') {
                break;
            }
            name = field.to_owned();
        }
        let image = shows.strip_prefix("image: ").map(str::to_owned);
        Some(Queried { name, image })
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
}
