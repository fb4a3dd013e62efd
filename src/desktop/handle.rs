//! Provides the handle of other modules to the thread `desktop`, and the owner that ends the thread.

use std::time::Instant;

use crossbeam_channel::{Sender, TrySendError};

use super::hook::{Hook, WallpaperChange};
use crate::thread::{Thread, join_all};
use crate::wire::{DebugQueue, HookFailure};

/// Reports a change to clients; called once, and must not block.
pub(crate) type Tell = Box<dyn FnOnce() + Send>;

pub(super) enum DesktopMessage {
    Changed(Vec<WallpaperChange>, Tell),
    /// Remove the files, and call this.
    Clear(Tell),
}

/// The handle of other modules to the thread. The default handle has no thread behind it: there are no
/// files, and changes are reported at once.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    inbox: Option<Sender<DesktopMessage>>,
    hook: Option<Hook>,
}

/// Owns the threads.
pub(crate) struct DesktopOwner {
    // Declared above the thread, so that its channel closes before the thread is joined.
    pub(super) end: Sender<()>,
    pub(super) thread: Thread,
    pub(super) hook: Hook,
}

impl Handle {
    pub(super) fn new(inbox: Sender<DesktopMessage>, hook: Hook) -> Self {
        Self {
            inbox: Some(inbox),
            hook: Some(hook),
        }
    }

    /// Why the hook's last run failed; `None` if it succeeded.
    pub(crate) fn hook_failure(&self) -> Option<HookFailure> {
        self.hook.as_ref()?.failure()
    }

    /// Whether a process group belongs to a hook, whose requests run no hook.
    pub(crate) fn is_hook(&self, group: i32) -> bool {
        self.hook.as_ref().is_some_and(|hook| hook.has_group(group))
    }

    /// Updates the files on the thread, then calls `tell` there; calls `tell` at once if the thread is
    /// overloaded. Never blocks.
    pub(crate) fn changed(&self, changes: Vec<WallpaperChange>, tell: Tell) {
        self.send(DesktopMessage::Changed(changes, tell));
    }

    /// The changes that wait for the thread; `None` without a thread.
    pub(crate) fn queue(&self) -> Option<DebugQueue> {
        self.inbox
            .as_ref()
            .map(|inbox| DebugQueue::new("desktop", inbox))
    }

    /// Removes the files, then calls `done`.
    pub(crate) fn clear(&self, done: Tell) {
        self.send(DesktopMessage::Clear(done));
    }

    fn send(&self, message: DesktopMessage) {
        let Some(inbox) = &self.inbox else {
            return message.pass();
        };
        match inbox.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(message)) => {
                log::warn!("slow disk: links and colours for other programs are delayed");
                message.pass();
            }
            Err(TrySendError::Disconnected(message)) => message.pass(),
        }
    }
}

impl DesktopMessage {
    /// Calls the callback without updating files.
    fn pass(self) {
        match self {
            Self::Changed(_, tell) | Self::Clear(tell) => tell(),
        }
    }
}

impl DesktopOwner {
    /// Ends the threads and the hook that runs; returns the names of threads that miss the deadline. The
    /// files stay.
    pub(crate) fn end(self, deadline: Instant) -> Vec<String> {
        drop(self.end);
        join_all(
            std::iter::once(self.thread).chain(self.hook.end()),
            deadline,
        )
    }
}
