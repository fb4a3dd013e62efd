//! Whether the file of an image can be found.

use std::path::Path;

use crate::paths::{Presence, presence};
use crate::wire::Image;

/// Whether the file of an image in the library is missing. A plain colour gets its file when it is
/// shown.
pub(super) fn lacks_file(image: &Image) -> bool {
    let is_of_library = image.library_id().is_some();
    is_of_library && (image.is_absent() || file_is_missing(&image.path))
}

/// Whether a file cannot be found now, possibly only because its disk does not answer.
pub(super) fn file_is_missing(path: &Path) -> bool {
    presence(path) != Presence::There
}
