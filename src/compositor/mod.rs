//! The outputs of the running compositor or X server, and how they change.
//!
//! The thread `outputs` owns the connection. It waits for a compositor that has not started yet or
//! restarts, and reports every change to its subscribers. It starts no helper program and never
//! guesses: it lists what the compositor said after it had settled.

mod desktop_windows;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/compositor.rs"]
pub mod fuzz;
mod output;
mod output_manager;
mod outputs;
mod search;
mod session;
mod wait_for_compositor;
mod wayland;
mod x11;

pub(crate) use desktop_windows::{DesktopWindow, desktop_windows};
pub use output::Output;
pub(crate) use output::{alike, identities};
pub use outputs::{Outputs, Watch};
pub(crate) use search::reach;
pub use session::{Compositor, Session};
