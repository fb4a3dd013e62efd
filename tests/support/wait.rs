//! Waits of tests: for what is to come, with a deadline that a busy machine keeps.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Waits until something holds, and fails the test when it does not within a minute.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()).ok_or("not yet"));
}

/// Waits for something, and fails the test with what there was instead when it does not come within a
/// minute.
#[track_caller]
pub fn wait_for<T, E: Debug>(what: &str, mut look: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match look() {
            Ok(found) => return found,
            Err(instead) => {
                assert!(Instant::now() < deadline, "waited in vain: {what}: {instead:?}")
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sets a flag when it is dropped, also by an assertion that fails: threads that watch until then would
/// watch for ever.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
