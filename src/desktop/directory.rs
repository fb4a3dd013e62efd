//! The files themselves: each is replaced whole by a rename, so that a reader never meets half of one
//! or none. They are not flushed: after a crash the next start writes them again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::links::Links;
use super::stills::{self, STILLS};
use crate::paths::{self, TEMPORARY};

/// The link to what was set last.
const NEWEST: &str = "all";

/// The files beside them.
pub(super) const FILES: [&str; 4] = ["palette.json", "colors.sh", "colors.css", "colors.rasi"];

pub(super) struct Directory {
    root: PathBuf,
    links: Links,
    /// What each file was given last.
    written: BTreeMap<&'static str, Vec<u8>>,
    /// It was told that something could not be written.
    complained: bool,
}

impl Directory {
    pub(super) fn new(root: PathBuf) -> Self {
        let links = Links::new(root.clone());
        Self { root, links, written: BTreeMap::new(), complained: false }
    }

    /// Whether its disk answers; the log has said so where it does not.
    pub(super) fn answers(&self) -> bool {
        paths::answers_in(&self.root)
    }

    /// Brings links (by the names of monitors) and files in line, and touches nothing that is.
    pub(super) fn write(
        &mut self,
        links: &BTreeMap<String, PathBuf>,
        files: [(&'static str, Vec<u8>); 4],
    ) {
        let linked = self.links.write(links);
        let written = files.into_iter().try_for_each(|(name, bytes)| self.put(name, bytes));
        match linked.and(written) {
            Ok(()) => self.complained = false,
            Err((path, error)) => {
                if !std::mem::replace(&mut self.complained, true) {
                    let path = path.display();
                    log::warn!("other programs are not told of the wallpapers: {path}: {error}");
                }
            }
        }
    }

    /// Removes all of them, and leaves what others have put there.
    pub(super) fn clear(&mut self) {
        self.written.clear();
        for name in FILES {
            // It may have been removed already.
            fs::remove_file(self.root.join(name)).ok();
        }
        self.links.clear();
        let stills = self.root.join(STILLS);
        stills::sweep(&stills, |_| false);
        for directory in [&stills, &self.root] {
            // It stays if it holds anything else.
            fs::remove_dir(directory).ok();
        }
    }

    fn put(&mut self, name: &'static str, bytes: Vec<u8>) -> Result<(), (PathBuf, io::Error)> {
        let path = self.root.join(name);
        if self.written.get(name) == Some(&bytes) && path.exists() {
            return Ok(());
        }
        paths::replace(&path, &bytes).map_err(|error| (path, error))?;
        self.written.insert(name, bytes);
        Ok(())
    }
}

/// The links to these stills; `newest` is one of them.
pub(super) fn links<'s>(
    stills: impl Iterator<Item = (&'s str, &'s Path)>,
    newest: Option<&Path>,
) -> BTreeMap<String, PathBuf> {
    let named = stills.filter_map(|(monitor, still)| Some((link_name(monitor)?, still.to_owned())));
    let newest = newest.map(|still| (NEWEST.to_owned(), still.to_owned()));
    named.chain(newest).collect()
}

/// None for what could not be a file, or is one of our own names.
fn link_name(monitor: &str) -> Option<String> {
    let name = monitor.replace('/', "_");
    let taken = ["", ".", "..", NEWEST].contains(&&*name) || name.starts_with(TEMPORARY);
    (!taken && !name.contains('\0')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: [(&str, Vec<u8>); 4] =
        [(FILES[0], vec![]), (FILES[1], vec![]), (FILES[2], vec![]), (FILES[3], vec![])];

    #[test]
    fn link_has_the_name_of_its_monitor_unless_that_is_ours() {
        let check = |shown: &[(&str, &str)], newest: Option<&str>, expected: &[(&str, &str)]| {
            let stills = shown.iter().map(|(monitor, still)| (*monitor, Path::new(still)));
            let found = links(stills, newest.map(Path::new));
            let expected =
                expected.iter().map(|(name, to)| ((*name).to_owned(), PathBuf::from(to))).collect();
            assert_eq!(found, expected);
        };
        let both = [("A", "/a"), ("DP_1", "/b"), ("all", "/b")];
        check(&[("A", "/a"), ("DP/1", "/b")], Some("/b"), &both);
        let odd = [("A", "/c"), ("..", "/x"), ("all", "/x"), (".new-A", "/x")];
        check(&odd, Some("/c"), &[("A", "/c"), ("all", "/c")]);
        check(&[], None, &[]);
    }

    #[test]
    fn what_is_removed_is_written_again_and_all_is_cleared() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("murald");
        let mut directory = Directory::new(root.clone());
        let palette = root.join("palette.json");
        for _ in 0..2 {
            directory.write(&BTreeMap::new(), EMPTY);
            assert!(palette.exists());
            fs::remove_file(&palette).unwrap();
        }
        // What others have put there stays, and nothing is looked for behind a link.
        let pictures = home.path().join("pictures");
        let png = format!("{}.png", "0f".repeat(32));
        fs::create_dir(&pictures).unwrap();
        fs::write(pictures.join(&png), "theirs").unwrap();
        fs::create_dir(root.join("stills")).unwrap();
        fs::write(root.join("stills").join(&png), "ours").unwrap();
        fs::write(root.join("stills/mine.png"), "theirs").unwrap();
        directory.clear();
        assert_eq!(fs::read_dir(root.join("stills")).unwrap().count(), 1);
        fs::remove_dir_all(root.join("stills")).unwrap();
        std::os::unix::fs::symlink(&pictures, root.join("stills")).unwrap();
        directory.clear();
        assert!(pictures.join(&png).exists());
        fs::remove_file(root.join("stills")).unwrap();
        directory.clear();
        assert!(!root.exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_only_told_of() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("file");
        fs::write(&root, "").unwrap();
        let mut directory = Directory::new(root);
        directory.write(&BTreeMap::new(), EMPTY);
        assert!(directory.complained);
    }
}
