//! Builds the load requests for the host, and interprets its answers. Pure.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::backends::fit_and_transition::fit_or;
use crate::backends::{Error, Kind, Placement, Web};
use crate::config::{BackendName, WalQt as Options};
use crate::wire::Fit;

/// A picture, video or HTML wallpaper on an output.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) output: String,
    pub(super) target: PathBuf,
    /// The checksum of the file.
    content: String,
    pub(super) kind: &'static str,
    /// Videos only.
    pub(super) audio: bool,
    pub(super) web: Option<Web>,
    fit: Option<Fit>,
}

impl Piece {
    pub(super) fn new(placement: &Placement, target: PathBuf) -> Self {
        let kind = match placement.kind {
            Kind::StaticImage | Kind::AnimatedImage => "image",
            Kind::Video => "video",
            Kind::Web => "web",
        };
        Self {
            output: placement.output.name.clone(),
            target,
            content: placement.content.clone(),
            kind,
            audio: kind == "video" && placement.audio_enabled,
            web: placement.web.clone(),
            fit: placement.fit,
        }
    }

    /// Whether both are the same HTML wallpaper, and differ only in what can be changed while it is
    /// shown.
    pub(super) fn is_same_page(&self, other: &Self) -> bool {
        let same_look = self.kind == other.kind && self.fit == other.fit;
        self.kind == "web" && same_look && self.target == other.target
    }

    /// Whether the two can share a request.
    fn goes_with(&self, other: &Self) -> bool {
        let values = |piece: &Self| piece.web.as_ref().map(|web| web.values.clone());
        let same_look = self.kind == other.kind && self.fit == other.fit;
        same_look && self.audio == other.audio && values(self) == values(other)
    }
}

/// The pieces that share a request.
pub(super) fn groups(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut groups: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        match groups.iter_mut().find(|group| group[0].goes_with(piece)) {
            Some(group) => group.push(piece.clone()),
            None => groups.push(vec![piece.clone()]),
        }
    }
    groups
}

/// The body of `POST /wallpaper/load`; all pieces share a request.
pub(super) fn body(pieces: &[Piece], options: &Options) -> Value {
    let first = &pieces[0];
    let target = |piece: &Piece| json!({ "name": piece.output, "target": piece.target.to_string_lossy(), "kind": piece.kind });
    let mut body = json!({
        "kind": first.kind,
        "targets": pieces.iter().map(target).collect::<Vec<_>>(),
        "transition": options.transition.as_str(),
        "duration_ms": options.duration_ms,
        "transition_params": {
            "bezier": options.transition_bezier.0,
            "angle_deg": options.angle_deg(),
            "origin_x_percent": options.transition_origin_x_percent,
            "origin_y_percent": options.transition_origin_y_percent,
            "wave_amplitude_percent": options.transition_wave_amplitude_percent,
            "wave_frequency": options.transition_wave_frequency,
        },
        "parallax": parallax(options),
    });
    match first.kind {
        "image" => {
            let fit = fit_or(BackendName::WalQt, first.fit, options.image_fit_mode);
            body["image_fit_mode"] = fit.as_str().into();
            body["image_rendering"] = options.image_rendering.as_str().into();
        }
        "video" => body["audio_enabled"] = first.audio.into(),
        _ => {
            let values = first.web.as_ref().map(|web| web.values.clone());
            body["wallpaper_config_values"] = values.unwrap_or_default().into();
        }
    }
    body
}

pub(super) fn parallax(options: &Options) -> Value {
    json!({
        "enabled": options.parallax_enabled,
        "zoom": options.parallax_factor(),
        "step_percent": options.parallax_step_percent,
        "animation_ms": options.parallax_animation_ms,
        "reset_ms": options.parallax_reset_ms,
        "easing": options.parallax_easing.0,
    })
}

pub(super) fn presentation(options: &Options) -> Value {
    json!({
        "image_fit_mode": options.image_fit_mode.as_str(),
        "image_rendering": options.image_rendering.as_str(),
        "fill_color": options.fill_color,
    })
}

/// The permissions of an HTML wallpaper that can be changed while it is shown.
pub(super) fn capabilities(web: &Web) -> Value {
    let allowed = &web.capabilities;
    json!({
        "pointer_interactive": allowed.pointer_interactive,
        "keyboard": allowed.keyboard,
        "audio_reactive": allowed.audio_reactive,
    })
}

/// The progress of a load on all its outputs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    Failed {
        output: String,
        why: String,
    },
    /// Some outputs are not done yet.
    Waiting,
    /// The host is idle, but does not report what it shows; some hosts never do.
    Unsaid,
}

/// Reads the answer to a load.
pub(super) fn loaded(answer: &Value, pieces: &[Piece]) -> Progress {
    let Some(results) = answer["results"]
        .as_array()
        .filter(|results| !results.is_empty())
    else {
        // Some versions only confirm the request.
        return match answer["ok"].as_bool() {
            Some(true) => Progress::Waiting,
            _ => failed(
                "",
                answer["error"].as_str().unwrap_or("it refused the request"),
            ),
        };
    };
    for piece in pieces {
        let result = results
            .iter()
            .find(|result| result["name"] == *piece.output);
        match result.and_then(|result| Some((result, result["outcome"].as_str()?))) {
            // Another load has replaced this one, and is judged instead.
            Some((_, "applied" | "superseded")) => {}
            Some((result, outcome)) => {
                let why = result["error"].as_str().filter(|error| !error.is_empty());
                return failed(&piece.output, why.unwrap_or(outcome));
            }
            None => return failed(&piece.output, "it does not report this output"),
        }
    }
    Progress::Done
}

/// Reads from `GET /wallpaper/status` how far a load is. Hosts differ, so any field may be missing.
pub(super) fn displayed(status: &Value, pieces: &[Piece]) -> Progress {
    let mut progress = Progress::Done;
    for piece in pieces {
        match progress_on(monitor(status, &piece.output), piece) {
            Progress::Done => {}
            failed @ Progress::Failed { .. } => return failed,
            Progress::Unsaid if progress == Progress::Done => progress = Progress::Unsaid,
            Progress::Unsaid => {}
            Progress::Waiting => progress = Progress::Waiting,
        }
    }
    progress
}

fn progress_on(monitor: &Value, piece: &Piece) -> Progress {
    let shown = target_of(monitor).map(|target| target == piece.target.to_string_lossy());
    match (monitor["load_state"].as_str(), shown) {
        (Some("failed"), _) => failed(
            &piece.output,
            monitor["error"].as_str().unwrap_or("it cannot be loaded"),
        ),
        // The earlier picture is still reported.
        (_, Some(false)) => Progress::Waiting,
        (Some("displayed"), _) | (None, Some(true)) => Progress::Done,
        (None, None) if monitor["in_progress"] == false => Progress::Unsaid,
        _ => Progress::Waiting,
    }
}

/// How many monitors the host has.
pub(super) fn monitor_count(status: &Value) -> u64 {
    status["status"]["monitor_count"].as_u64().unwrap_or(0)
}

/// The picture on an output according to the status; `None` unless it is displayed.
pub(super) fn target<'a>(status: &'a Value, output: &str) -> Option<&'a str> {
    let monitor = monitor(status, output);
    let state = monitor["load_state"].as_str();
    state
        .is_none_or(|state| state == "displayed")
        .then(|| target_of(monitor))
        .flatten()
}

fn target_of(monitor: &Value) -> Option<&str> {
    monitor["current_target"]
        .as_str()
        .or(monitor["target"].as_str())
}

/// The part of the status about an output, whose place depends on the host's version; null if there is
/// none.
fn monitor<'a>(status: &'a Value, output: &str) -> &'a Value {
    // Other parts of the status list outputs by name, too.
    let monitors = status
        .pointer("/status/monitors")
        .or(status.get("monitors"));
    named(monitors.unwrap_or(status), output).unwrap_or(&Value::Null)
}

fn named<'a>(value: &'a Value, output: &str) -> Option<&'a Value> {
    match value {
        Value::Object(_) if value["name"] == output => Some(value),
        Value::Object(fields) => fields.values().find_map(|field| named(field, output)),
        Value::Array(items) => items.iter().find_map(|item| named(item, output)),
        _ => None,
    }
}

fn failed(output: &str, why: &str) -> Progress {
    Progress::Failed {
        output: output.to_owned(),
        why: why.to_owned(),
    }
}

/// The error for an output whose wallpaper the host has not loaded.
pub(super) fn not_loaded(output: &str, why: &str) -> Error {
    Error::Refused(format!("wal-qt cannot load it on {output}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(output: &str, target: &str, kind: &'static str) -> Piece {
        Piece {
            output: output.to_owned(),
            target: target.into(),
            content: String::new(),
            kind,
            audio: false,
            web: None,
            fit: None,
        }
    }

    #[test]
    fn load_has_its_targets_and_settings() {
        let options = Options {
            parallax_zoom: 80.0,
            transition_angle_deg: -90.0,
            ..Options::default()
        };
        let pieces = [piece("A", "/x.png", "image"), piece("B", "/y.png", "image")];
        let expected = json!({
            "kind": "image",
            "targets": [
                { "name": "A", "target": "/x.png", "kind": "image" },
                { "name": "B", "target": "/y.png", "kind": "image" },
            ],
            "transition": "none",
            "duration_ms": 300,
            "transition_params": {
                "bezier": [0.54, 0.0, 0.34, 0.99], "angle_deg": 270.0,
                "origin_x_percent": 50.0, "origin_y_percent": 50.0,
                "wave_amplitude_percent": 5.0, "wave_frequency": 3.0,
            },
            "parallax": {
                "enabled": false, "zoom": 1.0, "step_percent": 5.0,
                "animation_ms": 600, "reset_ms": 400, "easing": [0.215, 0.610, 0.355, 1.0],
            },
            "image_fit_mode": "cover",
            "image_rendering": "auto",
        });
        assert_eq!(body(&pieces, &options), expected);
        let video = body(
            &[Piece {
                audio: true,
                ..piece("A", "/v.mp4", "video")
            }],
            &options,
        );
        assert_eq!(
            (&video["audio_enabled"], video.get("image_fit_mode")),
            (&json!(true), None)
        );
        let web = body(&[piece("A", "/w/index.html", "web")], &options);
        assert_eq!(web["wallpaper_config_values"], json!({}));
    }

    #[test]
    fn similar_pieces_share_a_request() {
        let loud = Piece {
            audio: true,
            ..piece("C", "/v.mp4", "video")
        };
        let pieces = [
            piece("A", "/x.png", "image"),
            piece("B", "/v.mp4", "video"),
            loud,
            piece("D", "/y.png", "image"),
            Piece {
                fit: Some(Fit::Center),
                ..piece("E", "/y.png", "image")
            },
        ];
        let centered = body(&pieces[4..], &Options::default());
        assert_eq!(centered["image_fit_mode"], "none");
        let outputs =
            |group: &Vec<Piece>| group.iter().map(|p| p.output.clone()).collect::<String>();
        assert_eq!(
            groups(&pieces).iter().map(outputs).collect::<Vec<_>>(),
            ["AD", "B", "C", "E"]
        );
    }

    #[test]
    fn answer_to_a_load_is_read() {
        let pieces = [piece("A", "/x", "image"), piece("B", "/x", "image")];
        let check =
            |answer: Value, expected| assert_eq!(loaded(&answer, &pieces), expected, "{answer}");
        let result = |name: &str, outcome: &str| json!({ "name": name, "outcome": outcome });
        let both = |b: Value| json!({ "ok": true, "results": [result("A", "applied"), b] });
        check(both(result("B", "superseded")), Progress::Done);
        check(both(result("B", "timeout")), failed("B", "timeout"));
        let error = json!({ "name": "B", "outcome": "failed", "error": "no such file" });
        check(both(error), failed("B", "no such file"));
        check(
            both(result("C", "applied")),
            failed("B", "it does not report this output"),
        );
        check(json!({ "ok": true, "accepted": true }), Progress::Waiting);
        check(json!({ "ok": false, "error": "busy" }), failed("", "busy"));
        check(json!([]), failed("", "it refused the request"));
    }

    /// A status with this as its only monitor.
    fn status(monitor: Value) -> Value {
        json!({ "ok": true, "api_version": "0", "status": {
            "topology": [{ "name": "A", "x": 0, "y": 0, "width": 640, "height": 480 }],
            "monitor_count": 1, "monitors": [monitor],
        } })
    }

    #[test]
    fn status_with_a_load_state_is_read() {
        let pieces = [piece("A", "/x", "image")];
        let with = |state: &str, target: &str| {
            status(json!({ "name": "A", "target": target, "load_state": state, "error": "bad" }))
        };
        let check = |state, target, expected| {
            assert_eq!(
                displayed(&with(state, target), &pieces),
                expected,
                "{state} {target}"
            );
        };
        check("displayed", "/x", Progress::Done);
        check("loading", "/x", Progress::Waiting);
        check("failed", "/x", failed("A", "bad"));
        check("displayed", "/before", Progress::Waiting);
        assert_eq!(displayed(&json!({}), &pieces), Progress::Waiting);
        assert_eq!(monitor_count(&with("x", "/x")), 1);
        assert_eq!(target(&with("displayed", "/x"), "A"), Some("/x"));
        assert_eq!(target(&with("loading", "/x"), "A"), None);
    }

    #[test]
    fn status_with_missing_fields_is_read() {
        let pieces = [piece("A", "/x", "image")];
        let check = |monitor: Value, expected, shown| {
            let status = status(monitor);
            assert_eq!(displayed(&status, &pieces), expected, "{status}");
            assert_eq!(target(&status, "A"), shown, "{status}");
        };
        let idle = |target: Option<&str>| {
            let mut monitor = json!({ "current_kind": "image", "in_progress": false,
                "last_transition": "none", "name": "A", "visible": true });
            if let Some(target) = target {
                monitor["current_target"] = target.into();
            }
            monitor
        };
        check(idle(Some("/x")), Progress::Done, Some("/x"));
        check(idle(Some("/before")), Progress::Waiting, Some("/before"));
        check(idle(None), Progress::Unsaid, None);
        check(
            json!({ "name": "A", "in_progress": true }),
            Progress::Waiting,
            None,
        );
        check(json!({ "name": "A" }), Progress::Waiting, None);
        check(
            json!({ "name": "B", "current_target": "/x" }),
            Progress::Waiting,
            None,
        );
        check(
            json!({ "name": "A", "load_state": "displayed" }),
            Progress::Done,
            None,
        );
        let loading = json!({ "name": "A", "load_state": "loading", "current_target": "/x" });
        check(loading, Progress::Waiting, None);
        for odd in [
            json!(null),
            json!([]),
            json!({ "name": 7 }),
            json!({ "name": "A", "load_state": 1 }),
        ] {
            check(odd, Progress::Waiting, None);
        }
        // An output that is not done outweighs one that never reports.
        let two = [piece("A", "/x", "image"), piece("B", "/x", "image")];
        assert_eq!(displayed(&status(idle(None)), &two), Progress::Waiting);
    }
}
