//! Draws the picture of a package: its preview, or a grey card. Runs on threads that may wait
//! for a process that decodes.

use std::fs;
use std::io;
use std::path::Path;

use crate::color::Rgb;
use crate::decode::{Drawn, Header};
use crate::library::Error;
use crate::library::decode::Tools;
use crate::media;
use crate::wire::{Image, Resolution, WebMeta};

/// The decoded preview of a package.
pub(super) struct PreviewLook {
    pub(super) size: (u32, u32),
    pub(super) colors: Vec<Rgb>,
}

/// Writes the thumbnail of a package in the library.
pub(crate) fn package_thumbnail(
    (image, meta): (&Image, &WebMeta),
    resolution: Resolution,
    tools: Tools<'_>,
    to: &Path,
) -> Result<(), Error> {
    let preview = image.preview_path.as_deref();
    package_look(&meta.package_root, preview, resolution, tools, to).map(drop)
}

/// Writes a package's picture as PNG, over the colour `fill`. Returns the colours of a transparent one.
pub(crate) fn package_still(
    (image, meta): (&Image, &WebMeta),
    (resolution, fill): (Resolution, Rgb),
    tools: Tools<'_>,
    to: &Path,
) -> Result<Option<Vec<Rgb>>, Error> {
    let preview = image.preview_path.as_deref();
    let size = (resolution.fits(), fill);
    let root = &meta.package_root;
    match preview.and_then(|file| tools.decoder.still(file, size, to).ok()) {
        Some(colors) => Ok(colors),
        None => write(to, &placeholder(root, resolution)?.picture.png()).map(|()| None),
    }
}

/// Writes a package's preview as a thumbnail. Without a usable preview, writes a grey card and returns
/// `None`.
pub(super) fn package_look(
    root: &Path,
    preview: Option<&Path>,
    resolution: Resolution,
    tools: Tools<'_>,
    to: &Path,
) -> Result<Option<PreviewLook>, Error> {
    if let Some(look) = preview.and_then(|file| preview_of(file, resolution, tools, to)) {
        return Ok(Some(look));
    }
    write(to, &Ok(placeholder(root, resolution)?.webp))?;
    Ok(None)
}

fn placeholder(root: &Path, resolution: Resolution) -> Result<media::Thumbnail, Error> {
    let drawn = media::placeholder(resolution.fits());
    drawn.map_err(|error| Error::decoding(root)(error.into()))
}

fn write(to: &Path, bytes: &Result<Vec<u8>, media::Error>) -> Result<(), Error> {
    let bytes = bytes
        .as_ref()
        .map_err(|error| io::Error::other(error.to_string()));
    bytes
        .and_then(|bytes| fs::write(to, bytes))
        .map_err(Error::file("write", to))
}

/// Writes a package's preview as a thumbnail. `None` if it cannot be decoded.
pub(super) fn preview_of(
    preview: &Path,
    resolution: Resolution,
    tools: Tools<'_>,
    to: &Path,
) -> Option<PreviewLook> {
    let fits = resolution.fits();
    let drawn = tools.decoder.thumbnail(preview, fits, Some(to));
    match drawn.map_err(Error::decoding(preview)) {
        Ok(Drawn {
            header: Header { width, height, .. },
            colors,
            ..
        }) => Some(PreviewLook {
            size: (width, height),
            colors,
        }),
        Err(error) => {
            let preview = preview.display();
            let why = error.reason();
            log::warn!("the preview {preview} is not shown: {why}");
            None
        }
    }
}
