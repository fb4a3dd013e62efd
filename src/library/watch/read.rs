//! Reads a file that stays where it is: its checksum, and its row if no image has its content. Runs in
//! the import workers, which decide nothing: the thread `library` does with the rows of that moment
//! (`rows`). Never changes the file.

use std::path::Path;
use std::sync::Arc;

use super::super::Error;
use super::super::context::ImportContext;
use super::super::decode::Tools;
use super::super::name::Name;
use super::super::package::as_video;
use super::super::task::{Directory, Facts, NewFile, Prepared, Source, Which, has_lost_its_file};
use crate::decode::{self, Hashed};
use crate::store::watched::{self, Stamp};
use crate::store::{self, images};
use crate::transcode;

impl ImportContext {
    /// Reads a file or package that a watched directory has found with this stamp. Fails with
    /// [`Error::NothingToDo`] if it is gone, which the next walk finds.
    pub(crate) fn read_watched(
        &self,
        (path, found): (&Path, Stamp),
        directory: &Arc<Directory>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        if directory.has_ended() {
            return Err(Error::NothingToDo);
        }
        let facts = match self.read((path, Some(found)), directory, tools) {
            Err(error) if error.is_missing_file() => return Err(Error::NothingToDo),
            Err(error) if is_for_good(&error) => {
                let directory = Arc::clone(directory);
                Facts::new(path.to_owned(), directory, found, Err(error))
            }
            facts => facts?,
        };
        Ok(Prepared::InPlace(Box::new(facts)))
    }

    /// Reads a file that is imported in place by its path, also one that was deleted in murald but kept
    /// on the disk.
    pub(crate) fn read_named(
        &self,
        path: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let directory = Arc::new(Directory::from_file(path, Which::Named(folder)));
        let facts = self.read((path, None), &directory, tools)?;
        if let Ok(checksum) = &facts.content
            && let Some(image) = self.store.read(|c| images::by_checksum(c, checksum))?
            && !image.in_place
            && has_lost_its_file(&image)
        {
            // It is copied again.
            return self.prepare(path, folder, tools);
        }
        Ok(Prepared::InPlace(Box::new(facts)))
    }

    /// `found`: the stamp of a file or package of a watched directory.
    fn read(
        &self,
        (path, found): (&Path, Option<Stamp>),
        directory: &Arc<Directory>,
        tools: Tools<'_>,
    ) -> Result<Facts, Error> {
        // The first bytes are enough to refuse text and archives without reading them whole.
        match (tools.decoder.look(path), found) {
            (Err(decode::Error::Directory), Some(found)) => {
                return self.read_package((path, found), directory, tools);
            }
            (looked, _) => Source::from_looked(path, looked)?,
        };
        let hashed = tools.decoder.checksum(path);
        let Hashed { checksum, meta } = hashed.map_err(Error::decoding(path))?;
        let is_named = matches!(directory.which, Which::Named(_));
        let is_known = self.store.read(|c| {
            if images::by_checksum(c, &checksum)?.is_some() {
                return Ok::<_, Error>(true);
            }
            // The image of this file gets the content, though another file with it was dismissed.
            let has_image = watched::get(c, path)?.is_some_and(|row| row.image_id.is_some())
                || watched::missing_at(c, path)?.is_some();
            Ok(!is_named && !has_image && watched::is_dismissed(c, &checksum)?)
        })?;
        let content = Ok(checksum);
        let mut facts = Facts::new(path.to_owned(), Arc::clone(directory), meta, content);
        if !is_known {
            let (mut name, row, note) = self.describe_in_place(path, checksum, None, tools)?;
            if directory.which == Which::All
                && let Some(video) = as_video(path, &directory.path, tools.decoder)
            {
                name = Name::from_title(&video.title, name.extension);
                self.put_preview(&video, &checksum, tools);
            }
            facts.new = Some(NewFile { name, row, note });
        }
        Ok(facts)
    }

    /// Copies a page, which is one image with all its files, unless it was deleted in murald. The copy
    /// replaces the one of the page as it was before.
    fn read_package(
        &self,
        (path, found): (&Path, Stamp),
        directory: &Arc<Directory>,
        tools: Tools<'_>,
    ) -> Result<Facts, Error> {
        let prepared = match (self.prepare_web(path, None, tools)?, self.page_of(path)?) {
            (Prepared::Copy(ready), Some(id)) => Prepared::Replacement { id, ready },
            (prepared, _) => prepared,
        };
        let dismissed = match &prepared {
            Prepared::Copy(ready) | Prepared::Replacement { ready, .. } => {
                let checksum = ready.copy.checksum;
                let is = self.store.read(|c| watched::is_dismissed(c, &checksum))?;
                is.then_some(checksum)
            }
            _ => None,
        };
        let checksum = match dismissed {
            Some(checksum) => checksum,
            None => (self.land)(prepared)?.image.checksum,
        };
        let path = path.to_owned();
        let directory = Arc::clone(directory);
        Ok(Facts::new(path, directory, found, Ok(checksum)))
    }

    /// The image of a page that was copied from this directory and no other.
    fn page_of(&self, directory: &Path) -> Result<Option<i64>, Error> {
        Ok(self.store.read(|c| -> Result<_, store::Error> {
            let id = watched::get(c, directory)?.and_then(|row| row.image_id);
            let image = id.map(|id| images::get(c, id)).transpose()?.flatten();
            let Some(image) = image.filter(|image| image.web_meta.is_some()) else {
                return Ok(None);
            };
            let is_only = watched::of_image(c, image.id)?.len() == 1;
            Ok(is_only.then_some(image.id))
        })?)
    }
}

/// Whether an unchanged file would fail again with this error: only faults of the file itself, not of a
/// program or a disk.
pub(super) fn is_for_good(error: &Error) -> bool {
    match error {
        Error::Transcode { source, .. } => {
            use transcode::Error::{NoPicture, TooLarge, Truncated};
            matches!(source, NoPicture | TooLarge { .. } | Truncated)
        }
        Error::Media { source, .. } => {
            use decode::Error::{Memory, Picture, Time, Unknown};
            matches!(source, Unknown(_) | Picture(_) | Memory | Time)
        }
        Error::TooLong { .. } | Error::Name { .. } | Error::Package { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_of_the_file_itself_are_permanent() {
        let check = |error: Error, expected| assert_eq!(is_for_good(&error), expected, "{error:?}");
        let path = Path::new("/a.heic");
        let complaint = "killed by signal 9".to_owned();
        for (source, expected) in [
            (transcode::Error::Truncated, true),
            (
                transcode::Error::TooLarge {
                    width: 70_000,
                    height: 1,
                },
                true,
            ),
            (
                transcode::Error::Failed {
                    program: "djxl",
                    complaint,
                },
                false,
            ),
            (transcode::Error::Missing { program: "ffmpeg" }, false),
        ] {
            check(Error::transcoding(path)(source), expected);
        }
        let full = std::io::ErrorKind::StorageFull.into();
        check(
            Error::transcoding(path)(transcode::Error::Write {
                path: path.into(),
                source: full,
            }),
            false,
        );
        for (source, expected) in [
            (decode::Error::Picture("truncated".to_owned()), true),
            (decode::Error::TooLong { bytes: 3 << 30 }, true),
            (decode::Error::Killed, false),
            (decode::Error::Silent, false),
        ] {
            check(Error::decoding(path)(source), expected);
        }
    }
}
