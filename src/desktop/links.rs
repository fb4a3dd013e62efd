//! The links in `current`: made, re-pointed and removed by the directory's descriptor, which is opened
//! without following a link. What murald has made is on record beside it, before it is made; what is not
//! on record, or leads elsewhere by now, is somebody else's and stays. Runs on the thread `desktop`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, Mode, OFlags, open, readlinkat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use crate::paths::{self, TEMPORARY};

/// The links, in the state directory.
const LINKS: &str = "current";
/// Which of them murald has made: names and targets, each with a zero behind it.
const RECORD: &str = "links";

/// A name in `current`, and where it leads.
type Link = (OsString, PathBuf);

pub(super) struct Links {
    root: PathBuf,
    /// None until the record was read.
    made: Option<BTreeSet<Link>>,
}

impl Links {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, made: None }
    }

    /// Brings the links in line, and touches nothing that is. A name that somebody else has is left to
    /// them, and is an error.
    pub(super) fn write(
        &mut self,
        wanted: &BTreeMap<String, PathBuf>,
    ) -> Result<(), (PathBuf, io::Error)> {
        let path = self.root.join(LINKS);
        let failed = |error: io::Error| (path.clone(), error);
        fs::create_dir_all(&path).map_err(failed)?;
        let directory = opened(&path).map_err(failed)?;
        let wanted: BTreeSet<Link> =
            wanted.iter().map(|(name, to)| (name.into(), to.clone())).collect();
        let made = self.made.take().unwrap_or_else(|| recorded(&self.root));
        let all: BTreeSet<Link> = made.union(&wanted).cloned().collect();
        if all != made {
            let record = self.root.join(RECORD);
            paths::replace(&record, &recording(&all)).map_err(|error| (record, error))?;
        }
        let mut taken = None;
        for (name, target) in &wanted {
            if !link(&directory, name, target, &made).map_err(|error| (path.join(name), error))? {
                let why = "it is there already, and murald has not made it";
                taken = taken.or(Some((path.join(name), io::Error::other(why))));
            }
        }
        for (name, target) in made.difference(&wanted) {
            remove(&directory, name, target).map_err(|error| (path.join(name), error))?;
        }
        self.made = Some(wanted);
        taken.map_or(Ok(()), Err)
    }

    /// Removes those that murald has made; the directory, too, if it holds nothing else.
    pub(super) fn clear(&mut self) {
        let path = self.root.join(LINKS);
        let made = recorded(&self.root).into_iter().chain(self.made.take().into_iter().flatten());
        if let Ok(directory) = opened(&path) {
            // Whatever cannot be removed has another's name by now.
            made.for_each(|(name, target)| drop(remove(&directory, &name, &target)));
            fs::remove_dir(&path).ok();
        }
        fs::remove_file(self.root.join(RECORD)).ok();
    }
}

/// A directory, which must not be a link.
pub(super) fn opened(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Has a name lead there; `false` if it is somebody else's.
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
        // It is no link.
        Err(Errno::INVAL) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    // A run that was killed may have left one.
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
    let words = links.iter().flat_map(|(name, target)| [name.as_os_str(), target.as_os_str()]);
    words.flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect()
}

fn recorded(root: &Path) -> BTreeSet<Link> {
    let bytes = fs::read(root.join(RECORD)).unwrap_or_default();
    let words: Vec<&OsStr> = bytes.split(|&byte| byte == 0).map(OsStr::from_bytes).collect();
    let pairs = words.as_chunks().0.iter();
    pairs.map(|[name, target]| ((*name).to_owned(), PathBuf::from(target))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

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
        links.iter().map(|(name, to)| ((*name).to_owned(), (*to).into())).collect()
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
            links.write(&named(wanted).into_iter().collect()).map_err(|(path, _)| path)
        };
        let mut links = Links::new(root.clone());
        write(&mut links, &[("A", "/a"), ("B", "/b")]).unwrap();
        assert_eq!(there(&current), named(&[("A", "/a"), ("B", "/b"), ("DP-7", "/mine")]));
        // The next run knows them; what the user has re-pointed by then is the user's.
        let mut links = Links::new(root.clone());
        write(&mut links, &[("A", "/c"), ("B", "/b")]).unwrap();
        fs::remove_file(current.join("B")).unwrap();
        symlink("/other", current.join("B")).unwrap();
        write(&mut links, &[("A", "/c")]).unwrap();
        let users = [("A", "/c"), ("B", "/other"), ("DP-7", "/mine")];
        assert_eq!(there(&current), named(&users));
        // Names that are not free hold no other one up.
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
        links.write(&named(&[("A", "/a")]).into_iter().collect()).unwrap();
        // Between the record and the link, and after the link.
        for target in ["/a", "/b"] {
            let both = named(&[("A", "/a"), ("A", "/b")]);
            let both = both.into_iter().map(|(name, to)| (name.into(), to)).collect();
            fs::write(root.join(RECORD), recording(&both)).unwrap();
            fs::remove_file(root.join("current/A")).unwrap();
            symlink(target, root.join("current/A")).unwrap();
            let mut links = Links::new(root.clone());
            links.write(&named(&[("A", "/c")]).into_iter().collect()).unwrap();
            assert_eq!(there(&root.join("current")), named(&[("A", "/c")]));
        }
        Links::new(root.clone()).clear();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }
}
