//! The changes of one playlist that clients wait for: the change on its way to the screen, and those
//! queued behind it. Pure; never asks for a picture.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use super::error::{Error, Reply};
use super::spec::{Direction, PlaylistSpec};
use super::state::PlaybackState;
use crate::sys::lock;
use crate::wire::Mode;

/// Commands that wait behind the change on its way; one more is refused with [`Error::Busy`].
const QUEUE: usize = 64;

/// Answers one client.
pub(super) type Done = Reply<Moved>;

pub(super) enum PendingCommand {
    Start {
        monitors: Vec<String>,
        mode: Mode,
        done: Done,
    },
    Step {
        direction: Direction,
        done: Done,
    },
    /// `alone`: not of a resume of all, which has an event of its own.
    Resume {
        alone: bool,
        done: Done,
    },
}

impl PendingCommand {
    fn refuse(self, error: Error) {
        match self {
            Self::Start { done, .. } | Self::Step { done, .. } | Self::Resume { done, .. } => {
                done(Err(error));
            }
        }
    }

    fn is_start(&self) -> bool {
        matches!(self, Self::Start { .. })
    }
}

/// A change on its way to the screen.
pub(super) struct InFlight {
    /// The number of the change, by which its report is known.
    pub(super) change: u64,
    pub(super) goal: Goal,
    pub(super) spec: PlaylistSpec,
    /// The state of the playlist once the picture is shown.
    pub(super) state: PlaybackState,
    pub(super) superseded: Vec<Superseded>,
    pub(super) done: Done,
}

pub(super) enum Goal {
    Start,
    Step(Direction),
    Resume { alone: bool },
}

/// A step whose picture is not shown, because another step follows it at once.
pub(super) struct Superseded {
    pub(super) direction: Direction,
    /// The item that it led to.
    pub(super) index: usize,
    pub(super) image_id: i64,
    pub(super) done: Done,
}

impl InFlight {
    pub(super) fn new(goal: Goal, spec: PlaylistSpec, state: PlaybackState, done: Done) -> Self {
        Self { change: 0, goal, spec, state, superseded: Vec::new(), done }
    }

    pub(super) fn direction(&self) -> Direction {
        match self.goal {
            Goal::Step(direction) => direction,
            Goal::Start | Goal::Resume { .. } => Direction::Forward,
        }
    }

    /// Answers all who wait for it with the same error.
    pub(super) fn fail(self, error: &dyn Fn() -> Error) {
        for step in self.superseded {
            (step.done)(Err(error()));
        }
        (self.done)(Err(error()));
    }
}

#[derive(Default)]
pub(super) struct Pending {
    in_flight: Option<InFlight>,
    queue: VecDeque<PendingCommand>,
}

impl Pending {
    pub(super) fn has_change(&self) -> bool {
        self.in_flight.is_some()
    }

    /// The state that the start on its way leads to.
    pub(super) fn start(&self) -> Option<&PlaybackState> {
        let change = self.in_flight.as_ref();
        change.filter(|change| matches!(change.goal, Goal::Start)).map(|change| &change.state)
    }

    /// Whether a start is on its way, or waits.
    pub(super) fn has_start(&self) -> bool {
        self.start().is_some() || self.queue.iter().any(PendingCommand::is_start)
    }

    pub(super) fn enqueue(&mut self, command: PendingCommand) {
        if self.queue.len() < QUEUE {
            self.queue.push_back(command)
        } else {
            command.refuse(Error::Busy)
        }
    }

    /// Puts a command that could not be carried out yet before all others.
    pub(super) fn put_back(&mut self, command: PendingCommand) {
        self.queue.push_front(command);
    }

    /// Whether what comes next is no start.
    pub(super) fn holds_steps(&self) -> bool {
        self.queue.front().is_some_and(|command| !command.is_start())
    }

    pub(super) fn next(&mut self) -> Option<PendingCommand> {
        self.queue.pop_front()
    }

    /// The step that waits next, where nothing else comes before it.
    pub(super) fn next_step(&mut self) -> Option<(Direction, Done)> {
        match self.queue.pop_front()? {
            PendingCommand::Step { direction, done } => Some((direction, done)),
            other => {
                self.queue.push_front(other);
                None
            }
        }
    }

    pub(super) fn set_in_flight(&mut self, change: InFlight) {
        self.in_flight = Some(change);
    }

    /// The change on its way, if it is the one of this number.
    pub(super) fn take_change(&mut self, number: u64) -> Option<InFlight> {
        self.in_flight.take_if(|change| change.change == number)
    }

    /// Gives up everything.
    pub(super) fn cancel(self, error: &dyn Fn() -> Error) {
        if let Some(change) = self.in_flight {
            change.fail(error);
        }
        self.queue.into_iter().for_each(|command| command.refuse(error()));
    }

    /// Gives up everything but a step on its way: whoever wants that is told what becomes of it, as
    /// its picture is to be seen. Whether there is one.
    pub(super) fn cancel_all_but_step(&mut self, error: &dyn Fn() -> Error) -> bool {
        let is_step = |change: &InFlight| matches!(change.goal, Goal::Step(_));
        let step = self.in_flight.take_if(|change| is_step(change));
        std::mem::take(self).cancel(error);
        self.in_flight = step;
        self.in_flight.is_some()
    }

    /// Gives up everything but starts, and a step on its way.
    pub(super) fn cancel_steps(&mut self, error: &dyn Fn() -> Error) {
        let is_resume = |change: &mut InFlight| matches!(change.goal, Goal::Resume { .. });
        if let Some(change) = self.in_flight.take_if(is_resume) {
            change.fail(error);
        }
        let (starts, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.queue).into_iter().partition(PendingCommand::is_start);
        self.queue = starts;
        others.into_iter().for_each(|command| command.refuse(error()));
    }
}

/// The playlists and images that a command has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Playlists; of a command to one, 0 if there was nothing to do.
    pub count: usize,
    /// Which monitor shows which image after a step.
    pub images: BTreeMap<String, i64>,
}

impl Moved {
    pub(super) fn one() -> Self {
        Self { count: 1, images: BTreeMap::new() }
    }
}

/// Gathers what becomes of several playlists, and answers when all are through.
pub(super) struct BulkReply {
    left: usize,
    moved: Moved,
    /// The first.
    error: Option<Error>,
    finish: Option<Reply<Moved>>,
}

impl BulkReply {
    pub(super) fn new(left: usize, finish: Reply<Moved>) -> Arc<Mutex<Self>> {
        let (moved, finish) = (Moved::default(), Some(finish));
        Arc::new(Mutex::new(Self { left, moved, error: None, finish }))
    }

    /// One is through.
    pub(super) fn add(bulk: &Mutex<Self>, result: Result<Moved, Error>) {
        let mut bulk = lock(bulk);
        bulk.left -= 1;
        match result {
            Ok(one) => {
                bulk.moved.count += one.count;
                bulk.moved.images.extend(one.images);
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
