//! The state of one watched directory in the thread `watch`: which paths to look at and when, which
//! files wait for the imports, and which are missing. Reads the kernel's list of mounts, and no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::super::task::{self, Pass, Which};
use super::findings::{Difference, Findings, Leads, Missing, Root, Scope};
use super::notices::{Mounted, Mounts, Notices, Way, mounted};
use super::settings::{ANYWHERE, AT_ONCE, is_scanned};
use crate::store::watched::Stamp;
use crate::wire::WatchState;

/// A look without a sign of life for this long is abandoned, as its disk does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The delay of a look that could not be started.
const LATER: Duration = Duration::from_secs(60);

/// A look in progress.
pub(super) struct Looking {
    pub(super) number: u64,
    pub(super) scope: Scope,
    pub(super) life: Arc<AtomicU64>,
    seen: u64,
    since: Instant,
}

#[derive(Default)]
pub(super) struct Watched {
    pub(super) id: u64,
    pub(super) written: String,
    pub(super) task: Arc<task::Directory>,
    pub(super) looking: Option<Looking>,
    pub(super) notices: Option<Notices>,
    /// The directories inside it at the last look at everything.
    places: BTreeSet<PathBuf>,
    /// The target of its path when last seen.
    pub(super) leads: Option<Leads>,
    /// Whether the path leads elsewhere than before: missing files then count as gone, whatever disk
    /// they were on.
    elsewhere: bool,
    mounts: Vec<String>,
    /// Mounts that are gone. Device numbers alone do not show this, as a bind mount has the number of
    /// its source.
    unmounted: BTreeSet<Mounted>,
    pub(super) root: Root,
    /// The reason why the kernel does not report all changes, if so.
    pub(super) refused: Option<String>,
    pub(super) all_away: bool,
    /// The paths to look at, and when.
    wish: Option<(Scope, Instant)>,
    pub(super) missing: Missing,
    unnamed: BTreeSet<PathBuf>,
    /// The files that wait for the imports.
    queue: BTreeMap<(Pass, PathBuf), Stamp>,
    pub(super) taking: Option<Pass>,
    hangs: bool,
}

impl Watched {
    pub(super) fn new(id: u64, written: String, task: task::Directory, now: Instant) -> Self {
        let mut watched = Self {
            id,
            written,
            mounts: Mounts::of(&task.path),
            task: Arc::new(task),
            ..Self::default()
        };
        watched.look_at_all(now);
        watched
    }

    pub(super) fn path(&self) -> &Path {
        &self.task.path
    }

    /// Schedules a look at everything, without delay.
    pub(super) fn look_at_all(&mut self, now: Instant) {
        self.wish = Some((Scope::All, now));
    }

    /// Schedules a look at changed paths and all below them, without delay.
    pub(super) fn on_changes(&mut self, paths: BTreeSet<PathBuf>, now: Instant) {
        let own = self.path();
        let is_all = |path: &PathBuf| match &self.task.which {
            Which::Only(_) => path == Path::new(ANYWHERE),
            // A change above may change where the path leads. A directory inside may have a new name,
            // which only a look at everything finds.
            _ => own.starts_with(path) || self.places.contains(path),
        };
        if paths.iter().any(is_all) {
            return self.look_at_all(now);
        }
        let paths: BTreeSet<_> = match &self.task.which {
            Which::Only(files) => {
                // Their directories are watched as a whole, so other files change, too.
                let below = |path: &PathBuf| {
                    let from = files.range::<Path, _>((Bound::Included(&**path), Bound::Unbounded));
                    let path = path.clone();
                    from.take_while(move |file| file.starts_with(&path))
                        .cloned()
                };
                paths.iter().flat_map(below).collect()
            }
            _ => paths
                .into_iter()
                .filter(|path| is_scanned(own, path))
                .collect(),
        };
        if !paths.is_empty() {
            self.look_again(paths, now);
        }
    }

    /// Whether the path may lead elsewhere since the last call.
    pub(super) fn has_new_way(&self) -> bool {
        self.notices
            .as_ref()
            .and_then(Notices::way)
            .is_some_and(Way::has_changed)
    }

    /// Stores where the path leads; true if that is elsewhere than before.
    pub(super) fn follow(&mut self, leads: &Leads) -> bool {
        let before = self.leads.replace(leads.clone());
        let elsewhere = before.is_some_and(|before| leads.is_elsewhere(&before));
        if elsewhere {
            log::info!(
                "{} now points to {}",
                self.path().display(),
                leads.real.display()
            );
            self.elsewhere = true;
            self.missing.look_for_kept();
        }
        elsewhere
    }

    /// Reads which disks are mounted above the directory and inside it.
    pub(super) fn look_at_mounts(&mut self, now: Instant) {
        let mut mounts = Mounts::of(self.path());
        if let Some(leads) = self
            .leads
            .as_ref()
            .filter(|leads| leads.real != self.path())
        {
            mounts.extend(Mounts::of(&leads.real));
        }
        self.on_mounts(mounts, now);
    }

    /// Schedules a look at everything if the mounts have changed.
    fn on_mounts(&mut self, mounts: Vec<String>, now: Instant) {
        if self.mounts == mounts {
            return;
        }
        self.unmounted.append(&mut mounted(&self.mounts));
        let there = mounted(&mounts);
        self.unmounted.retain(|one| !there.contains(one));
        self.mounts = mounts;
        self.look_at_all(now);
    }

    /// Forgets the parents of a missing directory, so that it does not count as leading elsewhere when
    /// it is created again, step by step. Until then its files are away.
    pub(super) fn forget_parents(&mut self) {
        if let Some(leads) = &mut self.leads {
            leads.above.clear();
        }
    }

    fn is_unmounted(&self, file: &Path) -> bool {
        let inside = file.strip_prefix(self.path());
        let leads = self.leads.as_ref().zip(inside.ok());
        let real = leads.map(|(leads, inside)| leads.real.join(inside));
        self.unmounted.iter().any(|(_, point)| {
            file.starts_with(point) || real.as_ref().is_some_and(|real| real.starts_with(point))
        })
    }

    fn look_again(&mut self, paths: BTreeSet<PathBuf>, now: Instant) {
        let (scope, due) = self
            .wish
            .get_or_insert_with(|| (Scope::Paths(BTreeSet::new()), now));
        *due = now.min(*due);
        if let Scope::Paths(known) = scope {
            known.extend(paths);
        }
    }

    /// The next look, if it is due and no other is in progress.
    pub(super) fn next_look(
        &mut self,
        number: u64,
        now: Instant,
    ) -> Option<(Scope, Arc<AtomicU64>)> {
        let (mut scope, _) = self
            .wish
            .take_if(|(_, due)| self.looking.is_none() && *due <= now)?;
        if self.notices.is_none() {
            // The watches hang with a disk, or were never made: a look at everything makes new ones.
            scope = Scope::All;
        }
        let life = Arc::<AtomicU64>::default();
        let own = Arc::clone(&life);
        self.looking = Some(Looking {
            number,
            scope: scope.clone(),
            life: own,
            seen: 0,
            since: now,
        });
        Some((scope, life))
    }

    /// Abandons the look in progress if it hangs; returns whether it did.
    pub(super) fn leaves_look(&mut self, now: Instant) -> bool {
        let Some(looking) = &mut self.looking else {
            return false;
        };
        let seen = looking.life.load(Ordering::Relaxed);
        if seen != looking.seen {
            (looking.seen, looking.since) = (seen, now);
        }
        if now < looking.since + PATIENCE {
            return false;
        }
        self.looking = None;
        self.hangs = true;
        true
    }

    /// Stores the directories that a look has found, and the files that are skipped.
    pub(super) fn learn(&mut self, findings: &Findings, scope: &Scope) {
        if *scope == Scope::All {
            self.places = findings.directories.keys().cloned().collect();
        }
        self.unnamed.retain(|path| !scope.has(path));
        self.unnamed.extend(findings.unnamed.iter().cloned());
    }

    /// Stores the differences that a look has found.
    pub(super) fn absorb(&mut self, mut difference: Difference, scope: &Scope, now: Instant) {
        self.hangs = false;
        let mut gone = std::mem::take(&mut difference.gone);
        if self.elsewhere {
            gone.append(&mut difference.away);
        }
        let gone = gone.into_iter();
        let (away, gone): (Vec<_>, Vec<_>) = gone.partition(|file| self.is_unmounted(&file.path));
        difference.gone = gone;
        difference.away.extend(away);
        self.missing.absorb(&mut difference, scope, now);
        self.elsewhere &= self.missing.are_waited_for();
        for (path, stamp) in difference.changed {
            if difference.lost.contains(&stamp.size) {
                self.queue.insert((Pass::Moves, path.clone()), stamp);
            }
            self.queue.insert((Pass::All, path), stamp);
        }
    }

    /// The next files for the imports, unless others of this directory are in progress. Skips files for
    /// which `is_noted` finds a note of this stamp, as they were renamed.
    pub(super) fn next_files(
        &mut self,
        is_noted: impl Fn(&Path, &Stamp) -> bool,
    ) -> Option<(Vec<PathBuf>, Pass)> {
        if self.taking.is_some() {
            return None;
        }
        let pass = self.queue.first_key_value()?.0.0;
        let some = std::iter::from_fn(|| {
            let first = self.queue.first_entry().filter(|one| one.key().0 == pass)?;
            let ((_, path), stamp) = first.remove_entry();
            Some((path, stamp))
        });
        let some = some.filter(|(path, stamp)| pass == Pass::Moves || !is_noted(path, stamp));
        let files: Vec<_> = some.map(|(path, _)| path).take(AT_ONCE).collect();
        if files.is_empty() {
            return None;
        }
        self.taking = Some(pass);
        Some((files, pass))
    }

    /// Whether a missing file may still be found under another name.
    pub(super) fn may_find(&self) -> bool {
        let moves = self
            .queue
            .first_key_value()
            .is_some_and(|((pass, _), _)| *pass == Pass::Moves);
        self.looking.is_some() || moves || self.taking == Some(Pass::Moves)
    }

    /// Whether no look and no import of its files is in progress.
    pub(super) fn is_at_rest(&self) -> bool {
        self.looking.is_none() && self.taking.is_none() && self.queue.is_empty()
    }

    pub(super) fn is_away(&self) -> bool {
        self.all_away || self.root == Root::Missing
    }

    /// Schedules another look for missing files whose time is up.
    pub(super) fn look_for_gone(&mut self, now: Instant) {
        if self.root != Root::There {
            return;
        }
        let paths = self.missing.to_confirm(now);
        if !paths.is_empty() && self.looking.is_none() {
            self.look_again(paths, now);
        }
    }

    /// Postpones the look, as none can be started now.
    pub(super) fn postpone(&mut self, now: Instant) {
        let looking = self.looking.take().map(|looking| looking.scope);
        if let Some(scope) = looking.or_else(|| self.wish.take().map(|(scope, _)| scope)) {
            self.wish = Some((scope, now + LATER));
        }
        self.missing.postpone(now);
    }

    /// Looks at everything later, as what was found could not be written. Until then no file counts as
    /// gone: it may be one of those that were found.
    pub(super) fn look_at_all_later(&mut self, now: Instant) {
        self.look_at_all(now);
        self.postpone(now);
    }

    /// The files that are gone for good.
    pub(super) fn leaving(&self) -> Vec<PathBuf> {
        if self.root != Root::There {
            return Vec::new();
        }
        self.missing.leaving()
    }

    pub(super) fn left(&mut self, path: &Path) {
        self.missing.left(path);
        self.elsewhere &= self.missing.are_waited_for();
    }

    /// Whether all its files may have gone at once with their disk.
    pub(super) fn may_be_away(&self) -> bool {
        self.root == Root::There && !self.elsewhere && !self.missing.is_empty()
    }

    /// When something is to be done without an event.
    pub(super) fn due(&self) -> Option<Instant> {
        let look = self
            .wish
            .as_ref()
            .filter(|_| self.looking.is_none())
            .map(|(_, due)| *due);
        let hang = self
            .looking
            .as_ref()
            .map(|looking| looking.since + PATIENCE);
        let gone = self.missing.due();
        let gone = gone.filter(|_| self.root == Root::There && self.looking.is_none());
        look.into_iter().chain(hang).chain(gone).min()
    }

    /// The state, with an explanation for people; `changes`: whether changes have not settled yet.
    pub(super) fn state(&self, changes: bool) -> (WatchState, Option<String>) {
        if self.hangs {
            return (
                WatchState::Unreadable,
                Some("its disk does not answer".to_owned()),
            );
        }
        match &self.root {
            Root::Closed(why) => return (WatchState::Unreadable, Some(why.clone())),
            Root::Missing => {
                return (
                    WatchState::Away,
                    Some("the directory does not exist; its images are kept".to_owned()),
                );
            }
            Root::There => {}
        }
        if self.all_away {
            let why = "all its files disappeared at once; their images are kept until the files return or `murald watch remove --forget` removes them";
            return (WatchState::Away, Some(why.to_owned()));
        }
        if let Some(why) = &self.refused {
            return (WatchState::Partial, Some(why.clone()));
        }
        (
            WatchState::Watched,
            self.message(changes || self.wish.is_some() || !self.is_at_rest()),
        )
    }

    fn message(&self, is_scanning: bool) -> Option<String> {
        match (self.missing.kept(), self.unnamed.len()) {
            (0, _) if is_scanning => Some("scanning".to_owned()),
            (0, 0) => None,
            (0, 1) => Some("skipped 1 file: its name is not UTF-8".to_owned()),
            (0, some) => Some(format!("skipped {some} files: their names are not UTF-8")),
            (1, _) => Some("1 file is missing; its image is kept".to_owned()),
            (away, _) => Some(format!("{away} files are missing; their images are kept")),
        }
    }
}

#[cfg(test)]
mod tests;
