//! Gives files that were rewritten while they are shown another name, because some backends identify a
//! picture by its path. The name is a hash of the content, so that a later order and the next daemon
//! find the link again.
//!
//! Runs on the worker's thread.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::backends::{Kind, Placement};
use crate::digest;
use crate::paths::remove_unused;

pub(super) struct ContentNames {
    /// The directory of symbolic links that are named after the contents of files.
    directory: PathBuf,
}

impl ContentNames {
    /// `cache` is the directory of a worker.
    pub(super) fn new(cache: &Path) -> Self {
        let directory = cache.join("renewed");
        Self { directory }
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
            let link = self.path(placement);
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
        let is_used = |path: &Path| placements.iter().any(|one| self.path(one) == path);
        remove_unused(&self.directory, is_used);
    }

    fn path(&self, placement: &Placement) -> PathBuf {
        let mut name = OsString::from(digest::short(&placement.content, 12));
        if let Some(extension) = placement.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.directory.join(name)
    }

    fn point(&self, link: &Path, path: &Path) -> io::Result<()> {
        if fs::read_link(link).is_ok_and(|target| target == path) {
            return Ok(());
        }
        fs::create_dir_all(&self.directory)?;
        match fs::remove_file(link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(path, link),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::worker_key::tests::placement;

    #[test]
    fn rewritten_file_has_another_name_while_its_content_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let renewed = ContentNames::new(dir.path());
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
        let again = ContentNames::new(dir.path()).name(vec![second.clone()], &[]);
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
