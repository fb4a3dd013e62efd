//! Defines what every backend is built with: settings, process records, directories, and the processes
//! that an earlier daemon left running.
//!
//! [`Processes`] are the processes of a backend that has one for all outputs. There are two while one
//! replaces the other, and an earlier daemon may have left more. The newest is the visible one. Runs on
//! the worker's thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use rustix::event::epoll::EventFlags;

use super::Error;
use super::copies::Copies;
use super::fit_and_transition::with_transition;
use crate::compositor::{Outputs, Session, note_root_painter, root_painter};
use crate::config::{BackendName, Config};
use crate::decode::Decoder;
use crate::error_chain::chain;
use crate::kernel::{Kernel, Source};
use crate::paths::Dirs;
use crate::process::{
    self, BackendProcess, Child, Launch, ProcessRecords, ResourceLimits, Versions,
};
use crate::sys::Cancel;
use crate::thread::Spawner;

/// Everything that backends share.
#[derive(Clone)]
pub struct Backends {
    /// Returns the current settings.
    pub settings: Arc<dyn Fn() -> Arc<Config> + Send + Sync>,
    pub outputs: Outputs,
    pub records: ProcessRecords,
    pub kernel: Kernel,
    /// For threads that wait for messages of a process.
    pub spawner: Spawner,
    /// Each backend has a directory of its own in it.
    pub cache: PathBuf,
    pub decoder: Decoder,
    /// The user's directories, for files that backends look for themselves.
    pub dirs: Dirs,
    pub versions: Versions,
    /// The executable of the renderer; `None` stands for this process's own.
    pub own_program: Option<PathBuf>,
}

/// Between SIGTERM and SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// The time from the loss of a process's socket to its exit.
const ENDED_WITHIN: Duration = Duration::from_millis(100);

pub(super) struct Context {
    pub shared: Backends,
    pub name: BackendName,
    /// Gets a message when one of the backend's processes has exited.
    pub tell: Sender<()>,
    /// The only output of this backend, if each output has its own process.
    pub output: Option<String>,
    /// The backend's own directory; created when a file is first written there.
    pub cache: PathBuf,
    pub copies: Copies,
    /// The transition that the current request names.
    pub transition: Option<String>,
}

impl Context {
    pub(super) fn new(
        shared: Backends,
        name: BackendName,
        output: Option<&str>,
        tell: Sender<()>,
    ) -> Self {
        let cache = shared.cache_of(name, output);
        let copies = Copies::new(cache.join("copies"), shared.decoder.clone());
        let output = output.map(str::to_owned);
        Self {
            shared,
            name,
            tell,
            output,
            cache,
            copies,
            transition: None,
        }
    }

    /// The current settings, with the transition of the current request.
    pub(super) fn settings(&self) -> Arc<Config> {
        let config = (self.shared.settings)();
        match &self.transition {
            Some(word) => Arc::new(with_transition((*config).clone(), word)),
            None => config,
        }
    }

    /// The executable, or why there is none.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf, Error> {
        self.shared
            .which(name)
            .ok_or_else(|| Error::Unavailable(format!("{name} is not on PATH")))
    }

    /// A command line that reaches the compositor, even if the compositor was started after murald.
    pub(super) fn launch(&self, program: impl Into<PathBuf>) -> Launch {
        let launch = Launch::new(program);
        match self.shared.outputs.session() {
            Some(session) => {
                let (name, value) = session.environment();
                launch.env(name, value)
            }
            None => launch,
        }
    }

    /// Notes on the X server's root window, which all backends share, that it shows our picture.
    pub(super) fn note_painted(&self) {
        if let Some(Session::X11 { display }) = self.shared.outputs.session()
            && let Err(error) = note_root_painter(&display, self.name.as_str())
        {
            // The picture stays when the wallpapers are removed.
            log::warn!("cannot note the painter of the root window: {error}");
        }
    }

    /// Whether the root window shows our picture, not that of another backend or program.
    pub(super) fn has_painted(&self) -> bool {
        match self.shared.outputs.session() {
            Some(Session::X11 { display }) => {
                root_painter(&display).is_some_and(|one| one == self.name.as_str())
            }
            _ => false,
        }
    }

    /// Starts a process that keeps running, and reports its exit. Its command line may name its own
    /// socket. Its log is not emptied until it is released.
    pub(super) fn start(
        &self,
        launch: impl FnOnce(&Path) -> Launch,
    ) -> Result<BackendProcess, Error> {
        let name = self.name.as_str();
        let output = self.output.as_deref();
        let limits = ResourceLimits {
            data: self.memory_limit(),
            ..ResourceLimits::default()
        };
        let launch = |socket: &Path| launch(socket).limits(limits);
        let process = self.shared.records.start(name, output, launch)?;
        log::info!("started {}", process.record().shown());
        self.watch(&process);
        Ok(process)
    }

    /// The bytes that a process may allocate, if the backend shows videos or HTML wallpapers.
    fn memory_limit(&self) -> Option<u64> {
        let plays = matches!(self.name, BackendName::Mpvpaper | BackendName::WalQt);
        let limit = u64::from((self.shared.settings)().power.max_child_memory_mb) << 20;
        (limit > 0 && plays).then_some(limit)
    }

    /// The processes that an earlier daemon left running, the oldest first.
    pub(super) fn take_over(&self) -> Vec<BackendProcess> {
        let running = self
            .shared
            .records
            .running(self.name.as_str(), self.output.as_deref());
        for process in &running {
            log::info!("adopted {}", process.record().shown());
            self.watch(process);
        }
        running
    }

    /// Reports the exit of a process that murald did not start.
    pub(super) fn watch_foreign(&self, child: Child) -> Option<Foreign> {
        let watched = self.when_ended(&child);
        let failed = |error: &io::Error| {
            log::debug!("cannot watch process {}: {error}", child.identity().pid);
        };
        let end = watched.inspect_err(failed).ok()?;
        Some(Foreign { child, _end: end })
    }

    fn watch(&self, process: &BackendProcess) {
        match self.when_ended(process.child()) {
            Ok(end) => end.keep(),
            // The process is still checked before each change.
            Err(error) => log::error!("cannot watch {}: {error}", process.record().shown()),
        }
    }

    /// Sends a message once the process has ended.
    fn when_ended(&self, child: &Child) -> io::Result<Source> {
        let tell = self.tell.clone();
        let end = EventFlags::IN | EventFlags::ONESHOT;
        self.shared.kernel.when_ready(child.clone(), end, move || {
            // If the channel is full, the owner checks anyway.
            tell.try_send(()).ok();
        })
    }
}

/// A process that we did not start, watched until this is dropped. It is never signalled.
pub(super) struct Foreign {
    child: Child,
    _end: Source,
}

impl Foreign {
    pub(super) fn is_running(&self) -> bool {
        self.child.is_running()
    }
}

impl From<process::Error> for Error {
    fn from(error: process::Error) -> Self {
        match error {
            process::Error::Cancelled => Self::Cancelled,
            process::Error::Start { .. }
            | process::Error::Late { .. }
            | process::Error::Silent { .. }
            | process::Error::Io { .. } => Self::Unavailable(chain(&error)),
        }
    }
}

pub(super) struct Processes {
    /// The running processes that murald started, the oldest first.
    running: Vec<BackendProcess>,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Processes {
    /// The processes that an earlier daemon has left running.
    pub(super) fn taken_over(context: &Context) -> Self {
        Self {
            running: context.take_over(),
            grace: GRACE,
        }
    }

    pub(super) fn newest(&self) -> Option<&BackendProcess> {
        self.running.last()
    }

    /// Whether there are processes older than the newest.
    pub(super) fn has_older(&self) -> bool {
        self.running.len() > 1
    }

    pub(super) fn any(&self, is_it: impl FnMut(&BackendProcess) -> bool) -> bool {
        self.running.iter().any(is_it)
    }

    /// Whether the visible process still runs; removes those that have exited.
    pub(super) fn is_whole(&mut self) -> bool {
        let identity = |all: &Self| all.newest().map(|process| process.child().identity());
        let seen = identity(self);
        self.reap();
        identity(self) == seen
    }

    /// Whether the visible process has exited. A client may notice the exit a moment before the kernel
    /// reports it.
    pub(super) fn has_ended(&self) -> bool {
        let soon = Some(Instant::now() + ENDED_WITHIN);
        self.newest()
            .is_some_and(|process| process.child().wait(soon, None))
    }

    /// Removes the processes that have exited.
    pub(super) fn reap(&mut self) {
        let dead = self
            .running
            .extract_if(.., |process| !process.child().is_running());
        dead.for_each(BackendProcess::forget);
    }

    /// Removes and returns a process without ending it.
    pub(super) fn take(
        &mut self,
        is_it: impl FnMut(&BackendProcess) -> bool,
    ) -> Option<BackendProcess> {
        let at = self.running.iter().position(is_it)?;
        Some(self.running.remove(at))
    }

    /// Adds a process; the older ones stay until they are replaced.
    pub(super) fn push(&mut self, mut new: BackendProcess) {
        new.release_log();
        self.running.push(new);
    }

    /// Removes and returns the newest process without ending it.
    pub(super) fn pop(&mut self) -> Option<BackendProcess> {
        self.running.pop()
    }

    /// Adds a process, and ends all others.
    pub(super) fn replace(&mut self, kept: BackendProcess) {
        self.push(kept);
        self.keep_newest();
    }

    /// Ends all processes but the newest.
    pub(super) fn keep_newest(&mut self) {
        let grace = self.grace;
        self.older().for_each(|process| process.end(grace));
    }

    /// The same by SIGKILL: a process that exits by itself would remove the new socket at its path.
    pub(super) fn kill_older(&mut self) {
        self.older().for_each(BackendProcess::kill);
    }

    fn older(&mut self) -> impl Iterator<Item = BackendProcess> {
        let older = self.running.len().saturating_sub(1);
        self.running.drain(..older)
    }

    pub(super) fn end_all(&mut self) {
        self.running
            .drain(..)
            .for_each(|process| process.end(self.grace));
    }
}

/// Asks a server that was just started until it answers, at growing intervals. `None` if it is late, or
/// exits, which is noticed at once.
pub(super) fn ask_until_up<T>(
    process: &BackendProcess,
    (within, mut pause, longest): (Duration, Duration, Duration),
    cancel: &Cancel,
    mut ask: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let until = Instant::now() + within;
    loop {
        let ended = process
            .child()
            .wait(Some(Instant::now() + pause), Some(cancel));
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let up = if ended { None } else { ask()? };
        if up.is_some() || ended || Instant::now() > until {
            return Ok(up);
        }
        pause = (pause * 2).min(longest);
    }
}
