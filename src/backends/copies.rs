//! Pictures in a form that a backend accepts: the file itself, or a copy or link in our cache.
//!
//! Runs on the worker's thread. Copies are PNGs of the whole picture, upright; links give a file
//! another name. The name of a copy says what it was made from, so an existing copy is right.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::Error;
use super::decoding::{self, file_error};
use crate::decode::Decoder;
use crate::digest;
use crate::media::Tile;
use crate::paths::Replacement;
use crate::sys::Cancel;
use crate::wire::Format;

/// The files that a backend accepts.
pub(super) struct Takes {
    /// `None`: files that murald's own decoders accept, in any format.
    pub formats: Option<&'static [Format]>,
    /// It turns pictures as the camera noted in EXIF.
    pub turns: bool,
    /// It takes pictures with several frames: some refuse these, the others show the first one.
    pub animates: bool,
    /// None takes any name.
    pub name: Option<Names>,
}

/// Whether a backend can be given a file of this name, and how a file gets another.
pub(super) enum Names {
    /// Renamed through a symbolic link.
    Linked(fn(&Path) -> bool),
    /// Renamed through a hard link or a copy, as the backend follows symbolic links.
    Own(fn(&Path) -> bool),
}

/// The cache of one backend.
pub(super) struct Copies {
    directory: PathBuf,
    decoder: Decoder,
    /// The copy of each file, by the state of the file, so that files are read once.
    known: HashMap<FileState, PathBuf>,
}

/// A file as it is now.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FileState {
    path: PathBuf,
    length: u64,
    inode: u64,
    /// In nanoseconds.
    modified: i128,
    /// The same of a change of anything: also of its links, as that to a twin.
    changed: i128,
}

impl FileState {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let nanoseconds = |seconds, rest| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Ok(Self {
            path: path.to_owned(),
            length: metadata.len(),
            inode: metadata.ino(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Copies {
    pub(super) fn new(directory: PathBuf, decoder: Decoder) -> Self {
        Self { directory, decoder, known: HashMap::new() }
    }

    /// A file of the same picture that the backend can take.
    pub(super) fn ready(
        &mut self,
        path: &Path,
        takes: &Takes,
        cancel: &Cancel,
    ) -> Result<PathBuf, Error> {
        let state = FileState::of(path).map_err(|error| file_error(path, &error))?;
        if let Some(ready) = self.known.get(&state).filter(|ready| self.has(ready, path)) {
            return Ok(ready.clone());
        }
        let ready = match self.converted(&state, takes, cancel)? {
            Some(copy) => copy,
            None => match takes.name {
                Some(Names::Linked(takes)) if !takes(path) => self.link(&state)?,
                Some(Names::Own(takes)) if !takes(path) || path.is_symlink() => {
                    self.twin(&state)?
                }
                _ => path.to_owned(),
            },
        };
        self.known.insert(state, ready.clone());
        Ok(ready)
    }

    /// Whether it is there still: the file itself was looked at just now.
    fn has(&self, ready: &Path, path: &Path) -> bool {
        ready == path || ready.exists()
    }

    /// Removes what none of these files is.
    pub(super) fn tidy(&mut self, used: &[PathBuf]) {
        self.known.retain(|_, ready| used.contains(ready));
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if !used.contains(&path) {
                // Removal is tried again after the next change.
                fs::remove_file(path).ok();
            }
        }
    }

    /// A copy, if the backend cannot take the file's content.
    fn converted(
        &self,
        state: &FileState,
        takes: &Takes,
        cancel: &Cancel,
    ) -> Result<Option<PathBuf>, Error> {
        let (source, decoder) = (&state.path, self.decoder.until(cancel));
        let Some(formats) = takes.formats else {
            return match decoding::look(&decoder, source)? {
                Ok(_) => Ok(None),
                Err(format) => self.transcoded(state, format, cancel).map(Some),
            };
        };
        // A file that can be shown as it is, is not read any further.
        if let Ok(stored) = decoder.stored(source)
            && formats.contains(&stored.format)
            && (takes.turns || stored.upright)
            && (takes.animates || !stored.animated)
        {
            return Ok(None);
        }
        let header = match decoding::look(&decoder, source)? {
            Ok(header) => header,
            Err(format) if formats.contains(&format) => return Ok(None),
            Err(format) => return self.transcoded(state, format, cancel).map(Some),
        };
        let copy = self.copy_of(state);
        if !copy.exists() {
            let (width, height) = (header.width, header.height);
            let whole = Tile { x: 0, y: 0, width, height, pixels: (width, height) };
            let new = Replacement::of(&copy).map_err(|error| self.unwritable(&error))?;
            let cut = decoder.slices(source, &[whole], &[new.path().to_owned()]);
            cut.map_err(decoding::failed(source))?;
            new.land().map_err(|error| self.unwritable(&error))?;
        }
        Ok(Some(copy))
    }

    /// A copy of what only ffmpeg decodes.
    fn transcoded(
        &self,
        state: &FileState,
        format: Format,
        cancel: &Cancel,
    ) -> Result<PathBuf, Error> {
        let (source, copy) = (&state.path, self.copy_of(state));
        if copy.exists() {
            return Ok(copy);
        }
        let new = Replacement::of(&copy).map_err(|error| self.unwritable(&error))?;
        decoding::transcode((source, format), new.path(), cancel)?;
        new.land().map_err(|error| self.unwritable(&error))?;
        Ok(copy)
    }

    /// The same file under a name without anything special in it.
    fn link(&self, state: &FileState) -> Result<PathBuf, Error> {
        let link = self.twin_of(state);
        if fs::read_link(&link).is_ok_and(|target| target == state.path) {
            return Ok(link);
        }
        fs::create_dir_all(&self.directory).map_err(|error| self.unwritable(&error))?;
        fs::remove_file(&link).ok();
        symlink(&state.path, &link).map_err(|error| self.unwritable(&error))?;
        Ok(link)
    }

    /// The same file, no link, under a name without anything special in it.
    fn twin(&self, state: &FileState) -> Result<PathBuf, Error> {
        let twin = self.twin_of(state);
        if twin.exists() {
            return Ok(twin);
        }
        let new = Replacement::of(&twin).map_err(|error| self.unwritable(&error))?;
        // A link to a link would be one.
        let file =
            fs::canonicalize(&state.path).map_err(|error| file_error(&state.path, &error))?;
        if fs::hard_link(&file, &twin).is_err() {
            // Another file system, or somebody else's file.
            fs::copy(&file, new.path()).map_err(|error| self.unwritable(&error))?;
            new.land().map_err(|error| self.unwritable(&error))?;
        }
        Ok(twin)
    }

    /// Also a file of the same length and modification may have other pixels.
    fn copy_of(&self, state: &FileState) -> PathBuf {
        self.named(state, state.changed, "png")
    }

    fn twin_of(&self, state: &FileState) -> PathBuf {
        self.named(state, state.modified, plain_extension(&state.path))
    }

    fn named(&self, state: &FileState, time: i128, extension: &str) -> PathBuf {
        let FileState { path, length, inode, .. } = state;
        let path = path.as_os_str().as_bytes();
        let state = [path, &length.to_le_bytes(), &inode.to_le_bytes(), &time.to_le_bytes()];
        let name = digest::short(state.concat(), 12);
        self.directory.join(format!("{name}.{extension}"))
    }

    fn unwritable(&self, error: &std::io::Error) -> Error {
        Error::Unavailable(format!("cannot write to {}: {error}", self.directory.display()))
    }
}

fn plain_extension(path: &Path) -> &str {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_plain = |extension: &&str| extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    extension.filter(is_plain).unwrap_or("img")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::BufReader;

    use super::*;
    use crate::decode::Settings;
    use crate::media;
    use crate::thread::Spawner;

    fn of(cache: &Path) -> Copies {
        let (spawner, _) = Spawner::new();
        Copies::new(cache.to_owned(), Decoder::start(Settings::default(), &spawner).unwrap())
    }

    const PLAIN: Takes =
        Takes { formats: Some(&[Format::Png]), turns: true, animates: false, name: None };

    /// A picture of one pixel, as BMP.
    fn bmp(path: &Path) {
        let mut bytes = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0".to_vec();
        bytes.extend(
            b"\x01\0\x18\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\0",
        );
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn unsupported_pictures_are_copied_once() {
        let dir = tempfile::tempdir().unwrap();
        let (source, cache) = (dir.path().join("a.bmp"), dir.path().join("cache"));
        bmp(&source);
        let cancel = Cancel::new().unwrap();
        let mut copies = of(&cache);
        let copy = copies.ready(&source, &PLAIN, &cancel).unwrap();
        assert_eq!(copy.parent(), Some(cache.as_path()));
        let mut file = BufReader::new(File::open(&copy).unwrap());
        let probe = media::probe(&mut file).unwrap();
        assert_eq!((probe.format, probe.width, probe.height), (Format::Png, 1, 1));
        let made = fs::metadata(&copy).unwrap().ino();
        assert_eq!(of(&cache).ready(&source, &PLAIN, &cancel).unwrap(), copy);
        assert_eq!(fs::metadata(&copy).unwrap().ino(), made);
        assert_eq!(copies.ready(&copy, &PLAIN, &cancel).unwrap(), copy, "a PNG is taken as it is");
        // Written over by something of the same length, as `cp -p` does, and given its time.
        let time = fs::metadata(&source).unwrap().modified().unwrap();
        bmp(&source);
        File::options().append(true).open(&source).unwrap().set_modified(time).unwrap();
        assert_ne!(copies.ready(&source, &PLAIN, &cancel).unwrap(), copy);
        copies.tidy(&[]);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
        assert!(copies.ready(&source, &PLAIN, &cancel).unwrap().exists(), "made again");
    }

    #[test]
    fn picture_that_moves_is_given_as_its_first_frame() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("a.png");
        let mut encoder = png::Encoder::new(File::create(&source).unwrap(), 1, 1);
        encoder.set_animated(2, 0).unwrap();
        let mut writer = encoder.write_header().unwrap();
        [[7], [200]].iter().for_each(|frame| writer.write_image_data(frame).unwrap());
        writer.finish().unwrap();
        let (cancel, mut copies) = (Cancel::new().unwrap(), of(&dir.path().join("cache")));
        let moves = Takes { animates: true, ..PLAIN };
        assert_eq!(copies.ready(&source, &moves, &cancel).unwrap(), source);
        let mut copies = of(&dir.path().join("cache"));
        let copy = copies.ready(&source, &PLAIN, &cancel).unwrap();
        let mut file = BufReader::new(File::open(&copy).unwrap());
        let probe = media::probe(&mut file).unwrap();
        let picture = probe.decode(&mut file, (1, 1)).unwrap();
        assert_eq!((probe.animated, &picture.pixels()[..3]), (false, &[7; 3][..]));
    }

    #[test]
    fn a_name_that_it_cannot_take_is_linked() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("a,\n#.bmp");
        bmp(&source);
        let name = Some(Names::Linked(|_| false));
        let takes = Takes { formats: Some(&[Format::Bmp]), turns: true, animates: false, name };
        let mut copies = of(&dir.path().join("cache"));
        let link = copies.ready(&source, &takes, &Cancel::new().unwrap()).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), source);
        assert!(link.extension().is_some_and(|extension| extension == "bmp"));
    }

    #[test]
    fn backend_that_follows_links_is_given_none() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("a.bmp");
        bmp(&source);
        let name = Some(Names::Own(|path| !path.to_string_lossy().contains(',')));
        let takes = Takes { formats: Some(&[Format::Bmp]), turns: true, animates: false, name };
        let cancel = Cancel::new().unwrap();
        let ready = |cache: &Path, path: &Path| {
            let copy = of(cache).ready(path, &takes, &cancel).unwrap();
            assert!(!copy.is_symlink());
            assert_eq!(fs::read(&copy).unwrap(), fs::read(&source).unwrap());
            copy
        };
        let cache = dir.path().join("cache");
        assert_eq!(ready(&cache, &source), source);
        let (link, odd) = (dir.path().join("link.bmp"), dir.path().join("a,b.bmp"));
        symlink("a.bmp", &link).unwrap();
        fs::hard_link(&source, &odd).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        for path in [&link, &odd] {
            let twin = ready(&cache, path);
            assert_eq!((twin.parent(), inode(&twin)), (Some(cache.as_path()), inode(&source)));
            assert_eq!(ready(&cache, path), twin);
        }
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 2, "and nothing is left beside them");
        // Without hard links between the two file systems.
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        let places = ["/dev/shm", "/var/tmp"].map(Path::new).into_iter();
        let mut other = places.filter(|at| at.is_dir() && device(at) != device(dir.path()));
        let elsewhere = tempfile::tempdir_in(other.next().expect("a second file system")).unwrap();
        ready(elsewhere.path(), &odd);
    }

    #[test]
    fn no_picture() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("x.png");
        let mut copies = of(&dir.path().join("cache"));
        let cancel = Cancel::new().unwrap();
        for content in [None, Some("no picture")] {
            if let Some(content) = content {
                fs::write(&source, content).unwrap();
            }
            let error = copies.ready(&source, &PLAIN, &cancel).unwrap_err();
            assert!(matches!(error, Error::File { path, .. } if path == source));
        }
    }
}
