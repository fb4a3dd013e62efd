//! Lists a watched directory and adds watches, on the directory's own thread. Reads no file and no rows.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, Metadata};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::inotify::WatchFlags;

use super::super::Error;
use super::super::disk::{is_missing, stamp};
use super::super::listing::{has_no_media, list, package_stamp};
use super::super::package::{PackageVideo, has_manifest};
use super::super::task::Directory;
use super::compare::{Found, Root, Seen};
use super::read::is_for_good;
use crate::kernel::{NAMES, Watches};

/// Events of the files in a directory: their names, and the end of a write.
const FILES: WatchFlags = NAMES.union(WatchFlags::CLOSE_WRITE);

/// The paths that are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The whole directory.
    All,
    /// These paths, and all below them.
    Paths(BTreeSet<PathBuf>),
}

impl Scope {
    /// Whether a path was looked at.
    pub(super) fn has(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Paths(paths) => path.ancestors().any(|at| paths.contains(at)),
        }
    }

    /// Removes and returns what a map has at these paths.
    pub(super) fn take<V>(&self, map: &mut BTreeMap<PathBuf, V>) -> BTreeMap<PathBuf, V> {
        let Self::Paths(paths) = self else {
            return std::mem::take(map);
        };
        let below = |path| {
            let from = map.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
            from.map(|(at, _)| at)
                .take_while(move |at| at.starts_with(path))
        };
        let found: Vec<PathBuf> = paths
            .iter()
            .map(PathBuf::as_path)
            .flat_map(below)
            .cloned()
            .collect();
        found.iter().filter_map(|at| map.remove_entry(at)).collect()
    }
}

/// Finds the video of a package.
pub(super) type VideoOf<'a> = dyn Fn(&Path) -> Result<Option<PackageVideo>, Error> + 'a;

/// A walk of a directory, or a look at some of its paths.
pub(super) struct Walk<'a> {
    directory: &'a Directory,
    /// None for a look at paths, which need no new watches.
    watches: Option<&'a mut Watches>,
    /// Called while the walk makes progress.
    alive: &'a dyn Fn(),
    video_of: &'a VideoOf<'a>,
    /// Devices and inodes of directories that are not entered again, so that no link leads in circles.
    /// murald's own directories are among them from the start.
    seen: HashSet<(u64, u64)>,
    /// Directories still to be entered. Those behind a link come last, so that a directory inside is
    /// known by its own path. Not a recursion, as directories may be nested deeper than a stack allows.
    pending: BTreeMap<(bool, PathBuf), Metadata>,
    found: Found,
}

impl<'a> Walk<'a> {
    /// `own`: murald's directories, which are not entered even over a link.
    pub(super) fn new(
        directory: &'a Directory,
        own: &[PathBuf],
        watches: Option<&'a mut Watches>,
        alive: &'a dyn Fn(),
        video_of: &'a VideoOf<'a>,
    ) -> Self {
        let seen = own.iter().filter_map(|own| fs::metadata(own).ok());
        Self {
            directory,
            watches,
            alive,
            video_of,
            seen: seen.map(|meta| identity(&meta)).collect(),
            pending: BTreeMap::new(),
            found: Found::default(),
        }
    }

    /// Looks at the directory, or at paths in it. Files of `known` are looked at although they are
    /// excluded, as their images stay.
    pub(super) fn look(mut self, scope: &Scope, known: &[&Path]) -> Found {
        let root = &*self.directory.path;
        // Watched before it is read, so that no change in between is missed.
        self.follow(root);
        let meta = match fs::metadata(root) {
            Ok(meta) if meta.is_dir() => meta,
            Ok(_) => return self.without(Root::Closed("it is not a directory".to_owned())),
            Err(error) if is_missing(&error) => return self.without(Root::Missing),
            Err(error) => return self.without(Root::Closed(error.to_string())),
        };
        match scope {
            Scope::All => {
                self.watch(root);
                if let Err(error) = fs::read_dir(root) {
                    return self.without(Root::Closed(error.to_string()));
                }
                self.find(root.to_owned(), false, meta);
            }
            Scope::Paths(paths) => paths.iter().for_each(|path| self.look_at(path)),
        }
        while let Some(((is_link, path), meta)) = self.pending.pop_first() {
            if self.seen.insert(identity(&meta)) {
                if is_link {
                    self.follow(&path);
                }
                self.enter(&path, &meta);
            }
        }
        for path in known {
            match fs::metadata(path) {
                Ok(meta) => self.found.files.push(seen(path.to_path_buf(), &meta)),
                Err(error) if is_missing(&error) => {}
                Err(_) => self.cannot_see(path),
            }
        }
        self.found
    }

    fn without(mut self, root: Root) -> Found {
        self.found.root = root;
        self.found
    }

    /// Looks at files that were imported by their paths.
    pub(super) fn look_at_files(mut self, files: &BTreeSet<PathBuf>) -> Found {
        let directories: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        directories.into_iter().for_each(|it| self.watch(it));
        for file in files {
            (self.alive)();
            self.follow(file);
            match fs::metadata(file) {
                Ok(meta) if meta.is_file() => self.found.files.push(seen(file.clone(), &meta)),
                Err(error) if !is_missing(&error) => self.cannot_see(file),
                // The file is missing, or something else has replaced it. If its directory is missing,
                // too, the file counts as away.
                _ => {
                    let directory = file.parent().and_then(|parent| fs::metadata(parent).ok());
                    let device = directory.map_or(0, |directory| directory.dev());
                    self.found.directories.insert(file.clone(), device);
                }
            }
        }
        self.found
    }

    /// Looks at one path after an event.
    fn look_at(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() || self.is_in_package(path) => {
                self.found.has_directory = true;
            }
            Ok(meta) if meta.is_file() && !self.above(path).any(has_no_media) => {
                self.find(path.to_owned(), false, meta);
            }
            Err(error) if !is_missing(&error) => self.cannot_see(path),
            // Missing, replaced by a pipe or a device, or in a directory that is skipped.
            _ => {
                let above = path.ancestors().skip(1);
                let mut above = above.filter_map(|above| fs::metadata(above).ok());
                let device = above.next().map_or(0, |above| above.dev());
                self.found.directories.insert(path.to_owned(), device);
            }
        }
    }

    /// The directories between the watched directory and the file.
    fn above<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> + use<'p, 'a> {
        let root = &self.directory.path;
        let above = path.ancestors().skip(1);
        above.take_while(move |above| *above != root && above.starts_with(root))
    }

    /// Whether a file is in a package, and is not its video.
    fn is_in_package(&self, path: &Path) -> bool {
        let is_video = |package: &Path| match (self.video_of)(package) {
            Ok(video) => video.is_some_and(|video| video.path == path),
            Err(error) => !is_for_good(&error),
        };
        let mut above = self.above(path);
        above.any(|above| has_manifest(above) && !is_video(above))
    }

    /// Finds a package: its video, or the whole package as one file.
    fn find_package(&mut self, path: &Path, meta: &Metadata) {
        let video = match (self.video_of)(path) {
            Ok(video) => video,
            Err(error) if is_for_good(&error) => None,
            Err(_) => return self.cannot_see(path),
        };
        // Its directories are watched as a whole: the video may lie in any of them.
        let watches = &mut self.watches;
        let stamp = package_stamp(path, meta, &mut |directory| {
            if let Some(watches) = watches {
                watches.directory(directory, FILES);
            }
        });
        if let Some(video) = &video {
            match fs::metadata(&video.path) {
                Ok(meta) => self.find(video.path.clone(), false, meta),
                Err(_) => self.cannot_see(&video.path),
            }
        } else {
            self.found.files.push(Seen {
                stamp,
                ..seen(path.to_owned(), meta)
            });
        }
        self.found.packages.insert(path.to_owned(), video);
    }

    fn find(&mut self, path: PathBuf, is_link: bool, meta: Metadata) {
        (self.alive)();
        if meta.is_dir() {
            self.pending.insert((is_link, path), meta);
        } else if meta.is_file() {
            match path.to_str() {
                Some(_) => self.found.files.push(seen(path, &meta)),
                None => drop(self.found.unnamed.insert(path)),
            }
        }
    }

    fn cannot_see(&mut self, path: &Path) {
        self.found.unread.insert(path.to_owned());
    }

    fn watch(&mut self, directory: &Path) {
        if let Some(watches) = &mut self.watches {
            watches.directory(directory, FILES);
        }
    }

    fn follow(&mut self, path: &Path) {
        if let Some(watches) = &mut self.watches {
            watches.follow(path, NAMES);
        }
    }

    fn enter(&mut self, path: &Path, meta: &Metadata) {
        // Watched before it is listed, so that no change in between is missed.
        self.watch(path);
        let root = &*self.directory.path;
        let listing = match list(root, path, &self.directory.exclude) {
            Ok(listing) => listing,
            Err(error) if is_missing(&error) => return,
            Err(_) => return self.cannot_see(path),
        };
        let is_inside = path != root;
        if is_inside && listing.has_no_media {
            return;
        }
        if is_inside && path.to_str().is_some() && listing.is_package {
            // The other files of a package are no pictures of their own.
            return self.find_package(path, meta);
        }
        let directories = &mut self.found.directories;
        directories.insert(path.to_owned(), meta.dev());
        for entry in listing.entries {
            let inside = entry.path();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link {
                self.found.links.insert(inside.clone(), meta.dev());
            }
            match fs::metadata(&inside) {
                Ok(meta) => self.find(inside, is_link, meta),
                Err(error) if is_missing(&error) => {}
                Err(_) => self.cannot_see(&inside),
            }
        }
    }
}

fn seen(path: PathBuf, meta: &Metadata) -> Seen {
    let born = meta.created().ok();
    let born = born.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let born = born.and_then(|born| i64::try_from(born.as_nanos()).ok());
    Seen {
        path,
        stamp: stamp(meta),
        born: born.unwrap_or(i64::MAX),
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_whose_directory_is_missing_too_has_no_device() {
        let directory = tempfile::tempdir().unwrap();
        let [alone, inside, there] =
            ["alone", "dir/inside", "there"].map(|name| directory.path().join(name));
        fs::write(&there, "").unwrap();
        let root = Directory::default();
        let walk = Walk::new(&root, &[], None, &|| (), &|_| Ok(None));
        let found = walk.look_at_files(&[&alone, &inside, &there].map(Clone::clone).into());
        let device = fs::metadata(directory.path()).unwrap().dev();
        assert_eq!(found.directories, [(alone, device), (inside, 0)].into());
        assert_eq!(found.files.len(), 1);
    }
}
