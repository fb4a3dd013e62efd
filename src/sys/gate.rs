//! Something that happens once, and that other threads wait for. Any thread opens the gate and any
//! thread waits there; nothing is sent through it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::sys::lock;
use crossbeam_channel::{Receiver, Sender, bounded};

/// All clones open together. The default is open.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Dropping the sender disconnects every receiver.
    closed: Arc<Mutex<Option<Sender<()>>>>,
    opened: Receiver<()>,
}

impl Default for Gate {
    fn default() -> Self {
        let gate = Self::closed();
        gate.open();
        gate
    }
}

impl Gate {
    pub(crate) fn closed() -> Self {
        let (closed, opened) = bounded(0);
        Self { closed: Arc::new(Mutex::new(Some(closed))), opened }
    }

    pub(crate) fn open(&self) {
        *lock(&self.closed) = None;
    }

    /// Returns when the gate is open, or after the patience.
    pub(crate) fn wait(&self, patience: Duration) {
        self.opened.recv_timeout(patience).ok();
    }

    /// For a wait on several channels: is disconnected when the gate opens.
    pub(crate) fn opened(&self) -> &Receiver<()> {
        &self.opened
    }
}
