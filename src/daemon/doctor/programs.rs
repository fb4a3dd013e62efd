//! What is not needed, and missed: ffmpeg, and a start with the session.

use std::time::Duration;

use super::report::Report;
use crate::process::{self, Launch};
use crate::transcode;

/// The service manager answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn look(report: &mut Report) {
    if transcode::is_available() {
        report.ok("ffmpeg", "it is installed");
    } else {
        let text = "it is not installed: no videos, AVIF, JPEG XL and HEIC";
        report.note("ffmpeg", text, Some("install ffmpeg"));
    }
    unit(report);
}

/// Where there is a service manager that has our unit.
fn unit(report: &mut Report) {
    let Some(systemctl) = process::which("systemctl") else { return };
    let launch =
        Launch::new(systemctl).args(["--user", "is-enabled", "murald.service", "murald.socket"]);
    let Ok(output) = process::run(&launch, PATIENCE, None) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    if said.lines().any(|line| line.starts_with("enabled")) {
        report.ok("unit", "systemd starts murald with the session");
    } else if said.lines().any(|line| line == "disabled") {
        let step =
            "`systemctl --user enable --now murald`, unless your session starts it otherwise";
        report.note("unit", "systemd does not start murald with the session", Some(step));
    }
}
