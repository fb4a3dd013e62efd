//! Makes videos for the tests with ffmpeg: a few seconds, small, and full of motion.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::TestDaemon;

/// A source with motion: four seconds at 30 frames per second.
pub(crate) const MOVING: &str = "testsrc2=s=320x180:r=30:d=4";

pub(crate) const H264: &[&str] = &[
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-pix_fmt",
    "yuv420p",
];

/// Writes a video from this source; the extension of `name` selects the container.
pub(crate) fn make(daemon: &TestDaemon, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let path = daemon.root().join(name);
    let status = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", source])
        .args(options)
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success(), "{name}");
    path
}

/// Whether this ffmpeg has the encoder.
pub(crate) fn has_encoder(name: &str) -> bool {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-encoders"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .any(|word| word == name)
}

/// Returns the path of the real program, for a stub that calls it.
pub(crate) fn real(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|directory| directory.join(program));
    found
        .into_iter()
        .find(|candidate| candidate.is_file())
        .unwrap()
}

/// Returns the names of files in the library and of previews in the cache.
pub(crate) fn files(daemon: &TestDaemon) -> Vec<String> {
    let previews = daemon.root().join("cache/murald/thumbnails/previews");
    let all = [daemon.images(), previews]
        .into_iter()
        .filter_map(|at| fs::read_dir(at).ok());
    let mut names: Vec<String> = all
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the record of an image.
pub(crate) fn image(daemon: &TestDaemon, id: i64) -> Value {
    daemon.client().get(&format!("/images/{id}")).ok()
}

/// Returns what ffprobe reports for an entry of the first video stream.
pub(crate) fn probe(path: &Path, entry: &str) -> String {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v:0", "-of", "csv=p=0"])
        .args(["-show_entries", entry])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", path.display());
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .trim_end_matches(',')
        .to_owned()
}

/// Returns the frames of a file, each scaled to 80 × 45 pixels.
pub(crate) fn frames(path: &Path) -> Vec<Vec<u8>> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(path)
        .args([
            "-map",
            "0:v:0",
            "-vf",
            "scale=80:45:flags=area",
            "-pix_fmt",
            "rgb24",
        ])
        .args(["-f", "rawvideo", "-fps_mode", "passthrough", "-"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", path.display());
    output
        .stdout
        .chunks_exact(80 * 45 * 3)
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns the mean difference of two frames, in levels of 255.
pub(crate) fn difference(a: &[u8], b: &[u8]) -> f64 {
    let sum: u64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    sum as f64 / a.len() as f64
}
