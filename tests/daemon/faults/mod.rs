//! Faults around the daemon, each beside a quiet client that is served all the while
//! (`support::bystander` prints how fast).

mod children;
mod clocks;
mod compositor;
mod disks;
mod queue;
mod scarce;

use std::path::PathBuf;

use crate::support::House;

/// A small picture of one colour.
pub fn plain(house: &House, name: &str, color: [u8; 3]) -> PathBuf {
    let path = house.root().join(name);
    image::RgbImage::from_pixel(64, 36, image::Rgb(color)).save(&path).unwrap();
    path
}
