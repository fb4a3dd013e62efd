//! `[backend]`: which program shows the pictures.

use super::key::Key;
use super::settings::settings;
use crate::wire::words;

words! {
    /// The backends, in the order in which they are looked for.
    BackendName {
        Awww = "awww", Feh = "feh", Hyprpaper = "hyprpaper", Mpvpaper = "mpvpaper",
        Swaybg = "swaybg", WalQt = "wal-qt", Builtin = "builtin",
    }
}

words! {
    /// `fixed` always uses `type`, `auto` picks by the kind of content.
    SelectionMode { Fixed = "fixed", Auto = "auto" }
}

settings! {
    /// `[backend]` without the tables in it.
    #[derive(Debug)]
    Backend {
        /// The backend to use; where it cannot be used, the first that can
        kind as "type": BackendName = Key::word("awww", BackendName::WORDS),
        /// fixed always uses type, auto picks by kind of content from auto_priorities
        selection_mode: SelectionMode = Key::word("fixed", SelectionMode::WORDS),
        /// Length of transitions in seconds; above 0 it overrides those of awww, wal-qt and builtin
        transition_duration_seconds: Option<f64> = Key::optional_number().within(0, 120),
    }
}

settings! {
    /// `[backend.auto_priorities]`: the order in which backends are tried.
    #[derive(Debug)]
    AutoPriorities {
        /// For still and animated images
        image: Vec<BackendName> = priorities(&["awww", "hyprpaper", "swaybg", "feh", "wal-qt"]),
        /// For videos
        video: Vec<BackendName> = priorities(&["mpvpaper", "wal-qt"]),
        /// For HTML wallpapers
        web: Vec<BackendName> = priorities(&["wal-qt"]),
    }
}

const fn priorities(default: &'static [&'static str]) -> Key {
    Key::list(default).ruled(super::Rule::Words(BackendName::WORDS))
}
