//! Waits for events of the kernel on behalf of all other threads: the thread `kernel` calls them back
//! when a descriptor is ready, or when files have changed (`files`).
//!
//! The daemon has one such thread and one instance of inotify, of which a user has 128. The thread
//! waits for no disk: watches are added by the threads that want them.

mod files;

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::sys::{Cancel, CancelOnDrop, lock};
use crate::thread::{OwnedThread, Spawner};
use files::Files;

pub(crate) use files::{ANYWHERE, NAMES, Notice, Subscriber, Watches};

/// Tokens of events that belong to no source.
const STOP: u64 = u64::MAX;
const FILES: u64 = u64::MAX - 1;

/// The handle; the thread ends when the last clone is dropped.
#[derive(Clone)]
pub struct Kernel {
    shared: Arc<Shared>,
    files: Arc<Files>,
    _owner: Arc<OwnedThread<CancelOnDrop>>,
}

struct Shared {
    epoll: Arc<OwnedFd>,
    /// Kept open while the thread runs: closing it would remove it from the epoll, and the wake-up
    /// would be lost.
    _stop: Cancel,
    sources: Mutex<Sources>,
}

#[derive(Default)]
struct Sources {
    last: u64,
    all: HashMap<u64, Registered>,
}

struct Registered {
    descriptor: Arc<dyn AsFd + Send + Sync>,
    is_once: bool,
    tell: Arc<dyn Fn() + Send + Sync>,
}

/// A descriptor that the thread waits for, until this is dropped.
#[must_use = "dropping it ends the wait"]
pub(crate) struct Source {
    shared: Arc<Shared>,
    token: u64,
}

impl Kernel {
    pub fn start(spawner: &Spawner) -> io::Result<Self> {
        Self::with(spawner, run)
    }

    fn with(spawner: &Spawner, body: fn(&Shared, &Files)) -> io::Result<Self> {
        let stop = Cancel::new()?;
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let files = Arc::new(Files::new(Arc::clone(&epoll), FILES));
        let shared = Arc::new(Shared {
            epoll,
            _stop: stop.clone(),
            sources: Mutex::default(),
        });
        let theirs = (Arc::clone(&shared), Arc::clone(&files));
        let thread = spawner.spawn("kernel", move || body(&theirs.0, &theirs.1))?;
        Ok(Self {
            shared,
            files,
            _owner: Arc::new(OwnedThread::new(CancelOnDrop(stop), thread)),
        })
    }

    /// Calls `tell` on the thread `kernel` whenever the descriptor is ready for these events; with
    /// `ONESHOT`, once. `tell` must not block.
    pub(crate) fn when_ready(
        &self,
        descriptor: impl AsFd + Send + Sync + 'static,
        events: EventFlags,
        tell: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Source> {
        let mut sources = lock(&self.shared.sources);
        let token = sources.last + 1;
        let data = EventData::new_u64(token);
        epoll::add(&self.shared.epoll, &descriptor, data, events)?;
        sources.last = token;
        let registered = Registered {
            descriptor: Arc::new(descriptor),
            is_once: events.contains(EventFlags::ONESHOT),
            tell: Arc::new(tell),
        };
        sources.all.insert(token, registered);
        Ok(Source {
            shared: Arc::clone(&self.shared),
            token,
        })
    }

    /// Calls `hear` on the thread `kernel` when the files have changed that the subscriber watches.
    /// `hear` must not block.
    pub(crate) fn subscribe(
        &self,
        hear: impl Fn(&Notice<'_>) + Send + Sync + 'static,
    ) -> Subscriber {
        Subscriber::new(&self.files, Arc::new(hear))
    }
}

impl Source {
    /// Keeps the descriptor registered until its event has come.
    pub(crate) fn keep(mut self) {
        self.token = 0;
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.shared.remove(self.token);
    }
}

impl Shared {
    fn remove(&self, token: u64) {
        if let Some(registered) = lock(&self.sources).all.remove(&token) {
            epoll::delete(&self.epoll, &registered.descriptor).ok();
        }
    }

    fn tell(&self, token: u64) {
        // None if the event came before its source was removed.
        let found = lock(&self.sources)
            .all
            .get(&token)
            .map(|it| (it.is_once, Arc::clone(&it.tell)));
        let Some((is_once, tell)) = found else { return };
        if is_once {
            self.remove(token);
        }
        // Without the lock: it may add or remove sources.
        tell();
    }
}

/// The function that the thread runs.
fn run(shared: &Shared, files: &Files) {
    let mut buffer = [MaybeUninit::<Event>::uninit(); 16];
    loop {
        let events = match epoll::wait(&shared.epoll, &mut buffer, None) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => continue,
            Err(error) => panic!("epoll_wait failed: {error}"),
        };
        for event in events {
            match event.data.u64() {
                STOP => return,
                FILES => files.read(),
                token => shared.tell(token),
            }
        }
    }
}

#[cfg(test)]
impl Kernel {
    /// A kernel whose events wait until `read` is called.
    pub(crate) fn unattended() -> Self {
        let (spawner, _deaths) = Spawner::new();
        Self::with(&spawner, |_, _| ()).unwrap()
    }

    pub(crate) fn read(&self) {
        self.files.read();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crossbeam_channel::bounded;

    use super::*;
    use crate::sys::Waker;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn source_is_told_until_it_is_dropped() {
        let (spawner, deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let add = |waker: &Arc<Waker>, events| {
            let (tell, told) = bounded(1);
            let theirs = Arc::clone(waker);
            let heard = move || {
                theirs.reset();
                tell.try_send(()).ok();
            };
            let source = kernel.when_ready(Arc::clone(waker), events, heard).unwrap();
            (source, told)
        };
        let [always, once, never] = [(); 3].map(|()| Arc::new(Waker::new().unwrap()));
        let (kept, told) = add(&always, EventFlags::IN);
        let (first, told_once) = add(&once, EventFlags::IN | EventFlags::ONESHOT);
        let (dropped, told_never) = add(&never, EventFlags::IN);
        first.keep();
        drop(dropped);
        never.wake();
        for _ in 0..2 {
            once.wake();
            always.wake();
            told.recv_timeout(LONG).unwrap();
        }
        assert!(told_never.recv().is_err(), "its sender is gone");
        told_once.recv_timeout(LONG).unwrap();
        assert!(
            told_once
                .recv_timeout(LONG)
                .is_err_and(|e| e.is_disconnected())
        );
        // A descriptor may be added again.
        drop(add(&once, EventFlags::IN));
        drop((kept, kernel));
        assert!(deaths.try_recv().is_err());
    }
}
