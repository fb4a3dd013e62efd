//! Chooses the backend for each kind of content, from the settings and the available backends. Pure.

use crate::backends::{Backends, Kind, Registration};
use crate::config::{BackendName, Config, SelectionMode};

/// How a backend is chosen (`[backend]` of the configuration).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preference {
    pub(super) selection: SelectionMode,
    /// `backend.type`
    pub(super) fixed: BackendName,
    pub(super) image: Vec<BackendName>,
    pub(super) video: Vec<BackendName>,
    pub(super) web: Vec<BackendName>,
}

/// A backend that could be used now: installed, and its compositor is the one that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) name: BackendName,
    pub(super) kinds: &'static [Kind],
}

/// The backends that could be used now. Searches `PATH`.
pub(super) fn candidates(backends: &Backends) -> Vec<Candidate> {
    let candidate = |entry: &'static Registration| Candidate {
        name: entry.name,
        kinds: backends.kinds(entry),
    };
    backends.available().into_iter().map(candidate).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoChoice {
    /// No backend is available.
    None,
    /// The backend in use, or every available one, cannot show this kind.
    Incompatible { backend: BackendName },
}

/// The backends that were found at the last search. A backend for images that is installed while the
/// builtin one is in use is not used before the next start, unless it is activated.
#[derive(Debug, Default)]
pub(super) struct FoundBackends(Option<Vec<BackendName>>);

impl FoundBackends {
    /// Removes backends for images that were installed since the last search; returns their names.
    pub(super) fn keep(
        &mut self,
        available: &mut Vec<Candidate>,
        draws_itself: bool,
    ) -> Vec<BackendName> {
        match self.0.as_ref().filter(|_| draws_itself) {
            Some(found) => available
                .extract_if(.., |one| {
                    !found.contains(&one.name) && one.kinds.contains(&Kind::StaticImage)
                })
                .map(|one| one.name)
                .collect(),
            None => {
                self.0 = Some(available.iter().map(|one| one.name).collect());
                Vec::new()
            }
        }
    }

    /// Uses all installed backends again.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

/// The backend that is in use in fixed mode: the preferred one, else the first that is available, which
/// is the builtin one unless it is disabled.
pub(super) fn active(preference: &Preference, available: &[Candidate]) -> Option<BackendName> {
    let preferred = available
        .iter()
        .find(|candidate| candidate.name == preference.fixed);
    preferred
        .or(available.first())
        .map(|candidate| candidate.name)
}

/// A backend, and the kind as which it shows the content: an animated picture may become a still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) backend: BackendName,
    pub(super) kind: Kind,
}

/// Chooses the backend for content of this kind. For an animated picture, a backend that can animate
/// precedes one that shows the first frame only.
pub(super) fn choose(
    preference: &Preference,
    available: &[Candidate],
    kind: Kind,
) -> Result<Choice, NoChoice> {
    let active = active(preference, available).ok_or(NoChoice::None)?;
    let shown_as = |kind: Kind| {
        let shows = |name: &BackendName| {
            let mut candidates = available.iter();
            candidates.any(|one| one.name == *name && one.kinds.contains(&kind))
        };
        let first = || available.iter().map(|one| one.name).find(shows);
        let backend = match preference.selection {
            // If the configured backend cannot be used, another shows what it can.
            SelectionMode::Fixed if active != preference.fixed => {
                Some(active).filter(shows).or_else(first)
            }
            SelectionMode::Fixed => Some(active).filter(shows),
            SelectionMode::Auto => {
                let listed = preference.order(kind).iter().copied().find(shows);
                listed.or_else(|| first().filter(|_| kind.is_image()))
            }
        };
        backend.map(|backend| Choice { backend, kind })
    };
    let still = || match kind {
        Kind::AnimatedImage => shown_as(Kind::StaticImage),
        Kind::StaticImage | Kind::Video | Kind::Web => None,
    };
    shown_as(kind)
        .or_else(still)
        .ok_or(NoChoice::Incompatible { backend: active })
}

/// The default of `auto_priorities.image`, which the API shows without the builtin backend.
const DEFAULT_IMAGE: [BackendName; 5] = [
    BackendName::Awww,
    BackendName::Hyprpaper,
    BackendName::Swaybg,
    BackendName::Feh,
    BackendName::WalQt,
];

impl Preference {
    /// The settings, except that an activated backend precedes them.
    pub(super) fn from_config(config: &Config, activated: Option<BackendName>) -> Self {
        let mut image = config.auto_priorities.image.clone();
        if image == DEFAULT_IMAGE {
            image.insert(1, BackendName::Builtin);
        }
        let selection = config.backend.selection_mode;
        Self {
            selection: activated.map_or(selection, |_| SelectionMode::Fixed),
            fixed: activated.unwrap_or(config.backend.kind),
            image,
            video: config.auto_priorities.video.clone(),
            web: config.auto_priorities.web.clone(),
        }
    }

    fn order(&self, kind: Kind) -> &[BackendName] {
        match kind {
            Kind::StaticImage | Kind::AnimatedImage => &self.image,
            Kind::Video => &self.video,
            Kind::Web => &self.web,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILLS: &[Kind] = &[Kind::StaticImage];
    const VIDEO: &[Kind] = &[Kind::Video];

    #[test]
    fn each_setting_affects_the_choice() {
        use BackendName::{Awww, Builtin, Feh, Mpvpaper, Swaybg, WalQt};
        let available: Vec<_> = crate::backends::REGISTRY
            .iter()
            .map(|entry| Candidate {
                name: entry.name,
                kinds: entry.kinds,
            })
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let check = |keys: &[&str], kind, expected| {
            let path = directory.path().join("config.toml");
            let toml: String = keys.iter().map(|key| format!("backend.{key}\n")).collect();
            std::fs::write(&path, &toml).unwrap();
            let preference = Preference::from_config(&crate::config::check(&path).unwrap(), None);
            let chosen = choose(&preference, &available, kind);
            assert_eq!(chosen.map(|choice| choice.backend), expected, "{toml}");
        };
        let still = Kind::StaticImage;
        check(&[], still, Ok(Awww));
        let (feh, auto) = ("type = 'feh'", "selection_mode = 'auto'");
        check(&[feh], still, Ok(Feh));
        check(&[feh, auto], still, Ok(Awww));
        check(
            &[auto, "auto_priorities.image = ['swaybg']"],
            still,
            Ok(Swaybg),
        );
        let mut others = Preference::from_config(&Config::default(), None).image;
        assert_eq!(others.remove(1), Builtin, "the default list");
        assert_eq!(others, Config::default().auto_priorities.image);
        check(&[auto], Kind::Video, Ok(Mpvpaper));
        check(
            &[auto, "auto_priorities.video = ['wal-qt']"],
            Kind::Video,
            Ok(WalQt),
        );
        check(&[auto], Kind::Web, Ok(WalQt));
        let none = Err(NoChoice::Incompatible { backend: Awww });
        check(&[auto, "auto_priorities.web = []"], Kind::Web, none);
    }

    #[test]
    fn preferred_backend_is_chosen_if_it_can_show_the_kind() {
        let preference = |selection| Preference {
            selection,
            fixed: BackendName::Awww,
            image: vec![BackendName::Awww, BackendName::Swaybg],
            video: vec![BackendName::Mpvpaper],
            web: vec![BackendName::WalQt],
        };
        let candidates = |available: &[(BackendName, &'static [Kind])]| -> Vec<Candidate> {
            available
                .iter()
                .map(|&(name, kinds)| Candidate { name, kinds })
                .collect()
        };
        let check = |selection, available: &[_], kind, expected| {
            let chosen = choose(&preference(selection), &candidates(available), kind);
            assert_eq!(chosen.map(|choice| choice.backend), expected);
        };
        let in_use =
            |available: &[_]| active(&preference(SelectionMode::Fixed), &candidates(available));
        use BackendName::{Awww, Builtin, Feh, Mpvpaper, Swaybg};
        let (fixed, auto) = (SelectionMode::Fixed, SelectionMode::Auto);
        let both = [(Mpvpaper, VIDEO), (Swaybg, STILLS)];
        check(fixed, &[], Kind::Video, Err(NoChoice::None));
        check(
            fixed,
            &[(Swaybg, STILLS), (Awww, STILLS)],
            Kind::StaticImage,
            Ok(Awww),
        );
        check(fixed, &both, Kind::Video, Ok(Mpvpaper));
        check(fixed, &both, Kind::StaticImage, Ok(Swaybg));
        let videos = [(Mpvpaper, VIDEO), (Builtin, STILLS)];
        for mode in [fixed, auto] {
            check(mode, &videos, Kind::StaticImage, Ok(Builtin));
            check(mode, &videos, Kind::Video, Ok(Mpvpaper));
        }
        check(
            auto,
            &[(Feh, STILLS), (Builtin, STILLS)],
            Kind::StaticImage,
            Ok(Feh),
        );
        check(auto, &both, Kind::StaticImage, Ok(Swaybg));
        check(auto, &both, Kind::Video, Ok(Mpvpaper));
        for (mode, kind) in [(fixed, Kind::Web), (auto, Kind::Web)] {
            let backend = Mpvpaper;
            check(mode, &both, kind, Err(NoChoice::Incompatible { backend }));
        }
        assert_eq!(in_use(&both), Some(Mpvpaper));
        assert_eq!(in_use(&[(Swaybg, STILLS), (Awww, STILLS)]), Some(Awww));
    }

    #[test]
    fn new_backend_is_not_used_while_builtin_draws() {
        use BackendName::{Awww, Builtin, Mpvpaper, Swaybg};
        let mut found = FoundBackends::default();
        let check =
            |found: &mut FoundBackends, names: &[BackendName], draws, expected: &[BackendName]| {
                let candidate = |&name| Candidate {
                    name,
                    kinds: if name == Mpvpaper { VIDEO } else { STILLS },
                };
                let mut available: Vec<Candidate> = names.iter().map(candidate).collect();
                found.keep(&mut available, draws);
                assert_eq!(
                    available.iter().map(|one| one.name).collect::<Vec<_>>(),
                    expected
                );
            };
        check(&mut found, &[Builtin], false, &[Builtin]);
        check(&mut found, &[Swaybg, Builtin], true, &[Builtin]);
        // The message to install it must be followed by success.
        check(
            &mut found,
            &[Mpvpaper, Swaybg, Builtin],
            true,
            &[Mpvpaper, Builtin],
        );
        found.forget();
        check(&mut found, &[Swaybg, Builtin], true, &[Swaybg, Builtin]);
        check(
            &mut found,
            &[Awww, Swaybg, Builtin],
            false,
            &[Awww, Swaybg, Builtin],
        );
    }

    #[test]
    fn animated_picture_becomes_a_still_only_if_no_usable_backend_animates_it() {
        const ANIMATED: &[Kind] = &[Kind::StaticImage, Kind::AnimatedImage];
        use BackendName::{Awww, Mpvpaper, Swaybg};
        let check = |selection, fixed, available: &[(BackendName, &'static [Kind])], expected| {
            let image = vec![Swaybg, Awww];
            let preference = Preference {
                selection,
                fixed,
                image,
                video: Vec::new(),
                web: Vec::new(),
            };
            let available: Vec<_> = available
                .iter()
                .map(|&(name, kinds)| Candidate { name, kinds })
                .collect();
            let chosen = choose(&preference, &available, Kind::AnimatedImage);
            assert_eq!(chosen.map(|choice| (choice.backend, choice.kind)), expected);
        };
        let (fixed, auto) = (SelectionMode::Fixed, SelectionMode::Auto);
        let both = [(Awww, ANIMATED), (Swaybg, STILLS), (Mpvpaper, VIDEO)];
        check(auto, Swaybg, &both, Ok((Awww, Kind::AnimatedImage)));
        check(auto, Swaybg, &both[1..], Ok((Swaybg, Kind::StaticImage)));
        check(fixed, Swaybg, &both, Ok((Swaybg, Kind::StaticImage)));
        check(fixed, Awww, &both, Ok((Awww, Kind::AnimatedImage)));
        let none = Err(NoChoice::Incompatible { backend: Mpvpaper });
        check(fixed, Mpvpaper, &both, none);
    }
}
