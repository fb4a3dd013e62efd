//! Lists a watched directory, on a thread of its own that is abandoned if its disk does not answer. It
//! lists and adds watches; it reads no file and no rows.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use rustix::io::Errno;

use super::super::disk::stamp;
use super::super::walk::{NO_MEDIA, is_skipped_name};
use super::findings::{Findings, Found, Leads, Root, Scope};
use super::notices::Notices;
use super::settings::is_scanned;
use crate::wire::collate::path_key;

/// One look at a directory: its scope, its watches and its sign of life.
pub(super) struct DirectoryLook {
    pub(super) directory: PathBuf,
    pub(super) scope: Scope,
    /// Only these files of the directory, if given.
    pub(super) only: Option<BTreeSet<PathBuf>>,
    /// murald's own directories, which are not entered even over a link.
    pub(super) own: Vec<PathBuf>,
    pub(super) notices: Option<Notices>,
    /// Counted up while the look makes progress.
    pub(super) life: Arc<AtomicU64>,
}

struct Walk<'a> {
    directory: &'a Path,
    notices: &'a mut Notices,
    life: &'a AtomicU64,
    /// Devices and inodes of directories that are not entered again, so that no link leads in circles.
    /// murald's own directories are among them from the start.
    seen: HashSet<(u64, u64)>,
    /// Directories still to be entered. Those behind a link come last, so that a directory inside is
    /// known by its own path. Not a recursion, as directories may be nested deeper than a stack allows.
    pending: BTreeMap<(bool, PathBuf), Metadata>,
    findings: Findings,
}

impl DirectoryLook {
    /// Runs the look. `renew` makes new watches for a look at everything, as a mount may have covered
    /// the directories of the old ones.
    pub(super) fn run(self, renew: impl FnOnce() -> Notices) -> (Findings, Notices) {
        let Self {
            directory,
            scope,
            only,
            own,
            notices,
            life,
        } = self;
        let mut notices = notices
            .filter(|_| scope != Scope::All)
            .unwrap_or_else(renew);
        let seen = own
            .iter()
            .filter_map(|own| fs::metadata(own).ok())
            .map(|m| identity(&m));
        let mut walk = Walk {
            directory: &directory,
            notices: &mut notices,
            life: &life,
            seen: seen.collect(),
            pending: BTreeMap::new(),
            findings: Findings::default(),
        };
        match (&only, &scope) {
            (Some(_), Scope::Paths(files)) | (Some(files), Scope::All) => walk.look_at_files(files),
            (None, scope) => walk.look(scope),
        }
        let mut findings = walk.findings;
        // Sorted by name, so that the ids of new images follow their names.
        findings
            .files
            .sort_by_cached_key(|file| (path_key(&file.path), file.path.clone()));
        (findings, notices)
    }
}

impl Walk<'_> {
    fn look(&mut self, scope: &Scope) {
        if *scope == Scope::All {
            // Watched before it is read, so that no change in between is missed.
            self.notices.follow(self.directory);
        }
        let meta = match fs::metadata(self.directory) {
            Ok(meta) if meta.is_dir() => meta,
            Ok(_) => return self.findings.root = Root::Closed("it is not a directory".to_owned()),
            Err(error) if is_missing(&error) => return self.findings.root = Root::Missing,
            Err(error) => return self.findings.root = Root::Closed(error.to_string()),
        };
        self.findings.leads = leads(self.directory, &meta).ok();
        match scope {
            Scope::All => {
                self.notices.watch(self.directory);
                if let Err(error) = fs::read_dir(self.directory) {
                    self.findings.root = Root::Closed(error.to_string());
                    return;
                }
                self.find(self.directory.to_owned(), false, meta);
            }
            Scope::Paths(paths) => paths.iter().for_each(|path| self.look_at(path)),
        }
        while let Some(((is_link, path), meta)) = self.pending.pop_first() {
            if self.seen.insert(identity(&meta)) {
                if is_link {
                    self.notices.follow(&path);
                }
                self.enter(&path, &meta);
            }
        }
    }

    /// Looks at files that were imported by their paths.
    fn look_at_files(&mut self, files: &BTreeSet<PathBuf>) {
        let directories: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        directories
            .into_iter()
            .for_each(|directory| self.notices.watch(directory));
        for file in files {
            self.life.fetch_add(1, Ordering::Relaxed);
            self.notices.follow(file);
            match fs::metadata(file) {
                Ok(meta) if meta.is_file() => {
                    self.findings.files.push(found(file.clone(), &meta));
                }
                Err(error) if !is_missing(&error) => self.cannot_see(file),
                // The file is missing, or something else has replaced it. If its directory is missing,
                // too, the device is 0, and the file counts as away.
                _ => {
                    let directory = file.parent().and_then(|parent| fs::metadata(parent).ok());
                    let device = directory.map_or(0, |directory| directory.dev());
                    self.findings.gone.insert(file.clone(), device);
                }
            }
        }
    }

    /// Looks at one path after an event.
    fn look_at(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.findings.has_directory = true,
            Ok(meta) if meta.is_file() && !self.has_no_media(path) => {
                self.find(path.to_owned(), false, meta);
            }
            Err(error) if !is_missing(&error) => self.cannot_see(path),
            // Missing, replaced by a pipe or a device, or in a directory that is skipped.
            _ => {
                self.findings
                    .gone
                    .insert(path.to_owned(), device_above(path));
            }
        }
    }

    /// Whether a directory between the watched directory and the file is skipped.
    fn has_no_media(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1);
        above
            .take_while(|above| *above != self.directory && above.starts_with(self.directory))
            .any(|above| above.join(NO_MEDIA).exists())
    }

    fn find(&mut self, path: PathBuf, is_link: bool, meta: Metadata) {
        self.life.fetch_add(1, Ordering::Relaxed);
        if meta.is_dir() {
            self.pending.insert((is_link, path), meta);
        } else if meta.is_file() && is_scanned(self.directory, &path) {
            match path.to_str() {
                Some(_) => self.findings.files.push(found(path, &meta)),
                None => drop(self.findings.unnamed.insert(path)),
            }
        }
    }

    fn cannot_see(&mut self, path: &Path) {
        self.findings.unseen.insert(path.to_owned());
    }

    fn enter(&mut self, path: &Path, meta: &Metadata) {
        // Watched before it is listed, so that no change in between is missed.
        self.notices.watch(path);
        if path != self.directory && path.join(NO_MEDIA).exists() {
            return;
        }
        self.findings
            .directories
            .insert(path.to_owned(), meta.dev());
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return,
            Err(_) => return self.cannot_see(path),
        };
        for entry in entries {
            let Ok(entry) = entry else {
                return self.cannot_see(path);
            };
            if is_skipped_name(&entry.file_name()) {
                continue;
            }
            let inside = entry.path();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            match fs::metadata(&inside) {
                Ok(meta) => self.find(inside, is_link, meta),
                Err(error) if is_missing(&error) => {}
                Err(_) => self.cannot_see(&inside),
            }
        }
    }
}

fn found(path: PathBuf, meta: &Metadata) -> Found {
    let born = meta
        .created()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let born = born.and_then(|born| i64::try_from(born.as_nanos()).ok());
    Found {
        path,
        stamp: stamp(meta),
        born: born.unwrap_or(i64::MAX),
    }
}

/// The device on which a path would be.
fn device_above(path: &Path) -> u64 {
    let above = path
        .ancestors()
        .skip(1)
        .find_map(|above| fs::metadata(above).ok());
    above.map_or(0, |above| above.dev())
}

fn leads(directory: &Path, meta: &Metadata) -> io::Result<Leads> {
    let real = fs::canonicalize(directory)?;
    let above = real
        .ancestors()
        .skip(1)
        .map(|above| Ok(fs::metadata(above)?.ino()));
    Ok(Leads {
        device: meta.dev(),
        above: above.collect::<io::Result<_>>()?,
        real,
    })
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

fn is_missing(error: &io::Error) -> bool {
    // A link that leads to itself counts as broken.
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
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
        let look = DirectoryLook {
            directory: "/".into(),
            scope: Scope::All,
            only: Some([&alone, &inside, &there].map(Clone::clone).into()),
            own: Vec::new(),
            notices: None,
            life: Arc::default(),
        };
        let (findings, _) = look.run(|| Notices::new(|_| ()));
        let device = fs::metadata(directory.path()).unwrap().dev();
        assert_eq!(findings.gone, [(alone, device), (inside, 0)].into());
        assert_eq!(findings.files.len(), 1);
    }
}
