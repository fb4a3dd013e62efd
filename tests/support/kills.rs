//! Kills at random instants, many times: what remains is compared after each kill.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The number of kills, unless `MURALD_KILLS` sets it.
const ROUNDS: u32 = 32;

pub fn rounds() -> u32 {
    let set = std::env::var("MURALD_KILLS").ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Calls `kill_and_compare` for each round. It returns whether the kill came in the middle of some
/// work, which must happen at least once.
#[track_caller]
pub fn kills(mut kill_and_compare: impl FnMut(u32) -> bool) {
    let rounds = rounds();
    let middle = (0..rounds).filter(|&round| kill_and_compare(round)).count();
    eprintln!("{rounds} kills, {middle} of them in the middle");
    assert!(middle > 0, "no kill came in the middle");
}

/// An instant within this time. Steps of the golden ratio are spread evenly and do not repeat.
pub fn instant(round: u32, within: Duration) -> Duration {
    within.mul_f64(part(round))
}

/// The same as a number from 0 to 1.
pub fn part(round: u32) -> f64 {
    (f64::from(round) * 0.618_034).fract()
}

/// Starts this test program again with only the test `victim`, which works in the directory until it
/// is killed.
pub fn victim(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--quiet"])
        .env("MURALD_VICTIM", directory)
        .stdout(Stdio::null());
    command
}
