//! A second name for each file that hangs, so that a picture that leaves the library can be shown
//! again: a setter may have to start anew for another monitor's sake.
//!
//! Runs on the worker's thread. It holds files by hard links, which cost no space while the library
//! has them; on another file system there are copies of what is small. Packages of web pages are
//! not held.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::orphan::file_is_missing;
use crate::backends::{Hanging, Kind};

/// The largest file that is copied where it cannot be linked.
const COPY_MAX: u64 = 64 << 20;

pub(super) struct Held {
    directory: PathBuf,
}

impl Held {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The same scene, with what is held in place of files that are gone; holds the others.
    pub(super) fn hold(&self, mut scene: Vec<Hanging>) -> Vec<Hanging> {
        for hanging in scene.iter_mut().filter(|hanging| hanging.kind != Kind::Web) {
            let held = self.path(hanging);
            if !file_is_missing(&hanging.path) {
                self.take(&hanging.path, &held);
            } else if held.exists() {
                hanging.path = held;
            }
        }
        scene
    }

    /// Lets go of what this scene does not show.
    pub(super) fn tidy(&self, scene: &[Hanging]) {
        let used: Vec<PathBuf> = scene.iter().map(|hanging| self.path(hanging)).collect();
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if !used.contains(&path) {
                // What cannot be removed now is tried again after the next change.
                fs::remove_file(path).ok();
            }
        }
    }

    /// Where the file of a picture is held. An image's id is never used again; its path changes
    /// with its name.
    fn path(&self, hanging: &Hanging) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let digest = Sha256::digest(hanging.path.as_os_str().as_bytes());
        let hex: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let mut name = OsString::from(format!("{}-{hex}", hanging.image_id));
        if let Some(extension) = hanging.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.directory.join(name)
    }

    /// Failing costs no picture now: it is said in the log and no more.
    fn take(&self, path: &Path, held: &Path) {
        if is_same(path, held) {
            return;
        }
        let taken = fs::create_dir_all(&self.directory).and_then(|()| {
            // Somebody may have put another file in the place of the one that is held.
            fs::remove_file(held).ok();
            fs::hard_link(path, held)
        });
        let taken = match taken {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(path, held),
            other => other,
        };
        if let Err(error) = taken {
            log::debug!("{} is not held: {error}", path.display());
        }
    }
}

/// Whether what is held is this file, or a copy of it as it is now.
fn is_same(path: &Path, held: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(one), Ok(other)) = (fs::metadata(path), fs::metadata(held)) else { return false };
    if one.dev() == other.dev() {
        return one.ino() == other.ino();
    }
    let copied = other.modified().ok();
    one.len() == other.len() && one.modified().ok().is_some_and(|made| Some(made) <= copied)
}

fn copy(path: &Path, held: &Path) -> io::Result<()> {
    if fs::metadata(path)?.len() > COPY_MAX {
        return Err(io::Error::other("too large for a copy"));
    }
    fs::copy(path, held).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::plan::tests::hanging;

    #[test]
    fn what_hangs_is_held_until_it_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let held = Held::new(dir.path().join("held"));
        let at = |name: &str, image_id| {
            let path = dir.path().join(name);
            Hanging { path, ..hanging("A", image_id) }
        };
        let one = at("one #1.png", 1);
        fs::write(&one.path, "one").unwrap();
        assert_eq!(held.hold(vec![one.clone()]), std::slice::from_ref(&one));
        held.tidy(std::slice::from_ref(&one));
        // Edited in place of the old file: that is what hangs from now on.
        fs::remove_file(&one.path).unwrap();
        fs::write(&one.path, "another one").unwrap();
        assert_eq!(held.hold(vec![one.clone()]), std::slice::from_ref(&one));
        fs::remove_file(&one.path).unwrap();
        let kept = held.hold(vec![one.clone()]).remove(0);
        assert_ne!(kept.path, one.path);
        assert_eq!(kept.path.extension(), one.path.extension());
        assert_eq!(fs::read_to_string(&kept.path).unwrap(), "another one");
        held.tidy(std::slice::from_ref(&one));
        assert!(kept.path.exists());
        held.tidy(&[at("two.png", 2)]);
        assert!(!kept.path.exists());
        assert_eq!(held.hold(vec![one.clone()]), [one], "the setter says that it is gone");
    }
}
