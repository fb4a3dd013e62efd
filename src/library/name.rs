//! Chooses the names of library files: the source's name, made valid and unique.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Error;
use crate::store::{self, Store};
use crate::wire::{Format, MediaType};

/// The maximum length of a file name, in bytes.
pub(super) const NAME_MAX: usize = 255;
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
    pub(super) fn from_path(source: &Path, format: Format) -> Result<Self, Error> {
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

    /// The present name of a library file. Its owner may have chosen one that `from_path` would change.
    pub(super) fn as_is(file: &Path) -> Self {
        let word = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        Self {
            stem: word(file.file_stem()),
            extension: word(file.extension()),
        }
    }

    /// The name of a package, from its title. A package that stays a directory has no extension.
    pub(super) fn from_title(title: &str, extension: String) -> Self {
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

/// Chooses names. Only the thread `library` does, so a name needs no reservation between the choice and
/// the row.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// For each stem, the first number that may be free. Without it, a thousand files of one name would
    /// cost half a million checks.
    numbers: HashMap<String, u32>,
    /// Names of the files that land now, whose rows are not written yet.
    given: HashSet<String>,
}

/// A name that no image has, and the path of a file with it.
#[derive(Clone, Debug)]
pub(super) struct FreeName {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Names {
    /// The first free name of `name`, `name_1`, `name_2`... The image's present name, `own`, counts as
    /// free. A path whose file is still to be removed is not free.
    pub(super) fn free(
        &mut self,
        name: &Name,
        directory: &Path,
        store: &Store,
        own: Option<&str>,
    ) -> Result<FreeName, Error> {
        let hint = self.numbers.get(&name.stem).filter(|_| own.is_none());
        for number in hint.copied().unwrap_or(0).. {
            let candidate = name.numbered(number);
            let path = directory.join(name.file(&candidate));
            let is_own = own == Some(candidate.as_str());
            let is_taken = || -> Result<bool, store::Error> {
                Ok(self.given.contains(&candidate)
                    || path.symlink_metadata().is_ok()
                    || store.read(|c| {
                        Ok::<_, store::Error>(
                            store::images::has_name(c, &candidate)?
                                || store::pending_files::has(c, &path)?,
                        )
                    })?)
            };
            if !is_own && is_taken()? {
                continue;
            }
            if self.numbers.len() >= HINTS_MAX {
                self.numbers.clear();
            }
            self.numbers.insert(name.stem.clone(), number);
            return Ok(FreeName {
                name: candidate,
                path,
            });
        }
        unreachable!("four billion pictures of one name")
    }

    /// Like [`Self::free`] for a file that lands with others: none of them gets the same name.
    pub(super) fn give(
        &mut self,
        name: &Name,
        directory: &Path,
        store: &Store,
    ) -> Result<FreeName, Error> {
        let free = self.free(name, directory, store, None)?;
        self.given.insert(free.name.clone());
        Ok(free)
    }

    /// Whether a file that lands now has the name.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    /// The rows of the files that landed together are written.
    pub(super) fn landed(&mut self) {
        self.given.clear();
    }

    /// Forgets the next numbers of all stems, so that names that are free again are used.
    pub(super) fn forget(&mut self) {
        self.numbers = HashMap::new();
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
            let name = Name::from_path(Path::new(source), format).unwrap();
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
        let name = Name::from_path(Path::new(&long), Format::Png).unwrap();
        assert!(
            name.stem.len() + ".png".len() + SUFFIX_MAX <= NAME_MAX,
            "{}",
            name.stem.len()
        );
        assert_eq!(name.stem, "ö".repeat(120));
        let titled = |title: &str| Name::from_title(title, String::new()).stem;
        assert_eq!(titled("../../etc/\u{1b}[31m\n"), "_.._etc__[31m_");
        assert_eq!(
            (titled(" . "), titled(&"x".repeat(999)).len()),
            ("image".to_owned(), 243)
        );
        let bad = Path::new(OsStr::from_bytes(b"/a/\xff.png"));
        assert!(matches!(
            Name::from_path(bad, Format::Png),
            Err(Error::Name { .. })
        ));
    }

    #[test]
    fn name_is_given_once() {
        let (directory, store) = store::tests::scratch();
        let mut names = Names::default();
        let mut give = |stem: &str, extension: &str| {
            let name = Name {
                stem: stem.into(),
                extension: extension.into(),
            };
            names.give(&name, directory.path(), &store).unwrap()
        };
        assert_eq!(give("a", "png").path, directory.path().join("a.png"));
        // The extension makes no difference to a name.
        assert_eq!(give("a", "jpg").name, "a_1");
        std::fs::write(directory.path().join("a_2.png"), b"somebody else's").unwrap();
        let doomed = directory.path().join("a_3.png");
        store
            .write(|c| store::pending_files::mark(c, &doomed, None))
            .unwrap();
        assert_eq!(give("a", "png").name, "a_4");
        names.landed();
        names.forget();
        let name = Name::as_is(Path::new("a.png"));
        assert_eq!(
            names.give(&name, directory.path(), &store).unwrap().name,
            "a"
        );
    }
}
