//! What must be watched so that no change of a path goes unseen, however it is made.
//!
//! Pure but for looking at links: a name may be written to, replaced, removed, re-pointed where it
//! is a link, and every directory on the way may go and come back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links followed, as the kernel does.
const MAX_LINKS: usize = 40;

/// Where changes show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchPaths {
    /// Every directory on the way, with the names in it that matter. Where there are none, only
    /// that the directory itself goes away does: its other files are none of our business.
    pub(crate) directories: BTreeMap<PathBuf, BTreeSet<OsString>>,
    /// The file itself, if there is one.
    pub(crate) file: Option<PathBuf>,
}

impl WatchPaths {
    /// On the way to an absolute path.
    pub(crate) fn on_the_way_to(path: &Path) -> Self {
        let mut paths = Self::default();
        let mut at = PathBuf::from("/");
        let mut rest = names(path);
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let found = fs::symlink_metadata(&next);
            if found.as_ref().is_ok_and(|found| found.is_dir()) && !rest.is_empty() {
                paths.directories.entry(at).or_default();
                at = next;
                continue;
            }
            paths.directories.entry(at.clone()).or_default().insert(name);
            links += 1;
            match (found, fs::read_link(&next)) {
                (Ok(_), Ok(target)) if links <= MAX_LINKS => {
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    let mut ahead = names(&target);
                    ahead.append(&mut rest);
                    rest = ahead;
                }
                (Ok(found), _) if found.is_file() && rest.is_empty() => {
                    paths.file = Some(next);
                    return paths;
                }
                // Missing, or not what it should be: its directory tells when that changes.
                _ => return paths,
            }
        }
        paths
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[track_caller]
    fn check(root: &Path, path: &str, watched: &[(&str, &[&str])], file: Option<&str>) {
        let paths = WatchPaths::on_the_way_to(&root.join(path));
        let under = |path: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
        let found: Vec<_> = paths
            .directories
            .iter()
            .filter_map(|(path, names)| Some((under(path)?, names.iter().cloned().collect())))
            .collect();
        let expected: Vec<(PathBuf, Vec<OsString>)> = watched
            .iter()
            .map(|(path, names)| (path.into(), names.iter().map(OsString::from).collect()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(paths.file.as_deref().and_then(under), file.map(PathBuf::from));
    }

    #[test]
    fn watch_paths_cover_every_step() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        check(root, "a/b/c", &[("", &["a"])], None);
        fs::create_dir_all(root.join("a/b")).unwrap();
        check(root, "a/b/c", &[("", &[]), ("a", &[]), ("a/b", &["c"])], None);
        fs::write(root.join("a/b/c"), "").unwrap();
        check(root, "a/b/c", &[("", &[]), ("a", &[]), ("a/b", &["c"])], Some("a/b/c"));
        symlink("../a/b", root.join("a/link")).unwrap();
        let steps: &[(&str, &[&str])] = &[("", &[]), ("a", &["link"]), ("a/b", &["c"])];
        check(root, "a/link/c", steps, Some("a/b/c"));
        symlink(root.join("a/b/c"), root.join("d")).unwrap();
        let steps: &[(&str, &[&str])] = &[("", &["d"]), ("a", &[]), ("a/b", &["c"])];
        check(root, "d", steps, Some("a/b/c"));
        symlink("loop", root.join("loop")).unwrap();
        check(root, "loop", &[("", &["loop"])], None);
    }
}
