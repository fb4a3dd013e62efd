//! Writes the links and files in the state directory. Each is replaced by a rename, so that a reader
//! never finds it missing or half-written.
//!
//! Runs on the thread `desktop`. Never touches names that others have created. Nothing is flushed: after
//! a crash the next start writes the files again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, readlinkat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::stills::{self, STILLS, open_directory};
use crate::paths::{self, TEMPORARY};

/// The link to the wallpaper that was set last.
const NEWEST: &str = "all";

/// The files next to the links.
pub(super) const FILES: [&str; 4] = ["palette.json", "colors.sh", "colors.css", "colors.rasi"];

pub(super) struct StateDirectory {
    root: PathBuf,
    links: Links,
    /// The last content of each file.
    written: BTreeMap<&'static str, Vec<u8>>,
    /// A write error was logged.
    complained: bool,
}

impl StateDirectory {
    pub(super) fn new(root: PathBuf) -> Self {
        let links = Links::new(root.clone());
        Self {
            root,
            links,
            written: BTreeMap::new(),
            complained: false,
        }
    }

    /// Updates links (by the names of monitors) and files; leaves those that are right.
    pub(super) fn write(
        &mut self,
        links: &BTreeMap<String, PathBuf>,
        files: [(&'static str, Vec<u8>); 4],
    ) {
        let linked = self.links.write(links);
        let written = files
            .into_iter()
            .try_for_each(|(name, bytes)| self.put(name, bytes));
        match linked.and(written) {
            Ok(()) => self.complained = false,
            Err((path, error)) => {
                if !std::mem::replace(&mut self.complained, true) {
                    let path = path.display();
                    log::warn!("cannot write {path} for other programs: {error}");
                }
            }
        }
    }

    /// Removes the links and files, and leaves what others have created.
    pub(super) fn clear(&mut self) {
        self.written.clear();
        for name in FILES {
            // The file may have been removed already.
            fs::remove_file(self.root.join(name)).ok();
        }
        self.links.clear();
        let stills = self.root.join(STILLS);
        stills::sweep(&stills, |_| false);
        for directory in [&stills, &self.root] {
            // The directory stays if it holds anything else.
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
pub(super) fn link_targets<'s>(
    stills: impl Iterator<Item = (&'s str, &'s Path)>,
    newest: Option<&Path>,
) -> BTreeMap<String, PathBuf> {
    let named = stills.filter_map(|(monitor, still)| Some((link_name(monitor)?, still.to_owned())));
    let newest = newest.map(|still| (NEWEST.to_owned(), still.to_owned()));
    named.chain(newest).collect()
}

/// `None` if the name cannot be a file name, or is one of our own names.
fn link_name(monitor: &str) -> Option<String> {
    let name = monitor.replace('/', "_");
    let taken = ["", ".", "..", NEWEST].contains(&&*name) || name.starts_with(TEMPORARY);
    (!taken && !name.contains('\0')).then_some(name)
}

/// The links, in the state directory.
const LINKS: &str = "current";
/// The record of the links that murald has made: names and targets, each ended by a zero byte.
const RECORD: &str = "links";

/// A name in `current`, and its target.
type Link = (OsString, PathBuf);

pub(super) struct Links {
    root: PathBuf,
    /// `None` until the record was read.
    made: Option<BTreeSet<Link>>,
}

impl Links {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, made: None }
    }

    /// Updates the links; leaves those that are right. A name that another program uses is an error and
    /// is left alone.
    pub(super) fn write(
        &mut self,
        wanted: &BTreeMap<String, PathBuf>,
    ) -> Result<(), (PathBuf, io::Error)> {
        let path = self.root.join(LINKS);
        let failed = |error: io::Error| (path.clone(), error);
        fs::create_dir_all(&path).map_err(failed)?;
        let directory = open_directory(&path).map_err(failed)?;
        let wanted: BTreeSet<Link> = wanted
            .iter()
            .map(|(name, to)| (name.into(), to.clone()))
            .collect();
        let made = self.made.take().unwrap_or_else(|| recorded(&self.root));
        let all: BTreeSet<Link> = made.union(&wanted).cloned().collect();
        if all != made {
            let record = self.root.join(RECORD);
            paths::replace(&record, &recording(&all)).map_err(|error| (record, error))?;
        }
        let mut taken = None;
        for (name, target) in &wanted {
            if !link(&directory, name, target, &made).map_err(|error| (path.join(name), error))? {
                let why = "it exists and was not created by murald";
                taken = taken.or(Some((path.join(name), io::Error::other(why))));
            }
        }
        for (name, target) in made.difference(&wanted) {
            remove(&directory, name, target).map_err(|error| (path.join(name), error))?;
        }
        self.made = Some(wanted);
        taken.map_or(Ok(()), Err)
    }

    /// Removes the links that murald has made, and the directory if it holds nothing else.
    pub(super) fn clear(&mut self) {
        let path = self.root.join(LINKS);
        let made = recorded(&self.root)
            .into_iter()
            .chain(self.made.take().into_iter().flatten());
        if let Ok(directory) = open_directory(&path) {
            // A name that cannot be removed belongs to another program by now.
            made.for_each(|(name, target)| drop(remove(&directory, &name, &target)));
            fs::remove_dir(&path).ok();
        }
        fs::remove_file(self.root.join(RECORD)).ok();
    }
}

/// Points a name to a target; returns false if the name belongs to another program.
fn link(
    directory: impl AsFd,
    name: &OsStr,
    target: &Path,
    made: &BTreeSet<Link>,
) -> io::Result<bool> {
    match target_of(&directory, name) {
        Ok(now) if now == target => return Ok(true),
        Ok(now) if !made.contains(&(name.to_owned(), now.clone())) => return Ok(false),
        Ok(_) | Err(Errno::NOENT) => {}
        // The name is not a link.
        Err(Errno::INVAL) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    // A killed run may have left a temporary link.
    if target_of(&directory, TEMPORARY.as_ref()).is_ok() {
        unlinkat(&directory, TEMPORARY, AtFlags::empty())?;
    }
    symlinkat(target, &directory, TEMPORARY)?;
    renameat(&directory, TEMPORARY, &directory, name)?;
    Ok(true)
}

/// Removes a link if it still leads there.
fn remove(directory: impl AsFd, name: &OsStr, target: &Path) -> io::Result<()> {
    if target_of(&directory, name).is_ok_and(|now| now == target) {
        unlinkat(&directory, name, AtFlags::empty())?;
    }
    Ok(())
}

fn target_of(directory: impl AsFd, name: &OsStr) -> Result<PathBuf, Errno> {
    let target = readlinkat(directory, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

fn recording(links: &BTreeSet<Link>) -> Vec<u8> {
    let words = links
        .iter()
        .flat_map(|(name, target)| [name.as_os_str(), target.as_os_str()]);
    words
        .flat_map(|word| [word.as_bytes(), b"\0"].concat())
        .collect()
}

fn recorded(root: &Path) -> BTreeSet<Link> {
    let bytes = fs::read(root.join(RECORD)).unwrap_or_default();
    let words: Vec<&OsStr> = bytes
        .split(|&byte| byte == 0)
        .map(OsStr::from_bytes)
        .collect();
    let pairs = words.as_chunks().0.iter();
    pairs
        .map(|[name, target]| ((*name).to_owned(), PathBuf::from(target)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const EMPTY: [(&str, Vec<u8>); 4] = [
        (FILES[0], vec![]),
        (FILES[1], vec![]),
        (FILES[2], vec![]),
        (FILES[3], vec![]),
    ];

    #[test]
    fn link_has_the_name_of_its_monitor_unless_that_is_ours() {
        let check = |shown: &[(&str, &str)], newest: Option<&str>, expected: &[(&str, &str)]| {
            let stills = shown
                .iter()
                .map(|(monitor, still)| (*monitor, Path::new(still)));
            let found = link_targets(stills, newest.map(Path::new));
            let expected = expected
                .iter()
                .map(|(name, to)| ((*name).to_owned(), PathBuf::from(to)))
                .collect();
            assert_eq!(found, expected);
        };
        let both = [("A", "/a"), ("DP_1", "/b"), ("all", "/b")];
        check(&[("A", "/a"), ("DP/1", "/b")], Some("/b"), &both);
        let odd = [("A", "/c"), ("..", "/x"), ("all", "/x"), (".new-A", "/x")];
        check(&odd, Some("/c"), &[("A", "/c"), ("all", "/c")]);
        check(&[], None, &[]);
    }

    #[test]
    fn removed_file_is_written_again_and_all_are_cleared() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("murald");
        let mut directory = StateDirectory::new(root.clone());
        let palette = root.join("palette.json");
        for _ in 0..2 {
            directory.write(&BTreeMap::new(), EMPTY);
            assert!(palette.exists());
            fs::remove_file(&palette).unwrap();
        }
        // Files of others stay, and a link is not followed.
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
    fn unwritable_directory_is_only_logged() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("file");
        fs::write(&root, "").unwrap();
        let mut directory = StateDirectory::new(root);
        directory.write(&BTreeMap::new(), EMPTY);
        assert!(directory.complained);
    }

    /// All links of a directory.
    fn there(current: &Path) -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(current).unwrap().flatten();
        let links = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            Some((name, fs::read_link(entry.path()).ok()?))
        });
        let mut links: Vec<_> = links.collect();
        links.sort();
        links
    }

    fn named(links: &[(&str, &str)]) -> Vec<(String, PathBuf)> {
        links
            .iter()
            .map(|(name, to)| ((*name).to_owned(), (*to).into()))
            .collect()
    }

    #[test]
    fn only_links_that_murald_made_are_changed_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("murald");
        let current = root.join("current");
        fs::create_dir_all(&current).unwrap();
        symlink("/gone", current.join(TEMPORARY)).unwrap();
        symlink("/mine", current.join("DP-7")).unwrap();
        fs::write(current.join("note"), "somebody's own").unwrap();
        let write = |links: &mut Links, wanted: &[(&str, &str)]| {
            links
                .write(&named(wanted).into_iter().collect())
                .map_err(|(path, _)| path)
        };
        let mut links = Links::new(root.clone());
        write(&mut links, &[("A", "/a"), ("B", "/b")]).unwrap();
        assert_eq!(
            there(&current),
            named(&[("A", "/a"), ("B", "/b"), ("DP-7", "/mine")])
        );
        // The next run knows the links. A link that the user has changed in the meantime belongs to the
        // user.
        let mut links = Links::new(root.clone());
        write(&mut links, &[("A", "/c"), ("B", "/b")]).unwrap();
        fs::remove_file(current.join("B")).unwrap();
        symlink("/other", current.join("B")).unwrap();
        write(&mut links, &[("A", "/c")]).unwrap();
        let users = [("A", "/c"), ("B", "/other"), ("DP-7", "/mine")];
        assert_eq!(there(&current), named(&users));
        // A name that is in use does not prevent other links.
        for name in ["B", "DP-7", "note"] {
            let refused = write(&mut links, &[(name, "/x"), ("A", "/d")]).unwrap_err();
            assert_eq!(refused, current.join(name));
        }
        links.clear();
        assert_eq!(there(&current), named(&users[1..]));
        assert_eq!(fs::read(current.join("note")).unwrap(), b"somebody's own");
    }

    #[test]
    fn directory_that_is_a_link_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (root, theirs) = (home.path().join("murald"), home.path().join("theirs"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&theirs).unwrap();
        symlink("/a", theirs.join("A")).unwrap();
        symlink(&theirs, root.join("current")).unwrap();
        let mut links = Links::new(root.clone());
        let wanted = named(&[("B", "/b")]).into_iter().collect();
        assert_eq!(links.write(&wanted).unwrap_err().0, root.join("current"));
        links.clear();
        assert_eq!(there(&theirs), named(&[("A", "/a")]));
        assert!(root.join("current").exists());
    }

    #[test]
    fn link_of_a_run_that_was_killed_is_known() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("murald");
        let mut links = Links::new(root.clone());
        links
            .write(&named(&[("A", "/a")]).into_iter().collect())
            .unwrap();
        // The run was killed between the record and the link, or after the link.
        for target in ["/a", "/b"] {
            let both = named(&[("A", "/a"), ("A", "/b")]);
            let both = both
                .into_iter()
                .map(|(name, to)| (name.into(), to))
                .collect();
            fs::write(root.join(RECORD), recording(&both)).unwrap();
            fs::remove_file(root.join("current/A")).unwrap();
            symlink(target, root.join("current/A")).unwrap();
            let mut links = Links::new(root.clone());
            links
                .write(&named(&[("A", "/c")]).into_iter().collect())
                .unwrap();
            assert_eq!(there(&root.join("current")), named(&[("A", "/c")]));
        }
        Links::new(root.clone()).clear();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }
}
