//! Draws the picture of a package: its preview, or a grey card. Runs on threads that may wait
//! for a process that decodes.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::manifest::Manifest;
use super::root::{Refusal, Root};
use crate::color::Rgb;
use crate::decode::{Drawn, Header};
use crate::library::Error;
use crate::library::decode::Tools;
use crate::media;
use crate::wire::{Resolution, WebMeta};

/// The decoded preview of a package.
pub(super) struct PreviewLook {
    pub(super) size: (u32, u32),
    pub(super) colors: Vec<Rgb>,
}

/// Writes the thumbnail of a package in the library.
pub(crate) fn package_thumbnail(
    meta: &WebMeta,
    resolution: Resolution,
    tools: Tools<'_>,
    to: &Path,
) -> Result<(), Error> {
    let manifest = manifest_of(meta)?;
    package_look(&meta.package_root, &manifest, resolution, tools, to).map(drop)
}

/// Writes a package's picture as PNG, over the colour `fill`. Returns the colours of a transparent one.
pub(crate) fn package_still(
    meta: &WebMeta,
    (resolution, fill): (Resolution, Rgb),
    tools: Tools<'_>,
    to: &Path,
) -> Result<Option<Vec<Rgb>>, Error> {
    let (manifest, root) = (manifest_of(meta)?, &meta.package_root);
    let size = (resolution.fits(), fill);
    let file = preview_file(root, &manifest).and_then(Result::ok);
    match file.and_then(|file| tools.decoder.still(&file, size, to).ok()) {
        Some(colors) => Ok(colors),
        None => write(to, &placeholder(root, resolution)?.picture.png()).map(|()| None),
    }
}

fn manifest_of(meta: &WebMeta) -> Result<Manifest, Error> {
    let root = &meta.package_root;
    let opened = Root::open(root).map_err(Refusal::closed);
    let manifest = opened.and_then(|root| Manifest::read(&root));
    manifest.map_err(|refusal| refusal.of(root))
}

/// Writes a package's preview as a thumbnail. Without a usable preview, writes a grey card and returns
/// `None`.
pub(super) fn package_look(
    root: &Path,
    manifest: &Manifest,
    resolution: Resolution,
    tools: Tools<'_>,
    to: &Path,
) -> Result<Option<PreviewLook>, Error> {
    if let Some(look) = preview_of(root, manifest, resolution, tools, to) {
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

/// Writes a package's preview as a thumbnail. `None` if there is no preview, or if it cannot be decoded.
pub(super) fn preview_of(
    root: &Path,
    manifest: &Manifest,
    resolution: Resolution,
    tools: Tools<'_>,
    to: &Path,
) -> Option<PreviewLook> {
    let drawn = preview_file(root, manifest)?.and_then(|file| {
        let drawn = tools.decoder.thumbnail(&file, resolution.fits(), Some(to));
        drawn.map_err(Error::decoding(&file))
    });
    match drawn {
        Ok(Drawn {
            header: Header { width, height, .. },
            colors,
            ..
        }) => Some(PreviewLook {
            size: (width, height),
            colors,
        }),
        Err(error) => {
            log::warn!(
                "the preview of {} is not shown: {}",
                root.display(),
                error.reason()
            );
            None
        }
    }
}

/// The path of the preview with all links resolved; it is in the package. `None` if the manifest names
/// no preview.
fn preview_file(root: &Path, manifest: &Manifest) -> Option<Result<PathBuf, Error>> {
    let path = manifest.preview.as_ref()?;
    let file = Root::open(root).and_then(|root| root.linked_file(path));
    let real = file.and_then(|file| fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())));
    Some(real.map_err(Error::file("read", &root.join(path))))
}
