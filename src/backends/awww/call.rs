//! What awww's client is called with, and for which outputs: pure.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::query::Queried;
use crate::backends::wish::fit_or;
use crate::config::{Awww as Options, AwwwFilter, AwwwResize, AwwwTransition, BackendName};
use crate::wire::Fit;

/// A picture and what decides how it looks once the transition is over.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) path: PathBuf,
    pub(super) resize: AwwwResize,
    fill_color: String,
    filter: AwwwFilter,
}

impl Shown {
    pub(super) fn new(path: PathBuf, options: &Options, fit: Option<Fit>) -> Self {
        let resize = fit_or(BackendName::Awww, fit, options.resize);
        let filter = options.filter_type;
        Self { path, resize, fill_color: options.fill_color.clone(), filter }
    }
}

/// One call of the client: a picture, and the outputs that share it.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) shown: Shown,
    pub(super) outputs: Vec<String>,
}

/// What is to be called for outputs that do not show what they should.
pub(super) fn calls(
    wanted: &[(String, Shown)],
    shown: &HashMap<String, Shown>,
    outputs: &[Queried],
) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for (name, want) in wanted {
        // The server knows the picture, not how it was fitted; that only whoever asked for it.
        let same_look = shown.get(name).is_none_or(|shown| shown == want);
        let hangs = |output: &Queried| output.name == *name && output.shows(&want.path);
        if same_look && outputs.iter().any(hangs) {
            continue;
        }
        match calls.iter_mut().find(|call| call.shown == *want) {
            Some(call) => call.outputs.push(name.clone()),
            None => calls.push(Call { shown: want.clone(), outputs: vec![name.clone()] }),
        }
    }
    calls
}

pub(super) fn args(options: &Options, outputs: &[String], path: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["img".into(), "--outputs".into(), outputs.join(",").into()];
    let mut add = |flag: &str, value: String| args.extend([flag.into(), value.into()]);
    add("--resize", options.resize.to_string());
    add("--fill-color", options.fill_color.clone());
    add("--filter", options.filter_type.to_string());
    add("--transition-type", options.transition_type.to_string());
    if options.transition_type != AwwwTransition::None {
        add("--transition-step", options.transition_step.to_string());
    }
    if options.transition_duration > 0.0 {
        add("--transition-duration", options.transition_duration.to_string());
    }
    add("--transition-fps", options.transition_fps.to_string());
    add("--transition-angle", options.transition_angle.to_string());
    add("--transition-pos", options.transition_pos.clone());
    add("--transition-bezier", options.transition_bezier.clone());
    add("--transition-wave", options.transition_wave.clone());
    if options.invert_y {
        args.push("--invert-y".into());
    }
    args.extend(["--".into(), path.as_os_str().to_owned()]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let outputs = ["DP-1".to_owned(), "HDMI-A-1".to_owned()];
        let check = |options: &Options, changed: &[(&str, Option<&str>)]| {
            let mut expected: Vec<(&str, Option<&str>)> = vec![
                ("--resize", Some("crop")),
                ("--fill-color", Some("000000")),
                ("--filter", Some("Lanczos3")),
                ("--transition-type", Some("wipe")),
                ("--transition-step", Some("90")),
                ("--transition-duration", Some("3")),
                ("--transition-fps", Some("60")),
                ("--transition-angle", Some("45")),
                ("--transition-pos", Some("center")),
                ("--transition-bezier", Some("0.25,0.1,0.25,1.0")),
                ("--transition-wave", Some("20,20")),
            ];
            for &(flag, value) in changed {
                match expected.iter_mut().find(|(known, _)| *known == flag) {
                    Some(entry) => entry.1 = value,
                    None => expected.push((flag, Some(""))),
                }
            }
            let mut words = vec!["img", "--outputs", "DP-1,HDMI-A-1"];
            for (flag, value) in expected {
                words.extend(value.map(|_| flag));
                words.extend(value.filter(|value| !value.is_empty()));
            }
            words.extend(["--", "/-a b,#.png"]);
            assert_eq!(args(options, &outputs, Path::new("/-a b,#.png")), words);
        };
        let default = Options::default();
        check(&default, &[]);
        check(
            &Options { transition_type: AwwwTransition::None, ..default.clone() },
            &[("--transition-type", Some("none")), ("--transition-step", None)],
        );
        check(
            &Options { transition_duration: 0.0, ..default.clone() },
            &[("--transition-duration", None)],
        );
        check(&Options { invert_y: true, ..default }, &[("--invert-y", Some(""))]);
    }

    #[test]
    fn only_what_differs_is_called_for() {
        let options = Options::default();
        let shown = |path: &str| Shown::new(path.into(), &options, None);
        let fit = |path: &str| Shown::new(path.into(), &options, Some(Fit::Contain));
        let output =
            |name: &str, path: &str| Queried { name: name.into(), image: Some(path.into()) };
        let check =
            |wanted: &[(&str, Shown)], had: &[(&str, Shown)], expected: &[(&str, &[&str])]| {
                let own = |list: &[(&str, Shown)]| -> Vec<(String, Shown)> {
                    list.iter().map(|(name, shown)| ((*name).to_owned(), shown.clone())).collect()
                };
                let outputs = [output("A", "/a"), output("B", "/b"), output("C", "/c")];
                let calls = calls(&own(wanted), &own(had).into_iter().collect(), &outputs);
                let seen: Vec<_> = calls
                    .iter()
                    .map(|call| (call.shown.path.to_str().unwrap(), call.outputs.clone()))
                    .collect();
                let expected: Vec<_> = expected
                    .iter()
                    .map(|(path, names)| (*path, names.iter().map(|n| (*n).to_owned()).collect()))
                    .collect();
                assert_eq!(seen, expected);
            };
        check(&[("A", shown("/a"))], &[], &[]);
        check(
            &[("A", shown("/x")), ("B", shown("/b")), ("C", shown("/x"))],
            &[],
            &[("/x", &["A", "C"])],
        );
        check(&[("A", shown("/a"))], &[("A", fit("/a"))], &[("/a", &["A"])]);
        // Somebody else has painted over it.
        check(&[("A", shown("/x"))], &[("A", shown("/x"))], &[("/x", &["A"])]);
    }
}
