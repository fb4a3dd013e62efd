//! Chooses the names of library files: the source's name, made valid and unique.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::Error;
use crate::store::{self, Store};
use crate::sys::lock;
use crate::wire::{Format, MediaType};

/// The maximum length of a file name, in bytes.
const NAME_MAX: usize = 255;
/// Bytes kept free for `_` and a number.
const SUFFIX_MAX: usize = 11;
/// How many name stems are remembered with their next number; the list is cleared when it is full.
const HINTS_MAX: usize = 4096;

/// Whether files of this extension are pictures or videos. HTML is not: a page is imported with its
/// package.
pub(super) fn is_media_extension(extension: &str) -> bool {
    let mut files = Format::ALL
        .iter()
        .filter(|format| format.media_type() != MediaType::Web);
    files.any(|format| format.has_extension(extension))
}

/// The name of a library file before it is made unique; a package has no extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) stem: String,
    pub(super) extension: String,
}

impl Name {
    /// The name of a source file. Its extension is kept if it fits the format.
    pub(super) fn of(source: &Path, format: Format) -> Result<Self, Error> {
        let name = source.file_name().unwrap_or_default();
        let name = name.to_str().ok_or_else(|| Error::Name {
            path: source.to_owned(),
        })?;
        let (stem, extension) = match name.rsplit_once('.') {
            Some((stem, extension)) if is_media_extension(extension) => (stem, extension),
            // The text after another dot is part of the name.
            _ => (name, ""),
        };
        let truth = format.has_extension(extension);
        let extension = if truth { extension } else { format.as_str() }.to_owned();
        Ok(Self {
            stem: fit(stem, extension.len() + 1),
            extension,
        })
    }

    /// The present name of a library file. Its owner may have chosen one that `of` would change.
    pub(super) fn as_is(file: &Path) -> Self {
        let word = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        Self {
            stem: word(file.file_stem()),
            extension: word(file.extension()),
        }
    }

    /// The name of a package, from its title. A package that stays a directory has no extension.
    pub(super) fn of_title(title: &str, extension: String) -> Self {
        Self {
            stem: fit(title, extension.len() + 1),
            extension,
        }
    }

    /// The file name with `candidate` as its stem.
    pub(super) fn file(&self, candidate: &str) -> String {
        match self.extension.as_str() {
            "" => candidate.to_owned(),
            extension => format!("{candidate}.{extension}"),
        }
    }

    fn numbered(&self, number: u32) -> String {
        if number == 0 {
            self.stem.clone()
        } else {
            format!("{}_{number}", self.stem)
        }
    }
}

/// A stem without harmful characters, short enough for a number and `reserve` more bytes.
fn fit(stem: &str, reserve: usize) -> String {
    // Backslashes and control characters break scripts and backends; a leading dot hides the file.
    let clean = |c: char| {
        if c.is_control() || c == '\\' || c == '/' {
            '_'
        } else {
            c
        }
    };
    let stem: String = stem.chars().map(clean).collect();
    // Removes leading dots, also with whitespace between them.
    let stem = stem
        .trim()
        .trim_start_matches(|c: char| c == '.' || c.is_whitespace());
    let room = NAME_MAX - SUFFIX_MAX - reserve;
    let whole = (0..=room)
        .rev()
        .find(|&at| stem.is_char_boundary(at))
        .unwrap_or(0);
    let stem = &stem[..whole.min(stem.len())];
    if stem.is_empty() {
        "image".to_owned()
    } else {
        stem.to_owned()
    }
}

/// The reserved names: no two workers choose the same.
#[derive(Debug, Default)]
pub(super) struct Names {
    inner: Mutex<Inner>,
    /// Held while a picture that has a row is renamed, or moved into the trash.
    renames: Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    reserved: HashSet<String>,
    /// For each stem, the first number that may be free. Without it, a thousand files of one name would
    /// cost half a million checks.
    hints: HashMap<String, u32>,
}

/// A name that nobody else gets until this is dropped.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    names: &'a Names,
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Names {
    /// Reserves the first free name of `name`, `name_1`, `name_2`... The picture's present name, `own`,
    /// counts as free.
    pub(super) fn reserve<'a>(
        &'a self,
        name: &Name,
        directory: &Path,
        store: &Store,
        own: Option<&str>,
    ) -> Result<Reserved<'a>, Error> {
        let first = self.lock().hints.get(&name.stem).copied().unwrap_or(0);
        for number in first.. {
            let candidate = name.numbered(number);
            let path = directory.join(name.file(&candidate));
            let is_own = own == Some(candidate.as_str());
            // Not under the lock: the disk may hang, and the database's writer may wait for the lock.
            let is_there = !is_own && path.symlink_metadata().is_ok();
            // Checked under the lock: another worker that has chosen the name still has it reserved, or
            // has written its row.
            let mut inner = self.lock();
            let is_taken = is_there
                || inner.reserved.contains(&candidate)
                || !is_own && store.read(|c| store::images::has_name(c, &candidate))?;
            if is_taken {
                continue;
            }
            if inner.hints.len() >= HINTS_MAX {
                inner.hints.clear();
            }
            inner.hints.insert(name.stem.clone(), number);
            inner.reserved.insert(candidate.clone());
            return Ok(Reserved {
                names: self,
                name: candidate,
                path,
            });
        }
        unreachable!("four billion pictures of one name")
    }

    /// Waits until nobody else renames a picture, or moves one into the trash.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.renames)
    }

    /// Reserves a name until its picture has been removed from the disk.
    pub(super) fn hold(&self, name: &str, path: &Path) -> Reserved<'_> {
        self.lock().reserved.insert(name.to_owned());
        Reserved {
            names: self,
            name: name.to_owned(),
            path: path.to_owned(),
        }
    }

    /// Like [`Self::hold`], but `None` if the name is already reserved.
    pub(super) fn try_hold(&self, name: &str, path: &Path) -> Option<Reserved<'_>> {
        let free = self.lock().reserved.insert(name.to_owned());
        free.then(|| Reserved {
            names: self,
            name: name.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Forgets the next number of a stem, so that a name that is free again is used without a number.
    pub(super) fn look_anew(&self, stem: &str) {
        self.lock().hints.remove(stem);
    }

    /// Forgets the next numbers of all stems.
    pub(super) fn forget(&self) {
        self.lock().hints = HashMap::new();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.names.lock().reserved.remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn name_is_made_valid_and_keeps_a_right_extension() {
        let check = |source: &str, format, expected: &str| {
            let name = Name::of(Path::new(source), format).unwrap();
            assert_eq!(format!("{}.{}", name.stem, name.extension), expected);
        };
        check("/a/photo.jpg", Format::Jpg, "photo.jpg");
        check("/a/photo.JPEG", Format::Jpg, "photo.JPEG");
        check("/a/photo.jpg", Format::Png, "photo.png");
        check("/a/photo", Format::Webp, "photo.webp");
        check("/a/wall.2024", Format::Png, "wall.2024.png");
        check("/a/.hidden.png", Format::Png, "hidden.png");
        check("/a/. \u{3000}..hidden.png", Format::Png, "hidden.png");
        check("/a/.png", Format::Png, "image.png");
        check("/a/ tab\t\\, #1 .png", Format::Png, "tab__, #1.png");
        check("/a/größe.tif", Format::Tiff, "größe.tif");
        check("/a/page.html", Format::Png, "page.html.png");
        let long = format!("/a/{}.png", "ö".repeat(125));
        let name = Name::of(Path::new(&long), Format::Png).unwrap();
        assert!(
            name.stem.len() + ".png".len() + SUFFIX_MAX <= NAME_MAX,
            "{}",
            name.stem.len()
        );
        assert_eq!(name.stem, "ö".repeat(120));
        let titled = |title: &str| Name::of_title(title, String::new()).stem;
        assert_eq!(titled("../../etc/\u{1b}[31m\n"), "_.._etc__[31m_");
        assert_eq!(
            (titled(" . "), titled(&"x".repeat(999)).len()),
            ("image".to_owned(), 243)
        );
        let bad = Path::new(OsStr::from_bytes(b"/a/\xff.png"));
        assert!(matches!(
            Name::of(bad, Format::Png),
            Err(Error::Name { .. })
        ));
    }

    #[test]
    fn reserved_name_is_not_given_again() {
        let (directory, store) = store::tests::scratch();
        let names = Names::default();
        let reserve = |stem: &str, extension: &str| {
            let name = Name {
                stem: stem.into(),
                extension: extension.into(),
            };
            names
                .reserve(&name, directory.path(), &store, None)
                .unwrap()
        };
        let first = reserve("a", "png");
        assert_eq!(first.path, directory.path().join("a.png"));
        // The extension makes no difference to a name.
        let second = reserve("a", "jpg");
        assert_eq!(second.name, "a_1");
        std::fs::write(directory.path().join("a_2.png"), b"somebody else's").unwrap();
        assert_eq!(reserve("a", "png").name, "a_3");
        drop((first, second));
        names.forget();
        assert_eq!(reserve("a", "png").name, "a");
    }
}
