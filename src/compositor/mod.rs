//! The outputs of the running compositor or X server, as they come and go.
//!
//! The thread `outputs` owns the connection. It waits for a compositor that is not up yet or that
//! restarts, and tells its subscribers of every change. It asks no helper program, and never
//! guesses: what it lists is what the compositor said after it had settled.

mod desktop_windows;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/compositor.rs"]
pub mod fuzz;
mod identity;
mod output;
mod output_manager;
mod outputs;
mod search;
mod session;
mod wait_for_compositor;
mod wayland;
mod x11;

pub(crate) use desktop_windows::{DesktopWindow, desktop_windows};
pub(crate) use identity::{alike, identities};
pub use output::Output;
pub use outputs::{Outputs, Watch};
pub(crate) use search::reach;
pub use session::{Compositor, Session};
