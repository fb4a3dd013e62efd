//! The files themselves: each is replaced whole by a rename, so that a reader never meets half of one
//! or none. They are not flushed: after a crash the next start writes them again.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::paths::{self, TEMPORARY};

/// The link to what was set last.
const NEWEST: &str = "all";

pub(super) struct Directory {
    root: PathBuf,
    /// What each file was given last.
    written: BTreeMap<&'static str, Vec<u8>>,
    /// It was told that something could not be written.
    complained: bool,
}

impl Directory {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, written: BTreeMap::new(), complained: false }
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
        let linked = self.link(links);
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

    /// Removes all of them.
    pub(super) fn clear(&mut self) {
        for (name, _) in std::mem::take(&mut self.written) {
            // It may have been removed already.
            fs::remove_file(self.root.join(name)).ok();
        }
        for name in ["current", "stills"] {
            fs::remove_dir_all(self.root.join(name)).ok();
        }
        // Where it holds nothing else.
        fs::remove_dir(&self.root).ok();
    }

    fn link(&self, links: &BTreeMap<String, PathBuf>) -> Result<(), (PathBuf, io::Error)> {
        let directory = self.root.join("current");
        fs::create_dir_all(&directory).map_err(|error| (directory.clone(), error))?;
        for (name, target) in links {
            let path = directory.join(name);
            if fs::read_link(&path).is_ok_and(|now| now == *target) {
                continue;
            }
            let temporary = directory.join(format!("{TEMPORARY}{name}"));
            // Of a run that was killed.
            fs::remove_file(&temporary).ok();
            symlink(target, &temporary)
                .and_then(|()| fs::rename(&temporary, &path))
                .map_err(|error| (path, error))?;
        }
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_ours = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_ours && name.to_str().is_none_or(|name| !links.contains_key(name)) {
                fs::remove_file(entry.path()).map_err(|error| (entry.path(), error))?;
            }
        }
        Ok(())
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
        [("palette.json", vec![]), ("a", vec![]), ("b", vec![]), ("c", vec![])];

    #[test]
    fn links_come_change_and_go() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("murald");
        let current = root.join("current");
        fs::create_dir_all(&current).unwrap();
        symlink("/gone", current.join(".new-A")).unwrap();
        fs::write(current.join("note"), "somebody's own").unwrap();
        let mut directory = Directory::new(root.clone());
        let mut check = |shown: &[(&str, &str)],
                         newest: Option<&str>,
                         expected: &[(&str, &str)]| {
            let stills = shown.iter().map(|(monitor, still)| (*monitor, Path::new(still)));
            directory.write(&links(stills, newest.map(Path::new)), EMPTY);
            let mut found: Vec<(String, PathBuf)> = fs::read_dir(&current)
                .unwrap()
                .flatten()
                .filter_map(|entry| {
                    let name = entry.file_name().into_string().unwrap();
                    Some((name, fs::read_link(entry.path()).ok()?))
                })
                .collect();
            found.sort();
            let expected: Vec<_> =
                expected.iter().map(|(name, to)| ((*name).to_owned(), PathBuf::from(to))).collect();
            assert_eq!(found, expected);
        };
        check(
            &[("A", "/a"), ("DP/1", "/b")],
            Some("/b"),
            &[("A", "/a"), ("DP_1", "/b"), ("all", "/b")],
        );
        check(
            &[("A", "/c"), ("..", "/x"), ("all", "/x")],
            Some("/c"),
            &[("A", "/c"), ("all", "/c")],
        );
        check(&[], None, &[]);
        assert!(current.join("note").exists());
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
