//! Builds the calls of awww's client, and reads the output of its query. Pure.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::compositor::Output;
use crate::config::{Awww as Options, AwwwFilter, AwwwResize, AwwwTransition};

/// A picture, and the options that affect its look after the transition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PictureLook {
    pub(super) path: PathBuf,
    pub(super) resize: AwwwResize,
    fill_color: String,
    filter: AwwwFilter,
}

impl PictureLook {
    pub(super) fn new(path: PathBuf, options: &Options, resize: AwwwResize) -> Self {
        Self {
            path,
            resize,
            fill_color: options.fill_color.clone(),
            filter: options.filter_type,
        }
    }
}

/// A picture on an output, and the size of the output: awww stretches a picture over a new size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MonitorPicture {
    pub(super) look: PictureLook,
    pub(super) geometry: Geometry,
}

/// One call of the client: a picture, and the outputs that share it.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) look: PictureLook,
    pub(super) outputs: Vec<String>,
    /// The outputs have the picture already, but for another size.
    pub(super) is_resize: bool,
    /// The sizes of the outputs whose current size the server may not know yet.
    sizes: Vec<(String, Geometry)>,
}

impl Call {
    /// An output of this call that does not show the picture.
    pub(super) fn missing(&self, outputs: &[Queried]) -> Option<&str> {
        let is_there =
            |name: &String| on(outputs, name).is_some_and(|output| output.shows(&self.look.path));
        self.outputs
            .iter()
            .find(|name| !is_there(name))
            .map(String::as_str)
    }

    /// Whether the server knows the current sizes of this call's outputs.
    pub(super) fn sizes_are_known(&self, outputs: &[Queried]) -> bool {
        self.sizes.iter().all(|(name, geometry)| {
            on(outputs, name).is_some_and(|output| output.is_as_large(*geometry))
        })
    }

    /// Whether this call's outputs have the same sizes before and after it, so that the picture fits
    /// them.
    pub(super) fn are_sizes_of(&self, before: &[Queried], after: &[Queried]) -> bool {
        let size = |outputs, name| on(outputs, name).and_then(|output| output.geometry);
        self.outputs
            .iter()
            .all(|name| size(before, name) == size(after, name))
    }
}

fn on<'a>(outputs: &'a [Queried], name: &str) -> Option<&'a Queried> {
    outputs.iter().find(|output| output.name == name)
}

/// The calls for outputs that do not show what they should.
pub(super) fn calls(
    wanted: &[(String, MonitorPicture)],
    shown: &HashMap<String, Option<MonitorPicture>>,
    outputs: &[Queried],
) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for (name, want) in wanted {
        // The server reports the picture, but not its fit; only `shown` has that.
        let is_same = shown.get(name).is_none_or(|had| had.as_ref() == Some(want));
        if is_same && on(outputs, name).is_some_and(|output| output.shows(&want.look.path)) {
            continue;
        }
        let had = shown.get(name).and_then(Option::as_ref);
        let knows_size = had.is_some_and(|had| had.geometry == want.geometry);
        let is_resize = !knows_size && had.is_some_and(|had| had.look == want.look);
        let is_its = |call: &Call| call.look == want.look && call.is_resize == is_resize;
        let at = calls.iter().position(is_its).unwrap_or_else(|| {
            let look = want.look.clone();
            calls.push(Call {
                look,
                outputs: Vec::new(),
                is_resize,
                sizes: Vec::new(),
            });
            calls.len() - 1
        });
        calls[at].outputs.push(name.clone());
        if !knows_size {
            calls[at].sizes.push((name.clone(), want.geometry));
        }
    }
    calls
}

pub(super) fn args(options: &Options, outputs: &[String], path: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["img".into()];
    // Flag and value are one argument: a value with a leading minus would be taken for a flag.
    let mut add = |flag: &str, value: String| args.push(format!("{flag}={value}").into());
    add("--outputs", outputs.join(","));
    add("--resize", options.resize.to_string());
    add("--fill-color", options.fill_color.clone());
    add("--filter", options.filter_type.to_string());
    add("--transition-type", options.transition_type.to_string());
    if options.transition_type != AwwwTransition::None {
        add("--transition-step", options.transition_step.to_string());
    }
    if options.transition_duration > 0.0 {
        add(
            "--transition-duration",
            options.transition_duration.to_string(),
        );
    }
    add("--transition-fps", options.transition_fps.to_string());
    add("--transition-angle", options.transition_angle.to_string());
    add("--transition-pos", without_blanks(&options.transition_pos));
    add(
        "--transition-bezier",
        without_blanks(&options.transition_bezier),
    );
    add(
        "--transition-wave",
        without_blanks(&options.transition_wave),
    );
    if options.invert_y {
        args.push("--invert-y".into());
    }
    args.extend(["--".into(), path.as_os_str().to_owned()]);
    args
}

/// Removes blanks between numbers, which the settings allow and awww does not.
fn without_blanks(numbers: &str) -> String {
    numbers.split_whitespace().collect()
}

/// The size that a picture is made for: the size of an output in the layout, with its sides swapped
/// after a quarter turn, and its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::backends) struct Geometry {
    size: (u32, u32),
    scale: f64,
}

impl Geometry {
    pub(super) fn from_output(output: &Output) -> Self {
        Self {
            size: (output.logical_width, output.logical_height),
            scale: output.scale,
        }
    }

    /// Whether both are the same size: the compositor and awww round in different ways.
    fn is_about(self, other: Self) -> bool {
        let near = |one: u32, other: u32| one.abs_diff(other) <= 1;
        near(self.size.0, other.size.0)
            && near(self.size.1, other.size.1)
            && (self.scale - other.scale).abs() < 0.02
    }

    /// Reads the fields `1920x1080, scale` and `1,`.
    fn parse(size: &str, scale: &str) -> Option<Self> {
        let (width, height) = size.strip_suffix(", scale")?.split_once('x')?;
        let scale = scale.trim_end_matches(',').parse().ok()?;
        Some(Self {
            size: (width.parse().ok()?, height.parse().ok()?),
            scale,
        })
    }
}

/// An output, as the server reports it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::backends) struct Queried {
    pub(super) name: String,
    pub(super) geometry: Option<Geometry>,
    /// The first line of the picture's path; `None` for a colour.
    pub(super) image: Option<String>,
}

impl Queried {
    /// Whether the server knows the current size of the output; true if it reports no size.
    pub(super) fn is_as_large(&self, geometry: Geometry) -> bool {
        self.geometry.is_none_or(|own| own.is_about(geometry))
    }

    /// Whether the output shows this file. The server follows symbolic links, and reports the first line
    /// of a path only.
    pub(super) fn shows(&self, path: &Path) -> bool {
        let is = |path: &Path| {
            let text = path.to_string_lossy();
            self.image
                .as_deref()
                .is_some_and(|image| text.lines().next() == Some(image))
        };
        is(path) || path.canonicalize().is_ok_and(|file| is(&file))
    }
}

/// Reads lines like `NS: DP-1: 1920x1080, scale: 1, currently displaying: image: /a.png`. The namespace
/// is empty by default, and missing before 0.11.
pub(in crate::backends) fn queried(text: &str) -> Vec<Queried> {
    let line = |line: &str| {
        let (before, shows) = line.split_once("currently displaying: ")?;
        let mut fields = before
            .split(": ")
            .map(str::trim)
            .filter(|field| !field.is_empty());
        // The name precedes the first field that is a size.
        let mut name = fields.next()?.trim_start_matches(": ").to_owned();
        let mut geometry = None;
        while let Some(field) = fields.next() {
            if field.starts_with(|c: char| c.is_ascii_digit()) && field.contains('x') {
                geometry = fields
                    .next()
                    .and_then(|scale| Geometry::parse(field, scale));
                break;
            }
            name = field.to_owned();
        }
        let image = shows.strip_prefix("image: ").map(str::to_owned);
        Some(Queried {
            name,
            geometry,
            image,
        })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compositor::Output;

    #[test]
    fn command_line_has_all_options() {
        let outputs = ["DP-1".to_owned(), "HDMI-A-1".to_owned()];
        let check = |options: &Options, changed: &[(&str, Option<&str>)]| {
            let mut expected = vec![
                ("--resize", "crop"),
                ("--fill-color", "000000"),
                ("--filter", "Lanczos3"),
                ("--transition-type", "wipe"),
                ("--transition-step", "90"),
                ("--transition-duration", "3"),
                ("--transition-fps", "60"),
                ("--transition-angle", "45"),
                ("--transition-pos", "center"),
                ("--transition-bezier", "0.25,0.1,0.25,1.0"),
                ("--transition-wave", "20,20"),
            ];
            for &(flag, value) in changed {
                let at = expected
                    .iter()
                    .position(|(known, _)| *known == flag)
                    .unwrap();
                match value {
                    Some(value) => expected[at].1 = value,
                    None => drop(expected.remove(at)),
                }
            }
            let mut words = vec!["img".to_owned(), "--outputs=DP-1,HDMI-A-1".to_owned()];
            words.extend(
                expected
                    .iter()
                    .map(|(flag, value)| format!("{flag}={value}")),
            );
            words.extend(options.invert_y.then(|| "--invert-y".to_owned()));
            words.extend(["--", "/-a b,#.png"].map(str::to_owned));
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            assert_eq!(args(options, &outputs, Path::new("/-a b,#.png")), words);
        };
        let default = Options::default();
        check(&default, &[]);
        check(
            &Options {
                transition_type: AwwwTransition::None,
                ..default.clone()
            },
            &[
                ("--transition-type", Some("none")),
                ("--transition-step", None),
            ],
        );
        check(
            &Options {
                transition_duration: 0.0,
                ..default.clone()
            },
            &[("--transition-duration", None)],
        );
        check(
            &Options {
                invert_y: true,
                ..default.clone()
            },
            &[],
        );
        let odd = Options {
            transition_angle: -30.0,
            transition_pos: "0.4, 0.9".to_owned(),
            transition_bezier: " -0.5, 0,1 ,1".to_owned(),
            transition_wave: "20,\t20".to_owned(),
            ..default
        };
        let plain = [
            ("--transition-angle", Some("-30")),
            ("--transition-pos", Some("0.4,0.9")),
            ("--transition-bezier", Some("-0.5,0,1,1")),
        ];
        check(&odd, &plain);
    }

    #[test]
    fn calls_are_made_only_for_outputs_that_differ() {
        let options = Options::default();
        let on = |path: &str, resize, turned| {
            let mut output = Output::plain("A");
            if turned {
                (output.logical_width, output.logical_height) = (1080, 1920);
            }
            MonitorPicture {
                look: PictureLook::new(path.into(), &options, resize),
                geometry: Geometry::from_output(&output),
            }
        };
        let shown = |path: &str| on(path, AwwwResize::Crop, false);
        let check = |wanted: &[(&str, MonitorPicture)],
                     had: &[(&str, MonitorPicture)],
                     expected: &[(&str, &[&str])]| {
            let own = |list: &[(&str, MonitorPicture)]| -> Vec<(String, MonitorPicture)> {
                list.iter()
                    .map(|(name, shown)| ((*name).to_owned(), shown.clone()))
                    .collect()
            };
            let outputs = [("A", "/a"), ("B", "/b"), ("C", "/c")].map(|(name, path)| Queried {
                name: name.into(),
                geometry: None,
                image: Some(path.into()),
            });
            let had = own(had)
                .into_iter()
                .map(|(name, shown)| (name, Some(shown)));
            let calls = calls(&own(wanted), &had.collect(), &outputs);
            let seen: Vec<_> = calls
                .iter()
                .map(|call| (call.look.path.to_str().unwrap(), call.outputs.clone()))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(path, names)| (*path, names.iter().map(|n| (*n).to_owned()).collect()))
                .collect();
            assert_eq!(seen, expected);
        };
        check(&[("A", shown("/a"))], &[], &[]);
        // Outputs of different sizes share a call.
        check(
            &[
                ("A", shown("/x")),
                ("B", shown("/b")),
                ("C", on("/x", AwwwResize::Crop, true)),
            ],
            &[],
            &[("/x", &["A", "C"])],
        );
        let contain = on("/a", AwwwResize::Fit, false);
        check(&[("A", shown("/a"))], &[("A", contain)], &[("/a", &["A"])]);
        check(
            &[("A", on("/a", AwwwResize::Crop, true))],
            &[("A", shown("/a"))],
            &[("/a", &["A"])],
        );
        // Another program has changed the picture.
        check(
            &[("A", shown("/x"))],
            &[("A", shown("/x"))],
            &[("/x", &["A"])],
        );
    }

    #[test]
    fn server_messages_are_understood() {
        let queried = |text| {
            queried(text)
                .into_iter()
                .map(|q| (q.name, q.image))
                .collect::<Vec<_>>()
        };
        let image = |path: &str| Some(path.to_owned());
        let now = ": DP-1: 1920x1080, scale: 1, currently displaying: image: /a: b.png\n\
                   other: eDP-1: 800x600, scale: 2, currently displaying: color: 000000\n";
        assert_eq!(
            queried(now),
            [("DP-1".into(), image("/a: b.png")), ("eDP-1".into(), None)]
        );
        let before = "HDMI-A-1: 1280x720, scale: 1, currently displaying: image: /x.png";
        assert_eq!(queried(before), [("HDMI-A-1".into(), image("/x.png"))]);
        assert!(queried("nonsense").is_empty());
    }

    #[test]
    fn size_of_an_output_is_read_from_the_query() {
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
