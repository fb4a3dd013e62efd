//! Lets other modules send commands to the reconciler, and ends it.
//!
//! The methods of [`Handle`] run on the caller's thread and never wait for a backend. The default
//! picture for new monitors is set on the caller's thread too, as that changes nothing on the screen.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select};

use super::backend_choice::{self, Preference};
use super::request::{Activated, Applied, Reply, Request, Targets};
use super::sound::AskedSound;
use super::status::{Changes, SharedStatus, Status};
use super::{Error, missing_file};
use crate::backends::{Backends, Kind, Placement};
use crate::compositor::ipc::Visible;
use crate::config::BackendName;
use crate::library::Content;
use crate::store::assignments::Assignment;
use crate::store::{self, Store};
use crate::sys::Gate;
use crate::thread::OwnedThread;
use crate::wire::{
    DebugQueue, Fit, Image, Mode, PauseReason, Position, SoundChange, Timestamp, Workspace,
};

/// How many commands may wait for the reconciler; one more is refused with [`Error::Busy`].
pub(super) const INBOX: usize = 32;

/// How long to wait for the compositor. A working one lists its outputs within 20 ms, unless the
/// machine is busy, as at a login.
pub(super) const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// Sends commands from other modules to the reconciler.
#[derive(Clone)]
pub struct Handle {
    inbox: Sender<Command>,
    /// Wakes the reconciler. One pending message is enough, as it carries no data.
    changed: Sender<()>,
    pub(crate) status: SharedStatus,
}

/// Owns the reconciler, which ends when this is dropped. The wallpapers stay.
pub type ReconcilerOwner = OwnedThread<Sender<()>>;

impl Handle {
    /// Returns a handle and what the reconciler listens to. The reconciler ends when the sender is
    /// dropped.
    pub(super) fn new(status: SharedStatus) -> (Self, Sender<()>, Mailbox) {
        let (inbox, commands) = bounded(INBOX);
        let (ring, changed) = bounded(1);
        // Nothing is ever sent; the channel closes at the end.
        let (ending, end) = bounded(0);
        (
            Self {
                inbox,
                changed: ring,
                status,
            },
            ending,
            Mailbox {
                commands,
                changed,
                end,
            },
        )
    }

    /// Shows a picture; `reply` is called once it is shown and reported, has failed or is superseded.
    pub fn set(&self, request: Request, reply: Reply<Applied>) {
        self.send(Command::Set(request, reply));
    }

    /// Checks, before a file is imported, whether it could be shown as a request asks.
    pub(crate) fn check(&self, request: Request, content: Content, reply: Reply<()>) {
        self.send(Command::Check(request, content, reply));
    }

    /// Changes the sound of videos; `reply` is called once their workers have been asked.
    pub(crate) fn sound(&self, targets: Targets, change: SoundChange, reply: Reply<AskedSound>) {
        self.send(Command::Sound(targets, change, reply));
    }

    /// Makes a backend the one in use, for all that is shown.
    pub fn activate(&self, name: String, reply: Reply<Activated>) {
        self.send(Command::Activate(name, reply));
    }

    /// Removes all wallpapers; refuses the jobs in progress and the waiting requests.
    pub fn clear(&self, reply: Reply<()>) {
        self.send(Command::Clear(reply));
    }

    /// Settings or images have changed: plans again and shows what differs. `backends` are those whose
    /// own settings have changed.
    pub fn settings_changed(&self, backends: Vec<BackendName>) {
        self.note(Changes {
            backends,
            anything: true,
            ..Changes::default()
        });
    }

    /// Returns to the backend of the settings, because the activated one could not be written there.
    pub fn deactivate(&self) {
        self.note(Changes {
            deactivated: true,
            anything: true,
            ..Changes::default()
        });
    }

    /// The file of an image was rewritten: shows it again if it is shown.
    pub(crate) fn rewritten(&self, image_id: i64) {
        self.note(Changes {
            rewritten: [image_id].into(),
            ..Changes::default()
        });
    }

    /// The wallpapers of workspaces have changed in the settings.
    pub(crate) fn workspaces_changed(&self) {
        self.note(Changes {
            workspaces: true,
            ..Changes::default()
        });
    }

    /// Another program has put a background over the wallpapers: shows them again above it.
    pub(crate) fn bury(&self) {
        self.note(Changes {
            buried: true,
            ..Changes::default()
        });
    }

    /// Reports which workspaces are visible. Monitors that are not listed keep theirs, unless `are_all`.
    pub(crate) fn show_workspaces(&self, are_all: bool, visible: Vec<Visible>) {
        if self.status.show_workspaces(are_all, visible) {
            self.workspaces_changed();
        }
        self.status.workspaces_seen().open();
    }

    /// A follower starts, and will report the visible workspaces.
    pub(crate) fn expect_workspaces(&self) {
        self.status.expect_workspaces();
    }

    /// Replies once everything that should be shown is shown or has failed.
    pub(crate) fn settle(&self, reply: Reply<()>) {
        self.status.workspaces_seen().wait(LOOK_WITHIN);
        self.send(Command::Settle(reply));
    }

    /// Replies with the entries of `[workspaces]`, and the image that each means now.
    pub(crate) fn workspaces(&self, reply: Reply<Vec<Workspace>>) {
        self.status.workspaces_seen().wait(LOOK_WITHIN);
        self.send(Command::Workspaces(reply));
    }

    /// Pauses videos and HTML wallpapers, or lets them play; those that are set during a pause play.
    pub(crate) fn pause(&self, reason: Option<PauseReason>) {
        self.note(Changes {
            paused: Some(reason),
            ..Changes::default()
        });
    }

    /// Pauses the videos on outputs that a window covers, and lets the others play.
    pub(crate) fn cover(&self, outputs: BTreeSet<String>) {
        self.note(Changes {
            covered: Some(outputs),
            ..Changes::default()
        });
    }

    fn note(&self, changes: Changes) {
        self.status.note(changes);
        self.ring();
    }

    fn ring(&self) {
        // Full: it rings already.
        self.changed.try_send(()).ok();
    }

    /// Returns when the reconciler has looked at the outputs for the first time after the start, or
    /// after a second: before that nobody knows which monitors and backends there are.
    pub(crate) fn wait_for_look(&self) {
        self.status.looked.wait(LOOK_WITHIN);
    }

    pub fn status(&self) -> Status {
        self.wait_for_look();
        self.status.get()
    }

    /// The placements that a backend is known to show.
    pub fn shown_by(&self, backend: BackendName) -> Arc<[Placement]> {
        self.status.current(backend)
    }

    /// The kinds of content for which no backend can be used now. Searches `PATH`.
    pub(crate) fn unshowable_kinds(&self, backends: &Backends) -> Vec<Kind> {
        let (activated, unused) = self.status.choice();
        let preference = Preference::with_activated(&(backends.settings)(), activated);
        let mut available = backend_choice::candidates(backends);
        available.retain(|one| !unused.contains(&one.name));
        let mut kinds = Kind::ALL.to_vec();
        kinds.retain(|&kind| backend_choice::choose(&preference, &available, kind).is_err());
        kinds
    }

    /// Whether a backend is known to show an image on a monitor.
    pub(crate) fn shows(&self, backend: &str, monitor: &str, image_id: i64) -> bool {
        let Ok(backend) = backend.parse::<BackendName>() else {
            return false;
        };
        let is_it =
            |one: &Placement| (one.output.name.as_str(), one.image_id) == (monitor, image_id);
        self.shown_by(backend).iter().any(is_it)
    }

    /// The commands that wait for the reconciler.
    pub(crate) fn queue(&self) -> DebugQueue {
        DebugQueue::new("reconciler", &self.inbox)
    }

    fn send(&self, command: Command) {
        match self.inbox.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(command)) => command.refuse(Error::Busy),
            Err(TrySendError::Disconnected(command)) => command.refuse(Error::Ending),
        }
    }
}

pub(super) enum Command {
    Set(Request, Reply<Applied>),
    /// Whether a file with this content could be shown as the request asks.
    Check(Request, Content, Reply<()>),
    Workspaces(Reply<Vec<Workspace>>),
    Sound(Targets, SoundChange, Reply<AskedSound>),
    Activate(String, Reply<Activated>),
    Settle(Reply<()>),
    Clear(Reply<()>),
}

/// The channels that the reconciler listens to, beside outputs and its workers.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    /// Wakes the reconciler; the changes are in the [`SharedStatus`].
    pub(super) changed: Receiver<()>,
    /// Closes when the reconciler should end.
    pub(super) end: Receiver<()>,
}

impl Mailbox {
    /// Returns when the outputs have been looked at, at the end, or after a second.
    pub(super) fn wait_for_look(&self, outputs: &Gate) {
        select! {
            recv(outputs.opened()) -> _ => {},
            recv(self.end) -> _ => {},
            default(LOOK_WITHIN) => {},
        }
    }
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Set(_, reply) => reply(Err(error)),
            Self::Activate(_, reply) => reply(Err(error)),
            Self::Workspaces(reply) => reply(Err(error)),
            Self::Sound(_, _, reply) => reply(Err(error)),
            Self::Check(_, _, reply) | Self::Settle(reply) | Self::Clear(reply) => {
                reply(Err(error));
            }
        }
    }
}

impl Handle {
    /// Makes an image the one that new monitors show.
    pub(crate) fn set_default(
        &self,
        store: &Store,
        on_lost: impl Fn(i64, bool),
        image_id: i64,
        (mode, fit, position): (Mode, Option<Fit>, Option<Position>),
    ) -> Result<Image, Error> {
        let image = store
            .read(|connection| store::images::assigned(connection, image_id))?
            .ok_or(Error::NoImage { id: image_id })?;
        if missing_file::lacks_file(&image) {
            on_lost(image.id, true);
            return Err(Error::FileGone {
                id: image.id,
                away: image.in_place,
                path: image.path,
            });
        }
        let meant = Assignment {
            // These are filled in when a monitor is connected.
            monitor: String::new(),
            backend: String::new(),
            together: Vec::new(),
            image_id,
            mode,
            fit,
            position,
            sound: None,
            set_at: Timestamp::now(),
        };
        store.write(|transaction| store::assignments::put_default(transaction, &meant))?;
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_do_not_use_the_inbox() {
        let status = SharedStatus::default();
        let (handle, _end, mailbox) = Handle::new(status.clone());
        let noted = || status.take_changes().unwrap();
        handle.settings_changed(vec![BackendName::Feh]);
        let Changes {
            backends,
            deactivated,
            anything,
            ..
        } = noted();
        assert_eq!(
            (backends, deactivated, anything),
            (vec![BackendName::Feh], false, true)
        );
        handle.deactivate();
        let Changes {
            backends,
            deactivated,
            anything,
            ..
        } = noted();
        assert_eq!((backends, deactivated, anything), (Vec::new(), true, true));
        handle.rewritten(7);
        let Changes {
            rewritten,
            anything,
            ..
        } = noted();
        assert_eq!((rewritten, anything), ([7].into(), false));
        handle.pause(Some(PauseReason::Idle));
        assert_eq!(noted().paused, Some(Some(PauseReason::Idle)));
        // One message wakes the reconciler for all of them.
        assert!(mailbox.changed.try_recv().is_ok() && mailbox.changed.is_empty());
        assert!(mailbox.commands.is_empty());
    }

    #[test]
    fn status_waits_for_the_first_look() {
        let status = SharedStatus::before_look();
        let (handle, ..) = Handle::new(status.clone());
        let (tell, told) = bounded(1);
        let asks = std::thread::spawn(move || tell.send(handle.status().active).unwrap());
        assert!(
            told.recv_timeout(Duration::from_millis(20)).is_err(),
            "nobody has looked yet"
        );
        status.set_active(Some(BackendName::Feh), &[]);
        status.looked.open();
        assert_eq!(
            told.recv_timeout(LOOK_WITHIN * 12),
            Ok(Some(BackendName::Feh))
        );
        asks.join().unwrap();
    }
}
