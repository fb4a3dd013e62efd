//! Hyprland's workspaces over its own sockets: one tells that something happened, the other what
//! is shown now.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::feed::{Feed, Visible};
use crate::sys::Cancel;

/// It answers from memory, within a frame.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
const LINE_MAX: usize = 64 << 10;

/// After which another workspace may be shown. Newer versions say each twice, the second time with
/// `v2` at its end.
const EVENTS: [&str; 5] =
    ["workspace", "focusedmon", "moveworkspace", "monitoradded", "monitorremoved"];

pub(super) struct Hyprland {
    pub(super) feed: Feed,
    /// The socket on which it answers requests.
    requests: PathBuf,
    /// Something has happened since it was asked.
    stale: bool,
}

impl Hyprland {
    pub(super) fn over(feed: Feed, requests: PathBuf) -> Self {
        Self { feed, requests, stale: true }
    }

    /// The workspaces that are shown, when that may have changed; waited for.
    pub(super) fn next(&mut self, cancel: &Cancel) -> io::Result<Vec<Visible>> {
        loop {
            if std::mem::take(&mut self.stale) {
                return self.ask(cancel);
            }
            if !self.feed.more(cancel, None)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.stale = take(&mut self.feed.bytes)?;
        }
    }

    fn ask(&self, cancel: &Cancel) -> io::Result<Vec<Visible>> {
        let until = Instant::now() + ANSWER_WITHIN;
        let mut answer = Feed::connect(&self.requests)?;
        answer.send(b"j/monitors")?;
        while answer.more(cancel, Some(until))? {}
        let monitors: Value = serde_json::from_slice(&answer.bytes)?;
        Ok(monitors.as_array().into_iter().flatten().filter_map(visible).collect())
    }
}

fn visible(monitor: &Value) -> Option<Visible> {
    let output = monitor["name"].as_str()?.to_owned();
    Some(Visible { output, workspace: monitor["activeWorkspace"]["id"].as_i64()? })
}

/// Takes the whole lines off the bytes: whether one of them is about workspaces.
pub(super) fn take(bytes: &mut Vec<u8>) -> io::Result<bool> {
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    if bytes.len() - end > LINE_MAX {
        return Err(io::Error::other("this is not Hyprland's protocol"));
    }
    let lines: Vec<u8> = bytes.drain(..end).collect();
    let text = String::from_utf8_lossy(&lines);
    let about = |line: &str| {
        let name = line.split(">>").next().unwrap_or_default();
        EVENTS.contains(&name.strip_suffix("v2").unwrap_or(name))
    };
    Ok(text.lines().any(about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyprland_lines_about_workspaces_are_found() {
        let check = |text: &str, expected, left: &str| {
            let mut bytes = text.as_bytes().to_vec();
            assert_eq!(take(&mut bytes).unwrap(), expected, "{text}");
            assert_eq!(bytes, left.as_bytes());
        };
        check("workspacev2>>2,two\n", true, "");
        check("activewindow>>a,workspace>>2\n", false, "");
        check("focusedmon>>DP-1,2\nactive", true, "active");
        check("works", false, "works");
        check("workspaces>>\n\n", false, "");
        assert!(take(&mut vec![b'x'; LINE_MAX + 1]).is_err());
    }
}
