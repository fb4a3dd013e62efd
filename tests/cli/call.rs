//! Runs the command once, and checks its result.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::support::TestDaemon;
use crate::support::snapshot::snapshot;

pub(crate) fn run(daemon: &TestDaemon, line: &[&str]) -> Output {
    daemon.murald(line).output().unwrap()
}

/// Runs a call that must succeed, and returns its output.
#[track_caller]
pub(crate) fn ok(daemon: &TestDaemon, line: &[&str]) -> String {
    let output = run(daemon, line);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{line:?}: {}",
        stderr(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn json_of(daemon: &TestDaemon, line: &[&str]) -> Value {
    serde_json::from_str(&ok(daemon, &[&["--json"], line].concat())).unwrap()
}

/// Checks a failed call: its exit code, that it prints nothing to stdout, and how its error begins.
#[track_caller]
pub(crate) fn fails(daemon: &TestDaemon, line: &[&str], code: i32, told: &str) {
    let output = run(daemon, line);
    let found = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{line:?}: {found}");
    assert!(output.stdout.is_empty(), "{line:?}");
    assert!(found.starts_with(told), "{line:?}: {found}");
    assert!(
        !found.contains("Commands:") && found.lines().count() < 5,
        "{line:?}: {found}"
    );
}

/// Checks a failed call: its exit code, that it prints nothing to stdout, and that its error is the accepted
/// one.
#[track_caller]
pub(crate) fn rejected(daemon: &TestDaemon, line: &[&str], code: i32) {
    let output = run(daemon, line);
    let found = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{line:?}: {found}");
    assert!(output.stdout.is_empty(), "{line:?}");
    let without = |text: &str| text.replace(daemon.root().to_str().unwrap(), "DIR");
    snapshot(
        &without(&format!("murald {}", line.join(" "))),
        &without(&found),
    );
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A directory with `count` different pictures.
pub(crate) fn pictures(daemon: &TestDaemon, count: u8) -> PathBuf {
    let directory = daemon.root().join("pictures");
    fs::create_dir_all(&directory).unwrap();
    for number in 0..count {
        let color = image::Rgb([number, 255 - number, 90]);
        let picture = image::RgbImage::from_pixel(120 + u32::from(number), 80, color);
        picture
            .save(directory.join(format!("p{number}.png")))
            .unwrap();
    }
    directory
}
