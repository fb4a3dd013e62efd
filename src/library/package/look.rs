//! Makes the thumbnail of a package: its preview, or a card with its title. Runs on threads that may
//! decode.

use std::io::BufReader;
use std::path::Path;

use super::manifest::Manifest;
use super::root::Refusal;
use super::root::Root;
use crate::library::decode::MemoryBudget;
use crate::library::{Error, decode};
use crate::media;
use crate::wire::{Resolution, WebMeta};

/// The picture of a package.
pub(super) struct PackageLook {
    /// The size of its preview, if it has one that can be decoded.
    pub(super) size: Option<(u32, u32)>,
    pub(super) thumbnail: media::Thumbnail,
}

/// The thumbnail of a package in the library.
pub(crate) fn thumbnail(
    meta: &WebMeta,
    resolution: Resolution,
    budget: &MemoryBudget,
) -> Result<media::Thumbnail, Error> {
    let root = &meta.package_root;
    let opened = Root::open(root).map_err(Refusal::closed);
    let manifest = opened.and_then(|root| Manifest::read(&root));
    let manifest = manifest.map_err(|refusal| refusal.of(root))?;
    Ok(look(root, &manifest, resolution, budget)?.thumbnail)
}

/// Its preview, or else a card with its title.
pub(super) fn look(
    root: &Path,
    manifest: &Manifest,
    resolution: Resolution,
    budget: &MemoryBudget,
) -> Result<PackageLook, Error> {
    if let Some(look) = of_preview(root, manifest, resolution, budget) {
        return Ok(look);
    }
    let thumbnail = media::placeholder(&manifest.title, resolution.fits());
    let thumbnail = thumbnail.map_err(|source| Error::Media { path: root.to_owned(), source })?;
    Ok(PackageLook { size: None, thumbnail })
}

/// None for a package without a preview, or with one that cannot be decoded.
pub(super) fn of_preview(
    root: &Path,
    manifest: &Manifest,
    resolution: Resolution,
    budget: &MemoryBudget,
) -> Option<PackageLook> {
    let path = manifest.preview.as_ref()?;
    match preview(root, path, resolution, budget) {
        Ok(decode::Decoded { probe, thumbnail }) => {
            Some(PackageLook { size: Some((probe.width, probe.height)), thumbnail })
        }
        Err(error) => {
            log::warn!("{} is not shown: {}", root.join(path).display(), error.reason());
            None
        }
    }
}

fn preview(
    root: &Path,
    path: &Path,
    resolution: Resolution,
    budget: &MemoryBudget,
) -> Result<decode::Decoded, Error> {
    let whole = root.join(path);
    let file = Root::open(root).and_then(|root| root.linked_file(path));
    let file = file.map_err(Error::file("read", &whole))?;
    decode::thumbnail(&whole, &mut BufReader::new(file), resolution, budget, &|| false)
}
