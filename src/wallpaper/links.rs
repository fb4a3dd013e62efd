//! Keeps links in a worker's cache, so that its backend can show files that were deleted or rewritten.
//!
//! A file that leaves the library is retained, so that a backend can show it again when it restarts for
//! another monitor. The links for this are hard links, which take no space while the library has the
//! file. Files on another file system are copied, unless they are large. HTML wallpapers are not
//! retained.
//!
//! A file that was rewritten while it is shown gets another name, because some backends identify a
//! picture by its path. The name is a hash of the content, so that a later order and the next daemon
//! find the link again.
//!
//! Runs on the worker's thread.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::orphan::file_is_missing;
use crate::backends::{Kind, Placement};
use crate::digest;
use crate::paths::{Replacement, remove_unused};

/// The largest file, in bytes, that is copied if it cannot be linked.
const COPY_MAX: u64 = 64 << 20;

pub(super) struct Links {
    /// The directory of hard links to shown files, or their copies.
    retained: PathBuf,
    /// The directory of symbolic links that are named after the contents of files.
    renewed: PathBuf,
}

impl Links {
    /// `cache` is the directory of a worker.
    pub(super) fn new(cache: &Path) -> Self {
        Self {
            retained: cache.join("retained"),
            renewed: cache.join("renewed"),
        }
    }

    /// Whether the file of this placement is retained.
    pub(super) fn has(&self, placement: &Placement) -> bool {
        self.retained_path(placement).exists()
    }

    /// Replaces the paths of missing files by the retained ones, and retains the files that are there.
    pub(super) fn retain(&self, mut placements: Vec<Placement>) -> Vec<Placement> {
        for placement in placements
            .iter_mut()
            .filter(|placement| placement.kind != Kind::Web)
        {
            let retained = self.retained_path(placement);
            if !file_is_missing(&placement.path) {
                self.keep(&placement.path, &retained);
            } else if retained.exists() {
                placement.path = retained;
            }
        }
        placements
    }

    /// Replaces the paths of files with `rewritten` contents by links, and those of files that have a
    /// link already.
    pub(super) fn name(
        &self,
        mut placements: Vec<Placement>,
        rewritten: &[String],
    ) -> Vec<Placement> {
        for placement in placements
            .iter_mut()
            .filter(|placement| placement.kind != Kind::Web)
        {
            let link = self.renewed_path(placement);
            if !rewritten.contains(&placement.content) && fs::symlink_metadata(&link).is_err() {
                continue;
            }
            match self.point(&link, &placement.path) {
                Ok(()) => placement.path = link,
                Err(error) => log::warn!("cannot create the link {}: {error}", link.display()),
            }
        }
        placements
    }

    /// Removes the links that these placements do not use.
    pub(super) fn tidy(&self, placements: &[Placement]) {
        let is_used = |path: &Path| {
            let own = |one| [self.retained_path(one), self.renewed_path(one)];
            placements.iter().flat_map(own).any(|used| used == path)
        };
        remove_unused(&self.retained, is_used);
        remove_unused(&self.renewed, is_used);
    }

    /// The path of the retained file. The id of an image is never reused; its path may change with its
    /// name.
    fn retained_path(&self, placement: &Placement) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let hash = digest::short(placement.path.as_os_str().as_bytes(), 6);
        let stem = format!("{}-{hash}", placement.image_id);
        self.retained.join(with_extension_of(&placement.path, stem))
    }

    fn renewed_path(&self, placement: &Placement) -> PathBuf {
        let stem = digest::short(&placement.content, 12);
        self.renewed.join(with_extension_of(&placement.path, stem))
    }

    /// Retains a file. A failure is only logged, since the picture can be shown now.
    fn keep(&self, path: &Path, retained: &Path) {
        if is_same(path, retained) {
            return;
        }
        let kept = fs::create_dir_all(&self.retained).and_then(|()| {
            // The retained file may be an older one that had the same path.
            fs::remove_file(retained).ok();
            fs::hard_link(path, retained)
        });
        let kept = match kept {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(path, retained),
            other => other,
        };
        if let Err(error) = kept {
            log::debug!("cannot keep {} in the cache: {error}", path.display());
        }
    }

    fn point(&self, link: &Path, path: &Path) -> io::Result<()> {
        if fs::read_link(link).is_ok_and(|target| target == path) {
            return Ok(());
        }
        fs::create_dir_all(&self.renewed)?;
        match fs::remove_file(link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(path, link),
        }
    }
}

fn with_extension_of(file: &Path, stem: String) -> OsString {
    let mut name = OsString::from(stem);
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    name
}

/// Whether `retained` is a link to this file, or an up-to-date copy of it.
fn is_same(path: &Path, retained: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(one), Ok(other)) = (fs::metadata(path), fs::metadata(retained)) else {
        return false;
    };
    if one.dev() == other.dev() {
        return one.ino() == other.ino();
    }
    let copied = other.modified().ok();
    one.len() == other.len() && one.modified().ok().is_some_and(|made| Some(made) <= copied)
}

fn copy(path: &Path, retained: &Path) -> io::Result<()> {
    if fs::metadata(path)?.len() > COPY_MAX {
        return Err(io::Error::other("too large to copy"));
    }
    // Copied whole or not at all; otherwise a part of the picture would be shown once the file is gone.
    let new = Replacement::of(retained)?;
    fs::copy(path, new.path())?;
    new.land()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::plan::tests::placement;

    #[test]
    fn shown_file_is_retained_until_it_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let retained = Links::new(dir.path());
        let at = |name: &str, image_id| {
            let path = dir.path().join(name);
            Placement {
                path,
                ..placement("A", image_id)
            }
        };
        let one = at("one #1.png", 1);
        fs::write(&one.path, "one").unwrap();
        assert_eq!(
            retained.retain(vec![one.clone()]),
            std::slice::from_ref(&one)
        );
        retained.tidy(std::slice::from_ref(&one));
        // Another file with the same path is shown from now on.
        fs::remove_file(&one.path).unwrap();
        fs::write(&one.path, "another one").unwrap();
        assert_eq!(
            retained.retain(vec![one.clone()]),
            std::slice::from_ref(&one)
        );
        fs::remove_file(&one.path).unwrap();
        let kept = retained.retain(vec![one.clone()]).remove(0);
        assert_ne!(kept.path, one.path);
        assert_eq!(kept.path.extension(), one.path.extension());
        assert_eq!(fs::read_to_string(&kept.path).unwrap(), "another one");
        retained.tidy(std::slice::from_ref(&one));
        assert!(kept.path.exists());
        retained.tidy(&[at("two.png", 2)]);
        assert!(!kept.path.exists());
        assert_eq!(
            retained.retain(vec![one.clone()]),
            [one],
            "the backend says that it is gone"
        );
    }

    /// Retains a picture and removes its file; returns what is shown then.
    fn kept(retained: &Links, picture: &Placement) -> Option<String> {
        retained.retain(vec![picture.clone()]);
        fs::remove_file(&picture.path).unwrap();
        let placed = retained.retain(vec![picture.clone()]).remove(0);
        fs::read_to_string(placed.path).ok()
    }

    #[test]
    fn replacing_file_is_retained_even_if_it_is_older_and_of_the_same_size() {
        let dir = tempfile::tempdir().unwrap();
        let retained = Links::new(dir.path());
        let one = Placement {
            path: dir.path().join("one.png"),
            ..placement("A", 1)
        };
        fs::write(&one.path, "one").unwrap();
        retained.retain(vec![one.clone()]);
        let other = dir.path().join("other");
        fs::write(&other, "two").unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH;
        fs::File::options()
            .write(true)
            .open(&other)
            .unwrap()
            .set_modified(old)
            .unwrap();
        fs::rename(&other, &one.path).unwrap();
        assert_eq!(kept(&retained, &one).as_deref(), Some("two"));
    }

    #[test]
    fn file_on_another_file_system_is_copied_unless_it_is_large() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        let places = ["/dev/shm", "/var/tmp"].map(Path::new).into_iter();
        let other = places
            .filter(|place| place.is_dir())
            .find(|at| device(at) != device(dir.path()));
        let elsewhere = tempfile::tempdir_in(other.expect("a second file system")).unwrap();
        let retained = Links::new(dir.path());
        let one = Placement {
            path: elsewhere.path().join("one.png"),
            ..placement("A", 1)
        };
        let copied = || fs::metadata(retained.retained_path(&one)).unwrap();
        fs::write(&one.path, "one").unwrap();
        retained.retain(vec![one.clone()]);
        let first = copied();
        assert_eq!(first.len(), 3);
        // An unchanged file is not copied again.
        retained.retain(vec![one.clone()]);
        assert_eq!(copied().ino(), first.ino());
        // A file is copied again if its length differs, even if it is older, or if it is newer.
        let written = |text: &str, at: std::time::SystemTime| {
            fs::write(&one.path, text).unwrap();
            fs::File::options()
                .write(true)
                .open(&one.path)
                .unwrap()
                .set_modified(at)
                .unwrap();
            retained.retain(vec![one.clone()]);
            fs::read_to_string(retained.retained_path(&one)).unwrap()
        };
        assert_eq!(
            written("longer", std::time::SystemTime::UNIX_EPOCH),
            "longer"
        );
        let later = copied().modified().unwrap() + std::time::Duration::from_secs(1);
        assert_eq!(written("shorts", later), "shorts");
        assert_eq!(kept(&retained, &one).as_deref(), Some("shorts"));
        let sized = |image_id, bytes| {
            let path = elsewhere.path().join(format!("{image_id}.png"));
            fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            let picture = Placement {
                path,
                ..placement("A", image_id)
            };
            retained.retain(vec![picture.clone()]);
            retained.has(&picture)
        };
        assert!(sized(2, COPY_MAX) && !sized(3, COPY_MAX + 1));
        // This file can be opened but not read.
        let broken = Placement {
            path: "/proc/self/mem".into(),
            ..placement("A", 4)
        };
        retained.retain(vec![broken.clone()]);
        assert!(!retained.has(&broken), "a copy that was cut off is none");
    }

    #[test]
    fn rewritten_file_has_another_name_while_its_content_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let renewed = Links::new(dir.path());
        let file = dir.path().join("one.png");
        fs::write(&file, "one").unwrap();
        let with = |content: &str| Placement {
            path: file.clone(),
            content: content.to_owned(),
            ..placement("A", 1)
        };
        let (first, second) = (with("sha256:1"), with("sha256:2"));
        assert_eq!(
            renewed.name(vec![first.clone()], &[]),
            std::slice::from_ref(&first)
        );
        let named = renewed
            .name(vec![second.clone()], &["sha256:2".to_owned()])
            .remove(0);
        assert_ne!(named.path, file);
        assert_eq!(fs::read_to_string(&named.path).unwrap(), "one");
        renewed.tidy(std::slice::from_ref(&second));
        // The next order and the next daemon find the link.
        let again = Links::new(dir.path()).name(vec![second.clone()], &[]);
        assert_eq!(again, std::slice::from_ref(&named));
        // The file was renamed.
        let moved = Placement {
            path: dir.path().join("two.png"),
            ..second.clone()
        };
        let followed = renewed.name(vec![moved.clone()], &[]).remove(0);
        assert_eq!(
            (&followed.path, fs::read_link(&named.path).unwrap()),
            (&named.path, moved.path)
        );
        renewed.tidy(&[first]);
        assert_eq!(renewed.name(vec![second.clone()], &[]), [second]);
    }
}
