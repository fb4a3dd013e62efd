//! What the terminal can show: its width and its colours.

use std::io;

/// What is known of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) columns: usize,
    pub(super) color: bool,
    /// 24-bit colours, not 256 alone.
    pub(super) true_color: bool,
}

impl Terminal {
    /// One that is not ours, but somewhere behind our output.
    pub(super) fn assumed() -> Self {
        let depth = std::env::var("COLORTERM").unwrap_or_default();
        let true_color = depth == "truecolor" || depth == "24bit";
        Self { columns: 80, color: true, true_color }
    }

    pub(super) fn of(stdout: &io::Stdout) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let size = rustix::termios::tcgetwinsize(stdout).ok().map(|size| size.ws_col.into());
        let told = || set("COLUMNS")?.to_str()?.parse().ok();
        let color = set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
        let depth = set("COLORTERM");
        Self {
            columns: size.filter(|&columns| columns > 0).or_else(told).unwrap_or(80),
            color,
            true_color: color
                && depth.is_some_and(|depth| depth == "truecolor" || depth == "24bit"),
        }
    }
}
