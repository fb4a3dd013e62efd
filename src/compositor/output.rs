//! Defines an output as the compositor describes it, and the identity of its monitor: maker, model,
//! serial. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A connected output that shows something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    pub description: String,
    #[serde(flatten)]
    pub identity: Identity,
    /// Pixels of the mode, before the transform.
    pub width: u32,
    pub height: u32,
    /// Position and size in the layout, after scale and transform.
    pub x: i32,
    pub y: i32,
    pub logical_width: u32,
    pub logical_height: u32,
    pub scale: f64,
    /// Hz; 0 if the compositor does not report it.
    pub refresh_rate: f64,
    /// 0 normal, 1 = 90°, 2 = 180°, 3 = 270°, 4 to 7 the flipped ones (`wl_output.transform`).
    pub transform: u8,
    /// X11 only.
    pub primary: bool,
    /// A number that differs each time the output is connected: an output that was disconnected and
    /// connected again shows nothing of what it showed before.
    #[serde(skip)]
    pub instance: u64,
    /// X11 only: which monitors of the server's list these pixels are on. Clones are one output.
    #[serde(default)]
    pub heads: Vec<usize>,
}

/// A size in pixels after a transform.
pub(super) fn turned((width, height): (u32, u32), transform: u8) -> (u32, u32) {
    if transform % 2 == 1 {
        (height, width)
    } else {
        (width, height)
    }
}

impl Output {
    /// The pixels of the mode after the transform.
    pub(crate) fn turned_size(&self) -> (u32, u32) {
        turned((self.width, self.height), self.transform)
    }
}

#[cfg(test)]
impl Output {
    /// An output of 1920x1080 at the origin, with nothing else set.
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
            identity: Identity::default(),
            instance: 0,
            heads: Vec::new(),
        }
    }
}

/// The scale that turns `pixels` into `logical`. `wl_output.scale` is rounded up to an integer, and the
/// logical size is rounded to whole pixels, so several scales fit: this is the roundest of them.
pub(super) fn scale(pixels: (u32, u32), logical: (u32, u32)) -> f64 {
    let fits = |scale: f64| {
        let close = |pixels: u32, logical: u32| {
            (f64::from(pixels) / scale - f64::from(logical)).abs() < 1.0
        };
        close(pixels.0, logical.0) && close(pixels.1, logical.1)
    };
    let estimate = f64::from(pixels.0) / f64::from(logical.0);
    // Compositors use quarters, tenths, and (fractional-scale-v1) parts of 120.
    let steps = [1.0, 2.0, 4.0, 10.0, 20.0, 120.0];
    let rounded = steps.map(|step| (estimate * step).round() / step);
    rounded
        .into_iter()
        .find(|&scale| scale > 0.0 && fits(scale))
        .unwrap_or(estimate)
}

/// The maker, the model and the serial number of a monitor; empty if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    pub make: String,
    pub model: String,
    pub serial: String,
}

impl Identity {
    /// Reads the identity from a description, which has the form `MAKE MODEL SERIAL (NAME)` in wlroots
    /// and others.
    pub(super) fn described((make, model): (&str, &str), description: &str, name: &str) -> Self {
        let text = description
            .strip_suffix(&format!("({name})"))
            .unwrap_or(description);
        // Without a maker or a model it is unknown where the serial number begins.
        let text = if make.is_empty() || model.is_empty() {
            ""
        } else {
            text
        };
        let rest = text.strip_prefix(make).map(str::trim_start);
        let rest = rest.and_then(|rest| rest.strip_prefix(model));
        // The serial number is a word of its own; otherwise this is the prefix of a longer model.
        let serial = rest
            .filter(|rest| rest.starts_with(' '))
            .unwrap_or_default();
        let told = |text: &str| known(text).to_owned();
        Self {
            make: told(make),
            model: told(model),
            serial: told(serial),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        [&self.make, &self.model, &self.serial]
            .iter()
            .all(|part| !known(part).is_empty())
    }
}

/// Removes the words that compositors use for unknown values.
fn known(text: &str) -> &str {
    let text = text.trim();
    if text.eq_ignore_ascii_case("unknown") {
        ""
    } else {
        text
    }
}

/// The identity of each monitor by the name of its output, if maker, model and serial number are known
/// and no other monitor has the same.
pub(crate) fn identities(outputs: &[Output]) -> BTreeMap<String, String> {
    named(outputs, true)
}

/// The outputs of monitors that cannot be told apart. Their connectors count, even once only one of them
/// is left.
pub(crate) fn alike(outputs: &[Output]) -> Vec<String> {
    named(outputs, false).into_keys().collect()
}

fn named(outputs: &[Output], alone: bool) -> BTreeMap<String, String> {
    let whole = outputs.iter().filter(|output| output.identity.is_whole());
    let of = |Identity {
                  make,
                  model,
                  serial,
              }: &Identity| [&**make, model, serial].join("\u{1f}");
    let all: Vec<(String, String)> = whole
        .map(|output| (output.name.clone(), of(&output.identity)))
        .collect();
    let is_alone = |identity: &str| all.iter().filter(|(_, other)| other == identity).count() == 1;
    all.iter()
        .filter(|(_, identity)| is_alone(identity) == alone)
        .cloned()
        .collect()
}

/// The offset of the four descriptors of 18 bytes (VESA E-EDID 1.4, section 3.10).
const DESCRIPTORS: std::ops::Range<usize> = 54..126;
const NAME_TAG: u8 = 0xfc;
const SERIAL_TAG: u8 = 0xff;

/// Maker's code, model and serial number, such as `DEL`, `DELL U2720Q` and `8XK5H13`; empty if missing.
pub(super) fn edid_identity(edid: &[u8]) -> Identity {
    let header = [0, 255, 255, 255, 255, 255, 255, 0];
    let Some(block) = edid.get(..128).filter(|block| block.starts_with(&header)) else {
        return Identity::default();
    };
    // Three letters of five bits each, 1 for A.
    let code = u16::from_be_bytes([block[8], block[9]]);
    let make: String = [10, 5, 0]
        .map(|shift| char::from(b'@' + u8::try_from(code >> shift & 31).unwrap_or(0)))
        .iter()
        .collect();
    // Some makers give a number instead of the text, and it alone distinguishes two monitors of a model.
    let number = u32::from_le_bytes([block[12], block[13], block[14], block[15]]);
    let number = (number != 0).then(|| number.to_string());
    let serial = text(block, SERIAL_TAG).or(number).unwrap_or_default();
    Identity {
        make,
        model: text(block, NAME_TAG).unwrap_or_default(),
        serial,
    }
}

/// The text of a descriptor of this kind.
fn text(block: &[u8], tag: u8) -> Option<String> {
    block[DESCRIPTORS].chunks_exact(18).find_map(|descriptor| {
        let text = descriptor.strip_prefix(&[0, 0, 0, tag, 0])?;
        let end = text
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(text.len());
        let text: String = text[..end].iter().map(|&byte| printable(byte)).collect();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    })
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' {
        char::from(byte)
    } else {
        '?'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_is_the_one_that_was_set() {
        let check = |pixels: (u32, u32), set: f64| {
            let divided = |pixels: u32| f64::from(pixels) / set;
            let down = (divided(pixels.0) as u32, divided(pixels.1) as u32);
            assert_eq!(scale(pixels, down), set, "{pixels:?} rounded down");
            let near = (
                divided(pixels.0).round() as u32,
                divided(pixels.1).round() as u32,
            );
            assert_eq!(scale(pixels, near), set, "{pixels:?} rounded");
        };
        for pixels in [
            (1920, 1080),
            (3840, 2160),
            (1366, 768),
            (2256, 1504),
            (2880, 1800),
        ] {
            for set in [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0] {
                check(pixels, set);
            }
        }
    }

    #[test]
    fn description_has_the_serial_number_after_maker_and_model() {
        let check = |made, description, serial| {
            let identity = Identity::described(made, description, "DP-1");
            assert_eq!(identity.serial, serial, "{description}");
        };
        let dell = ("Dell Inc.", "DELL U2720Q");
        check(dell, "Dell Inc. DELL U2720Q 8XK5H13 (DP-1)", "8XK5H13");
        check(dell, "Dell Inc. DELL U2720Q 8XK5H13", "8XK5H13");
        check(dell, "Dell Inc. DELL U2720Q Unknown (DP-1)", "");
        check(dell, "Dell Inc. DELL U2720Q (DP-1)", "");
        check(dell, "Dell Inc. DELL U2720QM 8XK5H13 (DP-1)", "");
        check(dell, "Another 7", "");
    }

    #[test]
    fn monitors_that_are_alike_have_no_identity() {
        let output = |name: &str, serial: &str| Output {
            identity: Identity {
                make: "Dell Inc.".to_owned(),
                model: "DELL U2720Q".to_owned(),
                serial: serial.to_owned(),
            },
            ..Output::plain(name)
        };
        let check = |outputs: &[(&str, &str)], own: &[&str], twins: &[&str]| {
            let outputs: Vec<Output> = outputs
                .iter()
                .map(|(name, serial)| output(name, serial))
                .collect();
            let named: Vec<String> = identities(&outputs).into_keys().collect();
            let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!((named, alike(&outputs)), (names(own), names(twins)));
        };
        check(&[("A", "1"), ("B", "2")], &["A", "B"], &[]);
        check(&[("A", "1"), ("B", "1"), ("C", "2")], &["C"], &["A", "B"]);
        check(&[("A", ""), ("B", ""), ("C", "2")], &["C"], &[]);
        check(&[("B", "1")], &["B"], &[]);
    }

    fn block() -> Vec<u8> {
        let mut edid = vec![0; 128];
        edid[1..7].fill(255);
        edid[8..10].copy_from_slice(&[0x10, 0xac]);
        edid[72..77].copy_from_slice(&[0, 0, 0, NAME_TAG, 0]);
        edid[77..90].copy_from_slice(b"DELL U2720Q\n ");
        edid
    }

    #[test]
    fn edid_has_the_name_and_the_serial_number() {
        assert_eq!(edid_identity(&block()[..127]), Identity::default());
        assert_eq!(edid_identity(&block()).serial, "");
        let mut numbered = block();
        numbered[12..16].copy_from_slice(&[1, 2, 0, 0]);
        assert_eq!(edid_identity(&numbered).serial, "513");
        numbered[90..95].copy_from_slice(&[0, 0, 0, SERIAL_TAG, 0]);
        numbered[95..103].copy_from_slice(b"8XK5H13\n");
        let told = edid_identity(&numbered);
        let told = (
            told.make.as_str(),
            told.model.as_str(),
            told.serial.as_str(),
        );
        assert_eq!(told, ("DEL", "DELL U2720Q", "8XK5H13"));
        assert_eq!(edid_identity(&[0; 128]), Identity::default());
        let mut odd = block();
        odd[77..90].copy_from_slice(b"\x07\xffbcdefghijkl");
        assert_eq!(edid_identity(&odd).model, "??bcdefghijkl");
    }
}
