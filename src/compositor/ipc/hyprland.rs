//! Talks to the two sockets of Hyprland: one reports events, the other answers requests about the
//! current state.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::feed::{Feed, Visible, ask};
use crate::sys::Cancel;

const LINE_MAX: usize = 64 << 10;

pub(crate) struct Hyprland {
    pub(super) feed: Feed,
    /// The socket on which it answers requests.
    requests: PathBuf,
    /// The events to wait for. Newer versions report each twice, the second time with `v2` at its end.
    events: &'static [&'static str],
    /// An event has arrived since the last request.
    stale: bool,
}

impl Hyprland {
    pub(super) fn new(feed: Feed, requests: PathBuf, events: &'static [&'static str]) -> Self {
        Self {
            feed,
            requests,
            events,
            stale: true,
        }
    }

    /// Waits until the visible workspaces may have changed, and returns them.
    pub(super) fn next(&mut self, cancel: &Cancel) -> io::Result<(bool, Vec<Visible>)> {
        self.wait(cancel)?;
        let monitors = self.ask("j/monitors", cancel)?;
        Ok((
            true,
            monitors
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(visible)
                .collect(),
        ))
    }

    /// Waits until this may have changed, and returns the monitors on which a window is full screen.
    pub(super) fn covered(&mut self, cancel: &Cancel) -> io::Result<BTreeSet<String>> {
        self.wait(cancel)?;
        Ok(covered(
            &self.ask("j/monitors", cancel)?,
            &self.ask("j/clients", cancel)?,
        ))
    }

    /// Waits until one of the events has arrived since the last request.
    fn wait(&mut self, cancel: &Cancel) -> io::Result<()> {
        while !std::mem::take(&mut self.stale) {
            if !self.feed.more(cancel, None)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.stale = take(&mut self.feed.bytes, self.events)?;
        }
        Ok(())
    }

    fn ask(&self, question: &str, cancel: &Cancel) -> io::Result<Value> {
        ask(&self.requests, question.as_bytes(), cancel)
    }
}

fn visible(monitor: &Value) -> Option<Visible> {
    let workspace = &monitor["activeWorkspace"];
    Some(Visible {
        output: monitor["name"].as_str()?.to_owned(),
        name: workspace["name"].as_str()?.to_owned(),
        place: workspace["id"].as_i64()?,
    })
}

/// The monitors whose visible workspaces have a window that is full screen, and not only maximized.
fn covered(monitors: &Value, clients: &Value) -> BTreeSet<String> {
    let is_full = |client: &&Value| match client["fullscreen"].as_u64() {
        Some(mode) => mode >= 2,
        // Before 0.42.
        None => client["fullscreen"] == true && client["fullscreenMode"] != 1,
    };
    let full = clients.as_array().into_iter().flatten().filter(is_full);
    let full: Vec<&Value> = full.map(|client| &client["workspace"]["id"]).collect();
    let shows = |monitor: &&Value| {
        ["activeWorkspace", "specialWorkspace"]
            .iter()
            .any(|key| full.contains(&&monitor[key]["id"]))
    };
    let all = monitors.as_array().into_iter().flatten().filter(shows);
    all.filter_map(|monitor| monitor["name"].as_str().map(str::to_owned))
        .collect()
}

/// Removes the complete lines from the bytes; returns whether one of them is one of the events.
pub(super) fn take(bytes: &mut Vec<u8>, events: &[&str]) -> io::Result<bool> {
    let end = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    if bytes.len() - end > LINE_MAX {
        return Err(io::Error::other("this is not Hyprland's protocol"));
    }
    let lines: Vec<u8> = bytes.drain(..end).collect();
    let text = String::from_utf8_lossy(&lines);
    let about = |line: &str| {
        let name = line.split(">>").next().unwrap_or_default();
        events.contains(&name.strip_suffix("v2").unwrap_or(name))
    };
    Ok(text.lines().any(about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compositor::ipc::WORKSPACES;
    use serde_json::json;

    #[test]
    fn full_screen_windows_cover_the_monitors_that_show_them() {
        let monitors = json!([
            { "name": "A", "activeWorkspace": { "id": 1 }, "specialWorkspace": { "id": 0 } },
            { "name": "B", "activeWorkspace": { "id": 2 }, "specialWorkspace": { "id": -99 } },
        ]);
        let check = |client: Value, expected: &[&str]| {
            let covered = covered(&monitors, &json!([client]));
            assert!(covered.iter().eq(expected), "{client}: {covered:?}");
        };
        let on = |id: i64, mode: Value| json!({ "workspace": { "id": id }, "fullscreen": mode });
        check(on(1, json!(2)), &["A"]);
        check(on(1, json!(1)), &[]);
        check(on(3, json!(2)), &[]);
        check(on(-99, json!(3)), &["B"]);
        check(on(2, json!(true)), &["B"]);
        check(on(2, json!(false)), &[]);
        check(Value::Null, &[]);
    }

    #[test]
    fn hyprland_lines_about_workspaces_are_found() {
        let check = |text: &str, expected, left: &str| {
            let mut bytes = text.as_bytes().to_vec();
            assert_eq!(
                take(&mut bytes, WORKSPACES.hyprland).unwrap(),
                expected,
                "{text}"
            );
            assert_eq!(bytes, left.as_bytes());
        };
        check("workspacev2>>2,two\n", true, "");
        check("activewindow>>a,workspace>>2\n", false, "");
        check("focusedmon>>DP-1,2\nactive", true, "active");
        check("works", false, "works");
        check("workspaces>>\n\n", false, "");
        check("renameworkspace>>2,web\n", true, "");
        assert!(take(&mut vec![b'x'; LINE_MAX + 1], WORKSPACES.hyprland).is_err());
    }
}
