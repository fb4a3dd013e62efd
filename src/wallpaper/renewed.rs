//! Another name for a file that was written anew while it is shown: backends that know a picture by its
//! path would take it for the one that they show.
//!
//! Runs on the worker's thread. The names are links in its cache that say the content, so that the
//! same one is found again by a later order, and by the next daemon.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::names::Names;
use crate::backends::{Kind, Placement};
use crate::digest;

pub(super) struct Renewed {
    names: Names,
}

impl Renewed {
    /// In the cache of a worker.
    pub(super) fn new(cache: &Path) -> Self {
        Self { names: Names::new(cache.join("renewed")) }
    }

    /// The same placements, with other names for these contents, and for those that have one.
    pub(super) fn name(
        &self,
        mut placements: Vec<Placement>,
        rewritten: &[String],
    ) -> Vec<Placement> {
        if !self.names.answers() {
            return placements;
        }
        for placement in placements.iter_mut().filter(|placement| placement.kind != Kind::Web) {
            let link = self.path(placement);
            if !rewritten.contains(&placement.content) && fs::symlink_metadata(&link).is_err() {
                continue;
            }
            match self.link(&placement.path, &link) {
                Ok(()) => placement.path = link,
                Err(error) => log::warn!("{} has no other name: {error}", link.display()),
            }
        }
        placements
    }

    /// Lets go of what these placements do not show.
    pub(super) fn tidy(&self, placements: &[Placement]) {
        self.names.keep(placements, |placement| self.path(placement));
    }

    fn path(&self, placement: &Placement) -> PathBuf {
        self.names.of(digest::short(&placement.content, 12), &placement.path)
    }

    fn link(&self, path: &Path, link: &Path) -> io::Result<()> {
        if fs::read_link(link).is_ok_and(|target| target == path) {
            return Ok(());
        }
        self.names.make_directory()?;
        match fs::remove_file(link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => symlink(path, link),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallpaper::plan::tests::placement;

    #[test]
    fn rewritten_file_has_another_name_while_its_content_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let renewed = Renewed::new(dir.path());
        let file = dir.path().join("one.png");
        fs::write(&file, "one").unwrap();
        let with = |content: &str| Placement {
            path: file.clone(),
            content: content.to_owned(),
            ..placement("A", 1)
        };
        let (first, second) = (with("sha256:1"), with("sha256:2"));
        assert_eq!(renewed.name(vec![first.clone()], &[]), std::slice::from_ref(&first));
        let named = renewed.name(vec![second.clone()], &["sha256:2".to_owned()]).remove(0);
        assert_ne!(named.path, file);
        assert_eq!(fs::read_to_string(&named.path).unwrap(), "one");
        renewed.tidy(std::slice::from_ref(&second));
        // By the next order, and by the next daemon.
        let again = Renewed::new(dir.path()).name(vec![second.clone()], &[]);
        assert_eq!(again, std::slice::from_ref(&named));
        // Its file has another name by now.
        let moved = Placement { path: dir.path().join("two.png"), ..second.clone() };
        let followed = renewed.name(vec![moved.clone()], &[]).remove(0);
        assert_eq!(
            (&followed.path, fs::read_link(&named.path).unwrap()),
            (&named.path, moved.path)
        );
        renewed.tidy(&[first]);
        assert_eq!(renewed.name(vec![second.clone()], &[]), [second]);
    }
}
