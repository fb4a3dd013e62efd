//! Watched directories: the library follows the files in them.
//!
//! `settings` says which directories are watched. Each has a thread (`directory`) and a part that other
//! threads see (`watched`). A thread lists its directory (`walk`) when files have changed (`schedule`),
//! compares what it has found with the rows (`compare`), and has `library` write the differences
//! (`rows`). The imports read the files themselves (`unread`, `read`), and `place` decides which image
//! gets a content. What a thread remembers beside the rows is in `extent`, `links`, `packages`, `state`.

mod compare;
mod directory;
mod extent;
mod links;
mod packages;
mod place;
mod read;
pub(super) mod rows;
mod schedule;
mod settings;
mod state;
mod unread;
mod walk;
pub(super) mod watched;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::event::epoll::EventFlags;

use super::context::ImportContext;
use super::departed::AT_ONCE;
use super::error::Error;
use super::owner::Owner;
use super::task::{Directory, Which};
use crate::config::Exclude;
use crate::kernel::{ANYWHERE, Kernel, Source};
use crate::paths::look_again;
use crate::store::watched as store;
use crate::sys::lock;
use crate::thread::Spawner;
use crate::wire::{WatchState, WatchedDirectory};

use directory::{DirectoryThread, slice};
use watched::{Status, Watched};

pub(crate) use settings::{Wanted, WatchSettings};

/// The name for people of the files that were imported by their paths.
const NAMED: &str = "files in place";

/// The handle. Clones use the same threads.
#[derive(Clone)]
pub(crate) struct Watching(Arc<Shared>);

struct Shared {
    spawner: Spawner,
    context: Arc<ImportContext>,
    owner: Owner,
    kernel: Kernel,
    /// The table of mounts, while directories are watched: a disk may concern any of them.
    mounts: Mutex<Option<Source>>,
    settings: Mutex<WatchSettings>,
    last_id: AtomicU64,
}

impl Watching {
    /// Watches nothing until [`Self::configure`] is called.
    pub(super) fn new(
        context: Arc<ImportContext>,
        owner: Owner,
        kernel: &Kernel,
        spawner: &Spawner,
    ) -> Self {
        Self(Arc::new(Shared {
            spawner: spawner.clone(),
            context,
            owner,
            kernel: kernel.clone(),
            mounts: Mutex::default(),
            settings: Mutex::default(),
            last_id: AtomicU64::new(0),
        }))
    }

    /// The patterns of files that are not imported.
    pub(super) fn exclude(&self) -> Exclude {
        lock(&self.0.settings).exclude.clone()
    }

    /// Starts a scan of all directories. Returns at once.
    pub(crate) fn scan(&self) {
        self.0
            .context
            .watched
            .all()
            .iter()
            .for_each(|one| one.scan());
    }

    /// Follows files that were imported in place by their paths.
    pub(super) fn named(&self) {
        let settings = lock(&self.0.settings).clone();
        self.configure(settings);
        let all = self.0.context.watched.all();
        let named = all.iter().filter(|one| one.directory.which == Which::Only);
        named.for_each(|one| one.scan());
    }

    /// Sets the directories to watch. Those with unchanged settings keep their threads. Waits for no
    /// disk but the database's.
    pub(crate) fn configure(&self, settings: WatchSettings) {
        let mut current = lock(&self.0.settings);
        let list = &self.0.context.watched;
        let mut before = list.all();
        let mut keep = |written: &str, directory: Directory| {
            let is_it = |one: &Arc<Watched>| one.written == written && one.directory.is(&directory);
            if let Some(at) = before.iter().position(is_it) {
                return (before.swap_remove(at), false);
            }
            let id = self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1;
            let watched = Watched::new(id, written.to_owned(), directory);
            (Arc::new(watched), true)
        };
        let mut directories = Vec::new();
        for Wanted { written, directory } in &settings.directories {
            if let Ok(path) = directory {
                let directory = Directory {
                    path: path.clone(),
                    folders: settings.folders,
                    exclude: settings.exclude.clone(),
                    ..Directory::default()
                };
                directories.push(keep(written, directory));
            }
        }
        if self.has_single_files(&directories) {
            let directory = Directory {
                path: "/".into(),
                which: Which::Only,
                ..Directory::default()
            };
            directories.push(keep(NAMED, directory));
        }
        before.iter().for_each(|one| one.end());
        let all = directories.iter().map(|(one, _)| Arc::clone(one));
        list.set(all.collect());
        self.follow_mounts(!directories.is_empty());
        // Their files may belong to a directory around them now.
        let around = before
            .iter()
            .filter_map(|one| list.root_of(&one.directory.path));
        around.for_each(|one| one.scan());
        for (one, _) in directories.into_iter().filter(|(_, is_new)| *is_new) {
            self.start(one, &settings);
        }
        *current = settings;
    }

    /// Follows the mounting and unmounting of disks.
    fn follow_mounts(&self, is_wanted: bool) {
        let mut mounts = lock(&self.0.mounts);
        if !is_wanted {
            *mounts = None;
        } else if mounts.is_none() {
            let list = self.0.context.watched.clone();
            let tell = move || {
                list.changed(Path::new(ANYWHERE));
                look_again();
            };
            let follow = |table| self.0.kernel.when_ready(table, EventFlags::PRI, tell);
            let source = File::open("/proc/self/mountinfo").and_then(follow);
            let failed = |error: &_| log::warn!("cannot notice mounted disks: {error}");
            *mounts = source.inspect_err(failed).ok();
        }
    }

    /// Whether a file in place lies outside of these directories.
    fn has_single_files(&self, directories: &[(Arc<Watched>, bool)]) -> bool {
        let roots: Vec<&Path> = directories
            .iter()
            .map(|(one, _)| &*one.directory.path)
            .collect();
        let is_single = |file: &PathBuf| !roots.iter().any(|it| file.starts_with(it));
        match self.0.context.store.read(store::files_in_place) {
            Ok(files) => files.iter().any(is_single),
            Err(error) => {
                log::error!("cannot watch {NAMED}: {error}");
                false
            }
        }
    }

    fn start(&self, one: Arc<Watched>, settings: &WatchSettings) {
        let Shared {
            spawner,
            context,
            owner,
            kernel,
            ..
        } = &*self.0;
        let name = format!("watch-{}", one.id);
        let written = one.written.clone();
        let shared = (Arc::clone(context), owner.clone());
        let watched = Arc::clone(&one);
        let files = kernel.subscribe(move |notice| watched.changed(notice.path, Instant::now()));
        let thread = DirectoryThread::new(one, shared, files, settings.own.clone());
        match spawner.spawn(&name, move || thread.run()) {
            // It may wait for a disk that does not answer.
            Ok(thread) => thread.leave(),
            Err(error) => log::error!("cannot start a thread to watch {written}: {error}"),
        }
    }

    /// Removes the images in place of a directory that is no longer in these settings; their files stay.
    /// Waits for no disk but the database's.
    pub(crate) fn forget(&self, directory: &Path, settings: &WatchSettings) -> Result<(), Error> {
        self.configure(settings.clone());
        let Shared { context, owner, .. } = &*self.0;
        let roots = context.watched.roots();
        let is_watched = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let mut images = context.store.read(|c| store::images_below(c, directory))?;
        images.retain(|(_, path)| !is_watched(path));
        let mut files = context.store.read(|c| store::below(c, directory))?;
        files.retain(|file| !is_watched(&file.path));
        let whole = Arc::new(Directory::from_file(directory, Which::Only));
        // Without the rows, a new watch of the directory imports all files again.
        for some in files.chunks(AT_ONCE) {
            let some: Vec<PathBuf> = some.iter().map(|file| file.path.clone()).collect();
            slice(owner, &whole, move |rows| rows.forget_files(&some))?;
        }
        for some in images.chunks(AT_ONCE) {
            let some: Vec<i64> = some.iter().map(|(id, _)| *id).collect();
            slice(owner, &whole, move |rows| rows.forget_images(&some))?;
        }
        slice(owner, &whole, |rows| rows.clear_folders())
    }

    /// The state of each directory. Waits for no disk.
    pub(crate) fn directories(
        &self,
        settings: &WatchSettings,
    ) -> Result<Vec<WatchedDirectory>, Error> {
        let all = self.0.context.watched.all();
        let one = |wanted: &Wanted| -> Result<WatchedDirectory, Error> {
            let path = wanted.written.clone();
            let known = all.iter().find(|one| one.written == path);
            let status = match (&wanted.directory, known) {
                (Err(why), _) => Status::new(WatchState::Unreadable, Some(why.clone())),
                (Ok(_), Some(known)) => known.status(),
                (Ok(_), None) => {
                    Status::new(WatchState::Watched, Some("not scanned yet".to_owned()))
                }
            };
            let directory = wanted.directory.clone().ok();
            let count = |directory| self.0.context.store.read(|c| store::count(c, directory));
            let (images, files) = directory.as_deref().map_or(Ok((0, 0)), count)?;
            Ok(WatchedDirectory {
                path,
                directory,
                state: status.state,
                images,
                copies: files - images,
                unreadable: status.unreadable as u64,
                message: status.message,
            })
        };
        settings.directories.iter().map(one).collect()
    }

    /// Warnings about watched directories, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warning = |one: &Arc<Watched>| {
            let Status { state, message, .. } = one.status();
            let message = message.unwrap_or_default();
            (state != WatchState::Watched).then(|| format!("{} is {state}: {message}", one.written))
        };
        self.0
            .context
            .watched
            .all()
            .iter()
            .filter_map(warning)
            .collect()
    }

    /// Ends the threads. Those of directories may wait for their disks, and are not joined.
    pub(super) fn end(&self) {
        let ended = self.0.context.watched.set(Vec::new());
        ended.iter().for_each(|one| one.end());
        self.follow_mounts(false);
    }
}
