//! A change of a playlist's picture: its goal, the attempt to show an item, and the clients that wait
//! for it. Pure, except for answering the clients.
//!
//! A change with clients moves the playlist on once its picture is shown. A playlist's own change has
//! no clients: the playlist has moved on already.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::error::{Error, Reply};
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::backends::Kind;
use crate::store::playlists::Item;
use crate::sys::lock;
use crate::wallpaper::Applied;
use crate::wire::{Event, Mode, SkippedItem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Stop,
    Pause,
    Resume,
    Next,
    Previous,
}

impl Action {
    /// The event of this action on one playlist, or on `count` playlists.
    pub(super) fn event(self, playlist_id: Option<i64>, count: usize) -> Event {
        let all = |name| playlist_id.is_none().then_some(name);
        let count = playlist_id.is_none().then_some(count);
        match self {
            Self::Stop => {
                let action = all("stop_all");
                Event::PlaylistStopped {
                    playlist_id,
                    action,
                    stopped: count,
                }
            }
            Self::Pause => Event::PlaylistPaused {
                playlist_id,
                action: all("pause_all"),
                paused: count,
            },
            Self::Resume | Self::Next | Self::Previous => {
                let action = all("resume_all");
                Event::PlaylistResumed {
                    playlist_id,
                    action,
                    resumed: count,
                }
            }
        }
    }

    /// The goal of the change that clients wait for, if this action may show a picture.
    pub(super) fn goal(self, alone: bool, on: &[String]) -> Option<Goal> {
        match self {
            Self::Next => Some(Goal::Step(Direction::Forward, on.to_vec())),
            Self::Previous => Some(Goal::Step(Direction::Backward, on.to_vec())),
            Self::Resume => Some(Goal::Resume { alone }),
            Self::Stop | Self::Pause => None,
        }
    }
}

/// The goal of a client's command that may show a picture.
#[derive(Clone)]
pub(super) enum Goal {
    /// On these monitors; if empty, on all.
    Start { monitors: Vec<String>, mode: Mode },
    /// In mode `each`, only on these monitors; if empty, on all.
    Step(Direction, Vec<String>),
    /// `alone`: not part of a resume of all playlists, which has an event of its own.
    Resume { alone: bool },
}

/// A client that waits for a picture.
pub(super) struct WaitingClient {
    pub(super) goal: Goal,
    /// The index of the step's first image, and its images, once its change is on its way.
    pub(super) step: (usize, Vec<i64>),
    pub(super) done: Reply<Moved>,
}

impl WaitingClient {
    pub(super) fn new(goal: Goal, done: Reply<Moved>) -> Self {
        Self {
            goal,
            step: (0, Vec::new()),
            done,
        }
    }

    pub(super) fn is_start(&self) -> bool {
        matches!(self.goal, Goal::Start { .. })
    }
}

/// The attempt to show an item that the backend can show.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    /// The change was due earlier: the machine was suspended, or no daemon ran.
    pub(super) missed: bool,
    /// Kinds of content that cannot be shown.
    pub(super) refused: Vec<Kind>,
    /// Images whose files are missing.
    pub(super) missing: Vec<i64>,
    pub(super) skipped: Vec<SkippedItem>,
    /// Publishes no event: a monitor only joins the others.
    pub(super) silent: bool,
}

/// A change on its way to the screen.
pub(super) struct Change {
    pub(super) playlist: i64,
    /// Changes of the same round show the same picture; the playlist has moved on from earlier rounds.
    pub(super) round: u64,
    pub(super) attempt: Attempt,
    pub(super) spec: PlaylistSpec,
    /// The state of the playlist once the picture is shown.
    pub(super) state: PlaybackState,
    /// The monitors of the request.
    pub(super) monitors: Vec<String>,
    /// In mode `each`: the monitors that step while the others keep their images; if empty, all step.
    pub(super) stepping: Vec<String>,
    /// In order; the picture is that of the last client, whose step supersedes the others.
    pub(super) clients: Vec<WaitingClient>,
}

impl Change {
    /// Without clients, the change is the playlist's own. `Player::request` sets the round of the
    /// others.
    pub(super) fn new(
        spec: PlaylistSpec,
        state: PlaybackState,
        clients: Vec<WaitingClient>,
    ) -> Self {
        let (attempt, monitors) = (Attempt::default(), Vec::new());
        Self {
            playlist: spec.id,
            round: 0,
            attempt,
            spec,
            state,
            monitors,
            stepping: Vec::new(),
            clients,
        }
    }

    /// The images for the monitors that step.
    pub(super) fn images(&self) -> Vec<i64> {
        let mut taken = self.state.taken();
        match self.stepping.len() {
            0 => taken,
            number => taken.split_off(taken.len().saturating_sub(number)),
        }
    }

    /// The same, with the index of the first one.
    pub(super) fn step(&self) -> (usize, Vec<i64>) {
        let (images, index) = (self.images(), self.state.index);
        if images[0] == self.state.image_id {
            return (index, images);
        }
        (self.spec.items.index_of(images[0]).unwrap_or(index), images)
    }

    /// None if the change is the playlist's own.
    pub(super) fn goal(&self) -> Option<&Goal> {
        self.clients.last().map(|client| &client.goal)
    }

    pub(super) fn is_own(&self) -> bool {
        self.clients.is_empty()
    }

    pub(super) fn is_start(&self) -> bool {
        matches!(self.goal(), Some(Goal::Start { .. }))
    }

    /// Moves past the items of a kind that cannot be shown, and those whose files are missing; false if
    /// no other is left.
    pub(super) fn skip(&mut self, is_missing: &dyn Fn(i64) -> bool) -> bool {
        let (spec, state) = (&self.spec, &mut self.state);
        let Attempt {
            refused, missing, ..
        } = &self.attempt;
        let is_refused = |item: &Item| refused.contains(&Kind::of(item.media_type, item.animated));
        let is_missing = |id: i64| missing.contains(&id) || is_missing(id);
        let fits = |item: &Item| !is_refused(item) && !is_missing(item.image_id);
        if !spec.items.iter().any(fits) {
            return false;
        }
        let direction = match self.clients.last().map(|client| &client.goal) {
            Some(Goal::Step(direction, _)) => *direction,
            Some(Goal::Start { .. } | Goal::Resume { .. }) | None => Direction::Forward,
        };
        let is_shown = |id: i64| {
            let index = spec.items.index_of(id);
            index.is_none_or(|index| fits(&spec.items[index]))
        };
        if state.taken().into_iter().all(is_shown) {
            return true;
        }
        let shown_on = std::mem::take(&mut state.shown_on);
        let left = match state.mode {
            Mode::Each => state.replace_refused(spec, &fits),
            _ if !fits(&spec.items[state.index]) => state.skip(spec, direction, &fits),
            _ => Vec::new(),
        };
        // The other monitors keep their images.
        if !self.stepping.is_empty() {
            state.shown_on = shown_on;
        }
        let skipped = left
            .into_iter()
            .filter(|&index| is_refused(&spec.items[index]))
            .map(|index| {
                let Item {
                    image_id,
                    media_type,
                    ..
                } = spec.items[index];
                SkippedItem {
                    image_id,
                    media_type,
                    slot_index: index,
                }
            });
        let skipped: Vec<SkippedItem> = skipped.collect();
        self.attempt.skipped.extend(skipped);
        self.attempt.silent = false;
        true
    }

    /// Answers all clients with the same error.
    pub(super) fn fail(self, error: &dyn Fn() -> Error) {
        self.clients
            .into_iter()
            .for_each(|client| (client.done)(Err(error())));
    }

    /// Answers all clients; a superseded step as if its own image had been shown.
    pub(super) fn answer(self, applied: &Applied) {
        let mut clients = self.clients;
        let Some(last) = clients.pop() else { return };
        let moved = |images| Moved {
            count: 1,
            images,
            warnings: applied.warnings.clone(),
        };
        for client in clients {
            let images = dealt(&applied.monitors, &client.step.1);
            (client.done)(Ok(moved(images)));
        }
        (last.done)(Ok(moved(applied.images.clone())));
    }
}

/// The images of a step that was overtaken, as if its monitors had shown them.
pub(super) fn dealt(monitors: &[String], images: &[i64]) -> BTreeMap<String, i64> {
    let images = images.iter().copied().cycle();
    monitors.iter().cloned().zip(images).collect()
}

/// The playlists and images that a command has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The number of playlists; for a command to one, 0 if there was nothing to do.
    pub count: usize,
    /// The image of each monitor after a step.
    pub images: BTreeMap<String, i64>,
    /// The reasons that an image is not visible now.
    pub warnings: Vec<String>,
}

impl Moved {
    pub(super) fn one() -> Self {
        Self {
            count: 1,
            ..Self::default()
        }
    }
}

/// Collects the answers of several playlists, and answers once with all of them.
pub(super) struct BulkReply {
    left: usize,
    moved: Moved,
    /// The first error.
    error: Option<Error>,
    finish: Option<Reply<Moved>>,
}

impl BulkReply {
    pub(super) fn new(left: usize, finish: Reply<Moved>) -> Arc<Mutex<Self>> {
        let (moved, finish) = (Moved::default(), Some(finish));
        Arc::new(Mutex::new(Self {
            left,
            moved,
            error: None,
            finish,
        }))
    }

    /// Adds the answer of one playlist; the last one answers the client.
    pub(super) fn add(bulk: &Mutex<Self>, result: Result<Moved, Error>) {
        let mut bulk = lock(bulk);
        bulk.left -= 1;
        match result {
            Ok(one) => {
                bulk.moved.count += one.count;
                bulk.moved.images.extend(one.images);
                bulk.moved.warnings.extend(one.warnings);
            }
            Err(error) => drop(bulk.error.get_or_insert(error)),
        }
        if bulk.left > 0 {
            return;
        }
        let answer = match bulk.error.take() {
            Some(error) if bulk.moved.count == 0 => Err(error),
            _ => Ok(std::mem::take(&mut bulk.moved)),
        };
        if let Some(finish) = bulk.finish.take() {
            finish(answer);
        }
    }
}
