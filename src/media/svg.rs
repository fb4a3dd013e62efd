//! Detects SVG files, compressed or not, and reads the size from the root element. Another program
//! renders them.

use std::io::Read;

use flate2::read::GzDecoder;

use super::decoder::Input;
use super::error::Error;

/// Maximum number of bytes up to the end of the root element.
const TEXT_MAX: u64 = 64 << 10;
/// The size of an SVG without one; also the box into which one with only a view box is fitted.
const FRAME: (u32, u32) = (1920, 1080);
/// Maximum width and height of a rendered SVG.
const DRAWN_MAX: f64 = 8192.0;

/// Returns the size of a file if it is SVG.
pub(super) fn size(input: &mut dyn Input) -> Result<Option<(u32, u32)>, Error> {
    input.rewind().map_err(Error::Read)?;
    let mut text = Vec::new();
    input
        .take(TEXT_MAX)
        .read_to_end(&mut text)
        .map_err(Error::Read)?;
    if text.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut text);
        // Errors are ignored: the compressed data are truncated.
        GzDecoder::new(&packed[..])
            .take(TEXT_MAX)
            .read_to_end(&mut text)
            .ok();
    }
    Ok(root(&String::from_utf8_lossy(&text)).map(size_of))
}

/// Returns the text from the attributes of the root element on, if it is SVG.
fn root(text: &str) -> Option<&str> {
    let mut text = text.trim_start_matches('\u{feff}');
    loop {
        text = text.trim_start();
        let behind = |end| text.split_once(end).map(|(_, behind)| behind);
        if text.starts_with("<?") {
            text = behind("?>")?;
        } else if text.starts_with("<!--") {
            text = behind("-->")?;
        } else if text.starts_with("<!") {
            // The document type may contain declarations in brackets.
            let declares = text
                .find('[')
                .is_some_and(|at| text.find('>').is_some_and(|end| at < end));
            text = behind(if declares { "]" } else { ">" })?;
            text = text.trim_start().trim_start_matches('>');
        } else {
            let tag = text.strip_prefix('<')?;
            let end = tag.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/'))?;
            let (name, attributes) = tag.split_at(end);
            let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
            return (name == "svg").then_some(attributes);
        }
    }
}

/// Returns the value of an attribute.
fn value<'a>(mut attributes: &'a str, wanted: &str) -> Option<&'a str> {
    loop {
        let (name, rest) = attributes.split_once('=')?;
        if name.contains('>') {
            return None;
        }
        let rest = rest.trim_start();
        let quote = rest.chars().next().filter(|&c| c == '"' || c == '\'')?;
        let (value, behind) = rest[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(value);
        }
        attributes = behind;
    }
}

fn size_of(attributes: &str) -> (u32, u32) {
    let side = |name| value(attributes, name).and_then(pixels);
    let shape = value(attributes, "viewBox").and_then(|numbers| {
        let mut numbers = numbers
            .split([' ', ',', '\n', '\t'])
            .filter(|part| !part.is_empty());
        let mut positive = |nth| numbers.nth(nth)?.parse().ok().filter(is_positive);
        Some((positive(2)?, positive(0)?))
    });
    let (width, height) = match (side("width"), side("height"), shape) {
        (Some(width), Some(height), _) => (width, height),
        (Some(width), None, Some((w, h))) => (width, width * h / w),
        (None, Some(height), Some((w, h))) => (height * w / h, height),
        (_, _, Some((w, h))) => {
            let scale = (f64::from(FRAME.0) / w).min(f64::from(FRAME.1) / h);
            (w * scale, h * scale)
        }
        _ => return FRAME,
    };
    scaled((width, height), 1.0)
}

/// Returns the size at which an SVG of this size covers an output.
pub(crate) fn covering((width, height): (u32, u32), (wide, high): (u32, u32)) -> (u32, u32) {
    let (width, height) = (f64::from(width.max(1)), f64::from(height.max(1)));
    scaled(
        (width, height),
        (f64::from(wide) / width).max(f64::from(high) / height),
    )
}

fn scaled((width, height): (f64, f64), scale: f64) -> (u32, u32) {
    let scale = scale.min(DRAWN_MAX / width.max(height));
    let side = |side: f64| ((side * scale).round() as u32).max(1);
    (side(width), side(height))
}

fn is_positive(number: &f64) -> bool {
    number.is_finite() && *number > 0.0
}

/// Converts a length to pixels; returns `None` for relative lengths.
fn pixels(length: &str) -> Option<f64> {
    let length = length.trim();
    let end = length.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E') || c == '%');
    let em = length.strip_suffix("em").or(length.strip_suffix("ex"));
    let (number, unit) = match em {
        Some(number) => (number, &length[number.len()..]),
        None => length.split_at(end.unwrap_or(length.len())),
    };
    let unit = match unit {
        "" | "px" => 1.0,
        "pt" => 96.0 / 72.0,
        "pc" | "em" => 16.0,
        "ex" => 8.0,
        "in" => 96.0,
        "cm" => 96.0 / 2.54,
        "mm" => 96.0 / 25.4,
        _ => return None,
    };
    number
        .trim()
        .parse()
        .ok()
        .map(|number: f64| number * unit)
        .filter(is_positive)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn check(text: &str, expected: Option<(u32, u32)>) {
        assert_eq!(size(&mut Cursor::new(text)).unwrap(), expected, "{text}");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        assert_eq!(
            size(&mut Cursor::new(packed.finish().unwrap())).unwrap(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn svg_is_distinguished_from_other_text() {
        let own = Some((20, 10));
        check("<svg width='20' height='10'/>", own);
        let prolog = "\u{feff}<?xml version=\"1.0\"?>\n<!-- a > b -->\n";
        check(
            &format!("{prolog}<svg:svg\nheight = \"10px\" width=\"20\">"),
            own,
        );
        let kind = "<!DOCTYPE svg PUBLIC \"a\" \"b\" [ <!ENTITY x \"y\"> ]>";
        check(
            &format!("{prolog}{kind}<svg width='20' height='10'><g/></svg>"),
            own,
        );
        check(
            "<!DOCTYPE html><html><svg width='20' height='10'/></html>",
            None,
        );
        for text in [
            "",
            "<",
            "<svg",
            "svg",
            "<?xml",
            "<!-- <svg/>",
            "<![",
            "text",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn every_svg_has_a_size() {
        let check =
            |attributes: &str, expected| check(&format!("<svg {attributes}>"), Some(expected));
        check("", FRAME);
        check("width='100%' height='100%'", FRAME);
        check("width='1in' height='25.4mm' viewBox='0 0 5 5'", (96, 96));
        check("width='2em' height='3e1'", (32, 30));
        check("viewBox='0 0 24 24'", (1080, 1080));
        check("viewBox='0,0,200,100' width='50'", (50, 25));
        check("viewBox='0 0 0 0'", FRAME);
        check("width='-5' height='nan'", FRAME);
        check("width='99999' height='1'", (8192, 1));
        assert_eq!(covering((24, 24), (640, 360)), (640, 640));
        assert_eq!(covering((3840, 2160), (640, 360)), (640, 360));
        assert_eq!(covering((1, 1000), (640, 360)), (8, 8192));
    }
}
