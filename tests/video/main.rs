//! Videos through the real ffmpeg: every container and codec that it can make here, stills that
//! only it decodes, what is made of them, and what happens where it fails.

#![allow(clippy::disallowed_methods, clippy::print_stderr, clippy::unwrap_used)]

#[path = "../desktop/mod.rs"]
mod desktop;
mod film;
mod formats;
mod import;
mod kill;
mod made;
#[path = "../support/mod.rs"]
mod support;
mod trouble;
