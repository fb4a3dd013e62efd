//! Parsers of the wal-qt host's answers with plain types, for the targets of `tests/fuzz`. Part of its
//! module with `cfg(parsers)`.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::client;
use super::load::{self, Piece, Progress};
use crate::backends::Placement;

/// Whether the answer means that all is loaded, whether it means that all is displayed, and its
/// complaint.
pub fn answer(text: &str) -> (bool, bool, String) {
    static PIECES: LazyLock<[Piece; 2]> = LazyLock::new(|| ["DP-1", "DP-2"].map(piece));
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    load::monitor_count(&said);
    load::target(&said, "DP-1");
    let done = |progress| progress == Progress::Done;
    (
        done(load::loaded(&said, &*PIECES)),
        done(load::displayed(&said, &*PIECES)),
        client::complaint(text),
    )
}

fn piece(output: &str) -> Piece {
    let output = json!({
        "name": output, "description": "", "width": 1, "height": 1, "x": 0, "y": 0,
        "logical_width": 1, "logical_height": 1, "scale": 1.0, "refresh_rate": 60.0, "transform": 0,
        "primary": false,
    });
    let placement = json!({
        "output": output, "image_id": 1, "path": "/a.png", "content": "", "kind": "StaticImage",
        "audio_enabled": false, "web": null, "extended_over": [],
    });
    let placement: Placement = serde_json::from_value(placement).expect("all fields");
    let path = placement.path.clone();
    Piece::new(&placement, path)
}
