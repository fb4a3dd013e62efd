//! A bar for things that take their time: one line on stderr, drawn anew, gone at the end.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::text::{cut, harmless, width};

/// Between two drawings.
const PACE: Duration = Duration::from_millis(40);
/// Of the bar itself, in columns.
const BAR: usize = 24;

/// Draws nothing where stderr is not a terminal.
pub(super) struct Progress {
    columns: Option<usize>,
    drawn: Option<Instant>,
}

impl Progress {
    /// `wanted` is false where the output is for a script.
    pub(super) fn stderr(wanted: bool) -> Self {
        let stderr = io::stderr();
        let columns = (wanted && stderr.is_terminal() && !is_dumb()).then(|| {
            let size = rustix::termios::tcgetwinsize(&stderr).ok();
            size.map(|size| usize::from(size.ws_col)).filter(|&wide| wide > 0).unwrap_or(80)
        });
        Self { columns, drawn: None }
    }

    pub(super) fn draw(&mut self, done: u64, total: u64, what: &str) {
        let Some(columns) = self.columns else { return };
        if done < total && self.drawn.is_some_and(|drawn| drawn.elapsed() < PACE) {
            return;
        }
        self.drawn = Some(Instant::now());
        // A bar that cannot be drawn is no reason to end.
        write!(io::stderr().lock(), "\r{}\x1b[K", line(columns, done, total, what)).ok();
    }

    /// Says what is waited for, where nobody tells how far it is.
    pub(super) fn wait(&mut self, what: &str) {
        let Some(columns) = self.columns else { return };
        self.drawn = Some(Instant::now());
        // As with the bar.
        write!(io::stderr().lock(), "\r{}\x1b[K", cut(what, columns.saturating_sub(1))).ok();
    }

    /// Takes the bar away.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            write!(io::stderr().lock(), "\r\x1b[K").ok();
        }
    }
}

/// A terminal that would show escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(columns: usize, done: u64, total: u64, what: &str) -> String {
    let whole = total.max(1);
    let filled = usize::try_from(done.min(whole) * BAR as u64 / whole).unwrap_or(BAR);
    let counts = format!("{done}/{total}");
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
    let start = format!("{bar} {counts} ");
    // The last column stays free: some terminals would begin a new line.
    let room = columns.saturating_sub(width(&start) + 1);
    if room == 0 { cut(&counts, columns) } else { start + &cut(&harmless(what), room) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars() {
        #[track_caller]
        fn check(columns: usize, done: u64, total: u64, expected: &str) {
            assert_eq!(line(columns, done, total, "a long name.jpg"), expected);
        }
        check(80, 0, 0, "░░░░░░░░░░░░░░░░░░░░░░░░ 0/0 a long name.jpg");
        check(80, 3, 6, "████████████░░░░░░░░░░░░ 3/6 a long name.jpg");
        check(36, 6, 6, "████████████████████████ 6/6 a lon…");
        check(20, 6, 6, "6/6");
    }
}
