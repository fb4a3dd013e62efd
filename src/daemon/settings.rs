//! Passes changed settings on to the modules. For `[power]`, also starts and stops watching the
//! battery and the windows.
//!
//! Runs on the thread that changes the settings.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::backends::Backends;
use crate::battery::{BatteryWatch, Supplies};
use crate::compositor::ipc::{Following, Source, Toggle, WINDOWS};
use crate::config::{BackendName, ConfigHandle, Section};
use crate::desktop;
use crate::library::{Library, WatchSettings};
use crate::parallax::Parallax;
use crate::paths::Dirs;
use crate::playlist::Playlists;
use crate::sys::lock;
use crate::thread::Spawner;
use crate::wallpaper::{self, WorkspaceFollower};

/// Applies `[power]` until it is stopped.
pub(super) struct PauseFollower(Arc<Mutex<PauseState>>);

struct PauseState {
    watch: Option<BatteryWatch>,
    windows: Toggle<()>,
    has_ended: bool,
}

impl PauseFollower {
    /// Applies the settings now and after each change.
    pub(super) fn by_settings(
        config: &ConfigHandle,
        playlists: &Playlists,
        wallpaper: &wallpaper::Handle,
        backends: &Backends,
    ) -> Self {
        let (windows, spawner, env) = (Toggle::off(), &backends.spawner, backends.dirs.env());
        let state = Arc::new(Mutex::new(PauseState { watch: None, windows, has_ended: false }));
        let (wallpaper, backends) = (wallpaper.clone(), backends.clone());
        let (kept, handle, playlists) = (Arc::clone(&state), config.clone(), playlists.clone());
        let (spawner, supplies) = (spawner.clone(), Supplies::of(env));
        let set = move || {
            // Lock before reading the settings: if two changes coincide, the second thread reads
            // the latest.
            let mut state = lock(&kept);
            let power = handle.current().power;
            // The battery comes first: the conditions begin the first pause.
            state.look(power.pause_on_battery, &supplies, &playlists, &spawner);
            playlists.set_pause_conditions(power.pause_when_locked, power.pause_when_idle);
            let wanted = power.pause_when_covered.then_some(());
            state.windows.set(wanted, |()| follow_windows(&wallpaper, &backends));
            if wanted.is_none() {
                wallpaper.cover(BTreeSet::new());
            }
        };
        set();
        config.subscribe(move |change| {
            if change.sections.contains(&Section::Power) {
                set();
            }
        });
        Self(state)
    }

    /// Stops watching; returns `false` if a thread has not ended by the deadline.
    pub(super) fn end(self, deadline: Instant) -> bool {
        let (watch, windows) = {
            let mut state = lock(&self.0);
            state.has_ended = true;
            (state.watch.take(), state.windows.end(deadline))
        };
        watch.is_none_or(|watch| watch.end(deadline)) && windows
    }
}

impl PauseState {
    /// Starts or stops watching the battery.
    fn look(
        &mut self,
        wanted: bool,
        supplies: &Supplies,
        playlists: &Playlists,
        spawner: &Spawner,
    ) {
        if wanted == self.watch.is_some() || self.has_ended {
            return;
        }
        // Stop the watch first, so that it reports nothing afterwards.
        self.watch = None;
        // Set at once, so that the request that changed the settings finds it done.
        playlists.set_battery(wanted.then(|| supplies.on_battery()));
        if wanted {
            let told = playlists.clone();
            let tell = move |battery| told.set_battery(Some(battery));
            match BatteryWatch::start(spawner, supplies.clone(), tell) {
                Ok(watch) => self.watch = Some(watch),
                Err(error) => log::error!("cannot watch the battery: {error}"),
            }
        }
    }
}

/// Pauses the videos that windows cover, until it is dropped.
fn follow_windows(
    wallpaper: &wallpaper::Handle,
    backends: &Backends,
) -> std::io::Result<Following> {
    let (outputs, env) = (backends.outputs.clone(), backends.dirs.env().clone());
    let (reported, other) = (wallpaper.clone(), wallpaper.clone());
    let none = Box::new(move || other.cover(BTreeSet::new()));
    let source = Source { outputs, env, wanted: None, topics: &WINDOWS, none };
    let mut known = None;
    Following::start(&backends.spawner, "windows", source, move |connection, cancel| {
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
    })
    // Without a follower, videos of an earlier daemon would stay paused.
    .inspect_err(|_| wallpaper.cover(BTreeSet::new()))
}

/// Makes the library watch the configured directories, now and after each change.
pub(super) fn watch_directories(config: &ConfigHandle, dirs: &Dirs, library: &Library) {
    library.watch(WatchSettings::of(&config.current(), dirs));
    let (handle, dirs, library) = (config.clone(), dirs.clone(), library.clone());
    config.subscribe(move |change| {
        if change.sections.contains(&Section::Library) {
            library.watch(WatchSettings::of(&handle.current(), &dirs));
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
    let (wallpaper, parallax) = (wallpaper.clone(), Arc::clone(parallax));
    let workspaces = Arc::clone(workspaces);
    let desktop = desktop.clone();
    config.subscribe(move |change| {
        let backends = change.sections.iter().filter_map(|section| match section {
            Section::BackendOptions(name) => Some(*name),
            _ => None,
        });
        let chosen =
            |section: &Section| matches!(section, Section::Backend | Section::AutoPriorities);
        let backends: Vec<_> = backends.collect();
        if change.sections.contains(&Section::Power) {
            wallpaper.limit_changed();
        }
        if change.sections.contains(&Section::Desktop) {
            desktop.changed(Vec::new(), Box::new(|| ()));
        }
        if backends.contains(&BackendName::WalQt) {
            parallax.on_settings();
        }
        if change.sections.contains(&Section::Workspaces) {
            workspaces.on_settings();
        }
        if !backends.is_empty() || change.sections.iter().any(chosen) {
            wallpaper.settings_changed(backends);
        }
    });
}
