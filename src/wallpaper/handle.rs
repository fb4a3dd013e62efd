//! Lets other modules send commands to the reconciler, and ends it.
//!
//! The methods of [`Handle`] run on the caller's thread and never wait for a backend. The default
//! picture for new monitors is set on the caller's thread too, as that changes nothing on the screen.

use std::collections::BTreeSet;

use crossbeam_channel::{Sender, TrySendError, bounded};

use super::backend_choice::{self, Preference};
use super::reconciler::{Command, LOOK_WITHIN, Mailbox, Reconciler};
use super::request::{Activated, Applied, Reply, Request, Targets};
use super::sound::AskedSound;
use super::status::{Changes, SharedStatus, Status};
use super::{Error, candidates};
use crate::backends::{Backends, Kind, Placement};
use crate::compositor::ipc::Visible;
use crate::config::BackendName;
use crate::library::Content;
use crate::store::assignments::Assignment;
use crate::store::{self, Store};
use crate::thread::OwnedThread;
use crate::wire::{
    DebugQueue, Fit, Image, Mode, PauseReason, Position, SoundChange, Timestamp, Workspace,
};

/// How many commands may wait for the reconciler; one more is refused with [`Error::Busy`].
pub(super) const INBOX: usize = 32;

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
        self.send(reply, |reconciler, reply| reconciler.set(request, reply));
    }

    /// Checks, before a file is imported, whether it could be shown as a request asks.
    pub(crate) fn check(&self, request: Request, content: Content, reply: Reply<()>) {
        self.send(reply, move |reconciler, reply| {
            reply(reconciler.check(&request, &content));
        });
    }

    /// Changes the sound of videos; `reply` is called once their workers have been asked.
    pub(crate) fn sound(&self, targets: Targets, change: SoundChange, reply: Reply<AskedSound>) {
        self.send(reply, move |reconciler, reply| {
            reply(reconciler.ask_for_sound(&targets, change));
        });
    }

    /// Makes a backend the one in use, for all that is shown.
    pub fn activate(&self, name: String, reply: Reply<Activated>) {
        self.send(reply, move |reconciler, reply| {
            reconciler.activate(&name, reply)
        });
    }

    /// Removes all wallpapers; refuses the jobs in progress and the waiting requests.
    pub fn clear(&self, reply: Reply<()>) {
        self.send(reply, Reconciler::clear);
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
    pub(crate) fn rewritten(&self) {
        self.note(Changes {
            rewritten: true,
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

    /// Replies once everything that should be shown is shown or has failed.
    pub(crate) fn settle(&self, reply: Reply<()>) {
        self.status.workspaces_seen().wait(LOOK_WITHIN);
        self.send(reply, Reconciler::settle);
    }

    /// Replies with the entries of `[workspaces]`, and the image that each means now.
    pub(crate) fn workspaces(&self, reply: Reply<Vec<Workspace>>) {
        self.status.workspaces_seen().wait(LOOK_WITHIN);
        self.send(reply, |reconciler, reply| reply(reconciler.workspaces()));
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
        // Full: it rings already.
        self.changed.try_send(()).ok();
    }

    /// Returns when the reconciler has looked at the outputs for the first time after the start, or
    /// after some seconds: before that nobody knows which monitors and backends there are.
    pub(crate) fn wait_for_look(&self) {
        self.status.looked.wait(LOOK_WITHIN);
    }

    pub fn status(&self) -> Status {
        self.wait_for_look();
        self.status.get()
    }

    /// The placements that a backend is known to show.
    pub fn shown_by(&self, backend: BackendName) -> Vec<Placement> {
        self.status.shown_by(backend)
    }

    /// The kinds of content for which no backend can be used now. Searches `PATH`.
    pub(crate) fn unshowable_kinds(&self, backends: &Backends) -> Vec<Kind> {
        let (activated, unused) = self.status.choice();
        let preference = Preference::from_config(&(backends.settings)(), activated);
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

    /// Sends a command to the reconciler, or refuses it.
    fn send<T: 'static>(
        &self,
        reply: Reply<T>,
        command: impl FnOnce(&mut Reconciler, Reply<T>) + Send + 'static,
    ) {
        let command: Command = Box::new(move |reconciler| match reconciler {
            Ok(reconciler) => command(reconciler, reply),
            Err(error) => reply(Err(error)),
        });
        match self.inbox.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(command)) => command(Err(Error::Busy)),
            Err(TrySendError::Disconnected(command)) => command(Err(Error::Ending)),
        }
    }

    /// Makes an image the one that new monitors show.
    pub(crate) fn set_default(
        &self,
        store: &Store,
        on_lost: impl Fn(i64, bool),
        image_id: i64,
        (mode, fit, position): (Mode, Option<Fit>, Option<Position>),
    ) -> Result<Image, Error> {
        let image = candidates::image(store, image_id).inspect_err(|error| {
            if let Error::FileGone { id, .. } = error {
                on_lost(*id, true);
            }
        })?;
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
    use std::time::Duration;

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
        handle.rewritten();
        let Changes {
            rewritten,
            anything,
            ..
        } = noted();
        assert!(rewritten && !anything);
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
        status.set_active(Some(BackendName::Feh));
        status.looked.open();
        assert_eq!(
            told.recv_timeout(LOOK_WITHIN * 12),
            Ok(Some(BackendName::Feh))
        );
        asks.join().unwrap();
    }
}
