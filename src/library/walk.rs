//! Finds the files of an import by walking the paths that a client names. Runs on the calling thread,
//! and reads no file.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Error;
use super::listing::list;
use super::name::is_media_extension;
use crate::config::Exclude;
use crate::store::watched::Stamp;
use crate::wire::collate::sort_key;

/// A file or package to be imported, or why there is none.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    /// Its place among those that were found.
    pub(super) place: usize,
    /// Whether it was found in a directory, not named by the client.
    pub(super) inside: bool,
    pub(super) problem: Option<Error>,
    /// The stamp with which a watched directory has found it.
    pub(super) stamp: Stamp,
}

/// Directories are walked depth-first, their entries sorted by name; links are followed, no directory is
/// walked twice. A package counts as one file.
pub(super) fn walk(paths: &[PathBuf], exclude: &Exclude) -> Vec<FoundFile> {
    let mut walk = Walk {
        exclude,
        found: Vec::new(),
        seen: HashSet::new(),
    };
    for path in paths {
        walk.visit(path.clone());
    }
    walk.found
}

struct Walk<'e> {
    exclude: &'e Exclude,
    found: Vec<FoundFile>,
    /// Device and inode of each directory: a link must not lead in circles.
    seen: HashSet<(u64, u64)>,
}

impl Walk<'_> {
    fn visit(&mut self, root: PathBuf) {
        // A stack, not recursion: directories may be nested deeper than a thread's stack.
        let mut pending = vec![root.clone()];
        let mut inside = false;
        while let Some(path) = pending.pop() {
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => pending.extend(self.enter(&root, path, &meta)),
                Ok(meta) if meta.is_file() => self.add(path, inside, None),
                Ok(_) => self.refuse(&path, Error::NotFile { path: path.clone() }),
                Err(error) => self.refuse(&path, Error::file("read", &path)(error)),
            }
            inside = true;
        }
    }

    /// The entries of a directory in reverse order, for the stack.
    fn enter(&mut self, root: &Path, path: PathBuf, meta: &Metadata) -> Vec<PathBuf> {
        if !self.seen.insert((meta.dev(), meta.ino())) {
            return Vec::new();
        }
        let inside = path != root;
        let listing = match list(root, &path, self.exclude) {
            Ok(listing) => listing,
            Err(error) => {
                self.refuse(&path, Error::file("list", &path)(error));
                return Vec::new();
            }
        };
        if inside && listing.has_no_media {
            return Vec::new();
        }
        if listing.is_package {
            self.add(path, inside, None);
            return Vec::new();
        }
        if listing.is_empty && looks_like_picture(&path) {
            self.refuse(&path, Error::EmptyDirectory { path: path.clone() });
        }
        let mut paths: Vec<PathBuf> = listing.entries.iter().map(|one| one.path()).collect();
        paths.sort_by_cached_key(|path| {
            let name = path.file_name().unwrap_or_default();
            Reverse((sort_key(&name.to_string_lossy()), name.to_owned()))
        });
        paths
    }

    fn refuse(&mut self, path: &Path, problem: Error) {
        self.add(path.to_owned(), false, Some(problem));
    }

    fn add(&mut self, path: PathBuf, inside: bool, problem: Option<Error>) {
        self.found.push(FoundFile {
            path,
            place: self.found.len(),
            inside,
            problem,
            stamp: Stamp::default(),
        });
    }
}

/// Judges by the extension alone: only good for choosing files to look at, or to report.
pub(super) fn looks_like_picture(path: &Path) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(is_media_extension)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_found_depth_first_sorted_once_and_without_hidden_ones() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["b/deep/raw", ".hidden", "z.png", "@eaDir", "phone"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in [
            "a.png",
            "c.png",
            "b/10.png",
            "b/2.png",
            "b/deep/1.png",
            "b/.no.png",
            "b/no.png.part",
            "@eaDir/no.png",
            "b/deep/raw/no.png",
            "phone/.nomedia",
            "phone/no.png",
            ".hidden/no.png",
        ] {
            fs::write(at(name), b"x").unwrap();
        }
        fs::create_dir_all(at("b/deep/package/in")).unwrap();
        fs::write(at("b/deep/package/project.json"), b"{}").unwrap();
        fs::write(at("b/deep/package/in/3.png"), b"x").unwrap();
        symlink(directory.path(), at("b/circle")).unwrap();
        symlink(at("c.png"), at("d-link.png")).unwrap();
        symlink(at("nowhere"), at("e-broken.png")).unwrap();
        let paths = [
            directory.path().to_owned(),
            at("missing.png"),
            at(".hidden/no.png"),
        ];
        let found = walk(&paths, &Exclude::new(&["raw/".to_owned()]));
        let shown: Vec<_> = found
            .iter()
            .map(|f| {
                let path = f
                    .path
                    .strip_prefix(directory.path())
                    .unwrap()
                    .to_str()
                    .unwrap();
                (
                    path,
                    f.problem.as_ref().map(Error::reason).unwrap_or_default(),
                )
            })
            .collect();
        let gone = "cannot read it: No such file or directory";
        let broken = "it is a link to a file that does not exist";
        assert_eq!(
            shown,
            [
                ("a.png", String::new()),
                ("b/2.png", String::new()),
                ("b/10.png", String::new()),
                ("b/deep/1.png", String::new()),
                ("b/deep/package", String::new()),
                ("c.png", String::new()),
                ("d-link.png", String::new()),
                ("e-broken.png", broken.to_owned()),
                (
                    "z.png",
                    "it is an empty directory, not a picture".to_owned()
                ),
                ("missing.png", gone.to_owned()),
                (".hidden/no.png", String::new()),
            ]
        );
    }
}
