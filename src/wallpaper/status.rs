//! Holds the state that every thread may read without asking the reconciler, and the changes that the
//! reconciler has not handled yet.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use super::paused_outputs::PausedOutputs;
use super::request::Request;
use super::worker_key::Placements;
use super::workspaces::VisibleWorkspaces;
use crate::backends::Placement;
use crate::compositor::ipc::Visible;
use crate::config::BackendName;
use crate::store::workspaces::WorkspacePicture;
use crate::sys::{Gate, lock};
use crate::wire::{ApplyFailure, DebugFailure, PauseReason, Source, Timestamp};

/// How many failures are kept.
const FAILURES: usize = 256;
/// How many failures [`SharedStatus::failures`] returns.
const RECENT: usize = 20;

/// Which backend is in use.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub active: Option<BackendName>,
    /// No backend was found at the last search.
    pub is_missing: bool,
}

/// Shared by the handles and the reconciler.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStatus {
    inner: Arc<Mutex<Inner>>,
    /// Opens when the reconciler has looked at the outputs for the first time.
    pub(super) looked: Gate,
}

#[derive(Debug, Default)]
struct Inner {
    status: Status,
    /// The activated backend, until the settings name it.
    activated: Option<BackendName>,
    /// Backends that were installed while the builtin one is in use, and are not used.
    unused: Vec<BackendName>,
    changes: Option<Changes>,
    /// What each worker is known to show.
    shown: Placements,
    /// The monitors whose videos and HTML wallpapers are paused.
    paused: PausedOutputs,
    /// The last pictures that could not be shown, the newest first.
    failures: VecDeque<DebugFailure>,
    /// Playlists of which hooks ask something, one entry for each request; `None` stands for all
    /// playlists.
    hook_requests: Vec<Option<i64>>,
    visible: VisibleWorkspaces,
    /// Closed from the start of a follower until it has said which workspaces are visible.
    workspaces_seen: Gate,
}

/// A hook's request to a playlist. While it exists, what the playlist shows runs no hook.
#[derive(Debug)]
pub(crate) struct HookRequest {
    status: SharedStatus,
    playlist: Option<i64>,
}

impl Drop for HookRequest {
    fn drop(&mut self) {
        let requests = &mut self.status.lock().hook_requests;
        if let Some(at) = requests.iter().position(|one| *one == self.playlist) {
            requests.swap_remove(at);
        }
    }
}

/// Changes that the reconciler has not looked at yet.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The backends whose settings have changed.
    pub(super) backends: Vec<BackendName>,
    /// The activated backend could not be written to the settings.
    pub(super) deactivated: bool,
    /// The files of images were rewritten.
    pub(super) rewritten: bool,
    /// Videos and HTML wallpapers are paused from now on, or play again.
    pub(super) paused: Option<Option<PauseReason>>,
    /// The outputs that a window covers from now on.
    pub(super) covered: Option<BTreeSet<String>>,
    /// Other workspaces are visible, or the wallpapers of workspaces have changed.
    pub(super) workspaces: bool,
    /// All pictures need new surfaces.
    pub(super) buried: bool,
    /// Settings have changed, or images other than those that were rewritten.
    pub(super) anything: bool,
}

impl SharedStatus {
    pub(super) fn before_look() -> Self {
        Self {
            looked: Gate::closed(),
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    pub(super) fn get(&self) -> Status {
        self.lock().status.clone()
    }

    /// Sets the backend in use; returns true if there is none and this is news.
    pub(super) fn set_active(&self, active: Option<BackendName>) -> bool {
        let is_missing = active.is_none();
        let before = std::mem::replace(&mut self.lock().status, Status { active, is_missing });
        is_missing && !before.is_missing
    }

    /// Sets what the choice of a backend depends on, beside the settings and `PATH`.
    pub(super) fn set_choice(&self, activated: Option<BackendName>, unused: Vec<BackendName>) {
        let mut inner = self.lock();
        (inner.activated, inner.unused) = (activated, unused);
    }

    /// The activated backend, and the backends that are installed but not used.
    pub(super) fn choice(&self) -> (Option<BackendName>, Vec<BackendName>) {
        let inner = self.lock();
        (inner.activated, inner.unused.clone())
    }

    pub(super) fn shown_by(&self, backend: BackendName) -> Vec<Placement> {
        let inner = self.lock();
        let of_it = inner.shown.iter().filter(|(key, _)| key.backend == backend);
        of_it.flat_map(|(_, shown)| shown).cloned().collect()
    }

    pub(super) fn set_shown(&self, shown: Placements) {
        self.lock().shown = shown;
    }

    pub(super) fn set_paused(&self, paused: PausedOutputs) {
        self.lock().paused = paused;
    }

    /// Why the video or HTML wallpaper of a monitor is paused.
    pub(crate) fn paused_by(&self, monitor: &str) -> Option<PauseReason> {
        self.lock().paused.get(monitor).copied()
    }

    pub(super) fn note_failure<'a>(
        &self,
        monitors: impl Iterator<Item = &'a str>,
        failure: ApplyFailure,
    ) {
        let failures = &mut self.lock().failures;
        failures.push_front(DebugFailure {
            monitors: monitors.map(str::to_owned).collect(),
            failure,
        });
        failures.truncate(FAILURES);
    }

    /// The last picture that could not be shown on a monitor.
    pub(crate) fn failure(&self, monitor: &str) -> Option<ApplyFailure> {
        let is_its = |one: &&DebugFailure| one.monitors.iter().any(|name| name == monitor);
        self.lock()
            .failures
            .iter()
            .find(is_its)
            .map(|one| one.failure.clone())
    }

    /// The last failures, the newest last.
    pub(crate) fn failures(&self) -> Vec<DebugFailure> {
        self.lock()
            .failures
            .iter()
            .take(RECENT)
            .rev()
            .cloned()
            .collect()
    }

    /// Notes that a hook asks something of a playlist, or of all playlists (`None`). The result must be
    /// kept until the hook is answered.
    pub(crate) fn hook_request(&self, playlist: Option<i64>) -> HookRequest {
        self.lock().hook_requests.push(playlist);
        HookRequest {
            status: self.clone(),
            playlist,
        }
    }

    /// Whether a hook has sent a request, or waits for the playlist that has sent it.
    pub(super) fn is_by_hook(&self, request: &Request) -> bool {
        let source = &request.source;
        let asked = |one: &Option<i64>| one.is_none() || *one == source.playlist_id;
        let waits = || self.lock().hook_requests.iter().any(asked);
        request.by_hook || source.kind == Source::Playlist && waits()
    }

    pub(super) fn visible_workspaces(&self) -> VisibleWorkspaces {
        self.lock().visible.clone()
    }

    /// Notes that a follower starts, which will report the visible workspaces.
    pub(super) fn expect_workspaces(&self) {
        self.lock().workspaces_seen = Gate::closed();
    }

    pub(super) fn workspaces_seen(&self) -> Gate {
        self.lock().workspaces_seen.clone()
    }

    /// Notes the visible workspaces; returns whether any of them is new or gone.
    pub(super) fn show_workspaces(&self, are_all: bool, visible: Vec<Visible>) -> bool {
        let mut inner = self.lock();
        let now = Timestamp::now();
        let before = inner.visible.len();
        let is_there = |monitor: &String| visible.iter().any(|one| one.output == *monitor);
        inner
            .visible
            .retain(|monitor, _| !are_all || is_there(monitor));
        let mut changed = inner.visible.len() < before;
        for Visible { output, name, .. } in visible {
            if inner
                .visible
                .get(&output)
                .is_none_or(|(before, _)| *before != name)
            {
                inner.visible.insert(output, (name, now));
                changed = true;
            }
        }
        changed
    }

    /// Counts the workspaces of the previous run as visible.
    pub(super) fn restore_workspaces(&self, pictures: &[WorkspacePicture]) {
        let place = |WorkspacePicture { workspace, row }: &WorkspacePicture| {
            (row.monitor.clone(), (workspace.clone(), row.set_at))
        };
        self.lock().visible = pictures.iter().map(place).collect();
    }

    /// Adds changes to those that the reconciler has not handled yet.
    pub(super) fn note(&self, changes: Changes) {
        let mut inner = self.lock();
        let noted = inner.changes.get_or_insert_default();
        noted.backends.extend(changes.backends);
        noted.deactivated |= changes.deactivated;
        noted.rewritten |= changes.rewritten;
        noted.paused = changes.paused.or(noted.paused);
        noted.workspaces |= changes.workspaces;
        noted.covered = changes.covered.or(noted.covered.take());
        noted.buried |= changes.buried;
        noted.anything |= changes.anything;
    }

    pub(super) fn take_changes(&self) -> Option<Changes> {
        self.lock().changes.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BackendName::{Awww, Feh, Mpvpaper};
    use crate::wallpaper::request::{Ask, Targets};
    use crate::wallpaper::worker_key::WorkerKey;
    use crate::wallpaper::worker_key::tests::placement;
    use crate::wire::Timestamp;

    fn failure(number: usize) -> ApplyFailure {
        ApplyFailure {
            image_id: number as i64,
            image_name: "x".to_owned(),
            backend: "feh".to_owned(),
            error: "on purpose".to_owned(),
            at: Timestamp::from_micros(1),
        }
    }

    #[test]
    fn missing_backend_is_reported_once() {
        let status = SharedStatus::default();
        assert!(!status.set_active(Some(Feh)));
        assert_eq!(status.get().active, Some(Feh));
        assert!(status.set_active(None));
        assert!(!status.set_active(None));
        let Status { active, is_missing } = status.get();
        assert!(active.is_none() && is_missing);
        assert!(!status.set_active(Some(Awww)) && status.set_active(None));
    }

    #[test]
    fn status_has_the_pictures_of_each_backend() {
        let status = SharedStatus::default();
        let shown = ["B", "A"].map(|name| {
            let key = WorkerKey::new(Mpvpaper, name);
            (key, vec![placement(name, 1)])
        });
        status.set_shown(shown.into());
        let both = ["A", "B"].map(|name| placement(name, 1));
        assert_eq!(status.shown_by(Mpvpaper), both);
        assert!(status.shown_by(Awww).is_empty());
    }

    #[test]
    fn workspaces_of_disconnected_monitors_are_removed() {
        let status = SharedStatus::default();
        let show = |are_all, visible: &[(&str, &str)]| {
            let of = |(output, name): &(&str, &str)| {
                let (output, name) = ((*output).to_owned(), (*name).to_owned());
                Visible {
                    output,
                    name,
                    place: 0,
                }
            };
            status.show_workspaces(are_all, visible.iter().map(of).collect())
        };
        assert!(show(true, &[("A", "1"), ("B", "2")]));
        let before = status.visible_workspaces();
        assert!(!show(false, &[("A", "1")]) && !show(true, &[("A", "1"), ("B", "2")]));
        assert_eq!(status.visible_workspaces(), before);
        assert!(show(true, &[("A", "1")]));
        assert_eq!(status.visible_workspaces().get("A"), before.get("A"));
        assert_eq!(status.visible_workspaces().len(), 1);
    }

    #[test]
    fn failures_are_remembered_within_bounds() {
        let status = SharedStatus::default();
        for number in 0..RECENT + 5 {
            status.note_failure(["A"].into_iter(), failure(number));
        }
        let last = (RECENT + 4) as i64;
        assert_eq!(status.failure("A").map(|one| one.image_id), Some(last));
        assert!(status.failure("B").is_none());
        let recent: Vec<i64> = status
            .failures()
            .iter()
            .map(|one| one.failure.image_id)
            .collect();
        assert_eq!(recent, (5..=last).collect::<Vec<_>>());
        // The number of failures is limited.
        let status = SharedStatus::default();
        for number in 0..FAILURES {
            status.note_failure([&*number.to_string()].into_iter(), failure(number));
        }
        assert!(status.failure("0").is_some(), "as many are remembered");
        status.note_failure(["B"].into_iter(), failure(2));
        assert!(status.failure("0").is_none() && status.failure("B").is_some());
    }

    #[test]
    fn playlist_is_awaited_by_a_hook_while_its_request_exists() {
        let status = SharedStatus::default();
        let of = |kind, playlist_id| {
            let mut request = Request::new(Ask::Random, Targets::All, kind);
            request.source.playlist_id = playlist_id;
            request
        };
        let by_hook = |id| status.is_by_hook(&of(Source::Playlist, Some(id)));
        assert!(!by_hook(1));
        let [one, again] = [Some(1), Some(1)].map(|id| status.hook_request(id));
        assert!(by_hook(1) && !by_hook(2));
        let manual = of(Source::Manual, Some(1));
        assert!(!status.is_by_hook(&manual));
        let own = Request {
            by_hook: true,
            ..manual
        };
        assert!(status.is_by_hook(&own));
        drop(one);
        assert!(by_hook(1), "it is asked twice");
        let all = status.hook_request(None);
        drop(again);
        assert!(by_hook(1) && by_hook(2));
        drop(all);
        assert!(!by_hook(1) && !by_hook(2));
    }

    #[test]
    fn changes_are_merged_until_they_are_taken() {
        let status = SharedStatus::default();
        assert!(status.take_changes().is_none());
        status.note(Changes {
            backends: vec![Feh],
            paused: Some(Some(PauseReason::Idle)),
            ..Changes::default()
        });
        status.note(Changes {
            deactivated: true,
            rewritten: true,
            ..Changes::default()
        });
        status.note(Changes {
            anything: true,
            ..Changes::default()
        });
        status.note(Changes {
            backends: vec![Awww],
            ..Changes::default()
        });
        let changes = status.take_changes().unwrap();
        assert_eq!(
            (changes.backends, changes.paused),
            (vec![Feh, Awww], Some(Some(PauseReason::Idle)))
        );
        assert!(changes.rewritten && changes.deactivated && changes.anything);
        assert!(status.take_changes().is_none());
        status.note(Changes {
            paused: Some(Some(PauseReason::Idle)),
            ..Changes::default()
        });
        status.note(Changes {
            paused: Some(None),
            ..Changes::default()
        });
        let changes = status.take_changes().unwrap();
        assert_eq!(
            (changes.paused, changes.deactivated, changes.anything),
            (Some(None), false, false)
        );
    }
}
