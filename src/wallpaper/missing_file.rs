//! Whether the files of images can be found.

use std::collections::BTreeSet;
use std::path::Path;

use crate::paths::{Presence, presence, presences};
use crate::wire::Image;

/// Whether the file of an image that a request asks for is missing. A plain colour gets its file when it
/// is shown.
pub(super) fn lacks_file(image: &Image) -> bool {
    let is_of_library = image.library_id().is_some();
    let cannot_be_found = || {
        // The backend says more of another failure.
        let seen = presence(&image.path);
        matches!(seen, Presence::Missing | Presence::NoAnswer)
    };
    is_of_library && (image.is_absent() || cannot_be_found())
}

/// The images of the library whose files are missing. Waits only half a second for all their disks, as
/// the requests for other pictures wait.
pub(super) fn without_file(images: &[Image]) -> BTreeSet<i64> {
    let mut images: Vec<&Image> = images.iter().collect();
    images.retain(|image| image.library_id().is_some());
    let found = presences(images.iter().map(|image| &*image.path));
    let found = images.iter().zip(found);
    let missing = found.filter(|(image, seen)| image.is_absent() || *seen != Presence::There);
    missing.map(|(image, _)| image.id).collect()
}

/// Whether a file cannot be found now, possibly only because its disk does not answer at once.
pub(super) fn file_is_missing(path: &Path) -> bool {
    presences([path].into_iter()) != [Presence::There]
}
