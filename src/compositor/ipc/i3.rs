//! Talks to the socket of i3 and sway, which use the same protocol: requests, replies and events.

use std::collections::BTreeSet;
use std::io;

use serde_json::Value;

use super::feed::{Feed, Visible};
use crate::sys::Cancel;

const MAGIC: &[u8] = b"i3-ipc";
/// Magic, length and kind.
const HEAD: usize = MAGIC.len() + 8;
const GET_WORKSPACES: u32 = 1;
const SUBSCRIBE: u32 = 2;
const GET_TREE: u32 = 4;
const GET_VERSION: u32 = 7;
/// From this version of sway on, newer surfaces of a layer lie above older ones.
const NEWER_IS_ABOVE: (u64, u64) = (1, 10);
/// Events have the highest bit set.
const WORKSPACE_EVENT: u32 = 1 << 31;
const WINDOW_EVENT: u32 = WORKSPACE_EVENT | 3;
/// Changes of a window that move and cover nothing.
const IDLE_CHANGES: [&str; 4] = ["title", "focus", "mark", "urgent"];
const LENGTH_MAX: usize = 4 << 20;

pub(crate) struct I3 {
    pub(super) feed: Feed,
    /// The last request is not answered yet.
    is_asked: bool,
    /// The pending answer may be outdated, so it will be requested again.
    is_stale: bool,
    /// The compositor puts newer surfaces of a layer above older ones.
    newer_is_above: bool,
    was_reloaded: bool,
}

impl I3 {
    /// Subscribes to these events.
    pub(super) fn connect(mut feed: Feed, events: &[&str]) -> io::Result<Self> {
        // The subscription comes first, so that no change is missed in between.
        feed.send(&message(SUBSCRIBE, &serde_json::to_vec(events)?))?;
        feed.send(&message(GET_VERSION, b""))?;
        feed.send(&message(GET_WORKSPACES, b""))?;
        Ok(Self {
            feed,
            is_asked: true,
            is_stale: false,
            newer_is_above: false,
            was_reloaded: false,
        })
    }

    /// Sends a request, but only once the one before is answered: a compositor disconnects a client that
    /// does not keep up with its answers.
    fn ask(&mut self, question: u32) -> io::Result<()> {
        if std::mem::replace(&mut self.is_asked, true) {
            self.is_stale = true;
            return Ok(());
        }
        self.feed.send(&message(question, b""))
    }

    fn answered(&mut self, question: u32) -> io::Result<()> {
        self.is_asked = false;
        if std::mem::take(&mut self.is_stale) {
            self.ask(question)
        } else {
            Ok(())
        }
    }

    /// Waits for a change, and returns the visible workspaces, and whether these are all outputs.
    pub(super) fn next(&mut self, cancel: &Cancel) -> io::Result<(bool, Vec<Visible>)> {
        loop {
            let (kind, body) = self.receive(cancel)?;
            match kind {
                GET_WORKSPACES => {
                    self.answered(GET_WORKSPACES)?;
                    let all = body.as_array().into_iter().flatten();
                    let shown = all.filter(|workspace| workspace["visible"] == true);
                    return Ok((true, shown.filter_map(visible).collect()));
                }
                WORKSPACE_EVENT if body["change"] == "focus" => {
                    return Ok((false, visible(&body["current"]).into_iter().collect()));
                }
                // A workspace that moves to another output makes others visible on both outputs.
                WORKSPACE_EVENT => {
                    self.was_reloaded |= body["change"] == "reload";
                    self.ask(GET_WORKSPACES)?;
                }
                GET_VERSION => {
                    let number = |key: &str| body[key].as_u64().unwrap_or(0);
                    self.newer_is_above = (number("major"), number("minor")) >= NEWER_IS_ABOVE;
                }
                _ => {}
            }
        }
    }

    /// Whether there was a reload since the last call after which newer surfaces lie above ours.
    pub(super) fn take_reload(&mut self) -> bool {
        std::mem::take(&mut self.was_reloaded) && self.newer_is_above
    }

    /// Waits until this may have changed, and returns the outputs on which a window is full screen.
    pub(super) fn covered(&mut self, cancel: &Cancel) -> io::Result<BTreeSet<String>> {
        loop {
            let (kind, body) = self.receive(cancel)?;
            let is_idle = body["change"]
                .as_str()
                .is_some_and(|change| IDLE_CHANGES.contains(&change));
            match kind {
                GET_TREE => {
                    self.answered(GET_TREE)?;
                    return Ok(covered(&body));
                }
                WINDOW_EVENT if is_idle => {}
                WORKSPACE_EVENT | WINDOW_EVENT => self.ask(GET_TREE)?,
                GET_WORKSPACES => {
                    self.is_asked = false;
                    self.ask(GET_TREE)?;
                }
                _ => {}
            }
        }
    }

    /// Waits for the next reply or event.
    fn receive(&mut self, cancel: &Cancel) -> io::Result<(u32, Value)> {
        loop {
            match take(&mut self.feed.bytes)? {
                Some((SUBSCRIBE, body)) if body["success"] != true => {
                    return Err(io::Error::other("the compositor refused the subscription"));
                }
                Some(message) => return Ok(message),
                None if !self.feed.more(cancel, None)? => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                None => {}
            }
        }
    }
}

pub(super) fn visible(workspace: &Value) -> Option<Visible> {
    let [output, name] = ["output", "name"].map(|key| workspace[key].as_str());
    // A workspace whose name does not begin with a number has the number -1.
    let number = workspace["num"].as_i64().filter(|&number| number >= 0);
    Some(Visible {
        output: output?.to_owned(),
        name: name?.to_owned(),
        place: number.or(workspace["id"].as_i64())?,
    })
}

/// The outputs of a tree whose visible workspaces have a window that is full screen.
fn covered(tree: &Value) -> BTreeSet<String> {
    let outputs = tree["nodes"].as_array().into_iter().flatten();
    let everywhere = has_mode(tree, &|mode| mode == 2);
    let is_covered = |output: &&Value| {
        let visible = |workspace: &&Value| workspace["name"] == output["current_workspace"];
        let mut workspaces = output["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(visible);
        everywhere || workspaces.any(|workspace| has_mode(workspace, &|mode| mode > 0))
    };
    let covered = outputs.filter(is_covered);
    covered
        .filter_map(|output| output["name"].as_str().map(str::to_owned))
        .collect()
}

/// Whether a node below this one is full screen in such a mode: 1 on its output, 2 everywhere.
fn has_mode(node: &Value, mode: &impl Fn(u64) -> bool) -> bool {
    let below = ["nodes", "floating_nodes"]
        .into_iter()
        .filter_map(|key| node[key].as_array());
    below
        .flatten()
        .any(|one| one["fullscreen_mode"].as_u64().is_some_and(mode) || has_mode(one, mode))
}

fn message(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("our requests are short");
    [MAGIC, &length.to_ne_bytes(), &kind.to_ne_bytes(), body].concat()
}

/// Removes the next message from the bytes, if it is complete.
pub(super) fn take(bytes: &mut Vec<u8>) -> io::Result<Option<(u32, Value)>> {
    let Some(head) = bytes.get(..HEAD) else {
        return Ok(None);
    };
    let number = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    let (length, kind) = (number(MAGIC.len()) as usize, number(MAGIC.len() + 4));
    if !head.starts_with(MAGIC) || length > LENGTH_MAX {
        return Err(io::Error::other("this is not i3's protocol"));
    }
    let Some(body) = bytes.get(HEAD..HEAD + length) else {
        return Ok(None);
    };
    let body = serde_json::from_slice(body)?;
    bytes.drain(..HEAD + length);
    Ok(Some((kind, body)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_is_read_in_pieces() {
        let mut whole = message(SUBSCRIBE, br#"{"success":true}"#);
        whole.extend(message(GET_WORKSPACES, b"[]"));
        let mut bytes = Vec::new();
        let mut taken = Vec::new();
        for byte in whole {
            bytes.push(byte);
            taken.extend(take(&mut bytes).unwrap());
        }
        assert_eq!(
            taken,
            [
                (SUBSCRIBE, json!({ "success": true })),
                (GET_WORKSPACES, json!([]))
            ]
        );
        assert!(bytes.is_empty());
    }

    #[test]
    fn bytes_that_are_not_i3_s_protocol_are_an_error() {
        let mut other = b"HTTP/1.1 400 Bad Request".to_vec();
        assert!(take(&mut other).is_err());
        let mut long = [MAGIC, &u32::MAX.to_ne_bytes(), &1u32.to_ne_bytes()].concat();
        assert!(take(&mut long).is_err());
        assert!(take(&mut message(GET_WORKSPACES, b"what?")).is_err());
    }

    #[test]
    fn tree_is_requested_only_once_more_after_many_events() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sway");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut i3 = I3::connect(Feed::connect(&path).unwrap(), &["window"]).unwrap();
        let mut sway = listener.accept().unwrap().0;
        let tree = br#"{"nodes":[]}"#;
        let mut said = message(SUBSCRIBE, br#"{"success":true}"#);
        said.extend(message(GET_WORKSPACES, b"[]"));
        said.extend(message(WINDOW_EVENT, br#"{"change":"move"}"#).repeat(99));
        said.extend(message(GET_TREE, tree));
        said.extend(message(GET_TREE, tree));
        io::Write::write_all(&mut sway, &said).unwrap();
        let cancel = Cancel::new().unwrap();
        (0..2).for_each(|_| assert!(i3.covered(&cancel).unwrap().is_empty()));
        drop(i3);
        let mut asked = Vec::new();
        io::Read::read_to_end(&mut sway, &mut asked).unwrap();
        let body = br#"["window"]"#;
        let first = [GET_VERSION, GET_WORKSPACES].map(|question| message(question, b""));
        let subscribed = [message(SUBSCRIBE, body), first.concat()].concat();
        assert_eq!(
            asked,
            [subscribed, message(GET_TREE, b"").repeat(2)].concat()
        );
    }

    #[test]
    fn reload_counts_if_newer_surfaces_lie_above() {
        let check = |version: &[u8], expected: bool| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("sway");
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let mut i3 = I3::connect(Feed::connect(&path).unwrap(), &["workspace"]).unwrap();
            let mut sway = listener.accept().unwrap().0;
            let mut said = message(GET_VERSION, version);
            said.extend(message(GET_WORKSPACES, b"[]"));
            said.extend(message(WORKSPACE_EVENT, br#"{"change":"reload"}"#));
            said.extend(message(GET_WORKSPACES, b"[]"));
            io::Write::write_all(&mut sway, &said).unwrap();
            let cancel = Cancel::new().unwrap();
            let mut next = || {
                i3.next(&cancel).unwrap();
                i3.take_reload()
            };
            assert_eq!((next(), next()), (false, expected));
            assert!(!i3.take_reload());
        };
        check(br#"{"major":1,"minor":7}"#, false);
        check(br#"{"major":1,"minor":9}"#, false);
        check(br#"{"major":1,"minor":10}"#, true);
        check(br#"{"major":2,"minor":0}"#, true);
        check(b"null", false);
    }

    #[test]
    fn windows_cover_the_output_that_shows_their_workspace() {
        let check = |mode: u64, visible: &str, expected: &[&str]| {
            // Each workspace says of itself that it is full screen.
            let window = json!({ "fullscreen_mode": mode });
            let group = json!({ "fullscreen_mode": 0, "nodes": [window] });
            let one = json!({ "name": "1", "fullscreen_mode": 1, "floating_nodes": [group] });
            let two = json!({ "name": "2", "fullscreen_mode": 1, "nodes": [] });
            let other = json!({ "name": "3", "fullscreen_mode": 1 });
            let tree = json!({ "nodes": [
                { "name": "A", "current_workspace": visible, "nodes": [one, two] },
                { "name": "B", "current_workspace": "3", "nodes": [other] },
            ] });
            let covered = covered(&tree);
            assert!(
                covered.iter().eq(expected),
                "{mode} on {visible}: {covered:?}"
            );
        };
        check(1, "1", &["A"]);
        check(0, "1", &[]);
        check(1, "2", &[]);
        check(2, "2", &["A", "B"]);
    }

    #[test]
    fn workspaces_are_ordered_by_number_then_id() {
        let check = |workspace: Value, expected: Option<i64>| {
            let seen = visible(&workspace).map(|visible| visible.place);
            assert_eq!(seen, expected, "{workspace}");
        };
        check(
            json!({ "output": "A", "name": "3:x", "num": 3, "id": 17 }),
            Some(3),
        );
        check(
            json!({ "output": "A", "name": "3:x", "num": -1, "id": 17 }),
            Some(17),
        );
        check(
            json!({ "output": "A", "name": "3:x", "num": 0, "id": 17 }),
            Some(0),
        );
        check(json!({ "name": "3", "num": 3 }), None);
        check(json!({ "output": "A", "num": 3 }), None);
        check(Value::Null, None);
    }
}
