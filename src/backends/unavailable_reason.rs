//! The reason why nothing can show a wallpaper, or why a backend cannot, as a sentence. Any thread
//! may ask; nothing is started or changed.

use super::registry::{Backends, Registration};
use crate::compositor::Compositor;
use crate::config::BackendName;

/// The reason why murald cannot draw by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableReason {
    /// No compositor answers; where it was looked for.
    #[error("there is no session to draw in: looked for {sought}")]
    Session { sought: String },
    /// The session has no place for backgrounds.
    #[error("{}", no_backgrounds(*.0))]
    Place(Compositor),
    /// The settings forbid it.
    #[error("murald may not draw by itself: backend.builtin.enabled is false")]
    Leave,
}

impl UnavailableReason {
    /// The alternative if installing a program does not help.
    pub(crate) fn instead(&self) -> Option<&'static str> {
        (*self == Self::Place(Compositor::Wayland)).then_some(
            "use a compositor that offers it (sway, Hyprland, niri, labwc, Wayfire, river); on GNOME, \
             `gsettings set org.gnome.desktop.background picture-uri file://PATH`; on KDE, \
             `plasma-apply-wallpaperimage PATH`",
        )
    }
}

impl Backends {
    pub fn unavailable_reason(&self) -> UnavailableReason {
        match self.compositor() {
            None => UnavailableReason::Session { sought: self.outputs.sought() },
            Some(compositor) if !self.outputs.has_backgrounds() => {
                UnavailableReason::Place(compositor)
            }
            Some(_) => UnavailableReason::Leave,
        }
    }

    /// Why a backend cannot be used here; none where it can, or where there is no session to use any in.
    pub fn unusable(&self, entry: &Registration) -> Option<String> {
        let (name, missing) = (entry.name, self.missing(entry));
        if !missing.is_empty() {
            return Some(format!(
                "{name} is not installed (there is no {})",
                missing.join(", no ")
            ));
        }
        let compositor = self.compositor().filter(|_| !self.is_available(entry))?;
        Some(match name {
            BackendName::Hyprpaper
                if self.outputs.has_backgrounds() && entry.is_for(compositor) =>
            {
                format!("{name} needs Hyprland, which does not run here")
            }
            _ if entry.is_for(compositor) => self.unavailable_reason().to_string(),
            _ => {
                let here = if compositor == Compositor::X11 { "X11" } else { "Wayland" };
                format!("{name} does not draw on {here}, which runs here")
            }
        })
    }
}

fn no_backgrounds(compositor: Compositor) -> &'static str {
    match compositor {
        Compositor::Wayland => {
            "this compositor does not offer wlr-layer-shell, which every backend on Wayland needs"
        }
        Compositor::X11 => {
            "this X server has no true colours, which murald needs to draw by itself"
        }
    }
}
