//! The player that the thread `playlist` owns: the running playlists, the starts on their way, and the
//! loop that waits for messages and deadlines.
//!
//! It reads and writes the database and never waits for a backend.

use std::collections::BTreeMap;

use crossbeam_channel::{Receiver, select};

use super::error::Error;
use super::light::Light;
use super::power::Pause;
use super::running::{RunningPlaylist, Step};
use super::schedule::{ClockReading, Due};
use super::spec::PlaylistSpec;
use super::wishes::{Report, Wishes};
use crate::backends::{Backends, Kind};
use crate::clock::{Alarm, Deadlines};
use crate::compositor::identities;
use crate::config::SelectionMode;
use crate::events::{EventBus, Subscription};
use crate::store::Store;
use crate::store::playlists::{self, Refusal};
use crate::wallpaper::{self, Applied, Request};
use crate::wire::{PauseReason, SetStatus};

/// A command of a client, or its refusal.
pub(super) type Command = Box<dyn FnOnce(Result<&mut Player, Error>) + Send>;

pub(super) struct Player {
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) wallpapers: Box<dyn Wallpapers>,
    time: Box<dyn Fn() -> ClockReading + Send>,
    pub(super) boot_id: String,
    pub(super) running: BTreeMap<i64, RunningPlaylist>,
    /// The starts on their way, by the numbers of their wishes. The playlists on their monitors wait.
    pub(super) starts: BTreeMap<u64, Step>,
    pub(super) wishes: Wishes,
    pub(super) pause: Pause,
    pub(super) light: Light,
}

/// The channels that the thread listens to.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    pub(super) reports: Receiver<Report>,
    /// The alarm clock.
    pub(super) rings: Receiver<()>,
    pub(super) outputs: Receiver<()>,
    pub(super) news: Subscription,
    /// Closes when the player is to end.
    pub(super) end: Receiver<()>,
}

impl Player {
    /// Also returns the receiver of the reconciler's reports.
    pub(super) fn new(
        store: Store,
        bus: EventBus,
        wallpapers: Box<dyn Wallpapers>,
        time: Box<dyn Fn() -> ClockReading + Send>,
        boot_id: String,
    ) -> (Self, Receiver<Report>) {
        let (wishes, reports) = Wishes::new();
        let player = Self {
            store,
            bus,
            wallpapers,
            time,
            boot_id,
            running: BTreeMap::new(),
            starts: BTreeMap::new(),
            wishes,
            pause: Pause::default(),
            light: Light::new(),
        };
        (player, reports)
    }

    pub(super) fn run(mut self, mailbox: &Mailbox, alarm: &Alarm) {
        self.restore();
        self.receive(mailbox, alarm);
        let running = self.running.values_mut();
        running.for_each(|one| one.fail_steps(|_| Error::Ending));
        let starts = std::mem::take(&mut self.starts).into_values();
        starts.for_each(|start| (start.client)(Err(Error::Ending)));
        self.light.refuse_waiting();
    }

    fn receive(&mut self, mailbox: &Mailbox, alarm: &Alarm) {
        loop {
            if let Err(error) = alarm.set(self.deadlines()) {
                log::error!("cannot set a timer, playlists will not change: {error}");
            }
            select! {
                recv(mailbox.commands) -> command => match command {
                    Ok(command) => {
                        // Events that were published before the command take effect before it.
                        let news = mailbox.news.receiver().try_iter();
                        news.for_each(|message| self.on_event(&message));
                        command(Ok(&mut *self));
                    }
                    // All handles are gone: the server has ended, and the daemon is ending.
                    Err(_) => return,
                },
                recv(mailbox.news.receiver()) -> message => if let Ok(message) = message {
                    self.on_event(&message);
                },
                recv(mailbox.reports) -> first => {
                    let reports = first.into_iter().chain(mailbox.reports.try_iter());
                    reports.for_each(|report| self.on_report(report));
                }
                recv(mailbox.outputs) -> _ => self.fill_all_monitors(),
                recv(mailbox.rings) -> _ => {}
                recv(mailbox.end) -> _ => return,
            }
            self.run_all_due();
        }
    }

    /// Handles the reconciler's answer to a wish.
    pub(super) fn on_report(&mut self, Report { number, result }: Report) {
        if let Some(wish) = self.wishes.take(number) {
            self.conclude_own(wish, result);
        } else if let Some(start) = self.starts.remove(&number) {
            self.conclude_start(number, start, result);
        } else if let Some(step) = self.step_mut(number) {
            step.result = Some(result);
            let id = step.spec.id;
            self.conclude_steps(id);
        } else if let Ok(applied) = result
            && applied.outcome == SetStatus::Set
        {
            self.uncover(&applied);
        }
    }

    /// The picture of a step or a start that was cancelled is shown: the playlists on its monitors show
    /// theirs again.
    fn uncover(&mut self, applied: &Applied) {
        for one in self.running.values_mut() {
            let shown_on = &mut one.state.shown_on;
            shown_on.retain(|name| !applied.monitors.contains(name));
        }
        self.fill_all_monitors();
    }

    /// Applies the pause, publishes a change between light and dark, then makes all changes that
    /// are due.
    pub(super) fn run_all_due(&mut self) {
        self.apply_pause();
        self.publish_appearance();
        self.warn_of_lost_location();
        self.run_due();
        self.answer_waiting();
    }

    /// The next deadlines of all kinds.
    pub(super) fn deadlines(&self) -> Deadlines {
        let wall = self.light.changes_at(&self.clock_reading());
        self.playlist_deadlines().or(Deadlines { boot: None, wall })
    }

    pub(super) fn playlist_deadlines(&self) -> Deadlines {
        let now = self.clock_reading();
        let connected = self.wallpapers.connected();
        // Nothing can change while no monitor is connected.
        let can_change = |(id, one): &(&i64, &RunningPlaylist)| {
            self.is_free(**id) && !one.state.applied_to(&connected).is_empty()
        };
        let waits = self.running.iter().filter(can_change);
        let deadlines = waits.map(|(_, one)| {
            match one.state.due(&one.spec, &now) {
                Due::Wait(deadlines) => deadlines,
                // It has become due since the last `run_due`.
                Due::Step { due, .. } => Deadlines {
                    boot: Some(due),
                    wall: None,
                },
                Due::EnterSlot { .. } => Deadlines {
                    boot: None,
                    wall: Some(now.wall.timestamp()),
                },
            }
        });
        deadlines.fold(Deadlines::default(), Deadlines::or)
    }
}

impl Player {
    pub(super) fn clock_reading(&self) -> ClockReading {
        let mut now = (self.time)();
        now.tone = self.light.tone(&now);
        now
    }

    pub(super) fn running_ids(&self) -> Vec<i64> {
        self.running.keys().copied().collect()
    }

    /// Whether a playlist runs and may change by itself: no step is on its way, and no start on its
    /// monitors.
    pub(super) fn is_free(&self, id: i64) -> bool {
        let one = self.running.get(&id);
        one.is_some_and(|one| one.steps.is_empty()) && !self.is_displaced(id)
    }

    /// Removes a running playlist, and answers the clients of its steps.
    pub(super) fn remove(&mut self, id: i64) -> Option<RunningPlaylist> {
        let mut one = self.running.remove(&id)?;
        one.fail_steps(Step::not_running);
        Some(one)
    }

    /// Writes the states of playlists, or that they do not run; does not wait for the disk.
    pub(super) fn save(&self, ids: &[i64]) {
        if ids.is_empty() {
            return;
        }
        let noted = self.store.note(|c| {
            ids.iter().try_for_each(|id| match self.running.get(id) {
                Some(one) => playlists::save(c, *id, true, &one.state),
                None => playlists::stop(c, *id),
            })
        });
        if let Err(error) = noted {
            log::error!("cannot save the state of playlists {ids:?}: {error}");
        }
    }

    pub(super) fn not_running(&self, id: i64) -> Error {
        match self.store.read(|c| PlaylistSpec::read(c, id)) {
            Ok(Some(spec)) => Error::NotRunning { name: spec.name },
            Ok(None) => Refusal::NoPlaylist { id }.into(),
            Err(error) => error.into(),
        }
    }
}

pub trait Wallpapers: Send {
    /// Shows a picture. Never blocks; `reply` is called when the picture is shown or has failed.
    fn apply(&self, request: Request, reply: wallpaper::Reply<Applied>);

    /// The kinds of content for which no backend can be used now.
    fn unshowable_kinds(&self) -> Vec<Kind>;

    /// The connected monitors; after the start, waits until they are known.
    fn connected(&self) -> Vec<String>;

    /// The identity of each connected monitor, if it is known.
    fn identities(&self) -> BTreeMap<String, String>;

    /// The identity of the session, if its compositor is known; see
    /// [`crate::compositor::Session::began`].
    fn session(&self) -> Option<String>;

    /// Pauses videos and HTML wallpapers, or lets them play. Never blocks.
    fn pause(&self, reason: Option<PauseReason>);

    /// The backend of the settings, if one backend shows everything; none if each kind of content
    /// has its own.
    fn fixed_backend(&self) -> Option<String>;
}

/// The wallpapers of the daemon.
#[derive(Clone)]
pub struct DaemonWallpapers {
    pub wallpaper: wallpaper::Handle,
    pub backends: Backends,
}

impl Wallpapers for DaemonWallpapers {
    fn apply(&self, request: Request, reply: wallpaper::Reply<Applied>) {
        self.wallpaper.set(request, reply);
    }

    fn unshowable_kinds(&self) -> Vec<Kind> {
        self.wallpaper.unshowable_kinds(&self.backends)
    }

    fn connected(&self) -> Vec<String> {
        self.wallpaper.wait_for_look();
        self.backends
            .outputs
            .list()
            .iter()
            .map(|output| output.name.clone())
            .collect()
    }

    fn identities(&self) -> BTreeMap<String, String> {
        identities(&self.backends.outputs.list())
    }

    fn session(&self) -> Option<String> {
        self.backends.outputs.session()?.began()
    }

    fn pause(&self, reason: Option<PauseReason>) {
        self.wallpaper.pause(reason);
    }

    fn fixed_backend(&self) -> Option<String> {
        let backend = &(self.backends.settings)().backend;
        (backend.selection_mode == SelectionMode::Fixed).then(|| backend.kind.to_string())
    }
}
