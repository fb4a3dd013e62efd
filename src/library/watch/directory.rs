//! The thread `watch-N` of one watched directory, or of all single files in place: looks at the
//! directory after changes, has rows follow the files, and gives files to the imports that are to be
//! read.
//!
//! It waits for its own disk, and for no other. It sleeps until something has changed, and wakes by
//! itself only while a change settles or a file is missing. The imports' processes read the files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::Error;
use super::super::context::ImportContext;
use super::super::departed::AT_ONCE;
use super::super::import::Request;
use super::super::listing::{is_listed, is_mark, stamp_of};
use super::super::owner::Owner;
use super::super::package::{PackageVideo, video_of};
use super::super::task::{Directory, Facts, Task, Which};
use super::compare::{Difference, Found, Loss, Root, compare, slices};
use super::rows::{Effects, Rows};
use super::settings::{FILES_AT_ONCE, GRACE};
use super::walk::{Scope, Walk, is_missing};
use super::watched::{Status, Waiting, Watched};
use crate::digest::Checksum;
use crate::kernel::{ANYWHERE, Subscriber};
use crate::store::images;
use crate::store::watched::{self, Missing, Stamp, WatchedFile};
use crate::sys::lock;
use crate::wire::{Timestamp, WatchState};

/// The delay before a failed look or import is repeated.
const LATER: Duration = Duration::from_secs(60);
/// The delay before it is checked again whether images may expire.
const SOON: Duration = Duration::from_secs(1);
/// The longest pause after a look at everything, which is four times as long as the look.
const REST_MAX: Duration = Duration::from_secs(30);
/// How long the files of a package must be unchanged before it is read, as it may be copied right now.
const QUIET: Duration = Duration::from_secs(1);
/// How many files are hashed between two looks.
const HASHED_AT_ONCE: usize = 16;

pub(super) struct DirectoryThread {
    watched: Arc<Watched>,
    context: Arc<ImportContext>,
    owner: Owner,
    subscriber: Subscriber,
    /// murald's own directories.
    own: Vec<PathBuf>,
    /// The watched directories inside this one at the last look, whose files are theirs.
    inner: Vec<PathBuf>,
    /// The paths to look at, and when.
    wish: Option<(Scope, Instant)>,
    /// The earliest time of the next look at everything.
    rested: Instant,
    /// When the time of the next missing image is over.
    due: Option<Instant>,
    /// The directories inside it at the last look at everything, or the single files.
    known: BTreeSet<PathBuf>,
    /// The packages at the last look at everything, with their videos.
    packages: BTreeMap<PathBuf, Option<PackageVideo>>,
    /// The packages that are to be read, and since when they have these stamps.
    changed: BTreeMap<PathBuf, (Stamp, Instant)>,
    /// The links of all looks at everything, and the devices of the directories that they were in.
    links: BTreeMap<PathBuf, u64>,
    files: Files,
    is_unsaved: bool,
    state: State,
}

/// The files that were found and whose content is not read yet.
#[derive(Default)]
struct Files {
    /// Files that may have the content of a missing image, and their checksums.
    candidates: BTreeMap<PathBuf, Stamp>,
    hashed: BTreeMap<PathBuf, (Stamp, Checksum)>,
    queue: BTreeMap<PathBuf, Stamp>,
    /// The files that the imports read now.
    in_hand: HashMap<PathBuf, Stamp>,
    /// Files that the imports were given with these stamps, and could not read. Missing images with
    /// their paths have no time limit until these files change.
    failed: BTreeMap<PathBuf, Stamp>,
}

impl Files {
    /// Whether files are left that may have the content of a missing image.
    fn is_searching(&self) -> bool {
        !(self.candidates.is_empty() && self.hashed.is_empty())
    }
}

/// Why the kernel does not report all changes, for people.
fn refused(error: &io::Error) -> String {
    format!(
        "{error}; until then, changes are found only at start, on SIGHUP and by `murald library scan`"
    )
}

/// What is known about the directory itself.
#[derive(Default)]
struct State {
    root: Root,
    /// Whether all known files have vanished at once.
    is_away: bool,
    /// Why the kernel does not report all changes, if so.
    refused: Option<String>,
    unnamed: BTreeSet<PathBuf>,
    /// Files and directories that the last look could not read.
    unread: BTreeSet<PathBuf>,
    /// How many images are kept without a time limit.
    kept: usize,
}

impl DirectoryThread {
    pub(super) fn new(
        watched: Arc<Watched>,
        (context, owner): (Arc<ImportContext>, Owner),
        subscriber: Subscriber,
        own: Vec<PathBuf>,
    ) -> Self {
        let now = Instant::now();
        Self {
            watched,
            context,
            owner,
            subscriber,
            own,
            inner: Vec::new(),
            wish: Some((Scope::All, now)),
            rested: now,
            due: None,
            known: BTreeSet::new(),
            packages: BTreeMap::new(),
            changed: BTreeMap::new(),
            links: BTreeMap::new(),
            files: Files::default(),
            is_unsaved: false,
            state: State::default(),
        }
    }

    /// The body of the thread.
    pub(super) fn run(mut self) {
        while let Some(waiting) = self.watched.wait(self.next(), self.is_busy()) {
            self.hear(waiting);
            if let Err(error) = self.go_on() {
                if !self.watched.directory.has_ended() {
                    log::error!("watched directories: {}", error.reason());
                }
                self.fail();
            }
            self.tell();
        }
    }

    /// When there is something to do without an event.
    fn next(&self) -> Option<Instant> {
        let files = &self.files;
        if files.is_searching() || self.may_give() {
            return Some(Instant::now());
        }
        let wish = self.wish.as_ref().map(|(scope, at)| match scope {
            Scope::All => self.rested.max(*at),
            Scope::Paths(_) => *at,
        });
        wish.into_iter().chain(self.due).min()
    }

    fn is_busy(&self) -> bool {
        let files = &self.files;
        let is_reading = !(files.queue.is_empty() && files.in_hand.is_empty());
        files.is_searching() || is_reading || self.wish.is_some()
    }

    fn hear(&mut self, waiting: Waiting) {
        let Waiting { paths, scan, ended } = waiting;
        if let Some(is_unsaved) = ended {
            let mut given = std::mem::take(&mut self.files.in_hand);
            // Files may have vanished while they were read. Those that have changed are left to the
            // event of their last write, so that a long recording is not read again and again.
            let is_as_given = |(path, given): &(&PathBuf, &Stamp)| {
                stamp_of(path).map_or(true, |now| now.same(given))
            };
            let paths = given.iter().filter(is_as_given);
            let paths: BTreeSet<_> = paths.map(|(path, _)| path.clone()).collect();
            if !paths.is_empty() {
                self.wish_for(Scope::Paths(paths), Instant::now());
            }
            let unsettled = lock(&self.watched.unsettled);
            given.retain(|path, _| unsettled.contains_key(path));
            drop(unsettled);
            self.files.failed.extend(given);
            if is_unsaved {
                self.fail();
            }
        }
        if scan {
            self.rested = Instant::now();
            self.files.failed.clear();
            self.wish_for(Scope::All, self.rested);
        }
        if !paths.is_empty() {
            self.wish_for_changes(paths);
        }
    }

    /// Looks at everything later, as rows could not be written. Until then no image expires: its file
    /// may be one of those that were found.
    fn fail(&mut self) {
        self.is_unsaved = true;
        self.files.failed.clear();
        self.wish = Some((Scope::All, Instant::now() + LATER));
        self.due = None;
    }

    fn wish_for(&mut self, scope: Scope, at: Instant) {
        self.wish = Some(match (self.wish.take(), scope) {
            (Some((Scope::Paths(mut known), before)), Scope::Paths(more)) => {
                known.extend(more);
                (Scope::Paths(known), before.min(at))
            }
            (Some((Scope::All, before)), _) => (Scope::All, before.min(at)),
            (_, scope) => (scope, at),
        });
    }

    /// Has changed paths looked at, with all below them.
    fn wish_for_changes(&mut self, paths: BTreeSet<PathBuf>) {
        let now = Instant::now();
        let own = &*self.watched.directory.path;
        let is_single = self.watched.directory.which == Which::Only;
        let is_all = |path: &PathBuf| {
            if is_single {
                path == Path::new(ANYWHERE)
            } else {
                // A change above may change where the path leads. A directory inside may have a new
                // name, which only a look at everything finds. Marks concern all files of their
                // directory.
                path.file_name().is_some_and(is_mark)
                    || own.starts_with(path)
                    || self.known.contains(path)
                    || self.is_in_package(path)
            }
        };
        if paths.iter().any(is_all) {
            self.files.failed.clear();
            return self.wish_for(Scope::All, now);
        }
        let paths: BTreeSet<_> = if is_single {
            // Their directories are watched as a whole, so other files change, too.
            let changed = Scope::Paths(paths);
            let files = self.known.iter().filter(|file| changed.has(file));
            files.cloned().collect()
        } else {
            let paths = paths.into_iter();
            let exclude = &self.watched.directory.exclude;
            let is_mine = |path: &PathBuf| is_listed(own, path, exclude) && !self.is_inner(path);
            paths.filter(is_mine).collect()
        };
        if !paths.is_empty() {
            self.wish_for(Scope::Paths(paths), now);
        }
    }

    /// Whether a path is in a package, and is not its video.
    fn is_in_package(&self, path: &Path) -> bool {
        let package = path.ancestors().find_map(|at| self.packages.get(at));
        package.is_some_and(|video| video.as_ref().is_none_or(|video| video.path != path))
    }

    fn go_on(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let paths = self.missing_files()?;
            if paths.is_empty() {
                self.wait_for_missing()?
            } else {
                self.wish_for(Scope::Paths(paths), now)
            }
        }
        let rested = self.rested;
        let is_due = |(scope, at): &mut (Scope, Instant)| {
            *at <= now && (*scope != Scope::All || rested <= now)
        };
        if let Some((scope, _)) = self.wish.take_if(is_due) {
            self.look(&scope)?;
        } else if !self.files.candidates.is_empty() {
            self.hash_some();
        } else if !self.files.hashed.is_empty() {
            self.place_hashed()?;
        } else if self.may_give() {
            self.give_files();
        }
        Ok(())
    }

    /// Whether a path is of a file that this thread follows.
    fn has(&self, path: &Path) -> bool {
        match self.watched.directory.which {
            Which::Only => self.known.contains(path),
            _ => path.starts_with(&self.watched.directory.path) && !self.is_inner(path),
        }
    }

    fn is_inner(&self, path: &Path) -> bool {
        self.inner.iter().any(|inner| path.starts_with(inner))
    }

    fn find_inner(&mut self) {
        let Directory { path, which, .. } = &*self.watched.directory;
        self.inner = self.context.watched.roots();
        self.inner
            .retain(|root| *which == Which::All && root != path && root.starts_with(path));
    }

    fn read_missing(&self) -> Result<HashMap<i64, Missing>, Error> {
        Ok(self.context.store.read(watched::missing)?)
    }

    /// Whether a missing image is one of this thread, and its path has no file that cannot be read.
    fn may_end(&self, one: &Missing) -> bool {
        self.has(&one.path) && !self.files.failed.contains_key(&one.path)
    }

    /// The paths of the images whose time is over, and of their other files.
    fn missing_files(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let now = Timestamp::now().as_micros();
        let mut missing = self.read_missing()?;
        missing.retain(|_, one| one.is_due(now) && self.may_end(one));
        let mut paths: BTreeSet<_> = missing.values().map(|one| one.path.clone()).collect();
        for row in self.context.store.read(watched::waiting)? {
            let is_due = row.image_id.is_some_and(|id| missing.contains_key(&id));
            paths.extend(Some(row.path).filter(|path| is_due && self.has(path)));
        }
        Ok(paths)
    }

    fn look(&mut self, scope: &Scope) -> Result<(), Error> {
        let is_all = *scope == Scope::All;
        let begun = Instant::now();
        self.find_inner();
        let mut found = self.walk(scope)?;
        if is_all {
            self.rested = Instant::now() + (begun.elapsed() * 4).min(REST_MAX);
            self.is_unsaved = false;
        }
        self.state.root = found.root.clone();
        if let Root::Closed(_) = found.root {
            return Ok(());
        }
        if found.has_directory || found.root == Root::Missing && !is_all {
            self.wish_for(Scope::All, Instant::now());
            return Ok(());
        }
        self.state.unnamed.retain(|path| !scope.has(path));
        self.state.unnamed.extend(found.unnamed.iter().cloned());
        self.state.unread.retain(|path| !scope.has(path));
        self.state.unread.extend(found.unread.iter().cloned());
        let missing = self.read_missing()?;
        let now = Timestamp::now().as_micros();
        let mut difference = self.compare(scope, &mut found, &missing, now)?;
        let is_there = difference.is_there;
        let is_lost = difference.lost > 0;
        if !is_all && (is_lost && !is_there || is_there && self.state.is_away) {
            // All files may be gone, or there again.
            self.wish_for(Scope::All, Instant::now());
            return Ok(());
        }
        let is_away = difference.is_away() || found.root == Root::Missing;
        if is_all {
            self.state.is_away = is_away;
        }
        if is_all {
            self.hold_back(&found, &mut difference);
            difference.follow_videos(&found);
        }
        self.tell();
        self.take_up(scope, &difference);
        self.apply(difference, &missing, is_away, now)?;
        if is_all {
            self.entitle(found.packages)?;
        }
        self.wait_for_missing()
    }

    /// Leaves out the packages whose files have changed a moment ago: they may be copied right now.
    fn hold_back(&mut self, found: &Found, difference: &mut Difference) {
        let now = Instant::now();
        let before = std::mem::take(&mut self.changed);
        let mut is_quiet = |(path, stamp): &(PathBuf, Stamp)| {
            let known = before.get(path).filter(|(known, _)| known.same(stamp));
            let since = known.map_or(now, |(_, since)| *since);
            self.changed.insert(path.clone(), (*stamp, since));
            since + QUIET <= now
        };
        for files in [&mut difference.first, &mut difference.read] {
            files.retain(|file| !found.packages.contains_key(&file.0) || is_quiet(file));
        }
        let ends = self.changed.values().map(|(_, since)| *since + QUIET);
        if let Some(next) = ends.filter(|end| *end > now).min() {
            self.wish_for(Scope::All, next);
        }
    }

    /// Has videos follow the titles of their packages.
    fn entitle(&mut self, packages: BTreeMap<PathBuf, Option<PackageVideo>>) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.packages, packages);
        let title = |video: &PackageVideo| video.title.clone();
        for (package, video) in &self.packages {
            let Some(video) = video.clone() else { continue };
            let before = before.get(package).and_then(Option::as_ref).map(title);
            if before.as_ref() != Some(&video.title) {
                let directory = &self.watched.directory;
                slice(&self.owner, directory, &Arc::default(), move |rows| {
                    rows.entitle(&video, before.as_deref())
                })?;
            }
        }
        Ok(())
    }

    /// Lists the directory, or its paths that have changed.
    fn walk(&mut self, scope: &Scope) -> Result<Found, Error> {
        let is_all = *scope == Scope::All;
        let is_single = self.watched.directory.which == Which::Only;
        if is_single && is_all {
            let mut files = BTreeSet::from_iter(self.context.store.read(watched::files_in_place)?);
            let roots = self.context.watched.roots();
            files.retain(|file| !roots.iter().any(|root| file.starts_with(root)));
            self.known = files;
        }
        let known = if is_all && !is_single {
            self.excluded_files()?
        } else {
            Vec::new()
        };
        let mut watches = is_all.then(|| self.subscriber.watch());
        let alive = || *lock(&self.watched.walking) = Some(Instant::now());
        alive();
        let directory = &*self.watched.directory;
        // The disks of directories inside may not answer.
        let inner = if is_all { &self.inner[..] } else { &[] };
        let closed = [&self.own[..], inner].concat();
        let video_of = |package: &Path| video_of(package, &self.context.imports);
        let walk = Walk::new(directory, &closed, watches.as_mut(), &alive, &video_of);
        let mut found = match scope {
            Scope::Paths(files) if is_single => walk.look_at_files(files),
            Scope::All if is_single => walk.look_at_files(&self.known),
            scope => walk.look(scope, &known),
        };
        *lock(&self.watched.walking) = None;
        found.files.retain(|file| !self.is_inner(&file.path));
        if let Some(watches) = watches {
            self.state.refused = watches.finish().err().map(|error| refused(&error));
        }
        if is_all && !is_single {
            self.known = found.directories.keys().cloned().collect();
            self.links.append(&mut found.links);
        }
        Ok(found)
    }

    /// The files of images that were imported before they were excluded.
    fn excluded_files(&self) -> Result<Vec<PathBuf>, Error> {
        let Directory { path, exclude, .. } = &*self.watched.directory;
        if exclude.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.rows(&Scope::All)?.into_iter();
        let rows =
            rows.filter(|row| row.image_id.is_some() && !is_listed(path, &row.path, exclude));
        Ok(rows.map(|row| row.path).collect())
    }

    fn compare(
        &self,
        scope: &Scope,
        found: &mut Found,
        missing: &HashMap<i64, Missing>,
        now: i64,
    ) -> Result<Difference, Error> {
        let store = &self.context.store;
        let rows = self.rows(scope)?;
        self.note_removed_links(scope, &rows, found);
        let elsewhere = store.read(watched::waiting)?;
        let is_known = |path: &Path| scope.has(path) || self.is_inner(path);
        let path = &self.watched.directory.path;
        let is_whole = *scope == Scope::All || self.watched.directory.which == Which::Only;
        let others = !is_whole && store.read(|c| watched::has_another(c, path, &is_known))?;
        let difference = compare(&rows, elsewhere.clone(), missing, found, others, now);
        if !difference.is_away() || found.root == Root::Missing {
            return Ok(difference);
        }
        // Files of images that have other files prove nothing.
        let is_own = |row: &&WatchedFile| {
            let image = row.image_id.map(|id| store.read(|c| images::get(c, id)));
            let image = image.and_then(Result::ok).flatten();
            image.is_some_and(|image| !image.in_place || image.path == row.path)
        };
        let is_away = rows.iter().filter(is_own).take(2).count() > 1;
        Ok(if is_away {
            difference
        } else {
            compare(&rows, elsewhere, missing, found, true, now)
        })
    }

    /// Has files behind removed links count as gone: their disks are not away.
    fn note_removed_links(&self, scope: &Scope, rows: &[WatchedFile], found: &mut Found) {
        let removed = |link: &&Path| {
            let device = self.links.get(*link);
            let above = || link.parent().and_then(|above| fs::metadata(above).ok());
            device.is_some()
                && fs::symlink_metadata(link).is_err_and(|error| is_missing(&error))
                && above().map(|above| above.dev()).as_ref() == device
        };
        let removed: BTreeSet<&Path> = match scope {
            Scope::All => self
                .links
                .keys()
                .map(PathBuf::as_path)
                .filter(removed)
                .collect(),
            Scope::Paths(paths) => {
                let above = paths.iter().flat_map(|path| path.ancestors());
                above.filter(removed).collect()
            }
        };
        for row in rows {
            if row.path.ancestors().any(|at| removed.contains(at)) {
                found.directories.insert(row.path.clone(), row.stamp.device);
            }
        }
    }

    /// The rows of the files that were looked for.
    fn rows(&self, scope: &Scope) -> Result<Vec<WatchedFile>, Error> {
        let store = &self.context.store;
        let whole = BTreeSet::from([self.watched.directory.path.clone()]);
        let paths = match (scope, &self.watched.directory.which) {
            (Scope::Paths(paths), _) => paths,
            (Scope::All, Which::Only) => &self.known,
            (Scope::All, _) => &whole,
        };
        // Names that are not UTF-8 are in no record. Paths inside a directory follow its own path, and
        // are found with it.
        let mut last: Option<&Path> = None;
        let paths = paths.iter().filter(|path| {
            let is_inside = last.is_some_and(|last| path.starts_with(last));
            if !is_inside {
                last = Some(path);
            }
            path.to_str().is_some() && !is_inside
        });
        let read = paths.map(|path| store.read(|c| watched::below(c, path)));
        let mut rows = read.collect::<Result<Vec<_>, _>>()?.concat();
        rows.retain(|row| !self.is_inner(&row.path));
        Ok(rows)
    }

    /// Notes which files are to be read.
    fn take_up(&mut self, scope: &Scope, difference: &Difference) {
        let files = &mut self.files;
        let mut unsettled = lock(&self.watched.unsettled);
        let in_hand = &files.in_hand;
        let mut before = scope.take(&mut unsettled);
        before.retain(|path, _| in_hand.contains_key(path));
        unsettled.extend(before);
        scope.take(&mut files.candidates);
        scope.take(&mut files.hashed);
        scope.take(&mut files.queue);
        let failed = scope.take(&mut files.failed);
        let lists = [
            (&difference.first, &mut files.candidates),
            (&difference.read, &mut files.queue),
        ];
        for (found, list) in lists {
            for (path, stamp) in found {
                let is_it = |known: &Stamp| known.same(stamp);
                if failed.get(path).is_some_and(is_it) {
                    files.failed.insert(path.clone(), *stamp);
                } else if !in_hand.get(path).is_some_and(is_it) {
                    list.insert(path.clone(), *stamp);
                    unsettled.insert(path.clone(), stamp.size);
                }
            }
        }
    }

    /// Writes the differences.
    fn apply(
        &mut self,
        difference: Difference,
        missing: &HashMap<i64, Missing>,
        is_away: bool,
        now: i64,
    ) -> Result<(), Error> {
        let Difference {
            devices,
            moves,
            mut gone,
            ..
        } = difference;
        let missed = Arc::new(gone.iter().map(|(row, _)| row.path.clone()).collect());
        let may_expire = !is_away && !self.is_unsaved && !self.context.watched.is_walking();
        // A file that is not read yet may be a missing one under another name.
        let unread = if missing.values().any(|one| one.is_due(now)) {
            self.context.watched.unsettled_sizes()
        } else {
            HashSet::new()
        };
        let may_end = |size: u64| may_expire && !unread.contains(&size);
        gone.retain(|(row, loss)| *loss != Loss::Expired || may_end(row.stamp.size));
        let is_due = |one: &Missing| {
            one.is_due(now) && may_end(one.size) && !one.has_files && self.has(&one.path)
        };
        let expired = missing.iter().filter(|(_, one)| is_due(one));
        let expired: Vec<i64> = expired.map(|(id, _)| *id).collect();
        let mut renamed = moves.iter().filter(|one| one.to != one.row.path);
        if let Some(one) = renamed.next() {
            let count = renamed.count() + 1;
            let from = one.row.path.display();
            let to = one.to.display();
            log::info!("updated the paths of renamed files ({count}): {from} is now {to}");
        }
        let are_folders_left = !(moves.is_empty() && gone.is_empty() && expired.is_empty());
        self.each(&missed, &devices, |it, some| it.renumber(some))?;
        for some in slices(moves, AT_ONCE) {
            slice(&self.owner, &self.watched.directory, &missed, move |it| {
                it.shift(&some)
            })?;
        }
        self.each(&missed, &gone, |it, some| it.lose(some))?;
        self.each(&missed, &expired, |it, some| it.expire_all(some))?;
        if are_folders_left {
            slice(&self.owner, &self.watched.directory, &missed, |it| {
                it.clear_folders()
            })
        } else {
            Ok(())
        }
    }

    /// Carries out `work` in slices.
    fn each<T: Clone + Send + 'static>(
        &self,
        missed: &Arc<HashSet<PathBuf>>,
        all: &[T],
        work: fn(&mut Rows<'_>, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for some in all.chunks(AT_ONCE).map(<[T]>::to_vec) {
            let directory = &self.watched.directory;
            slice(&self.owner, directory, missed, move |rows| {
                work(rows, &some)
            })?;
        }
        Ok(())
    }

    /// Finds out how many images are kept, and when the time of the next one is over.
    fn wait_for_missing(&mut self) -> Result<(), Error> {
        let missing = self.read_missing()?;
        let mine = missing.values().filter(|one| self.may_end(one));
        let (kept, waiting): (Vec<_>, Vec<_>) = mine.partition(|one| one.since == 0);
        self.state.kept = kept.iter().filter(|one| one.has_files).count();
        let next = waiting.iter().map(|one| one.since).min();
        let is_there = self.state.root == Root::There && !self.state.is_away;
        self.due = next.filter(|_| is_there).map(|since| {
            let passed = Timestamp::now().as_micros().saturating_sub(since).max(0);
            let left = GRACE.saturating_sub(Duration::from_micros(passed.unsigned_abs()));
            Instant::now() + left.max(if left.is_zero() { SOON } else { Duration::ZERO })
        });
        Ok(())
    }

    /// Hashes some of the files that may have the content of a missing image. The imports report those
    /// that cannot be read.
    fn hash_some(&mut self) {
        for _ in 0..HASHED_AT_ONCE {
            let Some((path, stamp)) = self.files.candidates.pop_first() else {
                break;
            };
            match self.context.imports.checksum(&path) {
                Ok(hashed) => {
                    let known = (hashed.meta.into(), hashed.checksum);
                    self.files.hashed.insert(path, known);
                }
                Err(_) => drop(self.files.queue.insert(path, stamp)),
            }
        }
    }

    /// Places the hashed files: first those that still have their own content, then other known
    /// contents. The rest is decoded. So a renamed file finds its image before its old name gets a new
    /// one.
    fn place_hashed(&mut self) -> Result<(), Error> {
        let hashed = std::mem::take(&mut self.files.hashed).into_iter();
        let directory = &self.watched.directory;
        let facts = hashed.map(|(path, (stamp, checksum))| {
            Facts::new(path, Arc::clone(directory), stamp, Ok(checksum))
        });
        let mut left: Vec<Facts> = facts.collect();
        let none = Arc::default();
        for is_own in [true, false] {
            let mut others = Vec::new();
            while !left.is_empty() {
                let some = left.split_off(left.len().saturating_sub(AT_ONCE));
                let place = move |rows: &mut Rows<'_>| rows.place_known(some, is_own);
                others.extend(slice(&self.owner, directory, &none, place)?);
            }
            left = others;
        }
        let left = left.into_iter().map(|facts| (facts.path, facts.stamp));
        self.files.queue.extend(left);
        self.wait_for_missing()?;
        slice(&self.owner, &self.watched.directory, &none, |it| {
            it.clear_folders()
        })
    }

    fn may_give(&self) -> bool {
        let files = &self.files;
        !files.is_searching() && files.in_hand.is_empty() && !files.queue.is_empty()
    }

    /// Gives the next files to the imports.
    fn give_files(&mut self) {
        let next = std::iter::from_fn(|| self.files.queue.pop_first());
        self.files.in_hand = next.take(FILES_AT_ONCE).collect();
        let mut files: Vec<PathBuf> = self.files.in_hand.keys().cloned().collect();
        files.sort_unstable();
        let watched = Arc::clone(&self.watched);
        self.owner.give(Request::Watched {
            files,
            task: Task::Watched(Arc::clone(&self.watched.directory)),
            done: Box::new(move |is_unsaved| watched.ended(is_unsaved)),
        });
    }

    fn tell(&self) {
        let State { root, is_away, .. } = &self.state;
        let unread: BTreeSet<&PathBuf> = self
            .state
            .unread
            .iter()
            .chain(self.files.failed.keys())
            .collect();
        let (state, message) = match root {
            Root::Closed(why) => (WatchState::Unreadable, Some(why.clone())),
            Root::Missing => {
                let why = "the directory does not exist; its images are kept";
                (WatchState::Away, Some(why.to_owned()))
            }
            Root::There if *is_away => {
                let why = "all its files disappeared at once; their images are kept until the files return or `murald watch remove --forget` removes them";
                (WatchState::Away, Some(why.to_owned()))
            }
            Root::There => self.there(&unread),
        };
        let unreadable = unread.len();
        self.watched.tell(Status {
            state,
            message,
            unreadable,
        });
    }

    /// The state of a directory that is there, and what is known about its files.
    fn there(&self, unread: &BTreeSet<&PathBuf>) -> (WatchState, Option<String>) {
        let State {
            refused,
            unnamed,
            kept,
            ..
        } = &self.state;
        let shown = |path: &PathBuf| {
            let inside = path.strip_prefix(&self.watched.directory.path);
            inside.unwrap_or(path).display().to_string()
        };
        let first = unread.first().map(|path| shown(path)).unwrap_or_default();
        let unread = match unread.len() {
            0 => None,
            1 => Some(format!("cannot read {first}")),
            some => Some(format!("cannot read {first} and {} more", some - 1)),
        };
        let is_partial = refused.is_some() || unread.is_some();
        let kept = match *kept {
            0 => None,
            1 => Some("1 file is missing; its image is kept".to_owned()),
            some => Some(format!("{some} files are missing; their images are kept")),
        };
        let unnamed = match unnamed.len() {
            0 => None,
            _ if self.is_busy() => None,
            1 => Some("skipped 1 file: its name is not UTF-8".to_owned()),
            some => Some(format!("skipped {some} files: their names are not UTF-8")),
        };
        let notes: Vec<String> = [refused.clone(), unread, kept, unnamed]
            .into_iter()
            .flatten()
            .collect();
        let state = if is_partial {
            WatchState::Partial
        } else {
            WatchState::Watched
        };
        (
            state,
            Some(notes.join("; ")).filter(|notes| !notes.is_empty()),
        )
    }
}

/// Carries out `work` on the thread `library`, in one transaction. Fails if the directory is no longer
/// watched.
pub(super) fn slice<T: Send + 'static>(
    owner: &Owner,
    directory: &Arc<Directory>,
    gone: &Arc<HashSet<PathBuf>>,
    work: impl FnOnce(&mut Rows<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let directory = Arc::clone(directory);
    let gone = Arc::clone(gone);
    owner.slice(move |files| {
        if directory.has_ended() {
            return Err(Error::Ended);
        }
        let context = &files.context;
        let names = &files.names;
        let mut effects = Effects::default();
        let done = context.store.write(|c| {
            let mut rows = Rows::new((context, c, names), &directory, &mut effects);
            rows.gone = gone;
            work(&mut rows)
        })?;
        effects.tell(context);
        Ok(done)
    })
}

/// Removes the images in place of a directory that is no longer watched; their files stay. What lies in
/// one of `roots` is kept.
pub(super) fn forget(
    context: &ImportContext,
    owner: &Owner,
    directory: &Path,
    roots: Vec<PathBuf>,
) -> Result<(), Error> {
    let mut found = context
        .store
        .read(|c| watched::images_below(c, directory))?;
    let is_watched = move |path: &Path| roots.iter().any(|root| path.starts_with(root));
    found.retain(|(_, path)| !is_watched(path));
    let rows = context.store.read(|c| watched::below(c, directory))?;
    let mut rows: Vec<PathBuf> = rows.into_iter().map(|row| row.path).collect();
    rows.retain(|path| !is_watched(path));
    let gone: Arc<HashSet<PathBuf>> = Arc::new(rows.iter().cloned().collect());
    let whole = Arc::new(Directory::from_file(directory, Which::Only));
    // Without the rows, a new watch of the directory imports all files again.
    for some in rows.chunks(AT_ONCE).map(<[_]>::to_vec) {
        slice(owner, &whole, &gone, move |rows| rows.forget_files(&some))?;
    }
    for some in found.chunks(AT_ONCE).map(<[_]>::to_vec) {
        slice(owner, &whole, &gone, move |rows| rows.forget_images(&some))?;
    }
    slice(owner, &whole, &gone, |rows| rows.clear_folders())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::library::tests::{Alive, Scene, png};

    fn thread(alive: &Alive, path: PathBuf) -> DirectoryThread {
        let directory = Directory {
            path,
            ..Directory::default()
        };
        let watched = Arc::new(Watched::new(1, "w".to_owned(), directory));
        let list = &alive.context().watched;
        list.set(list.all().into_iter().chain([watched.clone()]).collect());
        let kernel = Kernel::unattended();
        let shared = (Arc::clone(alive.context()), alive.owner());
        DirectoryThread::new(watched, shared, kernel.subscribe(|_| ()), Vec::new())
    }

    fn import(context: &ImportContext, file: &Path) -> i64 {
        let read = context.read_named(file, None, context.tools());
        let landed = (context.land)(read.map_err(|error| error.reason()).unwrap());
        landed.unwrap().image.id
    }

    fn ended() -> Waiting {
        Waiting {
            ended: Some(false),
            ..Waiting::default()
        }
    }

    #[test]
    fn missing_image_is_not_waited_for_while_its_file_cannot_be_read() {
        let scene = Scene::new();
        let mut alive = scene.start();
        alive.reconciled();
        let a = scene.source("a.png", png(1));
        let context = Arc::clone(alive.context());
        let id = import(&context, &a);
        let missed = context.store.write(|c| images::miss(c, id, 1));
        missed.unwrap();
        let mut thread = thread(&alive, scene.at("source"));
        assert_eq!(thread.missing_files().unwrap().len(), 1);
        thread.files.in_hand.insert(a.clone(), Stamp::default());
        lock(&thread.watched.unsettled).insert(a.clone(), 1);
        thread.hear(ended());
        assert!(thread.missing_files().unwrap().is_empty());
        thread.wait_for_missing().unwrap();
        assert_eq!(thread.due, None);
        thread.take_up(&Scope::Paths([a].into()), &Difference::default());
        assert_eq!(thread.missing_files().unwrap().len(), 1);
        alive.end();
    }

    #[test]
    fn files_belong_to_the_innermost_watched_directory() {
        for (name, mark) in [("inner", ".nomedia"), (".inner", "readme")] {
            let scene = Scene::new();
            let mut alive = scene.start();
            alive.reconciled();
            let context = Arc::clone(alive.context());
            let inner = scene.at("source").join(name);
            std::fs::create_dir_all(&inner).unwrap();
            std::fs::write(inner.join(mark), "").unwrap();
            let a = inner.join("a.png");
            std::fs::write(&a, png(1)).unwrap();
            let id = import(&context, &a);
            let mut within = thread(&alive, inner.clone());
            let mut around = thread(&alive, scene.at("source"));
            for scope in [Scope::All, Scope::Paths([a.clone()].into())] {
                around.look(&scope).unwrap();
                let image = context.store.read(|c| images::get(c, id)).unwrap();
                assert_eq!(image.unwrap().missing_since, None, "{mark} {scope:?}");
                assert!(around.files.queue.is_empty(), "{mark} {scope:?}");
            }
            std::fs::remove_file(&a).unwrap();
            around.look(&Scope::All).unwrap();
            let missing = || context.store.read(watched::missing).unwrap().len();
            assert_eq!(missing(), 0, "{mark}");
            within.look(&Scope::All).unwrap();
            assert_eq!(missing(), 1, "{mark}");
            alive.end();
        }
    }

    #[test]
    fn missing_image_stays_while_a_file_of_its_size_is_read() {
        for other in ["source", "other"] {
            let scene = Scene::new();
            let mut alive = scene.start();
            alive.reconciled();
            let a = scene.source("a.png", png(1));
            let context = Arc::clone(alive.context());
            let id = import(&context, &a);
            std::fs::create_dir_all(scene.at(other)).unwrap();
            let b = scene.at(other).join("b.png");
            std::fs::write(&b, png(1)).unwrap();
            let mut finder = thread(&alive, scene.at(other));
            finder.look(&Scope::All).unwrap();
            assert!(finder.files.queue.contains_key(&b));
            std::fs::remove_file(&a).unwrap();
            let missed = context.store.write(|c| images::miss(c, id, 1));
            missed.unwrap();
            let mut thread = thread(&alive, scene.at("source"));
            thread.look(&Scope::Paths([a].into())).unwrap();
            let image = context.store.read(|c| images::get(c, id));
            assert!(image.unwrap().is_some(), "{other}");
            alive.end();
        }
    }

    #[test]
    fn file_that_was_written_while_it_was_read_is_left_to_the_event_of_its_last_write() {
        let scene = Scene::new();
        let mut alive = scene.start();
        alive.reconciled();
        let a = scene.source("a.png", png(1));
        let mut thread = thread(&alive, scene.at("source"));
        thread.wish = None;
        thread.look(&Scope::All).unwrap();
        thread.files.in_hand = std::mem::take(&mut thread.files.queue)
            .into_iter()
            .collect();
        std::fs::write(&a, [png(1), png(2)].concat()).unwrap();
        thread.hear(ended());
        assert_eq!(thread.wish, None);
        alive.end();
    }

    #[test]
    fn file_that_cannot_be_decoded_is_followed_after_a_look_at_its_old_name_alone() {
        let scene = Scene::new();
        let mut alive = scene.start();
        alive.reconciled();
        let [a, b] = ["a.png", "b.png"].map(|name| scene.at("source").join(name));
        scene.source("a.png", png(1));
        let context = Arc::clone(alive.context());
        let id = import(&context, &a);
        let row = context.store.read(|c| watched::get(c, &a)).unwrap();
        let undecoded = WatchedFile {
            image_id: None,
            checksum: None,
            ..row.unwrap()
        };
        let noted = context.store.write(|c| {
            watched::note(c, &undecoded)?;
            images::miss(c, id, 0)
        });
        noted.unwrap();
        std::fs::rename(&a, &b).unwrap();
        let mut thread = thread(&alive, scene.at("source"));
        for path in [&a, &b] {
            thread.look(&Scope::Paths([path.clone()].into())).unwrap();
        }
        let image = context.store.read(|c| images::get(c, id)).unwrap().unwrap();
        assert_eq!((image.path, image.missing_since), (b, Some(0)));
        alive.end();
    }

    #[test]
    fn files_that_vanish_while_they_are_read_are_looked_at_again() {
        let scene = Scene::new();
        let mut alive = scene.start();
        alive.reconciled();
        let [a, b] = ["a.png", "b.png"].map(|name| scene.source(name, png(1)));
        let mut thread = thread(&alive, scene.at("source"));
        thread.wish = None;
        thread.look(&Scope::All).unwrap();
        thread.files.in_hand = std::mem::take(&mut thread.files.queue)
            .into_iter()
            .collect();
        std::fs::remove_file(&b).unwrap();
        let changed = Scope::Paths([b.clone()].into());
        thread.look(&changed).unwrap();
        assert_eq!(thread.wish, None);
        thread.hear(ended());
        let wish = thread.wish.take().map(|(scope, _)| scope);
        assert_eq!(wish, Some(Scope::Paths([a, b].into())));
        alive.end();
    }
}
