//! Pauses for battery, lock and idle: the state of the session, and whether the settings want a
//! pause.
//!
//! During a pause no playlist changes by itself, and videos and HTML wallpapers are paused. The
//! thread `battery`, which `daemon::settings` starts, watches the battery. The thread `playlist`
//! applies the pause; the handle reads the state, and sets what the settings and the kernel
//! report.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::paths;
use crate::sys::lock;
use crate::wire::{PauseReason, Power, PutPower};

/// Clones share one state.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedPower(Arc<Mutex<PowerState>>);

#[derive(Debug, Default)]
struct PowerState {
    /// Whether the settings have been applied.
    is_set: bool,
    pause_when_locked: bool,
    pause_when_idle: bool,
    /// None: not watched, because the settings want no pause on battery.
    battery: Option<bool>,
    session: Session,
    /// The file that keeps the session.
    file: Option<PathBuf>,
}

/// The state of the session that `murald power` has set, kept for the next daemon.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Session {
    /// The session that the state belongs to; empty while no compositor is known.
    began: String,
    locked: bool,
    idle: bool,
}

impl PowerState {
    /// Saves the state of the session for the next daemon.
    fn save(&self) {
        let Some(file) = &self.file else { return };
        let text = serde_json::to_vec(&self.session).map_err(io::Error::from);
        if let Err(error) = text.and_then(|text| paths::replace(file, &text)) {
            log::warn!(
                "cannot save the state of the session in {}: {error}",
                file.display()
            );
        }
    }
}

impl SharedPower {
    /// Restores the state that the last daemon saved.
    pub(super) fn kept(file: PathBuf) -> Self {
        let kept = fs::read(&file)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        let session = kept.unwrap_or_default();
        Self(Arc::new(Mutex::new(PowerState {
            session,
            file: Some(file),
            ..PowerState::default()
        })))
    }

    /// Sets the conditions that the settings give.
    pub(super) fn set_conditions(&self, when_locked: bool, when_idle: bool) {
        let mut known = self.lock();
        (known.pause_when_locked, known.pause_when_idle) = (when_locked, when_idle);
        known.is_set = true;
    }

    /// Whether the settings have been applied. Before, a pause of the last daemon must not end.
    pub(super) fn is_set(&self) -> bool {
        self.lock().is_set
    }

    /// Sets the state of the battery, if it is watched.
    pub(super) fn set_battery(&self, battery: Option<bool>) {
        self.lock().battery = battery;
    }

    /// Forgets the state of another session: a new compositor shows no lock screen. A state that was
    /// reported before the compositor was known belongs to it.
    pub(super) fn enter(&self, session: Option<String>) {
        let (Some(began), mut known) = (session, self.lock()) else {
            return;
        };
        if known.session.began == began {
            return;
        }
        let was_set = known.session.locked || known.session.idle;
        if !known.session.began.is_empty() {
            known.session = Session::default();
        }
        known.session.began = began;
        if was_set {
            known.save();
        }
    }

    /// Forgets the state of the session whose compositor is gone: the next report is about a session
    /// that is not known yet.
    pub(super) fn leave(&self) {
        let mut known = self.lock();
        if !known.session.began.is_empty() {
            known.session = Session::default();
        }
    }

    /// Sets the reported state of the session.
    pub(super) fn set_session(&self, change: PutPower) {
        let mut known = self.lock();
        let session = &mut known.session;
        session.locked = change.locked.unwrap_or(session.locked);
        session.idle = change.idle.unwrap_or(session.idle);
        known.save();
    }

    pub(super) fn get(&self) -> Power {
        let known = self.lock();
        let PowerState {
            pause_when_locked,
            pause_when_idle,
            battery,
            ..
        } = *known;
        let Session { locked, idle, .. } = known.session;
        let resting = if battery == Some(true) {
            Some(PauseReason::Battery)
        } else if locked && pause_when_locked {
            Some(PauseReason::Locked)
        } else {
            (idle && pause_when_idle).then_some(PauseReason::Idle)
        };
        Power {
            battery,
            locked,
            idle,
            resting,
        }
    }

    fn lock(&self) -> MutexGuard<'_, PowerState> {
        lock(&self.0)
    }
}

/// The pause of the player.
#[derive(Default)]
pub(super) struct Pause {
    pub(super) power: SharedPower,
    /// The reason that was last passed to the wallpapers; none before the first.
    pub(super) reported: Option<Option<PauseReason>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_needs_a_setting_and_a_reason() {
        let power = SharedPower::default();
        let check = |wishes: (bool, bool), told: (bool, bool), expected: Option<PauseReason>| {
            power.set_conditions(wishes.0, wishes.1);
            power.set_session(PutPower {
                locked: Some(told.0),
                idle: Some(told.1),
            });
            assert_eq!(power.get().resting, expected, "{wishes:?} {told:?}");
        };
        check((false, false), (true, true), None);
        check((true, true), (false, false), None);
        check((true, false), (true, true), Some(PauseReason::Locked));
        check((true, false), (false, true), None);
        check((false, true), (true, true), Some(PauseReason::Idle));
        check((false, true), (true, false), None);
        check((true, true), (true, true), Some(PauseReason::Locked));
        // A report without a value keeps the old one.
        power.set_session(PutPower {
            locked: Some(false),
            idle: None,
        });
        assert_eq!(power.get().resting, Some(PauseReason::Idle));
        power.set_battery(Some(true));
        assert_eq!(power.get().resting, Some(PauseReason::Battery));
        power.set_battery(Some(false));
        assert_eq!(power.get().resting, Some(PauseReason::Idle));
    }

    #[test]
    fn state_is_kept_until_another_session_begins() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("session");
        let known = |session: Option<&str>| {
            let power = SharedPower::kept(file.clone());
            power.enter(session.map(str::to_owned));
            power
        };
        assert!(!known(Some("a")).get().locked, "there is no file");
        known(None).set_session(PutPower {
            locked: Some(true),
            idle: None,
        });
        assert!(known(Some("a")).get().locked, "no compositor was known");
        assert!(
            !known(Some("b")).get().locked,
            "it was of the first compositor"
        );
        let power = known(Some("a"));
        power.set_session(PutPower {
            locked: Some(true),
            idle: None,
        });
        power.leave();
        assert!(!power.get().locked);
        power.set_session(PutPower {
            locked: Some(true),
            idle: None,
        });
        power.enter(Some("b".to_owned()));
        assert!(
            power.get().locked,
            "it was reported before its compositor was known"
        );
        known(Some("a")).set_session(PutPower {
            locked: Some(true),
            idle: None,
        });
        assert!(known(Some("a")).get().locked && !known(Some("a")).get().idle);
        assert!(known(None).get().locked);
        assert!(!known(Some("b")).get().locked);
        fs::write(&file, "half a li").unwrap();
        assert!(!known(Some("a")).get().locked);
    }
}
