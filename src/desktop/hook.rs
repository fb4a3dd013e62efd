//! The hook: the user's command after a change. The thread `hook` runs one at a time; what changes
//! meanwhile is gathered for the next, which is told of the newest. Nobody waits for it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::change::Change;
use crate::compositor::Outputs;
use crate::config::Hooks;
use crate::error_chain::chain;
use crate::process::{self, Ended, Launch, Scripts, plain};
use crate::sys::{Cancel, Waker};
use crate::thread::{Spawner, Thread};

/// Of a run's errors, what is logged.
const LOGGED: usize = 64 << 10;

/// What a hook is run with.
pub(crate) struct HookSources {
    /// Asked before each run.
    pub settings: Arc<dyn Fn() -> Hooks + Send + Sync>,
    pub outputs: Outputs,
    /// Where the command finds the daemon.
    pub socket: PathBuf,
    /// Where it runs.
    pub home: PathBuf,
}

/// What the thread `desktop` tells the hook through.
#[derive(Clone)]
pub(super) struct Hook {
    waiting: Arc<Waiting>,
}

struct Waiting {
    run: Mutex<Option<Run>>,
    waker: Waker,
}

/// What the next run is told.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// All that have changed since the last one began.
    monitors: Vec<String>,
    change: Change,
    still: Option<PathBuf>,
}

/// Ends the hook when dropped, and what it runs.
pub(super) struct HookOwner {
    cancel: Cancel,
    pub(super) thread: Option<Thread>,
}

pub(super) fn start(spawner: &Spawner, sources: HookSources) -> io::Result<(Hook, HookOwner)> {
    let waiting = Arc::new(Waiting { run: Mutex::default(), waker: Waker::new()? });
    let cancel = Cancel::new()?;
    let (hook, scripts) = (Hook { waiting: Arc::clone(&waiting) }, Scripts::new(cancel.clone()));
    let thread = spawner.spawn("hook", move || work(&waiting, &sources, scripts))?;
    Ok((hook, HookOwner { cancel, thread: Some(thread) }))
}

impl Hook {
    /// Has it run for a change; `still` is what the links lead to.
    pub(super) fn changed(&self, change: &Change, still: Option<PathBuf>) {
        let mut waiting = self.waiting.lock();
        let mut monitors = waiting.take().map_or_else(Vec::new, |run| run.monitors);
        for monitor in &change.monitors {
            if !monitors.contains(monitor) {
                monitors.push(monitor.clone());
            }
        }
        *waiting = Some(Run { monitors, change: change.clone(), still });
        drop(waiting);
        self.waiting.waker.wake();
    }
}

impl HookOwner {
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Drop for HookOwner {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Option<Run>> {
        // It is whole between any two statements that could panic.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work(waiting: &Waiting, sources: &HookSources, mut scripts: Scripts) {
    while scripts.wait(&waiting.waker) {
        let Some(run) = waiting.lock().take() else { continue };
        let settings = (sources.settings)();
        if settings.wallpaper_changed.trim().is_empty() {
            continue;
        }
        let limit = Duration::from_secs(settings.timeout_seconds.into());
        let mut errors = Errors::default();
        let launch = launch(&settings.wallpaper_changed, &run, sources);
        let ended = scripts.run(&launch, limit, &mut |bytes| errors.take(bytes));
        errors.end();
        tell(ended, limit);
    }
}

fn launch(command: &str, run: &Run, sources: &HookSources) -> Launch {
    let Run { monitors, change, still } = run;
    let path = |path: Option<&PathBuf>| path.map_or_else(OsString::new, |path| path.into());
    let session = sources.outputs.session().map(|session| session.environment());
    let own: [(&str, OsString); 9] = [
        ("MURALD_HOOK", "1".into()),
        ("MURALD_SOCKET", path(Some(&sources.socket))),
        ("MURALD_MONITOR", monitors.join(",").into()),
        ("MURALD_IMAGE_ID", change.image_id.to_string().into()),
        ("MURALD_IMAGE_NAME", (&change.image_name).into()),
        ("MURALD_PATH", path(Some(&change.path))),
        ("MURALD_STILL", path(still.as_ref())),
        ("MURALD_BACKEND", (&change.backend).into()),
        ("MURALD_SOURCE", change.source.as_str().into()),
    ];
    let launch = Launch::new("/bin/sh").args(["-c", command]).directory(&sources.home);
    let launch = own.into_iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    session.into_iter().fold(launch, |launch, (name, value)| launch.env(name, value))
}

/// The command itself is never named: it may hold a secret.
fn tell(ended: Result<Ended, process::Error>, limit: Duration) {
    match ended {
        Ok(Ended::Code(0)) | Err(process::Error::Cancelled) => {}
        Ok(ended) => log::warn!("hooks.wallpaper_changed has failed: {ended}"),
        Err(process::Error::Late { .. }) => log::warn!(
            "hooks.wallpaper_changed did not end within {} s (hooks.timeout_seconds): it was ended",
            limit.as_secs()
        ),
        Err(error) => log::warn!("hooks.wallpaper_changed: {}", chain(&error)),
    }
}

/// Logs what a run writes, line by line, as much as it may.
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
                log::info!("hook: (what else it says is left out)");
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
