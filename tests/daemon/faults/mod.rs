//! Tests faults around the daemon, each while a quiet client is served (`support::bystander` prints
//! its response times).

mod children;
mod clocks;
mod compositor;
mod disks;
mod queue;
mod scarce;

use std::path::PathBuf;

use crate::support::TestDaemon;

/// Creates a small image of one colour.
pub fn plain(daemon: &TestDaemon, name: &str, color: [u8; 3]) -> PathBuf {
    let path = daemon.root().join(name);
    image::RgbImage::from_pixel(64, 36, image::Rgb(color))
        .save(&path)
        .unwrap();
    path
}
