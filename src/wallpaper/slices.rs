//! Pictures that are stretched over several monitors: cut for each, and kept while they hang.
//!
//! Runs on the hand's thread, since cutting takes as long as decoding. A slice's name says all that
//! it was made from, so one that exists is right; those that nothing uses any more are removed.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::backends::{Error, Hanging};
use crate::compositor::Output;
use crate::media::{self, Tile};

pub(super) struct Slices {
    directory: PathBuf,
}

impl Slices {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The same scene with slices in place of pictures that are stretched over several outputs.
    pub(super) fn cut(&self, mut scene: Vec<Hanging>) -> Result<Vec<Hanging>, Error> {
        let whole = scene.clone();
        for hanging in scene.iter_mut().filter(|hanging| hanging.extended_over.len() > 1) {
            let together: Vec<&Hanging> = whole
                .iter()
                .filter(|other| other.image_id == hanging.image_id)
                .filter(|other| other.extended_over == hanging.extended_over)
                .collect();
            hanging.path = self.slice(hanging, &together)?;
        }
        Ok(scene)
    }

    /// Removes the slices that this scene does not use.
    pub(super) fn tidy(&self, scene: &[Hanging]) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if scene.iter().all(|hanging| hanging.path != path) {
                // What cannot be removed now is tried again after the next change.
                fs::remove_file(path).ok();
            }
        }
    }

    /// The file of one slice; makes those of all outputs at once where it is missing.
    fn slice(&self, hanging: &Hanging, together: &[&Hanging]) -> Result<PathBuf, Error> {
        let source = &hanging.path;
        let failed = |error: &dyn std::error::Error| Error::File {
            path: source.clone(),
            why: super::stage::chain(error),
        };
        let tiles: Vec<Tile> = together.iter().map(|other| tile(&other.output)).collect();
        let key = key(source, &tiles).map_err(|error| failed(&error))?;
        let path = |output: &Output| self.path(&key, output);
        let wanted = path(&hanging.output);
        if wanted.exists() {
            return Ok(wanted);
        }
        let mut file = BufReader::new(File::open(source).map_err(|error| failed(&error))?);
        let probe = media::probe(&mut file).map_err(|error| failed(&error))?;
        let slices = probe.slices(&mut file, &tiles).map_err(|error| failed(&error))?;
        fs::create_dir_all(&self.directory).map_err(|error| failed(&error))?;
        for (other, bytes) in together.iter().zip(slices) {
            write(&path(&other.output), &bytes).map_err(|error| failed(&error))?;
        }
        Ok(wanted)
    }

    fn path(&self, key: &str, output: &Output) -> PathBuf {
        // A name of an output has no separator: the compositor's own sockets would break on it.
        self.directory.join(format!("{key}-{}.png", output.name.replace('/', "_")))
    }
}

/// Where an output lies, and the pixels that it shows: those of its mode, turned as it is.
fn tile(output: &Output) -> Tile {
    let turned = output.transform % 2 == 1;
    let (width, height) = (output.width, output.height);
    Tile {
        x: output.x,
        y: output.y,
        width: output.logical_width,
        height: output.logical_height,
        pixels: if turned { (height, width) } else { (width, height) },
    }
}

/// Stands for the picture's content and the layout.
fn key(source: &Path, tiles: &[Tile]) -> std::io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(source)?;
    let changed = (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    let digest = Sha256::digest(format!("{source:?} {changed:?} {tiles:?}"));
    Ok(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// Whole or not at all: the setter may read at any time.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    File::create(&part)?.write_all(bytes)?;
    fs::rename(&part, path)
}
