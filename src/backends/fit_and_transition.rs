//! The fit and transition that a call asks for in place of the settings, and each backend's name
//! for them. A wrapper around every backend carries the transition, and warns about programs that draw
//! over the backend.
//!
//! Runs on the worker's thread.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use super::context::Settings;
use super::foreign::{Surroundings, find, is_used, warning};
use super::{Backend, Error, Placement};
use crate::config::{AwwwTransition, BackendName, BuiltinTransition, Config, WalQtTransition};
use crate::sys::{Cancel, lock};
use crate::wire::{Fit, Sound, SoundChange};

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

/// The transition that the call in hand asks for.
#[derive(Clone, Default)]
pub(super) struct OwnTransition(Arc<Mutex<Option<String>>>);

impl OwnTransition {
    pub(super) fn set(&self, word: Option<&str>) {
        *lock(&self.0) = word.map(str::to_owned);
    }

    /// The settings with it in the place of theirs.
    pub(super) fn over(&self, settings: Settings) -> Settings {
        let own = Arc::clone(&self.0);
        Arc::new(move || {
            let config = settings();
            let word = lock(&own);
            match word.as_deref() {
                Some(word) => Arc::new(with_transition((*config).clone(), word)),
                None => config,
            }
        })
    }
}

/// Each backend has its own words; of another's, its settings stay.
fn with_transition(mut config: Config, word: &str) -> Config {
    config.awww.transition_type = word.parse().unwrap_or(config.awww.transition_type);
    config.wal_qt.transition = word.parse().unwrap_or(config.wal_qt.transition);
    config.builtin.transition_type = word.parse().unwrap_or(config.builtin.transition_type);
    config
}

/// A backend that adds warnings about such programs after each change.
pub(super) struct WithWarnings {
    pub(super) backend: Box<dyn Backend>,
    pub(super) name: BackendName,
    pub(super) surroundings: Surroundings,
    pub(super) transition: OwnTransition,
}

impl Backend for WithWarnings {
    fn use_transition(&mut self, word: Option<&str>) {
        self.transition.set(word);
        self.backend.use_transition(word);
    }

    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        self.backend.show(placements, cancel)
    }

    fn renew(&mut self) {
        self.backend.renew();
    }

    fn warnings(&mut self) -> Vec<String> {
        let conflicts = find(&self.surroundings).into_iter();
        let conflicts = conflicts.filter(|conflict| !is_used(self.name, &conflict.program));
        let warnings = conflicts.map(|conflict| warning(&conflict, &self.surroundings));
        self.backend.warnings().into_iter().chain(warnings).collect()
    }

    fn unseen(&mut self) -> Vec<String> {
        self.backend.unseen()
    }

    fn pause(&mut self, outputs: &BTreeSet<String>, cancel: &Cancel) -> Result<(), Error> {
        self.backend.pause(outputs, cancel)
    }

    fn sound(&mut self, change: SoundChange, cancel: &Cancel) -> Result<Sound, Error> {
        self.backend.sound(change, cancel)
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.backend.clear()
    }

    fn is_whole(&mut self) -> bool {
        self.backend.is_whole()
    }
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
        let config = Arc::new(crate::config::check(&path).unwrap());
        let own = OwnTransition::default();
        let settings = own.over(Arc::new(move || Arc::clone(&config)));
        let before = settings().awww.transition_type;
        own.set(Some("grow"));
        assert_eq!(settings().awww.transition_type, AwwwTransition::Grow);
        assert_eq!(settings().builtin.transition_type, BuiltinTransition::Grow);
        own.set(None);
        assert_eq!(settings().awww.transition_type, before);
    }
}
