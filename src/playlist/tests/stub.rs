//! Wallpapers that behave as the test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::backends::{Kind, UnavailableReason};
use crate::config::BackendName;
use crate::playlist::Wallpapers;
use crate::store::{Store, images};
use crate::wallpaper::{self, Applied, Ask, Request, Targets};
use crate::wire::{MediaType, Mode, PauseReason, SetStatus};

/// The answers of the stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    Shows,
    /// Holds its answers until the test releases them.
    Silent,
    RefusesVideo,
    /// The files of videos are missing.
    LacksVideo,
    RefusesAll,
    NoBackend,
    Superseded,
    /// A newer request has the monitor B.
    LosesB,
    /// The backend cannot show it.
    Fails,
}

pub(super) struct StubState {
    pub(super) behaviour: Behaviour,
    pub(super) connected: Vec<String>,
    /// The identities of the monitors.
    pub(super) identities: BTreeMap<String, String>,
    pub(super) fixed: bool,
    /// Requested images and monitors.
    pub(super) asked: Vec<(i64, Vec<String>, Mode)>,
    /// Requests that name an image for each monitor.
    pub(super) dealt: Vec<Vec<i64>>,
    /// For each monitor, the first one is being shown and the others wait.
    pub(super) held: Vec<Held>,
    /// The image that each monitor shows.
    pub(super) screen: BTreeMap<String, i64>,
    /// The pauses (`true`) and resumes of videos and HTML wallpapers.
    pub(super) rests: Vec<bool>,
}

type Held = (Request, wallpaper::Reply<Applied>);

impl StubState {
    fn monitors(&self, request: &Request) -> Vec<String> {
        match &request.targets {
            Targets::Named(monitors) => monitors.clone(),
            Targets::All => self.connected.clone(),
        }
    }

    /// Removes one of the requests that are being shown.
    pub(super) fn take_shown(&mut self, at: usize) -> Option<Held> {
        let mut busy: Vec<String> = Vec::new();
        let mut shown = Vec::new();
        for (at, (request, _)) in self.held.iter().enumerate() {
            let monitors = self.monitors(request);
            if !monitors.iter().any(|name| busy.contains(name)) {
                shown.push(at);
            }
            busy.extend(monitors);
        }
        let at = shown.get(at % shown.len().max(1))?;
        Some(self.held.remove(*at))
    }

    /// Holds a request, and removes the waiting ones that it overtakes.
    fn hold(&mut self, request: Request, reply: wallpaper::Reply<Applied>) -> Vec<Held> {
        let mut overtaken = Vec::new();
        let new = self.monitors(&request);
        let mut busy: Vec<String> = Vec::new();
        for held in std::mem::take(&mut self.held) {
            let monitors = self.monitors(&held.0);
            let waits = monitors.iter().any(|name| busy.contains(name));
            if waits && monitors.iter().all(|name| new.contains(name)) {
                overtaken.push(held);
            } else {
                busy.extend(monitors);
                self.held.push(held);
            }
        }
        self.held.push((request, reply));
        overtaken
    }
}

#[derive(Clone)]
pub(super) struct StubWallpapers {
    pub(super) state: Arc<Mutex<StubState>>,
    pub(super) store: Store,
}

impl StubWallpapers {
    pub(super) fn answer(&self, request: Request, reply: wallpaper::Reply<Applied>) {
        let behaviour = self.state.lock().unwrap().behaviour;
        self.answer_as(behaviour, request, reply);
    }

    pub(super) fn answer_as(
        &self,
        behaviour: Behaviour,
        request: Request,
        reply: wallpaper::Reply<Applied>,
    ) {
        let mut state = self.state.lock().unwrap();
        let ids = match &request.ask {
            Ask::Image(id) => vec![*id],
            Ask::Each(ids) => ids.clone(),
            _ => panic!("{:?}", request.ask),
        };
        // The answer is about the first video, or the first image if there is none.
        let is_video = |id: &&i64| {
            let image = self.store.read(|c| images::get(c, **id)).unwrap();
            image.is_some_and(|image| image.media_type == MediaType::Video)
        };
        let id = ids.iter().find(is_video).copied().unwrap_or(ids[0]);
        let monitors = state.monitors(&request);
        let gone: Vec<String> = monitors
            .iter()
            .filter(|name| !state.connected.contains(name))
            .cloned()
            .collect();
        if !gone.is_empty() {
            let connected = state.connected.clone();
            return reply(Err(wallpaper::Error::UnknownMonitors {
                names: gone,
                connected,
            }));
        }
        let image = self
            .store
            .read(|c| images::get(c, id))
            .unwrap()
            .map(Arc::new);
        let backend = BackendName::Swaybg;
        let refused = |media_type| wallpaper::Error::Incompatible {
            backend,
            kind: Kind::from_media_type(media_type, false),
            media_type,
            image_id: Some(id),
            image_name: "x".into(),
            remedy: wallpaper::Remedy::None,
        };
        let outcome = match (behaviour, image.as_deref()) {
            (_, None) => Err(wallpaper::Error::NoImage { id }),
            (Behaviour::Fails, _) => Err(backend_failure()),
            (Behaviour::NoBackend, _) => Err(wallpaper::Error::NoBackend {
                lack: UnavailableReason::Leave,
                checked: Vec::new(),
                unusable: Vec::new(),
            }),
            (Behaviour::RefusesAll, Some(image)) => Err(refused(image.media_type)),
            (Behaviour::RefusesVideo, Some(image)) if image.media_type == MediaType::Video => {
                Err(refused(image.media_type))
            }
            (Behaviour::LacksVideo, Some(image)) if image.media_type == MediaType::Video => {
                let path = image.path.clone();
                Err(wallpaper::Error::FileGone {
                    id,
                    path,
                    away: true,
                })
            }
            (Behaviour::Superseded, _) => Ok(SetStatus::Superseded),
            _ => Ok(SetStatus::Set),
        };
        let mode = request.mode;
        let images: BTreeMap<String, i64> = monitors
            .iter()
            .cloned()
            .zip(ids.iter().copied().cycle())
            .collect();
        if let Ok(SetStatus::Set) = outcome {
            state.screen.extend(images.clone());
        }
        drop(state);
        let is_lost = |name: &str| behaviour == Behaviour::LosesB && name == "B";
        let (overtaken, monitors) = monitors.into_iter().partition(|name| is_lost(name));
        let images = images.into_iter().filter(|(name, _)| !is_lost(name));
        let applied = |outcome| Applied {
            outcome,
            image: image.unwrap(),
            monitors,
            skipped: Vec::new(),
            overtaken,
            mode,
            backend,
            images: images.collect(),
            backends: BTreeMap::new(),
            warnings: Vec::new(),
            note: None,
            hidden_by: BTreeMap::new(),
        };
        let result = outcome.map(applied);
        if let (Ok(applied), Some(write)) = (&result, &request.with_rows)
            && applied.outcome == SetStatus::Set
        {
            self.store.write(|c| write(c, applied)).unwrap();
        }
        reply(result);
    }
}

fn backend_failure() -> wallpaper::Error {
    let source = crate::backends::Error::Refused("on purpose".to_owned());
    wallpaper::Error::Backend {
        backend: BackendName::Swaybg,
        source,
    }
}

impl Wallpapers for StubWallpapers {
    fn apply(&self, request: Request, reply: wallpaper::Reply<Applied>) {
        let mut state = self.state.lock().unwrap();
        let id = match &request.ask {
            Ask::Image(id) => *id,
            Ask::Each(ids) => {
                state.dealt.push(ids.clone());
                ids[0]
            }
            _ => panic!("{:?}", request.ask),
        };
        let monitors = state.monitors(&request);
        state.asked.push((id, monitors, request.mode));
        if state.behaviour == Behaviour::Silent {
            let overtaken = state.hold(request, reply);
            drop(state);
            for (request, reply) in overtaken {
                self.answer_as(Behaviour::Superseded, request, reply);
            }
            return;
        }
        drop(state);
        self.answer(request, reply);
    }

    fn unshowable_kinds(&self) -> Vec<Kind> {
        match self.state.lock().unwrap().behaviour {
            Behaviour::RefusesAll | Behaviour::NoBackend => Kind::ALL.to_vec(),
            Behaviour::RefusesVideo => vec![Kind::Video],
            _ => Vec::new(),
        }
    }

    fn connected(&self) -> Vec<String> {
        self.state.lock().unwrap().connected.clone()
    }

    fn identities(&self) -> BTreeMap<String, String> {
        self.state.lock().unwrap().identities.clone()
    }

    fn session(&self) -> Option<String> {
        None
    }

    fn pause(&self, reason: Option<PauseReason>) {
        self.state.lock().unwrap().rests.push(reason.is_some());
    }

    fn fixed_backend(&self) -> Option<String> {
        self.state.lock().unwrap().fixed.then(|| "awww".to_owned())
    }
}
