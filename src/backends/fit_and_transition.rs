//! Maps the fit and transition of a request, which override the settings, to each backend's names, and
//! reads the colour behind transparent pixels from the settings. Pure.

use std::str::FromStr;

use crate::color::{self, Rgb};
use crate::compositor::Compositor;
use crate::config::{AwwwTransition, BackendName, BuiltinTransition, Config, WalQtTransition};
use crate::wire::Fit;

/// The colour that a backend shows behind transparent pixels.
pub(crate) fn fill_color(config: &Config, backend: &str) -> Rgb {
    let text = match backend.parse() {
        Ok(BackendName::Awww) => &config.awww.fill_color,
        Ok(BackendName::Builtin) => &config.builtin.fill_color,
        Ok(BackendName::Feh) => &config.feh.fill_color,
        Ok(BackendName::Swaybg) => &config.swaybg.fill_color,
        Ok(BackendName::WalQt) => &config.wal_qt.fill_color,
        Ok(BackendName::Hyprpaper | BackendName::Mpvpaper) | Err(_) => return [0; 3],
    };
    // The colours of awww and wal-qt may have an alpha channel.
    text.get(..6).and_then(color::parse_hex).unwrap_or_default()
}

/// A backend's name for a fit; `None` if it has no such fit.
pub(crate) fn fit_word(backend: BackendName, fit: Fit) -> Option<&'static str> {
    let [cover, contain, fill, tile, center] = match backend {
        BackendName::Awww => [Some("crop"), Some("fit"), Some("stretch"), None, Some("no")],
        BackendName::Swaybg => [
            Some("fill"),
            Some("fit"),
            Some("stretch"),
            Some("tile"),
            Some("center"),
        ],
        BackendName::Feh => [
            Some("fill"),
            Some("max"),
            Some("scale"),
            Some("tile"),
            Some("center"),
        ],
        BackendName::Hyprpaper => [
            Some("cover"),
            Some("contain"),
            Some("fill"),
            Some("tile"),
            None,
        ],
        BackendName::Mpvpaper => [
            Some("panscan=1"),
            Some("panscan=0"),
            Some("keepaspect=no"),
            None,
            Some("video-unscaled=yes"),
        ],
        BackendName::WalQt => [
            Some("cover"),
            Some("contain"),
            Some("fill"),
            None,
            Some("none"),
        ],
        BackendName::Builtin => return Some(fit.as_str()),
    };
    match fit {
        Fit::Cover => cover,
        Fit::Contain => contain,
        Fit::Fill => fill,
        Fit::Tile => tile,
        Fit::Center => center,
    }
}

/// The fit as a value of the backend's settings. `setting` is used if the request names no fit, or the
/// backend has no such fit.
pub(super) fn fit_or<T: FromStr>(backend: BackendName, fit: Option<Fit>, setting: T) -> T {
    let word = fit.and_then(|fit| fit_word(backend, fit));
    word.and_then(|word| word.parse().ok()).unwrap_or(setting)
}

/// The transitions of a backend. All have `none`.
pub(crate) fn transition_words(
    backend: BackendName,
    compositor: Option<Compositor>,
) -> &'static [&'static str] {
    match backend {
        BackendName::Awww => AwwwTransition::WORDS,
        BackendName::WalQt => WalQtTransition::WORDS,
        BackendName::Builtin if compositor != Some(Compositor::X11) => BuiltinTransition::WORDS,
        BackendName::Builtin
        | BackendName::Feh
        | BackendName::Hyprpaper
        | BackendName::Mpvpaper
        | BackendName::Swaybg => &["none"],
    }
}

/// Sets the transition of all backends that have one of this name; the others keep their settings.
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
    fn fill_color_is_that_of_the_backend() {
        let mut config = Config::default();
        config.wal_qt.fill_color = "ffeedd80".to_owned();
        config.swaybg.fill_color = "102030".to_owned();
        assert_eq!(fill_color(&config, "wal-qt"), [0xff, 0xee, 0xdd]);
        assert_eq!(fill_color(&config, "swaybg"), [0x10, 0x20, 0x30]);
        assert_eq!(fill_color(&config, "mpvpaper"), [0; 3]);
    }

    #[test]
    fn fits_have_the_names_of_the_backends_settings() {
        use crate::config::{AwwwResize, FehMode, HyprpaperFit, SwaybgFit};
        for fit in Fit::ALL {
            let check = |backend, words: &[&str]| {
                let word = fit_word(backend, *fit);
                assert!(
                    word.is_none_or(|word| words.contains(&word)),
                    "{backend} {fit}: {word:?}"
                );
            };
            check(BackendName::Awww, AwwwResize::WORDS);
            check(BackendName::Swaybg, SwaybgFit::WORDS);
            check(BackendName::Feh, FehMode::WORDS);
            check(BackendName::Hyprpaper, HyprpaperFit::WORDS);
            check(BackendName::Builtin, Fit::WORDS);
        }
        assert_eq!(
            fit_or(BackendName::Awww, Some(Fit::Fill), AwwwResize::Crop),
            AwwwResize::Stretch
        );
        assert_eq!(
            fit_or(BackendName::Awww, Some(Fit::Tile), AwwwResize::Fit),
            AwwwResize::Fit
        );
        assert_eq!(fit_or(BackendName::Feh, None, FehMode::Max), FehMode::Max);
        assert_eq!(fit_word(BackendName::Hyprpaper, Fit::Center), None);
        assert_eq!(fit_word(BackendName::Mpvpaper, Fit::Tile), None);
    }

    #[test]
    fn requested_transition_overrides_the_setting() {
        let has =
            |backend, compositor, word| transition_words(backend, Some(compositor)).contains(&word);
        assert!(has(BackendName::Awww, Compositor::Wayland, "wave"));
        assert!(!has(BackendName::Builtin, Compositor::Wayland, "wave"));
        assert!(has(BackendName::Builtin, Compositor::Wayland, "fade"));
        assert!(!has(BackendName::Builtin, Compositor::X11, "fade"));
        assert!(has(BackendName::Swaybg, Compositor::Wayland, "none"));
        assert!(!has(BackendName::Swaybg, Compositor::Wayland, "fade"));
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
