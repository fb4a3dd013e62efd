//! The thread `watch-N` of one watched directory, or of all single files in place: looks at the
//! directory after changes, has rows follow the files, and gives files to the imports that are to be
//! read.
//!
//! It waits for its own disk, and for no other. It sleeps until something has changed, and wakes by
//! itself only while a change settles or a file is missing. The imports' processes read the files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::Error;
use super::super::context::ImportContext;
use super::super::departed::AT_ONCE;
use super::super::import::Request;
use super::super::listing::{is_listed, is_mark};
use super::super::owner::Owner;
use super::super::package::video_of;
use super::super::task::{Directory, Task, Which};
use super::compare::{Difference, Found, GRACE, Loss, Root, compare, slices};
use super::extent::Extent;
use super::links::Links;
use super::packages::{Packages, hold_back};
use super::rows::{Effects, Rows};
use super::schedule::Schedule;
use super::state::State;
use super::unread::Unread;
use super::walk::{Scope, Walk};
use super::watched::{Waiting, Watched};
use crate::kernel::Subscriber;
use crate::store::images;
use crate::store::watched::{self, Missing, WatchedFile};
use crate::sys::lock;
use crate::wire::Timestamp;

/// The delay before it is checked again whether images may expire.
const SOON: Duration = Duration::from_secs(1);

pub(super) struct DirectoryThread {
    watched: Arc<Watched>,
    context: Arc<ImportContext>,
    owner: Owner,
    subscriber: Subscriber,
    extent: Extent,
    schedule: Schedule,
    packages: Packages,
    links: Links,
    unread: Unread,
    state: State,
}

impl DirectoryThread {
    pub(super) fn new(
        watched: Arc<Watched>,
        (context, owner): (Arc<ImportContext>, Owner),
        subscriber: Subscriber,
        own: Vec<PathBuf>,
    ) -> Self {
        Self {
            extent: Extent::new(&watched.directory, own),
            watched,
            context,
            owner,
            subscriber,
            schedule: Schedule::new(),
            packages: Packages::default(),
            links: Links::default(),
            unread: Unread::default(),
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
        if self.unread.is_searching() || self.unread.may_give() {
            return Some(Instant::now());
        }
        self.schedule.next()
    }

    fn is_busy(&self) -> bool {
        !self.unread.is_empty() || self.schedule.has_wish()
    }

    fn hear(&mut self, waiting: Waiting) {
        let Waiting { paths, scan, ended } = waiting;
        if let Some(is_unsaved) = ended {
            let again = self.unread.end(&lock(&self.watched.unsettled));
            if !again.is_empty() {
                let again = BTreeSet::from_iter(again);
                self.schedule.wish(Scope::Paths(again), Instant::now());
            }
            if is_unsaved {
                self.fail();
            }
        }
        if scan {
            self.unread.try_again();
            self.schedule.scan();
        }
        if !paths.is_empty() {
            self.look_at_changes(paths);
        }
    }

    /// Repeats what failed later, as rows could not be written.
    fn fail(&mut self) {
        self.unread.try_again();
        self.schedule.fail();
    }

    fn look_at_all(&mut self) {
        self.schedule.wish(Scope::All, Instant::now());
    }

    /// Has changed paths looked at, with all below them.
    fn look_at_changes(&mut self, paths: BTreeSet<PathBuf>) {
        let own = &*self.watched.directory.path;
        let is_single = self.watched.directory.which == Which::Only;
        // A change above may change where the path leads. Marks concern all files of their directory.
        let is_all = |path: &PathBuf| {
            own.starts_with(path)
                || self.packages.has(path)
                || !is_single && path.file_name().is_some_and(is_mark)
        };
        if paths.iter().any(is_all) {
            self.unread.try_again();
            return self.look_at_all();
        }
        let paths: BTreeSet<_> = if is_single {
            // Their directories are watched as a whole, so other files change, too.
            let changed = Scope::Paths(paths);
            let files = self.extent.files().iter();
            files.filter(|file| changed.has(file)).cloned().collect()
        } else {
            let exclude = &self.watched.directory.exclude;
            let is_mine =
                |path: &PathBuf| is_listed(own, path, exclude) && !self.extent.is_inner(path);
            paths.into_iter().filter(is_mine).collect()
        };
        if !paths.is_empty() {
            self.schedule.wish(Scope::Paths(paths), Instant::now());
        }
    }

    fn go_on(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if self.schedule.take_missing(now) {
            let paths = self.missing_files()?;
            if paths.is_empty() {
                self.wait_for_missing()?;
            } else {
                self.schedule.wish(Scope::Paths(paths), now);
            }
        }
        if let Some(scope) = self.schedule.take(now) {
            return self.look(&scope);
        }
        if self.unread.hash_some(&self.context.imports) {
            return Ok(());
        }
        if self.unread.is_searching() {
            return self.place_hashed();
        }
        if self.unread.may_give() {
            self.give_files();
        }
        Ok(())
    }

    fn read_missing(&self) -> Result<HashMap<i64, Missing>, Error> {
        Ok(self.context.store.read(watched::missing)?)
    }

    /// Whether a missing image is one of this thread, and its path has no file that cannot be read.
    fn may_end(&self, one: &Missing) -> bool {
        self.extent.has(&one.path) && !self.unread.has_failed(&one.path)
    }

    /// The paths of the images whose time is over, and of their other files.
    fn missing_files(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let now = Timestamp::now().as_micros();
        let mut missing = self.read_missing()?;
        missing.retain(|_, one| one.is_due(now) && self.may_end(one));
        let mut paths: BTreeSet<_> = missing.values().map(|one| one.path.clone()).collect();
        for row in self.context.store.read(watched::waiting)? {
            let is_due = row.image_id.is_some_and(|id| missing.contains_key(&id));
            paths.extend(Some(row.path).filter(|path| is_due && self.extent.has(path)));
        }
        Ok(paths)
    }

    fn look(&mut self, scope: &Scope) -> Result<(), Error> {
        let is_all = *scope == Scope::All;
        let begun = Instant::now();
        self.extent.renew(scope, &self.context)?;
        let rows = self.rows(scope)?;
        let mut found = self.walk(scope, &rows);
        if is_all {
            self.schedule.listed_all(begun);
        }
        self.state.set_root(&found.root);
        if let Root::Closed(_) = found.root {
            return Ok(());
        }
        if !is_all && needs_all(scope, &rows, &found) {
            self.look_at_all();
            return Ok(());
        }
        self.state.note(scope, &found);
        self.links.follow(scope, &rows, &mut found);
        let missing = self.read_missing()?;
        let now = Timestamp::now().as_micros();
        let mut difference = self.compare(scope, &rows, &found, &missing, now)?;
        let is_there = difference.is_there;
        let is_lost = difference.lost > 0;
        if !is_all && (is_lost && !is_there || is_there && self.state.is_away()) {
            // All files may be gone, or there again.
            self.look_at_all();
            return Ok(());
        }
        let is_away = difference.is_away() || found.root == Root::Missing;
        if is_all {
            self.state.set_away(is_away);
            if let Some(left) = hold_back(&found, &mut difference, now) {
                self.schedule.wish(Scope::All, Instant::now() + left);
            }
            difference.follow_videos(&found);
        }
        self.tell();
        self.unread
            .note(scope, &difference, &mut lock(&self.watched.unsettled));
        self.apply(difference, &missing, is_away, now)?;
        if is_all {
            self.entitle(found)?;
        }
        self.wait_for_missing()
    }

    /// Has videos follow the titles of their packages.
    fn entitle(&mut self, found: Found) -> Result<(), Error> {
        for (video, before) in self.packages.renew(found.packages) {
            self.write(move |rows| rows.entitle(&video, before.as_deref()))?;
        }
        Ok(())
    }

    /// Lists the directory, or its paths that have changed.
    fn walk(&mut self, scope: &Scope, rows: &[WatchedFile]) -> Found {
        let is_all = *scope == Scope::All;
        let directory = &*self.watched.directory;
        let is_single = directory.which == Which::Only;
        let Directory { path, exclude, .. } = directory;
        // The images stay that were imported before their files were excluded.
        let is_excluded = |row: &&WatchedFile| {
            is_all && row.image_id.is_some() && !is_listed(path, &row.path, exclude)
        };
        let excluded = rows.iter().filter(|_| !exclude.is_empty());
        let excluded = excluded.filter(is_excluded).map(|row| &*row.path);
        let excluded: Vec<&Path> = excluded.collect();
        let mut watches = is_all.then(|| self.subscriber.watch());
        let alive = || *lock(&self.watched.walking) = Some(Instant::now());
        alive();
        let closed = self.extent.closed(scope);
        let video_of = |package: &Path| video_of(package, &self.context.imports);
        let walk = Walk::new(directory, &closed, watches.as_mut(), &alive, &video_of);
        let mut found = match scope {
            Scope::Paths(files) if is_single => walk.look_at_files(files),
            Scope::All if is_single => walk.look_at_files(self.extent.files()),
            scope => walk.look(scope, &excluded),
        };
        *lock(&self.watched.walking) = None;
        found.files.retain(|file| !self.extent.is_inner(&file.path));
        if let Some(watches) = watches {
            self.state.set_watched(watches.finish());
        }
        found
    }

    fn compare(
        &self,
        scope: &Scope,
        rows: &[WatchedFile],
        found: &Found,
        missing: &HashMap<i64, Missing>,
        now: i64,
    ) -> Result<Difference, Error> {
        let store = &self.context.store;
        let elsewhere = store.read(watched::waiting)?;
        let is_known = |path: &Path| scope.has(path) || self.extent.is_inner(path);
        let path = &self.watched.directory.path;
        let is_whole = *scope == Scope::All || self.watched.directory.which == Which::Only;
        let others = !is_whole && store.read(|c| watched::has_another(c, path, &is_known))?;
        let difference = compare(rows, elsewhere.clone(), missing, found, others, now);
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
            compare(rows, elsewhere, missing, found, true, now)
        })
    }

    /// The rows of the files that were looked for.
    fn rows(&self, scope: &Scope) -> Result<Vec<WatchedFile>, Error> {
        let store = &self.context.store;
        let whole = BTreeSet::from([self.watched.directory.path.clone()]);
        let paths = match (scope, &self.watched.directory.which) {
            (Scope::Paths(paths), _) => paths,
            (Scope::All, Which::Only) => self.extent.files(),
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
        rows.retain(|row| !self.extent.is_inner(&row.path));
        Ok(rows)
    }

    /// Writes the differences.
    fn apply(
        &self,
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
        let missed: Arc<HashSet<_>> =
            Arc::new(gone.iter().map(|(row, _)| row.path.clone()).collect());
        let may_expire =
            !is_away && !self.schedule.is_unsaved() && !self.context.watched.is_walking();
        // A file that is not read yet may be a missing one under another name.
        let unread = if missing.values().any(|one| one.is_due(now)) {
            self.context.watched.unsettled_sizes()
        } else {
            HashSet::new()
        };
        let may_end = |size: u64| may_expire && !unread.contains(&size);
        gone.retain(|(row, loss)| *loss != Loss::Expired || may_end(row.stamp.size));
        let is_due = |one: &Missing| {
            one.is_due(now) && may_end(one.size) && !one.has_files && self.extent.has(&one.path)
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
        for some in devices.chunks(AT_ONCE).map(<[_]>::to_vec) {
            self.write(move |rows| rows.renumber(&some))?;
        }
        for some in slices(moves, AT_ONCE) {
            let missed = Arc::clone(&missed);
            self.write(move |rows| rows.without(missed).shift(&some))?;
        }
        for some in gone.chunks(AT_ONCE).map(<[_]>::to_vec) {
            let missed = Arc::clone(&missed);
            self.write(move |rows| rows.without(missed).lose(&some))?;
        }
        for some in expired.chunks(AT_ONCE).map(<[_]>::to_vec) {
            self.write(move |rows| rows.expire_all(&some))?;
        }
        if are_folders_left {
            self.write(|rows| rows.clear_folders())?;
        }
        Ok(())
    }

    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Rows<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        slice(&self.owner, &self.watched.directory, work)
    }

    /// Finds out how many images are kept, and when the time of the next one is over.
    fn wait_for_missing(&mut self) -> Result<(), Error> {
        let missing = self.read_missing()?;
        let mine = missing.values().filter(|one| self.may_end(one));
        let (kept, waiting): (Vec<_>, Vec<_>) = mine.partition(|one| one.since == 0);
        let kept = kept.iter().filter(|one| one.has_files).count();
        self.state.set_kept(kept);
        let next = waiting.iter().map(|one| one.since).min();
        let until = next.filter(|_| self.state.is_there()).map(|since| {
            let passed = Timestamp::now().as_micros().saturating_sub(since).max(0);
            let left = GRACE.saturating_sub(Duration::from_micros(passed.unsigned_abs()));
            Instant::now() + left.max(if left.is_zero() { SOON } else { Duration::ZERO })
        });
        self.schedule.wait_for_missing(until);
        Ok(())
    }

    /// Places the hashed files: first those that still have their own content, then other known
    /// contents. The rest is decoded. So a renamed file finds its image before its old name gets a new
    /// one.
    fn place_hashed(&mut self) -> Result<(), Error> {
        let mut left = self.unread.take_hashed(&self.watched.directory);
        for is_own in [true, false] {
            let mut others = Vec::new();
            while !left.is_empty() {
                let some = left.split_off(left.len().saturating_sub(AT_ONCE));
                others.extend(self.write(move |rows| rows.place_known(some, is_own))?);
            }
            left = others;
        }
        self.unread.queue(left);
        self.wait_for_missing()?;
        self.write(|rows| rows.clear_folders())
    }

    /// Gives the next files to the imports.
    fn give_files(&mut self) {
        let watched = Arc::clone(&self.watched);
        self.owner.give(Request::Watched {
            files: self.unread.give(),
            task: Task::Watched(Arc::clone(&self.watched.directory)),
            done: Box::new(move |is_unsaved| watched.ended(is_unsaved)),
        });
    }

    fn tell(&self) {
        let directory = &self.watched.directory.path;
        let failed = self.unread.failed();
        let status = self.state.status(directory, failed, self.is_busy());
        self.watched.tell(status);
    }
}

/// Whether a look at paths has to become one at everything: it has met a directory, or missed one that
/// may have another name now.
fn needs_all(scope: &Scope, rows: &[WatchedFile], found: &Found) -> bool {
    let was_directory = |row: &WatchedFile| match scope {
        Scope::All => false,
        Scope::Paths(paths) => !paths.contains(&row.path),
    };
    found.has_directory || found.root == Root::Missing || rows.iter().any(was_directory)
}

/// Carries out `work` on the thread `library`, in one transaction. Fails if the directory is no longer
/// watched.
pub(super) fn slice<T: Send + 'static>(
    owner: &Owner,
    directory: &Arc<Directory>,
    work: impl FnOnce(&mut Rows<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let directory = Arc::clone(directory);
    owner.slice(move |files| {
        if directory.has_ended() {
            return Err(Error::Ended);
        }
        let context = &files.context;
        let names = &files.names;
        let mut effects = Effects::default();
        let done = context.store.write(|c| {
            let mut rows = Rows::new((context, c, names), &directory, &mut effects);
            work(&mut rows)
        })?;
        effects.tell(context);
        Ok(done)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::library::tests::{Alive, Scene, png};
    use crate::store::watched::Stamp;

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
        let scope = Scope::Paths([a.clone()].into());
        let found = Difference {
            read: vec![(a, Stamp::default())],
            ..Difference::default()
        };
        let note = |thread: &mut DirectoryThread, found| {
            let mut unsettled = lock(&thread.watched.unsettled);
            thread.unread.note(&scope, found, &mut unsettled);
        };
        note(&mut thread, &found);
        thread.unread.give();
        thread.hear(ended());
        assert!(thread.missing_files().unwrap().is_empty());
        thread.wait_for_missing().unwrap();
        assert!(!thread.schedule.take_missing(Instant::now() + GRACE));
        note(&mut thread, &Difference::default());
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
                assert!(around.unread.is_empty(), "{mark} {scope:?}");
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
            assert!(finder.unread.may_give());
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
        thread.schedule.take(Instant::now());
        thread.look(&Scope::All).unwrap();
        thread.unread.give();
        std::fs::write(&a, [png(1), png(2)].concat()).unwrap();
        thread.hear(ended());
        assert!(!thread.schedule.has_wish());
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
        thread.schedule.take(Instant::now());
        thread.look(&Scope::All).unwrap();
        thread.unread.give();
        std::fs::remove_file(&b).unwrap();
        let changed = Scope::Paths([b.clone()].into());
        thread.look(&changed).unwrap();
        assert!(!thread.schedule.has_wish());
        thread.hear(ended());
        let again = thread.schedule.take(Instant::now());
        assert_eq!(again, Some(Scope::Paths([a, b].into())));
        alive.end();
    }
}
