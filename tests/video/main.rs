//! Tests videos with the real ffmpeg: all containers and codecs that it can write here, images that
//! other programs decode, previews and loops, and failures.

#![allow(clippy::disallowed_methods, clippy::print_stderr, clippy::unwrap_used)]

#[path = "../desktop/mod.rs"]
mod desktop;
mod formats;
mod import;
mod kill;
mod made;
#[path = "../support/mod.rs"]
mod support;
mod trouble;
mod video;
