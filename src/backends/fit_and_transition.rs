//! The fit and transition that a call asks for in place of the settings, and each backend's name
//! for them. Pure.

use std::str::FromStr;

use crate::config::{AwwwTransition, BackendName, BuiltinTransition, Config, WalQtTransition};
use crate::wire::Fit;

/// How a backend calls a fit; none where it has no such.
pub(crate) fn fit_word(backend: BackendName, fit: Fit) -> Option<&'static str> {
    let [cover, contain, fill, tile, center] = match backend {
        BackendName::Awww => [Some("crop"), Some("fit"), Some("stretch"), None, Some("no")],
        BackendName::Swaybg => {
            [Some("fill"), Some("fit"), Some("stretch"), Some("tile"), Some("center")]
        }
        BackendName::Feh => {
            [Some("fill"), Some("max"), Some("scale"), Some("tile"), Some("center")]
        }
        BackendName::Hyprpaper => {
            [Some("cover"), Some("contain"), Some("fill"), Some("tile"), None]
        }
        BackendName::Mpvpaper => [
            Some("panscan=1"),
            Some("panscan=0"),
            Some("keepaspect=no"),
            None,
            Some("video-unscaled=yes"),
        ],
        BackendName::WalQt => [Some("cover"), Some("contain"), Some("fill"), None, Some("none")],
        BackendName::Builtin => {
            [Some("cover"), Some("contain"), Some("fill"), Some("tile"), Some("center")]
        }
    };
    match fit {
        Fit::Cover => cover,
        Fit::Contain => contain,
        Fit::Fill => fill,
        Fit::Tile => tile,
        Fit::Center => center,
    }
}

/// The same as the backend's settings have it; what they say where nothing else is asked for, or where
/// it has no word for that.
pub(super) fn fit_or<T: FromStr>(backend: BackendName, fit: Option<Fit>, setting: T) -> T {
    let word = fit.and_then(|fit| fit_word(backend, fit));
    word.and_then(|word| word.parse().ok()).unwrap_or(setting)
}

/// Whether a backend has a transition of this name. All can do without.
pub(crate) fn has_transition(backend: BackendName, word: &str) -> bool {
    let words = match backend {
        BackendName::Awww => AwwwTransition::WORDS,
        BackendName::WalQt => WalQtTransition::WORDS,
        BackendName::Builtin => BuiltinTransition::WORDS,
        BackendName::Feh | BackendName::Hyprpaper | BackendName::Mpvpaper | BackendName::Swaybg => {
            &["none"]
        }
    };
    words.contains(&word)
}

/// Each backend has its own words; of another's, its settings stay.
pub(super) fn with_transition(mut config: Config, word: &str) -> Config {
    config.awww.transition_type = word.parse().unwrap_or(config.awww.transition_type);
    config.wal_qt.transition = word.parse().unwrap_or(config.wal_qt.transition);
    config.builtin.transition_type = word.parse().unwrap_or(config.builtin.transition_type);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_backends_settings() {
        use crate::config::{AwwwResize, BuiltinFit, FehMode, HyprpaperFit, SwaybgFit};
        for fit in Fit::ALL {
            let check = |backend, words: &[&str]| {
                let word = fit_word(backend, *fit);
                assert!(word.is_none_or(|word| words.contains(&word)), "{backend} {fit}: {word:?}");
            };
            check(BackendName::Awww, AwwwResize::WORDS);
            check(BackendName::Swaybg, SwaybgFit::WORDS);
            check(BackendName::Feh, FehMode::WORDS);
            check(BackendName::Hyprpaper, HyprpaperFit::WORDS);
            check(BackendName::Builtin, BuiltinFit::WORDS);
        }
        assert_eq!(
            fit_or(BackendName::Awww, Some(Fit::Fill), AwwwResize::Crop),
            AwwwResize::Stretch
        );
        assert_eq!(fit_or(BackendName::Awww, Some(Fit::Tile), AwwwResize::Fit), AwwwResize::Fit);
        assert_eq!(fit_or(BackendName::Feh, None, FehMode::Max), FehMode::Max);
        assert_eq!(fit_word(BackendName::Hyprpaper, Fit::Center), None);
        assert_eq!(fit_word(BackendName::Mpvpaper, Fit::Tile), None);
    }

    #[test]
    fn transition_of_one_call_takes_the_place_of_the_setting() {
        assert!(has_transition(BackendName::Awww, "wave"));
        assert!(!has_transition(BackendName::Builtin, "wave"));
        assert!(has_transition(BackendName::Swaybg, "none"));
        assert!(!has_transition(BackendName::Swaybg, "fade"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, "").unwrap();
        let config = crate::config::check(&path).unwrap();
        let own = with_transition(config.clone(), "grow");
        assert_eq!(own.awww.transition_type, AwwwTransition::Grow);
        assert_eq!(own.builtin.transition_type, BuiltinTransition::Grow);
        assert_eq!(own.wal_qt.transition, WalQtTransition::Grow);
        let own = with_transition(config.clone(), "wave");
        assert_eq!(own.builtin.transition_type, config.builtin.transition_type);
    }
}
