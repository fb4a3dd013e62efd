//! Passes changed settings on to the modules. For `[power]`, also starts and stops watching the
//! battery and the windows.
//!
//! Runs on the thread that changes the settings.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::backends::Backends;
use crate::battery::{self, Supplies};
use crate::compositor::ipc::{self, Following, Source, WINDOWS};
use crate::config::{BackendName, ConfigHandle, Section};
use crate::desktop;
use crate::library::{Library, WatchSettings};
use crate::parallax::Parallax;
use crate::paths::Dirs;
use crate::playlist::Playlists;
use crate::sys::{CancelOnDrop, lock};
use crate::thread::{OwnedThread, Spawner, Toggle};
use crate::wallpaper::{self, WorkspaceFollower};

/// Applies `[power]` until it is stopped.
pub(super) struct PauseFollower(Arc<PauseThreads>);

struct PauseThreads {
    battery: Toggle<(), CancelOnDrop>,
    windows: ipc::Toggle<()>,
    /// Held while settings are applied.
    applying: Mutex<()>,
}

impl PauseFollower {
    /// Applies the settings now and after each change.
    pub(super) fn by_settings(
        config: &ConfigHandle,
        playlists: &Playlists,
        wallpaper: &wallpaper::Handle,
        backends: &Backends,
    ) -> Self {
        let threads = Arc::new(PauseThreads {
            battery: Toggle::off(),
            windows: Toggle::off(),
            applying: Mutex::new(()),
        });
        let wallpaper = wallpaper.clone();
        let backends = backends.clone();
        let kept = Arc::clone(&threads);
        let handle = config.clone();
        let playlists = playlists.clone();
        let supplies = Supplies::from_env(backends.dirs.env());
        let set = move || {
            // Lock before reading the settings: if two changes coincide, the second thread reads
            // the latest.
            let _applying = lock(&kept.applying);
            let power = handle.current().power;
            // The battery comes first: the conditions begin the first pause.
            let wanted = power.pause_on_battery.then_some(());
            kept.battery.set(wanted, |()| {
                follow_battery(&supplies, &playlists, &backends.spawner)
            });
            if wanted.is_none() {
                playlists.set_battery(None);
            }
            playlists.set_pause_conditions(power.pause_when_locked, power.pause_when_idle);
            let wanted = power.pause_when_covered.then_some(());
            kept.windows
                .set(wanted, |()| follow_windows(&wallpaper, &backends));
            if wanted.is_none() {
                wallpaper.cover(BTreeSet::new());
            }
        };
        set();
        config.subscribe(move |sections| {
            if sections.contains(&Section::Power) {
                set();
            }
        });
        Self(threads)
    }

    /// Stops watching; returns `false` if a thread has not ended by the deadline.
    pub(super) fn end(self, deadline: Instant) -> bool {
        let windows = self.0.windows.end(deadline);
        self.0.battery.end(deadline) && windows
    }
}

/// Reports the battery to the playlists, until the thread is ended.
fn follow_battery(
    supplies: &Supplies,
    playlists: &Playlists,
    spawner: &Spawner,
) -> std::io::Result<OwnedThread<CancelOnDrop>> {
    // Set at once, so that the request that changed the settings finds it done.
    playlists.set_battery(Some(supplies.on_battery()));
    let told = playlists.clone();
    battery::follow(spawner, supplies.clone(), move |battery| {
        told.set_battery(Some(battery))
    })
}

/// Pauses the videos that windows cover, until it is dropped.
fn follow_windows(
    wallpaper: &wallpaper::Handle,
    backends: &Backends,
) -> std::io::Result<Following> {
    let outputs = backends.outputs.clone();
    let env = backends.dirs.env().clone();
    let reported = wallpaper.clone();
    let other = wallpaper.clone();
    let none = Box::new(move || other.cover(BTreeSet::new()));
    let source = Source {
        outputs,
        env,
        wanted: None,
        topics: &WINDOWS,
        none,
    };
    let mut known = None;
    ipc::start(
        &backends.spawner,
        "windows",
        source,
        move |connection, cancel| {
            let (covered, goes_on) = match connection.covered(cancel) {
                Ok(covered) => (covered, Ok(())),
                // Videos stay paused when the daemon stops.
                Err(error) if cancel.is_cancelled() => return Err(error),
                Err(error) => (BTreeSet::new(), Err(error)),
            };
            if known.as_ref() != Some(&covered) {
                known = Some(covered.clone());
                reported.cover(covered);
            }
            goes_on
        },
    )
    // Without a follower, videos of an earlier daemon would stay paused.
    .inspect_err(|_| wallpaper.cover(BTreeSet::new()))
}

/// Makes the library watch the configured directories, now and after each change.
pub(super) fn watch_directories(config: &ConfigHandle, dirs: &Dirs, library: &Library) {
    let handle = config.clone();
    let dirs = dirs.clone();
    let library = library.clone();
    let configure = move || {
        let settings = WatchSettings::from_config(&handle.current(), &dirs);
        library.watching.configure(settings);
    };
    configure();
    config.subscribe(move |sections| {
        if sections.contains(&Section::Library) {
            configure();
        }
    });
}

/// Reports changes of settings to the reconciler, the followers of workspaces and the publisher of
/// files for other programs.
pub(super) fn tell_changes(
    config: &ConfigHandle,
    wallpaper: &wallpaper::Handle,
    (parallax, workspaces): (&Arc<Parallax>, &Arc<WorkspaceFollower>),
    desktop: &desktop::Handle,
) {
    let wallpaper = wallpaper.clone();
    let parallax = Arc::clone(parallax);
    let workspaces = Arc::clone(workspaces);
    let desktop = desktop.clone();
    config.subscribe(move |sections| {
        let backends = sections.iter().filter_map(|section| match section {
            Section::BackendOptions(name) => Some(*name),
            _ => None,
        });
        let chosen =
            |section: &Section| matches!(section, Section::Backend | Section::AutoPriorities);
        let backends: Vec<_> = backends.collect();
        if sections.contains(&Section::Desktop) {
            desktop.changed(Vec::new(), Box::new(|| ()));
        }
        if backends.contains(&BackendName::WalQt) {
            parallax.on_settings();
        }
        if sections.contains(&Section::Workspaces) {
            workspaces.on_settings();
        }
        if !backends.is_empty() || sections.iter().any(chosen) {
            wallpaper.settings_changed(backends);
        }
    });
}
