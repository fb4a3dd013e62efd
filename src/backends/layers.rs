//! The surfaces below all windows, as Hyprland lists them: which processes draw backgrounds. Sway does
//! not list its layers.
//!
//! Runs on the thread that asks, which waits a second at most.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::hyprpaper::instance::requests_socket;
use super::socket::{listener, read_answer};
use crate::paths::Dirs;
use crate::sys::{Cancel, connect};

/// Hyprland answers from memory, within a frame.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A surface on the background layer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Background {
    pub(super) namespace: String,
    pub(super) pid: Option<i32>,
}

/// The backgrounds of the compositor at this socket, if it lists them.
pub(super) fn backgrounds(socket: &Path, dirs: &Dirs) -> Option<Vec<Background>> {
    let requests = requests_socket(dirs, listener(socket)?.identity().pid)?;
    let cancel = Cancel::new().ok()?;
    let mut stream = connect(&requests).ok()?;
    stream.write_all(b"j/layers").ok()?;
    let until = Instant::now() + ANSWER_WITHIN;
    parse(&read_answer(&mut stream, until, &cancel, |_| false).ok()?)
}

/// Reads the answer: surfaces by monitor and level, of which 0 is the background. A process appears
/// once, however many monitors it serves.
fn parse(answer: &[u8]) -> Option<Vec<Background>> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let mut found = Vec::new();
    for monitor in answer.as_object()?.values() {
        for surface in monitor["levels"]["0"].as_array()? {
            let namespace = surface["namespace"].as_str()?.to_owned();
            let pid = surface["pid"].as_i64().and_then(|pid| pid.try_into().ok());
            let background = Background { namespace, pid: pid.filter(|&pid| pid > 0) };
            if !found.contains(&background) {
                found.push(background);
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backgrounds_are_read_from_level_0_of_every_monitor() {
        let wallpaper = r#"{"address": "0x1", "x": 0, "y": 0, "w": 9, "h": 9, "namespace": "wallpaper", "pid": 7}"#;
        let old = r#"{"address": "0x2", "x": 0, "y": 0, "w": 9, "h": 9, "namespace": "other", "pid": -1}"#;
        let bar = r#"{"address": "0x3", "x": 0, "y": 0, "w": 9, "h": 1, "namespace": "quickshell", "pid": 8}"#;
        let levels =
            |zero: &str| format!(r#"{{"levels": {{"0": [{zero}], "1": [], "2": [{bar}]}}}}"#);
        let (one, two) = (levels(wallpaper), levels(&format!("{wallpaper}, {old}")));
        let answer = format!(r#"{{"DP-1": {one}, "DP-2": {two}}}"#);
        let background = |namespace: &str, pid| Background { namespace: namespace.to_owned(), pid };
        let expected = [background("wallpaper", Some(7)), background("other", None)];
        assert_eq!(parse(answer.as_bytes()).unwrap(), expected);
        assert_eq!(parse(format!(r#"{{"DP-1": {}}}"#, levels("")).as_bytes()).unwrap(), []);
        assert_eq!(parse(b"unknown request"), None);
    }
}
