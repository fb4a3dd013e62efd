//! How other rooms speak with the reconciler, and who ends it.

use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Sender, TrySendError};

use crate::backends::Placement;
use crate::config::BackendName;
use crate::thread::Thread;
use crate::wire::{ApplyFailure, DebugFailure, DebugQueue};

use super::Error;
use super::command::Command;
use super::request::{Activated, Applied, Reply, Request};
use super::status::{Changes, HookRequest, SharedStatus, Status};

/// What other rooms ask the reconciler through.
#[derive(Clone)]
pub struct Handle {
    inbox: Sender<Command>,
    status: SharedStatus,
}

/// The owner of the reconciler: ends it when dropped. Declared in this order, the inbox closes before
/// the thread is joined.
pub struct ReconcilerOwner {
    handle: Option<Handle>,
    thread: Option<Thread>,
}

impl Handle {
    pub(super) fn new(inbox: Sender<Command>, status: SharedStatus) -> Self {
        Self { inbox, status }
    }

    /// Shows a picture; `reply` is called once it is up and told of, has failed or is superseded.
    pub fn set(&self, request: Request, reply: Reply<Applied>) {
        self.send(Command::Set(request, reply));
    }

    /// Makes a backend the one in use, for all that is shown.
    pub fn activate(&self, name: String, reply: Reply<Activated>) {
        self.send(Command::Activate(name, reply));
    }

    /// Takes down all that we show, for the end: what is in progress or waits is refused.
    pub fn clear(&self, reply: Reply<()>) {
        self.send(Command::Clear(reply));
    }

    /// Settings, or what is known of images, have changed: chooses anew and shows what is other than
    /// it was. `backends` names those whose own settings changed.
    pub fn settings_changed(&self, backends: Vec<BackendName>) {
        self.note(Changes { backends, anything: true, ..Changes::default() });
    }

    /// Goes back to what the settings say: what was activated could not be written there.
    pub fn deactivate(&self) {
        self.note(Changes { deactivated: true, anything: true, ..Changes::default() });
    }

    /// The file of an image was written anew: where it is shown, it is shown again.
    pub(crate) fn rewritten(&self, image_id: i64) {
        self.note(Changes { rewritten: [image_id].into(), ..Changes::default() });
    }

    /// The limit of what processes may have of memory has changed.
    pub(crate) fn limit_changed(&self) {
        // Where the inbox is full, it is found after the command at work.
        self.inbox.try_send(Command::SettingsChanged).ok();
    }

    /// Has films and pages stand still, or go on; those that somebody asks for meanwhile play.
    pub(crate) fn rest(&self, rests: bool) {
        self.note(Changes { rests: Some(rests), ..Changes::default() });
    }

    fn note(&self, changes: Changes) {
        self.status.note(changes);
        // Where the inbox is full the reconciler finds the note after the command at work.
        self.inbox.try_send(Command::SettingsChanged).ok();
    }

    pub fn status(&self) -> Status {
        self.status.get()
    }

    /// What a backend is known to show.
    pub fn shown_by(&self, backend: BackendName) -> Arc<[Placement]> {
        self.status.current(backend)
    }

    /// Whether what a monitor shows was there before the daemon started, and nobody has asked for it
    /// since.
    pub(crate) fn is_restored(&self, monitor: &str) -> bool {
        self.status.is_restored(monitor)
    }

    /// The last picture that did not come up on a monitor.
    pub(crate) fn last_failure(&self, monitor: &str) -> Option<ApplyFailure> {
        self.status.failure(monitor)
    }

    /// Those that were last, the newest last.
    pub(crate) fn failures(&self) -> Vec<DebugFailure> {
        self.status.failures()
    }

    /// What waits for the reconciler.
    pub(crate) fn queue(&self) -> DebugQueue {
        DebugQueue::of("reconciler", &self.inbox)
    }

    /// For a hook that asks something of a playlist (none: of all): to be held until it is answered.
    pub(crate) fn hook_request(&self, playlist: Option<i64>) -> HookRequest {
        self.status.hook_request(playlist)
    }

    fn send(&self, command: Command) {
        match self.inbox.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(command)) => command.refuse(Error::Busy),
            Err(TrySendError::Disconnected(command)) => command.refuse(Error::Ending),
        }
    }
}

impl ReconcilerOwner {
    pub(super) fn new(handle: Handle, thread: Thread) -> Self {
        Self { handle: Some(handle), thread: Some(thread) }
    }

    /// Ends the reconciler; `false` if it is late. What is shown stays.
    pub fn end(mut self, deadline: Instant) -> bool {
        self.tell();
        self.thread.take().is_none_or(|thread| thread.join_by(deadline))
    }

    fn tell(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.send(Command::End);
        }
    }
}

impl Drop for ReconcilerOwner {
    fn drop(&mut self) {
        self.tell();
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;
    use crate::wire::Timestamp;

    #[test]
    fn what_has_changed_is_noted_also_where_the_inbox_is_full() {
        let (inbox, commands) = bounded(1);
        let status = SharedStatus::default();
        let handle = Handle::new(inbox, status.clone());
        let noted = || status.take_changes().unwrap();
        handle.settings_changed(vec![BackendName::Feh]);
        let Changes { backends, deactivated, anything, .. } = noted();
        assert_eq!((backends, deactivated, anything), (vec![BackendName::Feh], false, true));
        handle.deactivate();
        let Changes { backends, deactivated, anything, .. } = noted();
        assert_eq!((backends, deactivated, anything), (Vec::new(), true, true));
        handle.rewritten(7);
        let Changes { rewritten, anything, .. } = noted();
        assert_eq!((rewritten, anything), ([7].into(), false));
        handle.rest(true);
        assert_eq!(noted().rests, Some(true));
        assert!(matches!(commands.try_recv(), Ok(Command::SettingsChanged)));
        assert!(commands.is_empty());
        handle.limit_changed();
        assert!(status.take_changes().is_none() && commands.len() == 1);
    }

    #[test]
    fn failures_are_known_to_all() {
        let status = SharedStatus::default();
        let handle = Handle::new(bounded(1).0, status.clone());
        assert!(handle.failures().is_empty() && handle.last_failure("A").is_none());
        let failure = ApplyFailure {
            image_id: 7,
            image_name: "x".to_owned(),
            backend: "feh".to_owned(),
            error: "on purpose".to_owned(),
            at: Timestamp::from_micros(1),
        };
        status.note_failure(["A"].into_iter(), &failure);
        assert_eq!(handle.last_failure("A").map(|one| one.image_id), Some(7));
        let all: Vec<_> = handle.failures().into_iter().map(|one| one.monitors).collect();
        assert_eq!(all, [["A"]]);
    }
}
