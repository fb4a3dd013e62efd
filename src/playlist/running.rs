//! The running playlists, the steps of clients on their way, and the answers of these clients. Pure,
//! except for answering them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::error::{Error, Reply};
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use super::wishes::{Outcome, Wish};
use crate::random::seed;
use crate::sys::lock;
use crate::wallpaper;
use crate::wire::{Event, Mode, SetStatus};

/// A playlist that runs.
pub(super) struct RunningPlaylist {
    pub(super) spec: PlaylistSpec,
    /// The state at the last picture.
    pub(super) state: PlaybackState,
    /// The steps of clients on their way, the oldest first.
    pub(super) steps: VecDeque<Step>,
    /// An event has reported that none of its images can be shown: `builtin cannot show any image of`
    pub(super) nothing_compatible: Option<String>,
    /// The present image is gone, and its replacement has not been requested.
    pub(super) lost: bool,
}

impl RunningPlaylist {
    pub(super) fn new(spec: PlaylistSpec, state: PlaybackState, lost: bool) -> Self {
        Self {
            spec,
            state,
            steps: VecDeque::new(),
            nothing_compatible: None,
            lost,
        }
    }

    /// Changes its state, and the states after its steps.
    pub(super) fn change_states(&mut self, change: impl Fn(&mut PlaybackState)) {
        change(&mut self.state);
        self.steps
            .iter_mut()
            .for_each(|step| change(&mut step.after));
    }

    /// Answers the clients of all steps with an error.
    pub(super) fn fail_steps(&mut self, error: impl Fn(&Step) -> Error) {
        for step in self.steps.drain(..) {
            let error = error(&step);
            (step.client)(Err(error));
        }
    }

    /// The list and the state after the last step on its way.
    pub(super) fn latest(&self) -> (PlaylistSpec, PlaybackState) {
        let step = self.steps.back();
        let latest = step.map(|step| (&step.spec, &step.after));
        let (spec, state) = latest.unwrap_or((&self.spec, &self.state));
        (spec.clone(), state.clone())
    }
}

/// A step on its way to the screen.
pub(super) struct Step {
    /// The number of the wish.
    pub(super) number: u64,
    pub(super) wish: Wish,
    pub(super) aim: Aim,
    pub(super) spec: PlaylistSpec,
    /// The state of the playlist once the picture is shown.
    pub(super) after: PlaybackState,
    /// An edit of the list has removed its image.
    pub(super) lost: bool,
    /// The result, until those of the steps before are known.
    pub(super) result: Option<Outcome>,
    /// For a start: its picture may still be shown, but does not make the playlist run.
    pub(super) is_cancelled: Arc<AtomicBool>,
    pub(super) client: Reply<Moved>,
}

impl Step {
    /// Adopts an edited list.
    pub(super) fn edit(&mut self, spec: &PlaylistSpec) {
        self.spec = spec.clone();
        self.lost |= !spec.is_waiting() && self.after.edit(spec, seed());
    }

    /// Whether a later step has to bring the result.
    pub(super) fn is_superseded(&self) -> bool {
        match &self.result {
            Some(Ok(applied)) => applied.outcome == SetStatus::Superseded,
            Some(Err(wallpaper::Error::Busy)) => true,
            Some(Err(error)) => is_gone(error),
            None => false,
        }
    }

    /// The image of each monitor.
    pub(super) fn images(&self) -> BTreeMap<String, i64> {
        match &self.result {
            Some(Ok(applied)) => applied.images.clone(),
            _ => self.wish.dealt(),
        }
    }

    /// Whether this start takes the monitors of a playlist, or starts that playlist again.
    pub(super) fn takes(&self, id: i64, state: &PlaybackState) -> bool {
        id == self.spec.id || state.shares_monitors(&self.after)
    }

    pub(super) fn not_running(&self) -> Error {
        let name = self.spec.name.clone();
        Error::NotRunning { name }
    }
}

pub(super) fn is_gone(error: &wallpaper::Error) -> bool {
    use wallpaper::Error::{FileGone, NoImage};
    matches!(error, NoImage { .. } | FileGone { .. })
}

/// A playlist's list and its state after a step.
pub(super) struct Plan {
    pub(super) spec: PlaylistSpec,
    pub(super) after: PlaybackState,
    /// The monitors that step while the others keep their images; empty if all step.
    pub(super) stepping: Vec<String>,
}

/// What a client wants that may show a picture.
#[derive(Clone)]
pub(super) enum Aim {
    /// On these monitors; if empty, on all.
    Start { monitors: Vec<String>, mode: Mode },
    /// In mode `each`, only on these monitors; if empty, on all.
    Step(Direction, Vec<String>),
    /// `alone`: not part of a resume of all playlists, which has an event of its own.
    Resume { alone: bool },
}

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

    /// What a client wants, if this action may show a picture.
    pub(super) fn aim(self, alone: bool, on: &[String]) -> Option<Aim> {
        match self {
            Self::Next => Some(Aim::Step(Direction::Forward, on.to_vec())),
            Self::Previous => Some(Aim::Step(Direction::Backward, on.to_vec())),
            Self::Resume => Some(Aim::Resume { alone }),
            Self::Stop | Self::Pause => None,
        }
    }
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

    /// A playlist that runs although no image can be shown.
    pub(super) fn without_image(error: &wallpaper::Error) -> Self {
        let warning = match error {
            wallpaper::Error::Incompatible { remedy, .. } => format!("{error}: {remedy}"),
            _ => error.to_string(),
        };
        Self {
            warnings: vec![warning],
            ..Self::one()
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
        let moved = Moved::default();
        let finish = Some(finish);
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
