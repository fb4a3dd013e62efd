//! Decides which image gets the content that was read from a file. Pure.

use std::path::{Path, PathBuf};

use crate::digest::Checksum;
use crate::store::watched::{Stamp, WatchedFile};

/// What was read from a file; a file that cannot be decoded has no checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'f> {
    pub(crate) path: &'f Path,
    pub(crate) stamp: &'f Stamp,
    pub(crate) checksum: Option<&'f Checksum>,
}

/// The image to which a file belongs.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) id: i64,
    /// Its present path.
    pub(crate) path: PathBuf,
    pub(crate) is_missing: bool,
}

/// What else has the content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Same {
    Nothing,
    /// A file whose image was deleted in murald.
    Dismissed,
    /// This image. Intact: not missing, and its own file still has its content.
    Image {
        id: i64,
        is_intact: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The row is up to date.
    Nothing,
    /// The file gets a row without an image.
    NoImage,
    /// The image stays, and is missing until its file can be decoded.
    Undecoded(i64),
    /// A new image. Another one that had the file loses it.
    New,
    /// The image keeps its id, and gets the content.
    Rewritten(i64),
    /// The file is one of this image. `moves`: the image uses it from now on. Another one that had the
    /// file loses it.
    Same { id: i64, moves: bool },
}

/// `row` is that of the path. `own` is its image, or the missing one that had its file there.
pub(crate) fn place(
    facts: Facts<'_>,
    row: Option<&WatchedFile>,
    own: Option<&Owner>,
    same: Same,
) -> Placement {
    let is_known = row
        .is_some_and(|row| row.stamp.same(facts.stamp) && row.checksum.as_ref() == facts.checksum);
    if is_known && !own.is_some_and(|own| own.is_missing) {
        return Placement::Nothing;
    }
    if facts.checksum.is_none() {
        return own.map_or(Placement::NoImage, |own| Placement::Undecoded(own.id));
    }
    match (same, own) {
        (Same::Image { id, is_intact }, _) => Placement::Same {
            id,
            moves: !is_intact,
        },
        (_, Some(own)) if own.path == facts.path => Placement::Rewritten(own.id),
        (Same::Dismissed, None) => Placement::NoImage,
        _ => Placement::New,
    }
}
