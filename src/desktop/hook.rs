//! Runs the hook: the user's command after a change of a wallpaper.
//!
//! The thread `hook` runs one command at a time. Changes during a run are gathered for the next run,
//! which gets the newest. Nothing waits for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use crate::compositor::Outputs;
use crate::config::ConfigHandle;
use crate::error_chain::chain;
use crate::process::{self, Ended, Groups, Launch, Scripts, plain};
use crate::sys::{Cancel, Waker, lock};
use crate::thread::{Spawner, Thread};
use crate::wire::{HookFailure, Image, Source, Timestamp};

/// How many bytes of a run's errors are logged.
const LOGGED: usize = 64 << 10;

/// The settings and paths for runs of the hook.
pub(crate) struct HookSources {
    /// Read before each run.
    pub config: ConfigHandle,
    pub outputs: Outputs,
    /// The socket, for the command's environment.
    pub socket: PathBuf,
    /// The working directory.
    pub home: PathBuf,
}

/// The handle by which the thread `desktop` starts runs. The first change with a command to run starts
/// the thread `hook`.
#[derive(Clone)]
pub(super) struct Hook(Arc<SharedHook>);

struct SharedHook {
    run: Mutex<Option<HookRun>>,
    state: Mutex<HookState>,
    failure: Mutex<Option<HookFailure>>,
    groups: Groups,
    sources: HookSources,
    spawner: Spawner,
}

enum HookState {
    /// No command was run yet.
    Idle,
    Started {
        waker: Arc<Waker>,
        cancel: Cancel,
        thread: Thread,
    },
    Ended,
}

/// The environment of the next run.
#[derive(Clone, Debug)]
pub(super) struct HookRun {
    /// The monitors that have changed since the last run began.
    monitors: Vec<String>,
    change: WallpaperChange,
    still: Option<PathBuf>,
}

impl Hook {
    pub(super) fn new(spawner: Spawner, sources: HookSources) -> Self {
        Self(Arc::new(SharedHook {
            run: Mutex::default(),
            state: Mutex::new(HookState::Idle),
            failure: Mutex::default(),
            groups: Groups::default(),
            sources,
            spawner,
        }))
    }

    /// Why the last run failed; `None` if it succeeded.
    pub(super) fn failure(&self) -> Option<HookFailure> {
        lock(&self.0.failure).clone()
    }

    /// Whether a process group belongs to a run.
    pub(super) fn has_group(&self, group: i32) -> bool {
        self.0.groups.has(group)
    }

    /// Runs the command for a change; `still` is the target of the links.
    pub(super) fn changed(&self, change: &WallpaperChange, still: Option<PathBuf>) {
        if self.0.command().is_none() {
            return;
        }
        let mut waiting = lock(&self.0.run);
        let mut monitors = waiting.take().map_or_else(Vec::new, |run| run.monitors);
        for (monitor, _) in &change.shown {
            if !monitors.contains(monitor) {
                monitors.push(monitor.clone());
            }
        }
        *waiting = Some(HookRun {
            monitors,
            change: change.clone(),
            still,
        });
        drop(waiting);
        if let Err(error) = self.wake() {
            log::warn!("cannot run hooks.wallpaper_changed: {error}");
        }
    }

    fn wake(&self) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        if matches!(*state, HookState::Idle) {
            let waker = Arc::new(Waker::new()?);
            let cancel = Cancel::new()?;
            let shared = Arc::clone(&self.0);
            let woken = Arc::clone(&waker);
            let scripts = Scripts::new(cancel.clone(), self.0.groups.clone());
            let thread = self
                .0
                .spawner
                .spawn("hook", move || work(&shared, &woken, scripts))?;
            *state = HookState::Started {
                waker,
                cancel,
                thread,
            };
        }
        if let HookState::Started { waker, .. } = &*state {
            waker.wake();
        }
        Ok(())
    }

    /// Ends the thread and its command for good. Returns the thread, which must be joined.
    pub(super) fn end(&self) -> Option<Thread> {
        match std::mem::replace(&mut *lock(&self.0.state), HookState::Ended) {
            HookState::Started { cancel, thread, .. } => {
                cancel.cancel();
                Some(thread)
            }
            HookState::Idle | HookState::Ended => None,
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

impl SharedHook {
    /// The command to run, and its time limit.
    fn command(&self) -> Option<(String, Duration)> {
        let settings = &self.sources.config.current().hooks;
        let limit = Duration::from_secs(settings.timeout_seconds.into());
        let command = settings.wallpaper_changed.clone();
        (!command.trim().is_empty()).then_some((command, limit))
    }
}

fn work(shared: &SharedHook, waker: &Waker, mut scripts: Scripts) {
    while scripts.wait(waker) {
        let Some(run) = lock(&shared.run).take() else {
            continue;
        };
        let Some((command, limit)) = shared.command() else {
            continue;
        };
        let mut errors = Errors::default();
        let launch = launch(&command, &run, &shared.sources);
        let ended = scripts.run(&launch, limit, &mut |bytes| errors.take(bytes));
        errors.end();
        let failure = failure(ended, limit);
        if let Some(failure) = &failure {
            log::warn!("hooks.wallpaper_changed failed: {failure}");
        }
        let at = Timestamp::now();
        *lock(&shared.failure) = failure.map(|error| HookFailure { error, at });
    }
}

fn launch(command: &str, run: &HookRun, sources: &HookSources) -> Launch {
    let HookRun {
        monitors,
        change,
        still,
    } = run;
    let path = |path: Option<&PathBuf>| path.map_or_else(OsString::new, |path| path.into());
    let id = change.image.library_id();
    let session = sources
        .outputs
        .session()
        .map(|session| session.environment());
    let own: [(&str, OsString); 9] = [
        ("MURALD_HOOK", "1".into()),
        ("MURALD_SOCKET", path(Some(&sources.socket))),
        ("MURALD_MONITOR", monitors.join(",").into()),
        // Empty for a plain colour.
        (
            "MURALD_IMAGE_ID",
            id.map_or_else(String::new, |id| id.to_string()).into(),
        ),
        ("MURALD_IMAGE_NAME", (&change.image.name).into()),
        ("MURALD_PATH", path(Some(&change.image.path))),
        ("MURALD_STILL", path(still.as_ref())),
        ("MURALD_BACKEND", (&change.backend).into()),
        ("MURALD_SOURCE", change.source.as_str().into()),
    ];
    let launch = Launch::new("/bin/sh")
        .args(["-c", command])
        .directory(&sources.home);
    let launch = own
        .into_iter()
        .fold(launch, |launch, (name, value)| launch.env(name, value));
    session
        .into_iter()
        .fold(launch, |launch, (name, value)| launch.env(name, value))
}

/// Why a run failed. The command itself is never named: it may hold a secret.
fn failure(ended: Result<Ended, process::Error>, limit: Duration) -> Option<String> {
    match ended {
        Ok(Ended::Code(0)) | Err(process::Error::Cancelled) => None,
        Ok(ended) => Some(ended.to_string()),
        Err(process::Error::Late { .. }) => Some(format!(
            "did not exit within {} s (hooks.timeout_seconds) and was stopped",
            limit.as_secs()
        )),
        Err(error) => Some(chain(&error)),
    }
}

/// Logs the errors that a run writes, line by line, up to a limit.
#[derive(Default)]
struct Errors {
    line: Vec<u8>,
    logged: usize,
}

impl Errors {
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LOGGED.saturating_sub(self.logged);
            if room == 0 {
                return;
            }
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            self.logged += part.len().min(room);
            if self.line.ends_with(b"\n") || self.logged == LOGGED {
                self.flush();
            }
            if self.logged == LOGGED {
                log::info!("hook: (further output is not logged)");
            }
        }
    }

    fn end(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        let line = plain(&String::from_utf8_lossy(&self.line));
        if !line.trim().is_empty() {
            log::info!("hook: {}", line.trim_end());
        }
        self.line.clear();
    }
}

/// A change of wallpaper, for the hook and the stills. Its rows are written.
#[derive(Clone, Debug)]
pub(crate) struct WallpaperChange {
    pub image: Arc<Image>,
    /// The monitors, and when the picture was set there.
    pub shown: Vec<(String, Timestamp)>,
    pub backend: String,
    pub source: Source,
    /// A hook made the change, so the hook does not run again.
    pub by_hook: bool,
}
