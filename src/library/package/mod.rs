//! Imports packages: HTML wallpapers, which become a directory of the library, and videos that come
//! with a title and a preview.
//!
//! Packages land like pictures ([`super::import_file`]): copied under a temporary name, flushed, noted
//! as pending, renamed, and in one transaction the row written and the note removed. Runs on the calling
//! thread; a decoding process reads and copies the source, which is never changed.

#[cfg(parsers)]
#[path = "../../../tests/fuzz/src/parsers/package.rs"]
pub(super) mod fuzz;
mod look;
mod manifest;

use std::io;
use std::path::{Path, PathBuf};

use super::Error;
use super::context::ImportContext;
use super::decode::Tools;
use super::import_file::no_thumbnail;
use super::name::Name;
use super::task::{Prepared, Ready, Source};
use crate::color;
use crate::decode::{Decoder, Packed};
use crate::digest::Checksum;
use crate::paths::{Replacement, open_regular};
use crate::store::images::{NewImage, NewPackage};
use crate::wire::{Format, MediaType, Resolution, WebMeta};

use look::{package_look, preview_of};
pub(super) use look::{package_still, package_thumbnail};
use manifest::{Kind, Manifest, Refusal};
pub(super) use manifest::{has_manifest, is_manifest};

/// The video of a package, with the title and the preview that the package gives it.
#[derive(Clone, Debug)]
pub(super) struct PackageVideo {
    pub(super) path: PathBuf,
    pub(super) title: String,
    preview: Option<PathBuf>,
}

impl PackageVideo {
    fn new(package: &Path, manifest: &Manifest) -> Self {
        Self {
            path: package.join(&manifest.entry),
            title: manifest.title.clone(),
            preview: manifest.preview.as_ref().map(|it| package.join(it)),
        }
    }
}

/// The video of a package; `None` if the package is a page.
pub(super) fn video_of(package: &Path, decoder: &Decoder) -> Result<Option<PackageVideo>, Error> {
    let manifest = Manifest::read(package, decoder)?;
    Ok(match manifest.kind {
        Kind::Video => Some(PackageVideo::new(package, &manifest)),
        Kind::Web => None,
    })
}

/// A file as the video of a package below `root`, if the file is one.
pub(super) fn as_video(file: &Path, root: &Path, decoder: &Decoder) -> Option<PackageVideo> {
    let above = file.ancestors().skip(1);
    let inside = above.take_while(|above| *above != root && above.starts_with(root));
    let package = inside.filter(|above| has_manifest(above)).last()?;
    let video = video_of(package, decoder).ok().flatten();
    video.filter(|video| video.path == file)
}

impl ImportContext {
    /// Copies a package that is a page, named by its directory or by a file in it.
    pub(super) fn prepare_web(
        &self,
        source: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let source = manifest::package_of(source);
        let manifest = page(source, tools.decoder)?;
        self.prepare_page(source, &manifest, folder, tools)
    }

    /// Copies a package, which is a page or a video.
    pub(super) fn prepare_package(
        &self,
        source: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let manifest = Manifest::read(source, tools.decoder)?;
        match manifest.kind {
            Kind::Web => self.prepare_page(source, &manifest, folder, tools),
            Kind::Video => {
                let video = PackageVideo::new(source, &manifest);
                self.prepare_video(&video, folder, tools)
            }
        }
    }

    fn prepare_page(
        &self,
        source: &Path,
        manifest: &Manifest,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let name = Name::from_title(&manifest.title, String::new());
        // Removed with all that is in it unless it lands.
        let mut copy = self.new_copy()?;
        let packed = tools.decoder.package(source, Some(&copy.path));
        let content = packed.map_err(Error::decoding(source))?;
        (copy.checksum, copy.size) = (content.checksum, content.size);
        if let Some(imported) = self.present(&copy.checksum)? {
            return Ok(imported.into());
        }
        manifest.complete(&copy.path)?;
        let row = self.describe_package((source, &copy.path), manifest, content, folder, tools);
        Ok(Prepared::Copy(Box::new(Ready {
            copy,
            name,
            row,
            note: None,
        })))
    }

    /// Copies the package's video, named by the package's title, with its preview as thumbnail.
    fn prepare_video(
        &self,
        video: &PackageVideo,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let mut source = Source::look_at(&video.path, tools.decoder)?;
        source.name = Name::from_title(&video.title, source.name.extension);
        let prepared = self.prepare_file(&video.path, source, folder, tools)?;
        if let Prepared::Copy(ready) = &prepared {
            self.put_preview(video, &ready.row.checksum, tools);
        }
        Ok(prepared)
    }

    /// Makes a package's preview the thumbnail of its video.
    pub(super) fn put_preview(&self, video: &PackageVideo, checksum: &Checksum, tools: Tools<'_>) {
        if let Some(preview) = &video.preview
            && let Some(new) = self.new_thumbnail(&video.path)
            && preview_of(preview, Resolution::Default, tools, new.path()).is_some()
        {
            self.put_thumbnail(&video.path, checksum, &new);
        }
    }

    /// Gives a row to a package that somebody put into the library's directory. Never removes it.
    pub(super) fn adopt_package(&self, path: &Path, tools: Tools<'_>) -> Result<Prepared, Error> {
        let manifest = page(path, tools.decoder)?;
        // Named by the directory, not by the title: the owner may have renamed it.
        let own = path.file_name().unwrap_or_default();
        let name = Name::from_title(&own.to_string_lossy(), String::new());
        let packed = tools.decoder.package(path, None);
        let content = packed.map_err(Error::decoding(path))?;
        if let Some(imported) = self.present(&content.checksum)? {
            return Ok(imported.into());
        }
        manifest.complete(path)?;
        let row = self.describe_package((path, path), &manifest, content, None, tools);
        let path = path.to_owned();
        let row = Box::new(row);
        Ok(Prepared::Here { path, row, name })
    }

    /// The row of a package that lies at `root` now, and its thumbnail in the cache.
    fn describe_package(
        &self,
        (source, root): (&Path, &Path),
        manifest: &Manifest,
        content: Packed,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> NewImage {
        let new = self.new_thumbnail(source);
        let preview = manifest.preview.as_ref().map(|preview| root.join(preview));
        let look = new.as_ref().and_then(|new| {
            let preview = preview.as_deref();
            let size = Resolution::Default;
            let look = package_look(root, preview, size, tools, new.path());
            look.inspect_err(|error| no_thumbnail(source, error)).ok()
        });
        if let (Some(new), Some(_)) = (&new, &look) {
            self.put_thumbnail(source, &content.checksum, new);
        }
        let look = look.flatten();
        let (width, height) = look.as_ref().map_or((0, 0), |look| look.size);
        let colors = look.map_or_else(Vec::new, |look| look.colors);
        NewImage {
            name: String::new(),
            path: root.join(&manifest.entry),
            format: Format::Html,
            width,
            height,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: content.size,
            checksum: content.checksum,
            hue_group: color::hue_group(&colors),
            colors,
            folder_id: folder,
            source_path: source.to_owned(),
            in_place: false,
            web: Some(NewPackage {
                meta: manifest.meta(root),
                preview: manifest.preview.clone(),
                overrides: manifest.overrides.clone(),
            }),
        }
    }
}

/// The media type of a package, and its title.
pub(super) fn content(source: &Path, decoder: &Decoder) -> Result<(MediaType, String), Error> {
    let manifest = Manifest::read(source, decoder)?;
    let media_type = match manifest.kind {
        Kind::Web => MediaType::Web,
        Kind::Video => MediaType::Video,
    };
    Ok((media_type, manifest.title))
}

/// The manifest of a package that must be a page.
fn page(source: &Path, decoder: &Decoder) -> Result<Manifest, Error> {
    let manifest = Manifest::read(source, decoder)?;
    match manifest.kind {
        Kind::Web => Ok(manifest),
        Kind::Video => {
            let what = "it is a video: `murald import` imports it";
            Err(Refusal::new(what).into_error(source))
        }
    }
}

impl Manifest {
    /// Writes a manifest if the package has none, as capabilities are stored in it.
    fn complete(&self, root: &Path) -> Result<(), Error> {
        if self.file.is_some() {
            return Ok(());
        }
        write_manifest(&root.join(manifest::OWN), &self.text())
    }
}

/// A manifest as it was before it was written.
pub(super) struct Before {
    path: PathBuf,
    text: String,
}

impl Before {
    pub(super) fn put_back(&self) -> Result<(), Error> {
        write_manifest(&self.path, &self.text)
    }
}

/// Writes a package's capabilities into its manifest, in place of those that it asked for.
pub(super) fn write_capabilities(meta: &WebMeta) -> Result<Before, Error> {
    let (root, path) = (&meta.package_root, &meta.manifest_path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let old = open_regular(path).and_then(io::read_to_string);
    let old = old.map_err(Error::file("read", path))?;
    let new = manifest::with_capabilities(&name, &old, meta.capabilities);
    let new = new.map_err(|refusal| refusal.into_error(root))?;
    write_manifest(path, &new)?;
    Ok(Before {
        path: path.clone(),
        text: old,
    })
}

fn write_manifest(path: &Path, text: &str) -> Result<(), Error> {
    let write = || {
        // A link with the temporary name, which the package may have, is not followed.
        let new = Replacement::create(path)?;
        new.fill(text.as_bytes(), 0o644)?;
        new.land()
    };
    write().map_err(Error::file("write", path))
}
