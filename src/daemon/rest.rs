//! When all rests: what the settings say of it goes to the playlists, and while they want rest on the
//! battery somebody looks at that.
//!
//! Runs on the thread that changes the settings.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::battery::{Supplies, Watch};
use crate::config::{ConfigHandle, Section};
use crate::paths::Env;
use crate::playlist::Playlists;
use crate::sys::lock;
use crate::thread::Spawner;

/// Follows the settings until it is ended.
pub(super) struct Rest(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    watch: Option<Watch>,
    has_ended: bool,
}

impl Rest {
    /// Has all rest when the settings say so, now and after each change of them.
    pub(super) fn by_settings(
        config: &ConfigHandle,
        playlists: &Playlists,
        spawner: &Spawner,
        env: &Env,
    ) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let (kept, handle, playlists) = (Arc::clone(&state), config.clone(), playlists.clone());
        let (spawner, supplies) = (spawner.clone(), Supplies::of(env));
        let set = move || {
            // The lock first: of two changes at once the later is read by whoever comes second.
            let mut state = lock(&kept);
            let power = handle.current().power;
            playlists.set_rest(power.pause_when_locked, power.pause_when_idle);
            state.look(power.pause_on_battery, &supplies, &playlists, &spawner);
        };
        set();
        config.subscribe(move |change| {
            if change.sections.contains(&Section::Power) {
                set();
            }
        });
        Self(state)
    }

    /// Ends the look at the battery; `false` if it is late.
    pub(super) fn end(self, deadline: Instant) -> bool {
        let watch = {
            let mut state = lock(&self.0);
            state.has_ended = true;
            state.watch.take()
        };
        watch.is_none_or(|watch| watch.end(deadline))
    }
}

impl State {
    /// Looks at the battery from now on, or no more.
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
        // It ends before what it has told is taken back.
        self.watch = None;
        // Whoever has changed the settings finds it so when he is answered.
        playlists.set_battery(wanted.then(|| supplies.on_battery()));
        if wanted {
            let told = playlists.clone();
            let tell = move |battery| told.set_battery(Some(battery));
            match Watch::start(spawner, supplies.clone(), tell) {
                Ok(watch) => self.watch = Some(watch),
                Err(error) => log::error!("the battery is not watched: {error}"),
            }
        }
    }
}
