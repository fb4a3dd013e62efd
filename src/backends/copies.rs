//! Prepares pictures in a form that a backend accepts: the file itself, or a copy or link in our cache.
//!
//! Runs on the worker's thread. Copies are upright PNGs of the whole picture, or of the part that is
//! visible on a monitor. Links give a file another name. The name of a copy is a hash of all its inputs,
//! so an existing copy is valid.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::decoding::{self, file_error, unwritable};
use super::{Error, Kind, Placement};
use crate::decode::{self, Decoder};
use crate::digest;
use crate::media::{Cut, Tile};
use crate::paths::{Replacement, remove_unused};
use crate::sys::Cancel;
use crate::wire::{Format, Position};

/// The files that a backend accepts.
pub(super) struct Takes {
    /// `None`: files that murald's own decoders accept, in any format.
    pub formats: Option<&'static [Format]>,
    /// The backend rotates pictures according to their EXIF data.
    pub turns: bool,
    /// The backend honours colour profiles, or ignores them in any case.
    pub profiles: bool,
    /// The backend accepts pictures with several frames. Of the others, some reject these and some show
    /// the first frame.
    pub animates: bool,
    /// `None` if the backend accepts any name.
    pub name: Option<Names>,
}

/// Which file names a backend accepts, and how a file gets another one.
pub(super) enum Names {
    /// Renamed through a symbolic link.
    Linked(fn(&Path) -> bool),
    /// Renamed through a hard link or a copy, because the backend follows symbolic links. The backend
    /// goes by the extension, so the new name has that of the file's format.
    Own(fn(&Path) -> bool),
}

/// The cache of one backend.
pub(super) struct Copies {
    directory: PathBuf,
    decoder: Decoder,
    /// The copy of each file for each size, by the state of the file, so that files are read once.
    known: HashMap<(FileState, (u32, u32)), PathBuf>,
}

/// A file as it is now.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FileState {
    path: PathBuf,
    length: u64,
    inode: u64,
    /// In nanoseconds.
    modified: i128,
    /// The time of the last change of anything, including the number of hard links, which a twin adds
    /// to.
    changed: i128,
    /// A description of the cut; empty if there is none.
    cut: String,
}

impl FileState {
    fn read(path: &Path, cut: &Cut) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let nanoseconds = |seconds, rest| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Ok(Self {
            path: path.to_owned(),
            length: metadata.len(),
            inode: metadata.ino(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            cut: if cut.is_whole() {
                String::new()
            } else {
                format!("{cut:?}")
            },
        })
    }
}

/// The part of a picture that a backend should show. A still picture that covers the output is cut for a
/// backend that can only crop at the centre; an animated one is not.
pub(super) fn seen_part(placement: &Placement, covers: bool) -> Cut {
    let position = placement.position.filter(|position| {
        covers && *position != Position::CENTER && placement.kind == Kind::StaticImage
    });
    position.map_or(Cut::WHOLE, |position| Cut {
        position,
        ..output_cut(placement)
    })
}

/// A cut that covers the output.
pub(super) fn output_cut(placement: &Placement) -> Cut {
    let (width, height) = placement.output.turned_size();
    let tile = Tile {
        x: 0,
        y: 0,
        width,
        height,
        pixels: (width, height),
    };
    Cut {
        tiles: vec![tile],
        ..Cut::WHOLE
    }
}

impl Copies {
    pub(super) fn new(directory: PathBuf, decoder: Decoder) -> Self {
        Self {
            directory,
            decoder,
            known: HashMap::new(),
        }
    }

    /// Returns a file of the picture that the backend accepts. A drawing is converted for the output's
    /// size.
    pub(super) fn ready(
        &mut self,
        placement: &Placement,
        cut: &Cut,
        takes: &Takes,
        cancel: &Cancel,
    ) -> Result<PathBuf, Error> {
        self.of_size(
            &placement.path,
            (cut, placement.output.turned_size()),
            takes,
            cancel,
        )
    }

    fn of_size(
        &mut self,
        path: &Path,
        (cut, size): (&Cut, (u32, u32)),
        takes: &Takes,
        cancel: &Cancel,
    ) -> Result<PathBuf, Error> {
        let state = FileState::read(path, cut).map_err(|error| file_error(path, &error))?;
        let key = (state, size);
        let state = &key.0;
        if let Some(ready) = self
            .known
            .get(&key)
            .filter(|ready| Self::exists(ready, path))
        {
            return Ok(ready.clone());
        }
        let ready = match self.converted(state, (cut, size), takes, cancel)? {
            Some(copy) => copy,
            None => match takes.name {
                Some(Names::Linked(takes)) if !takes(path) => self.link(state)?,
                Some(Names::Own(takes)) => {
                    let looked = self.decoder.until(cancel).look(path);
                    let format = looked.map_err(decoding::failed(path))?.format;
                    if !takes(path) || path.is_symlink() || !format.is_named(path) {
                        self.twin(state, format, cancel)?
                    } else {
                        path.to_owned()
                    }
                }
                _ => path.to_owned(),
            },
        };
        self.known.insert(key, ready.clone());
        Ok(ready)
    }

    /// Whether the file still exists. The original itself has been checked just now.
    fn exists(ready: &Path, path: &Path) -> bool {
        ready == path || ready.exists()
    }

    /// Removes all files in the cache except these.
    pub(super) fn tidy(&mut self, used: &[PathBuf]) {
        self.known.retain(|_, ready| used.contains(ready));
        remove_unused(&self.directory, |path| used.iter().any(|used| used == path));
    }

    /// A copy, if the backend does not accept the file's content or should show only a part of it.
    fn converted(
        &self,
        state: &FileState,
        (cut, size): (&Cut, (u32, u32)),
        takes: &Takes,
        cancel: &Cancel,
    ) -> Result<Option<PathBuf>, Error> {
        let source = &state.path;
        let decoder = self.decoder.until(cancel);
        let looked = decoder.look(source).map_err(decoding::failed(source))?;
        let is_ready = match (looked.header, takes.formats) {
            (Ok(_), None) => true,
            (Ok(header), Some(formats)) if takes.profiles && cut.is_whole() => {
                formats.contains(&looked.format)
                    && (takes.turns || header.upright)
                    && (takes.animates || !header.animated)
            }
            (Ok(header), Some(formats)) => {
                !takes.profiles
                    && formats.contains(&looked.format)
                    && (header.plain && !header.animated)
                    && is_cut_by_backend(cut, (header.width, header.height))
                    && (cut.fill.is_none() || !header.alpha)
            }
            (Err(decode::Error::NeedsTranscoder { format, .. }), formats) => {
                formats.is_some_and(|formats| formats.contains(&format)) && cut.tiles.is_empty()
            }
            (Err(error), _) => return Err(decoding::failed(source)(error)),
        };
        if is_ready {
            return Ok(None);
        }
        let own_size = if looked.format == Format::Svg {
            size
        } else {
            (0, 0)
        };
        let copy = self.named(state, (state.changed, own_size), "png");
        if !copy.exists() {
            let new = Replacement::create(&copy).map_err(unwritable(&self.directory))?;
            decoding::cut(
                &decoder,
                source,
                (cut, size),
                &[new.path().to_owned()],
                cancel,
            )?;
            new.land().map_err(unwritable(&self.directory))?;
        }
        Ok(Some(copy))
    }

    /// A symbolic link to the file, with a plain name.
    fn link(&self, state: &FileState) -> Result<PathBuf, Error> {
        let link = self.twin_of(state, plain_extension(&state.path));
        if fs::read_link(&link).is_ok_and(|target| target == state.path) {
            return Ok(link);
        }
        fs::create_dir_all(&self.directory).map_err(unwritable(&self.directory))?;
        fs::remove_file(&link).ok();
        symlink(&state.path, &link).map_err(unwritable(&self.directory))?;
        Ok(link)
    }

    /// A hard link to the file or a copy of it, with a plain name.
    fn twin(&self, state: &FileState, format: Format, cancel: &Cancel) -> Result<PathBuf, Error> {
        let twin = self.twin_of(state, format.as_str());
        if twin.exists() {
            return Ok(twin);
        }
        let new = Replacement::create(&twin).map_err(unwritable(&self.directory))?;
        // A hard link to a symbolic link would be a symbolic link.
        let file =
            fs::canonicalize(&state.path).map_err(|error| file_error(&state.path, &error))?;
        if fs::hard_link(&file, &twin).is_err() {
            // The file is on another file system, or belongs to another user. A process copies it that
            // can be abandoned if the disk hangs.
            fs::remove_file(new.path()).map_err(unwritable(&self.directory))?;
            let copied = self.decoder.until(cancel).copy(&file, new.path());
            copied.map_err(decoding::failed(&file))?;
            new.land().map_err(unwritable(&self.directory))?;
        }
        Ok(twin)
    }

    fn twin_of(&self, state: &FileState, extension: &str) -> PathBuf {
        self.named(state, (state.modified, (0, 0)), extension)
    }

    fn named(
        &self,
        state: &FileState,
        (time, size): (i128, (u32, u32)),
        extension: &str,
    ) -> PathBuf {
        let FileState {
            path,
            length,
            inode,
            cut,
            ..
        } = state;
        let path = path.as_os_str().as_bytes();
        let cut = cut.as_bytes();
        let size = [size.0.to_le_bytes(), size.1.to_le_bytes()].concat();
        let [length, inode] = [length, inode].map(|number| number.to_le_bytes());
        let state = [path, &length, &inode, &time.to_le_bytes(), &size, cut];
        let name = digest::short(state.concat(), 12);
        self.directory.join(format!("{name}.{extension}"))
    }
}

/// Whether the backend itself can cut this part out of a picture of this size.
fn is_cut_by_backend(cut: &Cut, (width, height): (u32, u32)) -> bool {
    let [tile] = cut.tiles[..] else {
        return cut.tiles.is_empty();
    };
    // feh crops to whole pixels: none are left of some tiny pictures, and the monitor is black.
    let has_pixels =
        |side: u32, own: u32, other: u32| u64::from(side) * u64::from(own) >= other.into();
    let (across, down) = tile.pixels;
    let is_broad = has_pixels(width, down, across) && has_pixels(height, across, down);
    !cut.repeats && cut.position == Position::CENTER && is_broad
}

fn plain_extension(path: &Path) -> &str {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_plain = |extension: &&str| extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    extension.filter(is_plain).unwrap_or("img")
}

#[cfg(test)]
mod tests;
