//! Tells from mpv's properties whether frames of a video have been visible. Pure.

use serde_json::Value;

/// How many more frames must be shown than dropped. mpv reports the two counts one after the other, so
/// on an output that is off their difference varies by two or three. Real frames exceed it in an eighth
/// of a second.
const ENOUGH: i64 = 4;

#[derive(Debug, Default)]
pub(super) struct Frames {
    is_set_up: bool,
    /// The video has been paused since mpv's first report. A later pause, such as ours while the session
    /// is idle, does not count. `None` before the first report.
    stands_still: Option<bool>,
    /// The last position in the video.
    at: Option<f64>,
    put_up: i64,
    dropped: i64,
    /// mpv's own count, which restarts with each file. `None` before the first report: frames that were
    /// dropped before it do not count.
    last_dropped: Option<i64>,
}

impl Frames {
    /// The properties that mpv must report.
    pub(super) const PROPERTIES: [&str; 4] =
        ["vo-configured", "pause", "time-pos", "frame-drop-count"];

    /// Reads a line from mpv.
    pub(super) fn hear(&mut self, said: &Value) {
        let data = &said["data"];
        match said["name"].as_str() {
            Some("vo-configured") => self.is_set_up = data == true,
            Some("pause") => {
                self.stands_still = Some(data == true && self.stands_still.unwrap_or(true));
                // Each pause and each resume reports a position that could pass for a frame.
                self.reset();
            }
            Some("time-pos") => {
                let at = data.as_f64();
                self.put_up += i64::from(self.at.is_some() && at.is_some() && at != self.at);
                self.at = at;
            }
            Some("frame-drop-count") => {
                // A missing or negative count stands for zero.
                let count = data.as_i64().unwrap_or(0).max(0);
                let last = self.last_dropped.replace(count).unwrap_or(count);
                let more = if count < last { count } else { count - last };
                self.dropped = self.dropped.saturating_add(more);
            }
            _ if said["event"] == "file-loaded" => self.reset(),
            _ => {}
        }
    }

    /// Resets the counts of shown and dropped frames.
    pub(super) fn reset(&mut self) {
        (self.put_up, self.dropped) = (0, 0);
    }

    /// Whether the video output is configured, so that frames can follow.
    pub(super) fn are_set_up(&self) -> bool {
        self.is_set_up
    }

    /// Whether frames have been visible. A video that was paused from the start has shown its frame, and
    /// no other will follow.
    pub(super) fn are_seen(&self) -> bool {
        let stands_still = self.stands_still == Some(true);
        self.is_set_up && (stands_still || self.put_up - self.dropped >= ENOUGH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn after(said: &[Value]) -> bool {
        let mut frames = Frames::default();
        said.iter().for_each(|said| frames.hear(said));
        frames.are_seen()
    }

    fn property(name: &str, data: impl Into<Value>) -> Value {
        json!({ "event": "property-change", "id": 1, "name": name, "data": data.into() })
    }

    /// The reports about a video of this many frames, of which the first are dropped.
    fn video(frames: i32, dropped: i32) -> Vec<Value> {
        let set_up = [("frame-drop-count", json!(0)), ("time-pos", json!(0.0))];
        let mut said = vec![property("vo-configured", true)];
        said.extend(set_up.map(|(name, data)| property(name, data)));
        for frame in 1..=frames {
            said.push(property("time-pos", f64::from(frame) / 30.0));
            if frame <= dropped {
                said.push(property("frame-drop-count", frame));
            }
        }
        said
    }

    #[test]
    fn frames_are_seen_once_more_are_shown_than_dropped() {
        assert!(after(&video(4, 0)));
        assert!(!after(&video(3, 0)));
        assert!(!after(&video(90, 90)), "an output that is off");
        assert!(!after(&video(90, 88)), "and mpv has not said all yet");
        assert!(after(&video(94, 90)), "it was switched on");
        assert!(!after(&video(4, 0)[1..]), "it has no picture");
        assert!(after(&[
            property("vo-configured", true),
            property("pause", true)
        ]));
    }

    #[test]
    fn later_pause_does_not_count_as_a_frame() {
        let mut said = vec![property("pause", false)];
        said.extend(video(3, 0));
        said.push(property("pause", true));
        assert!(!after(&said));
        said.push(property("pause", false));
        said.push(property("time-pos", 5.0));
        assert!(!after(&said), "nor is its end");
        said.extend(video(4, 0));
        assert!(after(&said));
    }

    #[test]
    fn counts_of_another_video_are_ignored() {
        let mut said = video(100, 0);
        said.push(json!({ "event": "file-loaded" }));
        assert!(!after(&said));
        // Dropped frames are counted from zero again.
        let mut said = video(3, 3);
        said.push(property("frame-drop-count", Value::Null));
        said.extend(video(3, 3));
        assert!(!after(&said));
    }

    #[test]
    fn frames_dropped_before_the_first_report_do_not_count() {
        let mut said = video(4, 0);
        said[1] = property("frame-drop-count", 500);
        assert!(after(&said));
        said.push(property("frame-drop-count", 501));
        assert!(!after(&said));
    }

    #[test]
    fn extreme_counts_do_not_overflow() {
        for counts in [
            [i64::MAX, 0, i64::MAX],
            [i64::MIN, i64::MAX, 0],
            [-1, 1, i64::MIN],
        ] {
            let mut said = video(3, 0);
            said.extend(counts.map(|count| property("frame-drop-count", count)));
            assert!(!after(&said), "{counts:?}");
        }
    }
}
