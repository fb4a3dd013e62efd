//! Explains in a sentence why nothing can show a wallpaper, or why a backend cannot. Runs on any thread;
//! starts and changes nothing.

use super::context::Backends;
use super::registry::{Registration, registration};
use crate::compositor::Compositor;
use crate::config::BackendName;

/// The reason why the built-in renderer cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableReason {
    /// No compositor answers; `sought` says where murald looked.
    #[error("no Wayland or X11 session found: {sought}")]
    Session { sought: String },
    /// The session does not support backgrounds.
    #[error("{}", no_backgrounds(*.0))]
    Place(Compositor),
    /// The settings disable it.
    #[error("the built-in renderer is disabled (backend.builtin.enabled is false)")]
    Leave,
}

impl UnavailableReason {
    /// The alternative if installing a program does not help.
    pub(crate) fn instead(&self) -> Option<&'static str> {
        (*self == Self::Place(Compositor::Wayland)).then_some(
            "use a compositor that supports it (sway, Hyprland, niri, labwc, Wayfire, river); on GNOME, \
             `gsettings set org.gnome.desktop.background picture-uri file://PATH`; on KDE, \
             `plasma-apply-wallpaperimage PATH`",
        )
    }
}

impl Backends {
    pub fn unavailable_reason(&self) -> UnavailableReason {
        match self.compositor() {
            None => UnavailableReason::Session {
                sought: self.outputs.sought(),
            },
            Some(compositor) if !self.outputs.has_backgrounds() => {
                UnavailableReason::Place(compositor)
            }
            Some(_) => UnavailableReason::Leave,
        }
    }

    /// Why a backend cannot be used here; `None` if it can, or if it is installed but there is no
    /// session.
    pub fn unusable(&self, entry: &Registration) -> Option<String> {
        let name = entry.name;
        let missing = self.missing(entry);
        if !missing.is_empty() {
            return Some(not_installed(name, &missing));
        }
        let compositor = self.compositor().filter(|_| !self.is_available(entry))?;
        Some(match name {
            BackendName::Hyprpaper
                if self.outputs.has_backgrounds() && entry.is_for(compositor) =>
            {
                format!("{name} works on Hyprland only")
            }
            _ if entry.is_for(compositor) => self.unavailable_reason().to_string(),
            _ => other_session(name),
        })
    }
}

/// `awww is not installed`, with the programs if only some are missing.
pub(crate) fn not_installed(name: BackendName, missing: &[&str]) -> String {
    let programs = registration(name).programs;
    if missing.len() < programs.len() {
        format!("{name} is not installed (missing: {})", missing.join(", "))
    } else {
        format!("{name} is not installed")
    }
}

/// The session that a backend needs instead of this one.
pub(crate) fn other_session(name: BackendName) -> String {
    let wanted = if registration(name).is_for(Compositor::X11) {
        "X11"
    } else {
        "Wayland"
    };
    format!("{name} works on {wanted} only")
}

fn no_backgrounds(compositor: Compositor) -> &'static str {
    match compositor {
        Compositor::Wayland => {
            "this compositor does not support wlr-layer-shell, which all Wayland backends need"
        }
        Compositor::X11 => {
            "this X server has no TrueColor visual, which the built-in renderer needs"
        }
    }
}
