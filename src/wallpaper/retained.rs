//! A second name for each file that is shown, so that a picture that leaves the library can be shown
//! again: a backend may have to start anew for another monitor's sake.
//!
//! Runs on the worker's thread. It holds files by hard links, which cost no space while the library
//! has them; on another file system there are copies of what is small. Packages of web pages are
//! not retained.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::names::Names;
use super::orphan::file_is_missing;
use crate::backends::{Kind, Placement};
use crate::digest;
use crate::paths::Replacement;

/// The largest file that is copied where it cannot be linked.
const COPY_MAX: u64 = 64 << 20;

pub(super) struct Retained {
    names: Names,
}

impl Retained {
    /// In the cache of a worker.
    pub(super) fn new(cache: &Path) -> Self {
        Self { names: Names::new(cache.join("retained")) }
    }

    /// Whether it has a file for one that is gone.
    pub(super) fn has(&self, placement: &Placement) -> bool {
        self.names.answers() && self.path(placement).exists()
    }

    /// The same placements, with what is retained in place of files that are gone; retains the others.
    pub(super) fn retain(&self, mut placements: Vec<Placement>) -> Vec<Placement> {
        if !self.names.answers() {
            return placements;
        }
        for placement in placements.iter_mut().filter(|placement| placement.kind != Kind::Web) {
            let retained = self.path(placement);
            if !file_is_missing(&placement.path) {
                self.link(&placement.path, &retained);
            } else if retained.exists() {
                placement.path = retained;
            }
        }
        placements
    }

    /// Lets go of what these placements do not show.
    pub(super) fn tidy(&self, placements: &[Placement]) {
        self.names.keep(placements, |placement| self.path(placement));
    }

    /// Where the file of a picture is retained. An image's id is never used again; its path changes
    /// with its name.
    fn path(&self, placement: &Placement) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let hash = digest::short(placement.path.as_os_str().as_bytes(), 6);
        self.names.of(format!("{}-{hash}", placement.image_id), &placement.path)
    }

    /// Failing costs no picture now: it is said in the log and no more.
    fn link(&self, path: &Path, retained: &Path) {
        if is_same(path, retained) {
            return;
        }
        let taken = self.names.make_directory().and_then(|()| {
            // Somebody may have put another file in the place of the one that is retained.
            fs::remove_file(retained).ok();
            fs::hard_link(path, retained)
        });
        let taken = match taken {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(path, retained),
            other => other,
        };
        if let Err(error) = taken {
            log::debug!("{} is not retained: {error}", path.display());
        }
    }
}

/// Whether what is retained is this file, or a copy of it as it is now.
fn is_same(path: &Path, retained: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(one), Ok(other)) = (fs::metadata(path), fs::metadata(retained)) else { return false };
    if one.dev() == other.dev() {
        return one.ino() == other.ino();
    }
    let copied = other.modified().ok();
    one.len() == other.len() && one.modified().ok().is_some_and(|made| Some(made) <= copied)
}

fn copy(path: &Path, retained: &Path) -> io::Result<()> {
    if fs::metadata(path)?.len() > COPY_MAX {
        return Err(io::Error::other("too large for a copy"));
    }
    // Whole or not at all: a part of it would be shown once the file is gone.
    let new = Replacement::of(retained)?;
    fs::copy(path, new.path())?;
    new.land()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::plan::tests::placement;

    #[test]
    fn what_is_shown_is_retained_until_it_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let retained = Retained::new(dir.path());
        let at = |name: &str, image_id| {
            let path = dir.path().join(name);
            Placement { path, ..placement("A", image_id) }
        };
        let one = at("one #1.png", 1);
        fs::write(&one.path, "one").unwrap();
        assert_eq!(retained.retain(vec![one.clone()]), std::slice::from_ref(&one));
        retained.tidy(std::slice::from_ref(&one));
        // Edited in place of the old file: that is what is shown from now on.
        fs::remove_file(&one.path).unwrap();
        fs::write(&one.path, "another one").unwrap();
        assert_eq!(retained.retain(vec![one.clone()]), std::slice::from_ref(&one));
        fs::remove_file(&one.path).unwrap();
        let kept = retained.retain(vec![one.clone()]).remove(0);
        assert_ne!(kept.path, one.path);
        assert_eq!(kept.path.extension(), one.path.extension());
        assert_eq!(fs::read_to_string(&kept.path).unwrap(), "another one");
        retained.tidy(std::slice::from_ref(&one));
        assert!(kept.path.exists());
        retained.tidy(&[at("two.png", 2)]);
        assert!(!kept.path.exists());
        assert_eq!(retained.retain(vec![one.clone()]), [one], "the backend says that it is gone");
    }

    /// A picture there, and what is retained of it once its file is gone.
    fn kept(retained: &Retained, picture: &Placement) -> Option<String> {
        retained.retain(vec![picture.clone()]);
        fs::remove_file(&picture.path).unwrap();
        let placed = retained.retain(vec![picture.clone()]).remove(0);
        fs::read_to_string(placed.path).ok()
    }

    #[test]
    fn file_in_the_place_of_another_is_retained_though_it_is_older_and_as_large() {
        let dir = tempfile::tempdir().unwrap();
        let retained = Retained::new(dir.path());
        let one = Placement { path: dir.path().join("one.png"), ..placement("A", 1) };
        fs::write(&one.path, "one").unwrap();
        retained.retain(vec![one.clone()]);
        let other = dir.path().join("other");
        fs::write(&other, "two").unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(&other).unwrap().set_modified(old).unwrap();
        fs::rename(&other, &one.path).unwrap();
        assert_eq!(kept(&retained, &one).as_deref(), Some("two"));
    }

    #[test]
    fn file_on_another_file_system_is_copied_unless_it_is_large() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        let places = ["/dev/shm", "/var/tmp"].map(Path::new).into_iter();
        let other =
            places.filter(|place| place.is_dir()).find(|at| device(at) != device(dir.path()));
        let elsewhere = tempfile::tempdir_in(other.expect("a second file system")).unwrap();
        let retained = Retained::new(dir.path());
        let one = Placement { path: elsewhere.path().join("one.png"), ..placement("A", 1) };
        let copied = || fs::metadata(retained.path(&one)).unwrap();
        fs::write(&one.path, "one").unwrap();
        retained.retain(vec![one.clone()]);
        let first = copied();
        assert_eq!(first.len(), 3);
        // As long as it is the same, it is not copied again.
        retained.retain(vec![one.clone()]);
        assert_eq!(copied().ino(), first.ino());
        // Of another length, though it is older; of the same length, and newer.
        let written = |text: &str, at: std::time::SystemTime| {
            fs::write(&one.path, text).unwrap();
            fs::File::options().write(true).open(&one.path).unwrap().set_modified(at).unwrap();
            retained.retain(vec![one.clone()]);
            fs::read_to_string(retained.path(&one)).unwrap()
        };
        assert_eq!(written("longer", std::time::SystemTime::UNIX_EPOCH), "longer");
        let later = copied().modified().unwrap() + std::time::Duration::from_secs(1);
        assert_eq!(written("shorts", later), "shorts");
        assert_eq!(kept(&retained, &one).as_deref(), Some("shorts"));
        let sized = |image_id, bytes| {
            let path = elsewhere.path().join(format!("{image_id}.png"));
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            let picture = Placement { path, ..placement("A", image_id) };
            retained.retain(vec![picture.clone()]);
            retained.has(&picture)
        };
        assert!(sized(2, COPY_MAX) && !sized(3, COPY_MAX + 1));
        // It can be opened, and not be read.
        let broken = Placement { path: "/proc/self/mem".into(), ..placement("A", 4) };
        retained.retain(vec![broken.clone()]);
        assert!(!retained.has(&broken), "a copy that was cut off is none");
    }
}
