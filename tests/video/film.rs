//! Films for the tests, made by ffmpeg: a few seconds, small, and full of motion.

use std::path::PathBuf;
use std::process::Command;

use crate::support::House;

/// Something that moves, four seconds of it, 30 frames a second.
pub(crate) const MOVING: &str = "testsrc2=s=320x180:r=30:d=4";

pub(crate) const H264: &[&str] =
    &["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"];

/// Writes a film of this source; `name` says into which container.
pub(crate) fn make(house: &House, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let path = house.root().join(name);
    let status = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", source])
        .args(options)
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success(), "{name}");
    path
}

/// Whether this ffmpeg has such an encoder.
pub(crate) fn has_encoder(name: &str) -> bool {
    let output = Command::new("ffmpeg").args(["-v", "error", "-encoders"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).split_whitespace().any(|word| word == name)
}
