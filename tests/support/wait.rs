//! Waits for conditions in tests, with a deadline that is generous for busy machines.

// Each test program uses a part of this file.
#![allow(dead_code, unreachable_pub)]

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Waits until a condition holds; fails the test after a minute.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()).ok_or("not yet"));
}

/// Waits until `look` succeeds; after a minute, fails the test and shows the last error.
#[track_caller]
pub fn wait_for<T, E: Debug>(what: &str, mut look: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match look() {
            Ok(found) => return found,
            Err(instead) => {
                assert!(
                    Instant::now() < deadline,
                    "waited in vain: {what}: {instead:?}"
                )
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sets a flag when it is dropped, even by a failed assertion, so that threads that wait for the
/// flag end.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
